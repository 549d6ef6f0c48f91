import type { A2ARequestHandler } from '@a2a-js/sdk/server';
import { onAbort, type Background } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { HttpListener } from '../../../src/base/http-mount.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import { ANONYMOUS, mayUse, type Authenticator, type Principal, type Scope } from '../auth/principals.js';
import { Caller, type Call } from '../call.js';
import { refusal, restErrorBody, rpcErrorBody, toWireError } from '../errors.js';
import { activeExtensions, extensionsHeader, LIMITS_EXTENSION } from '../extensions.js';
import type { Method, RequestSchemas } from '../parse.js';
import type { PeerDirectory, Resolved } from '../peers/directory.js';
import type { A2AOptions } from '../settings.js';
import { requestedVersion, unsupported, type Dialect } from '../versions.js';
import { checkHeaders, parseJson, readBody } from './body.js';
import { serveCard, type CardDeps } from './card-door.js';
import { answeredPreflight, setCorsHeaders } from './cors.js';
import { sendJson, setCommonHeaders, type Exchange } from './exchange.js';
import { createOriginReader } from './proxy.js';
import { RateLimit } from './rate-limit.js';
import { readRest, runRest } from './rest.js';
import { matchRoute, type Route } from './routes.js';
import { readRpc, runRpc, usableId, type RpcAnswer, type RpcDeps } from './rpc.js';
import { writeStream } from './sse.js';
import { StreamSlots } from './stream-slots.js';

export interface ListenerDeps {
  readonly options: A2AOptions;
  readonly auth: Authenticator;
  readonly directory: PeerDirectory;
  readonly handler: A2ARequestHandler;
  readonly rpc: RpcDeps;
  readonly schemas: RequestSchemas;
  readonly cards: CardDeps;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly background: Background;
  /** Aborts when the gateway stops; requests that come later are refused. */
  readonly stopping: AbortSignal;
  /** Where this gateway is reached, given what a trusted proxy said. */
  baseUrl(forwarded: string | null): string;
}

const SCOPE_OF: Readonly<Record<Method, Scope>> = {
  SendMessage: 'a2a.send',
  SendStreamingMessage: 'a2a.send',
  GetTask: 'a2a.read',
  ListTasks: 'a2a.read',
  SubscribeToTask: 'a2a.read',
  CancelTask: 'a2a.cancel',
  GetExtendedAgentCard: 'a2a.card',
  CreateTaskPushNotificationConfig: 'a2a.push',
  GetTaskPushNotificationConfig: 'a2a.push',
  ListTaskPushNotificationConfigs: 'a2a.push',
  DeleteTaskPushNotificationConfig: 'a2a.push',
};

const STREAMS: ReadonlySet<Method> = new Set<Method>(['SendStreamingMessage', 'SubscribeToTask']);
/** Requests that say in a body what they want. */
const SENDS: ReadonlySet<string> = new Set<Method>(['SendMessage', 'SendStreamingMessage']);
/** What can still be asked about a peer that is gone. */
const READS: ReadonlySet<Method> = new Set<Method>(['GetTask', 'ListTasks']);

const HALF_CLOSED_WAIT_MS = 60_000;

type Style = 'rpc' | 'rest';

/** A caller at a peer's address, after the steps that need no body. */
interface Admitted {
  readonly exchange: Exchange;
  readonly principal: Principal;
  readonly resolved: Resolved;
}

/**
 * The bridge's HTTP door. The order of its checks is fixed, and the first that fails answers:
 *
 * CORS → address rate → credentials → principal rate → route and peer → headers → body → JSON and envelope → version →
 * method → parameters → scope → operation
 */
export function createListener(deps: ListenerDeps): HttpListener {
  const { options, clock, metrics } = deps;
  const originOf = createOriginReader(options.trustProxy);
  const { limits } = options;
  const addressRate = new RateLimit(() => ({ perMinute: limits.ipRatePerMin, burst: limits.ipRatePerMin }), clock);
  const principalRate = new RateLimit(() => ({ perMinute: limits.ratePerMin, burst: limits.burst }), clock);
  const slots = new StreamSlots(options.limits, metrics);
  const requests = metrics.counter('band_a2a_requests_total', 'Requests, by method, dialect, transport and outcome', [
    'method',
    'dialect',
    'transport',
    'outcome',
  ]);

  const callers = new Set<Caller>();
  onAbort(deps.stopping, () => {
    for (const caller of callers) caller.leave();
  });

  return (request, response) => {
    const { pathname, query } = targetOf(request.url ?? '/');
    const exchange: Exchange = {
      request,
      response,
      method: request.method ?? 'GET',
      pathname,
      query,
      origin: originOf(request),
    };
    deps.background.run(() => serve(exchange));
  };

  async function serve(exchange: Exchange): Promise<void> {
    const { route, methods } = matchRoute(exchange.pathname, exchange.method);
    const style: Style = route.kind === 'rpc' ? 'rpc' : 'rest';
    try {
      setCommonHeaders(exchange);
      setCorsHeaders(exchange, options.cors.origins);
      if (answeredPreflight(exchange, options)) return;
      if (deps.stopping.aborted) {
        exchange.response.setHeader('connection', 'close');
        throw new GatewayError('A2A_STOPPING');
      }
      limit(addressRate, exchange.origin.address);
      const principal = isPublic(route) ? null : await deps.auth.authenticate(exchange.request);
      if (principal) limit(principalRate, principal.id);
      if (route.kind === 'unknown') throw refusal('A2A_ROUTE_UNKNOWN');
      if (!methods.includes(exchange.method)) {
        throw new GatewayError('A2A_METHOD_NOT_ALLOWED', { details: { allow: methods.join(', ') } });
      }
      await serveRoute(exchange, route, principal);
    } catch (error) {
      fail(exchange, style, null, error);
    }
  }

  async function serveRoute(
    exchange: Exchange,
    route: Exclude<Route, { kind: 'unknown' }>,
    principal: Principal | null,
  ): Promise<void> {
    if (route.kind === 'peers') {
      servePeers(exchange, principal);
      return;
    }
    const resolved = await deps.directory.resolve(route.alias);
    const isHidden = principal !== null && resolved.kind === 'served' && !mayUse(principal, resolved.peer);
    if (isHidden) throw refusal('A2A_PEER_UNKNOWN', { alias: route.alias });
    if (route.kind === 'card') {
      if (resolved.kind === 'gone') throw refusal('A2A_PEER_UNKNOWN', { alias: route.alias });
      const baseUrl = deps.baseUrl(exchange.origin.forwardedUrl);
      await serveCard(exchange, resolved.peer, route.legacy, baseUrl, deps.cards);
      return;
    }
    if (!principal) throw new Error('an operation is never public');
    const admitted: Admitted = { exchange, principal, resolved };
    if (route.kind === 'rpc') await serveRpc(admitted);
    else await serveRest(admitted, route);
  }

  function servePeers(exchange: Exchange, principal: Principal | null): void {
    const { directory } = deps;
    if (!directory.ready) throw new GatewayError('A2A_NOT_READY', { retryAfterMs: 5_000 });
    const baseUrl = deps.baseUrl(exchange.origin.forwardedUrl);
    const peers = directory
      .list()
      .filter((peer) => principal === null || mayUse(principal, peer))
      .map(({ slug, id, name, handle, description }) => ({
        slug,
        id,
        name,
        handle,
        description,
        cardUrl: `${baseUrl}/agents/${slug}/.well-known/agent-card.json`,
      }));
    sendJson(exchange, 200, { peers: paged(peers, exchange.query), count: peers.length });
  }

  // JSON-RPC

  async function serveRpc(admitted: Admitted): Promise<void> {
    const { exchange, resolved } = admitted;
    let id: string | number | null = null;
    try {
      checkHeaders(exchange.request, options.limits, true);
      const text = await readBody(exchange.request, options.limits, clock);
      const body = parseJson(text, options.limits);
      id = usableId(body);
      const request = readRpc(body, versionHeader(exchange), exchange.query, deps.rpc);
      requireKnown(resolved, request.method);
      await perform(admitted, request.method, request.dialect, 'json_rpc', (call) => runRpc(request, call, deps.rpc));
    } catch (error) {
      fail(exchange, 'rpc', id, error);
    }
  }

  // HTTP+JSON

  async function serveRest(admitted: Admitted, route: Extract<Route, { kind: 'rest' }>): Promise<void> {
    const { exchange, resolved } = admitted;
    const needsBody = SENDS.has(route.operation.name);
    checkHeaders(exchange.request, options.limits, needsBody);
    const body = await readRestBody(exchange, needsBody);
    const asked = requestedVersion(versionHeader(exchange), exchange.query, options.versions);
    if (asked === '0.3' || !options.versions.includes('1.0')) throw unsupported(options.versions);
    const request = readRest(route.operation, exchange.query, body, deps.schemas);
    requireKnown(resolved, request.method);
    await perform(admitted, request.method, '1.0', 'http_json', (call) => runRest(request, call, deps.handler));
  }

  async function readRestBody(exchange: Exchange, needsBody: boolean): Promise<unknown> {
    if (exchange.method !== 'POST') return undefined;
    const text = await readBody(exchange.request, options.limits, clock);
    // A cancel or a subscription says everything in its path.
    if (text === '' && !needsBody) return undefined;
    return parseJson(text, options.limits);
  }

  // Both

  async function perform(
    { exchange, principal, resolved }: Admitted,
    method: Method,
    dialect: Dialect,
    transport: 'json_rpc' | 'http_json',
    run: (call: Call) => Promise<RpcAnswer>,
  ): Promise<void> {
    const { response } = exchange;
    requireScope(principal, method);
    const release = STREAMS.has(method) ? slots.take(principal.id) : null;
    const caller = new Caller();
    if (deps.stopping.aborted) caller.leave();
    const onClose = (): void => {
      caller.leave();
    };
    response.once('close', onClose);
    const letGo = STREAMS.has(method) ? null : patience(exchange, onClose);
    const active = activeExtensions(exchange.request, deps.cards.context('').extendedCard ? [LIMITS_EXTENSION] : []);
    if (active.length > 0) response.setHeader(extensionsHeader(dialect), active.join(', '));
    let outcome = 'error';
    callers.add(caller);
    try {
      const answer = await run({
        requestId: exchange.origin.requestId,
        principal,
        peerId: resolved.kind === 'served' ? resolved.peer.id : resolved.peerId,
        peer: resolved.kind === 'served' ? resolved.peer : null,
        dialect,
        baseUrl: deps.baseUrl(exchange.origin.forwardedUrl),
        caller,
        cut: () => {
          slots.cut();
          response.destroy();
        },
        failure: null,
      });
      if (answer.kind === 'result') {
        const type = transport === 'http_json' ? restType(exchange) : 'application/json';
        sendJson(exchange, 200, answer.body, { 'content-type': type });
      } else {
        await writeStream(response, answer.first, answer.events, {
          clock,
          keepaliveMs: options.stream.keepaliveMs,
          maxAgeMs: options.stream.maxAgeSeconds * 1_000,
          stop: onClose,
        });
      }
      outcome = 'ok';
    } finally {
      callers.delete(caller);
      response.off('close', onClose);
      letGo?.();
      release?.();
      requests.inc({ method, dialect, transport, outcome });
    }
  }

  /**
   * A caller that closed its half may still read, or may be gone for good: it is waited for a while and then answered
   * with what there is, which lets go of either.
   */
  function patience({ request }: Exchange, giveUp: () => void): () => void {
    const { socket } = request;
    let cancel: () => void = () => undefined;
    const onHalfClosed = (): void => {
      cancel = clock.after(HALF_CLOSED_WAIT_MS, giveUp);
    };
    socket.once('end', onHalfClosed);
    if (socket.readableEnded) onHalfClosed();
    return () => {
      socket.off('end', onHalfClosed);
      cancel();
    };
  }

  function requireKnown(resolved: Resolved, method: Method): void {
    if (resolved.kind === 'gone' && !READS.has(method)) throw refusal('A2A_PEER_UNKNOWN', { alias: resolved.peerId });
  }

  function requireScope(principal: Principal, method: Method): void {
    const scope = SCOPE_OF[method];
    if (principal.scopes && !principal.scopes.has(scope)) throw refusal('A2A_SCOPE', { scope });
    const needsName = method === 'GetExtendedAgentCard' && options.extendedCard === 'auto' && deps.auth.configured;
    if (needsName && principal === ANONYMOUS) {
      throw new GatewayError('A2A_UNAUTHENTICATED', { details: { challenge: 'Bearer realm="a2a"' } });
    }
  }

  function isPublic(route: Route): boolean {
    return (route.kind === 'card' && options.cardsPublic) || (route.kind === 'peers' && options.peersPublic);
  }

  function limit(rate: RateLimit, key: string): void {
    const waitMs = rate.take(key);
    if (waitMs !== null) throw new GatewayError('A2A_RATE_LIMITED', { retryAfterMs: waitMs });
  }

  function fail(exchange: Exchange, style: Style, id: string | number | null, error: unknown): void {
    const { response, origin, pathname } = exchange;
    const wire = toWireError(style === 'rest' ? restForm(error) : error, origin.requestId);
    if (!wire.expected) deps.log.error({ err: error, requestId: origin.requestId, path: pathname }, 'a request failed');
    else deps.log.debug({ code: wire.details[0]?.['reason'] ?? wire.rpcCode, requestId: origin.requestId }, 'refused');
    if (response.headersSent) {
      // The answer is under way; there is no way left to say what went wrong.
      response.destroy();
      return;
    }
    if (style === 'rpc') sendJson(exchange, wire.rpcStatus, rpcErrorBody(id, wire), wire.headers);
    else
      sendJson(exchange, wire.restStatus, restErrorBody(wire), { 'content-type': restType(exchange), ...wire.headers });
  }
}

/** Path and query of a request target, which may be anything a client writes. */
function targetOf(target: string): { pathname: string; query: URLSearchParams } {
  // A proxy may send the absolute form.
  if (!target.startsWith('/')) {
    if (!URL.canParse(target)) return { pathname: '', query: new URLSearchParams() };
    const { pathname, searchParams } = new URL(target);
    return { pathname, query: searchParams };
  }
  const mark = target.indexOf('?');
  return mark === -1
    ? { pathname: target, query: new URLSearchParams() }
    : { pathname: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}

/** On REST a foreign request type is the protocol's own error. */
function restForm(error: unknown): unknown {
  return isGatewayError(error, 'A2A_REQUEST_TYPE') ? refusal('A2A_CONTENT_TYPE') : error;
}

const A2A_JSON = 'application/a2a+json';

/** The type of an HTTP+JSON answer: what `Accept` names, else the protocol's own. */
function restType({ request }: Exchange): string {
  const accept = request.headers.accept?.toLowerCase() ?? '';
  return accept.includes('application/json') && !accept.includes(A2A_JSON) ? 'application/json' : A2A_JSON;
}

function versionHeader({ request }: Exchange): string | undefined {
  const value = request.headers['a2a-version'];
  return Array.isArray(value) ? value.join(', ') : value;
}

const MAX_PAGE = 100;

function paged<T>(items: readonly T[], query: URLSearchParams): readonly T[] {
  const size = Number(query.get('page_size') ?? Number.NaN);
  if (!Number.isInteger(size) || size < 1) return items;
  const page = Math.max(1, Number.parseInt(query.get('page') ?? '1', 10) || 1);
  const length = Math.min(size, MAX_PAGE);
  return items.slice((page - 1) * length, page * length);
}

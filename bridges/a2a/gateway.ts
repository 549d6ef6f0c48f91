import { JsonRpcTransportHandler } from '@a2a-js/sdk/server';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import type { Dispatcher } from 'undici';
import { Background, withDeadline } from '../../src/base/async.js';
import type { Clock } from '../../src/base/clock.js';
import { GatewayError } from '../../src/base/errors.js';
import type { HttpMount } from '../../src/base/http-mount.js';
import type { Logger } from '../../src/base/log.js';
import type { Metrics } from '../../src/base/metrics.js';
import type { StateStore } from '../../src/store/port.js';
import { createJwtVerifier } from './auth/jwt.js';
import { createAuthenticator, isLoopbackHost } from './auth/principals.js';
import { BandHealth, watchedCalls, type BandCalls } from './band.js';
import { CardBook } from './cards/card-book.js';
import type { CardContext } from './cards/card.js';
import type { ReadReply } from './convert/directive.js';
import { Bindings } from './engine/bindings.js';
import { TaskEngine } from './engine/engine.js';
import { PageTokens } from './engine/list.js';
import { recordKeys } from './engine/records.js';
import { sweepForever } from './engine/sweep.js';
import { createHandler } from './handler.js';
import { createListener } from './http/listener.js';
import { listenOn, type OwnServer } from './http/own-server.js';
import { isNetwork } from './http/proxy.js';
import { createRequestSchemas, type RequestSchemas } from './parse.js';
import { PeerDirectory } from './peers/directory.js';
import { changeable, takeOver } from './reload.js';
import { countRooms } from './rooms.js';
import type { A2AOptions } from './settings.js';
import { timedStore } from './timed-store.js';

export interface GatewayDeps {
  /** Stands in the keys of the store, e.g. the agent's entry. */
  readonly name: string;
  readonly agentId: string;
  readonly options: A2AOptions;
  readonly rest: BandCalls;
  readonly store: StateStore;
  /** The store outlives the process. */
  readonly durable: boolean;
  /** The common HTTP server; null for a listener of its own. */
  readonly http: HttpMount | null;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly newId: () => string;
  readonly random: () => number;
  readonly dispatcher: Dispatcher | undefined;
  readonly readReply: ReadReply;
}

/** A gateway that serves. */
export interface RunningGateway {
  readonly engine: TaskEngine;
  readonly directory: PeerDirectory;
  readonly health: BandHealth;
  /** Where it is reached, without a trailing slash. */
  readonly url: string;
  /** The port of its own listener; null on the common server. */
  readonly port: number | null;
  /**
   * Takes over from `next` what {@link takeOver} names; work under way goes on.
   *
   * @returns other settings that differ; they want a restart
   * @throws {GatewayError} `CONFIG_INVALID`; nothing has changed then
   */
  reload(next: A2AOptions): readonly string[];
  /** Refuses new requests, ends waits and streams, lets steps under way finish, and stops listening. */
  stop(): Promise<void>;
}

const DEFAULT_PORT = 10_000;
const SELF_DEADLINE_MS = 5_000;

/**
 * Settings that no gateway may start with, one sentence each.
 *
 * @throws {GatewayError} `CONFIG_INVALID`
 */
export function checkOptions(options: A2AOptions, shared: boolean): void {
  const { auth } = options;
  const refuse = (message: string): never => {
    throw new GatewayError('CONFIG_INVALID', { message });
  };
  const hasCredentials = auth.apiKeys.length > 0 || auth.jwt.length > 0;
  const isLoopback = shared || isLoopbackHost(options.host);
  if (auth.anonymous === 'loopback' && !isLoopback) {
    refuse(`a2a.auth.anonymous is loopback, but a2a.host ${options.host} is not a loopback address.`);
  }
  if (!hasCredentials && auth.anonymous === 'never') {
    refuse('a2a.auth names no credentials, and a2a.auth.anonymous does not allow callers without any.');
  }
  for (const { jwksUrl } of auth.jwt) {
    const { protocol, hostname } = new URL(jwksUrl);
    if (protocol !== 'https:' && !isLoopbackHost(hostname)) refuse('a2a.auth.jwt: jwks_url must be https.');
  }
  if (options.publicUrl !== undefined && !options.allowHttpPublic) {
    const { protocol, hostname } = new URL(options.publicUrl);
    if (protocol !== 'https:' && !isLoopbackHost(hostname)) {
      refuse('a2a.public_url must be https, unless a2a.allow_http_public is set.');
    }
  }
  for (const network of options.trustProxy) {
    if (!isNetwork(network)) refuse(`a2a.trust_proxy: ${network} is neither an address nor a network like 10.0.0.0/8.`);
  }
  const slugs = Object.values(options.peers.slugs);
  if (new Set(slugs).size !== slugs.length) refuse('a2a.peers.slugs gives one slug to two peers.');
}

/**
 * Opens the gateway: settings are checked, the port is taken, open tasks are taken up; peers are read from then on.
 *
 * @throws {GatewayError} `CONFIG_INVALID`, `PORT_IN_USE`, and what the store throws
 */
export async function startGateway(deps: GatewayDeps): Promise<RunningGateway> {
  const { clock, log, metrics, http } = deps;
  const store = timedStore(deps.store, clock, metrics);
  const options = changeable(deps.options);
  checkOptions(options, http !== null);
  if (options.auth.anonymous === 'always') {
    log.warn('a2a.auth.anonymous is always: whoever reaches the address may use every peer');
  }
  const keys = recordKeys(`a2a/${deps.name}/`);
  const health = new BandHealth(clock);
  const rest = watchedCalls(deps.rest, health);
  const work = new AbortController();
  const background = new Background((error) => {
    if (!work.signal.aborted) log.error({ err: error }, 'background work of the a2a gateway failed');
  });
  const jwt =
    options.auth.jwt.length > 0
      ? createJwtVerifier({ issuers: options.auth.jwt, clock, log, dispatcher: deps.dispatcher })
      : null;
  const auth = createAuthenticator({ options: options.auth, clock, jwt });

  const bindings = new Bindings({
    store,
    keys,
    rest,
    clock,
    log,
    selfId: deps.agentId,
    deadlineMs: options.dispatchDeadlineMs,
    isSinglePrincipal: () => auth.single,
  });
  const directory = new PeerDirectory({
    rest,
    store,
    keys,
    options,
    clock,
    log,
    metrics,
    selfId: deps.agentId,
    onRemoved: (peerId) => {
      background.run(() => engine.peerRemoved(peerId));
    },
  });
  const engine: TaskEngine = new TaskEngine({
    ...deps,
    options,
    store,
    keys,
    rest,
    health,
    self: { id: deps.agentId, handle: await ownHandle(rest, clock, log) },
    peers: directory,
    findBinding: (owner, contextId) => bindings.find(owner, contextId),
  });
  const cards = new CardBook(store, keys, clock);
  let limited = createRequestSchemas(options.limits);
  const schemas: RequestSchemas = { parse: (...request) => limited.parse(...request) };
  let ownUrl = '';
  const publicUrl = options.publicUrl?.replace(/\/+$/, '');
  const cardContext = (baseUrl: string): CardContext => ({
    options,
    baseUrl,
    authenticated: auth.configured && options.auth.anonymous === 'never',
    extendedCard: options.extendedCard === 'always' || (options.extendedCard === 'auto' && auth.configured),
  });
  const handler = createHandler({
    engine,
    store,
    keys,
    tokens: await PageTokens.of(store, keys),
    cards,
    options,
    now: () => clock.now(),
    cardContext,
  });
  const listener = createListener({
    options,
    auth,
    directory,
    handler,
    rpc: {
      v1: new JsonRpcTransportHandler(handler),
      v03: new LegacyJsonRpcTransportHandler(handler),
      schemas,
      options,
    },
    schemas,
    cards: { cards, options, context: cardContext },
    clock,
    log,
    metrics,
    background,
    stopping: engine.readers,
    baseUrl: (forwarded) => publicUrl ?? forwarded ?? ownUrl,
  });

  await directory.load();
  await engine.start();
  const unmount: (() => void)[] = [];
  let server: OwnServer | null = null;
  try {
    if (http) {
      for (const prefix of ['/agents', '/peers']) unmount.push(http.mount(prefix, listener));
      ownUrl = http.publicUrl ?? '';
    } else {
      const port = typeof options.port === 'number' ? options.port : DEFAULT_PORT;
      server = await listenOn(options.host, port, listener);
      ownUrl = `http://localhost:${server.port}`;
    }
  } catch (error) {
    for (const off of unmount) off();
    await engine.stop(options.shutdownMs);
    throw error;
  }
  background.run(() => directory.run(work.signal));
  background.run(() => bindings.run(work.signal));
  const everyMs = options.peers.refreshSeconds * 1_000;
  background.run(() => countRooms({ rest, clock, log, metrics, everyMs }, work.signal));
  background.run(() =>
    sweepForever(
      {
        store,
        keys,
        book: engine.book,
        clock,
        log,
        retentionMs: options.tasks.retentionSeconds * 1_000,
        windowMs: options.idempotency.windowSeconds * 1_000,
      },
      work.signal,
    ),
  );
  const url = publicUrl ?? ownUrl;
  log.info({ url, durable: deps.durable }, 'a2a gateway serves');

  return {
    engine,
    directory,
    health,
    url,
    port: server?.port ?? null,
    reload(next) {
      checkOptions(next, http !== null);
      const restarts = takeOver(options, next);
      auth.reload(options.auth.apiKeys);
      limited = createRequestSchemas(options.limits);
      directory.republish();
      log.info({ restarts }, 'a2a settings were read again');
      return restarts;
    },
    async stop() {
      await engine.stop(options.shutdownMs);
      work.abort(new GatewayError('A2A_STOPPING'));
      await withDeadline(clock, options.shutdownMs, null, () => background.drain()).catch(() => {
        log.warn('requests were still open at the end of the shutdown time');
      });
      for (const off of unmount) off();
      await server?.close();
    },
  };
}

/** The gateway agent's own handle, which replies begin with; null when Band does not say in time. */
async function ownHandle(rest: BandCalls, clock: Clock, log: Logger): Promise<string | null> {
  try {
    const me = await withDeadline(clock, SELF_DEADLINE_MS, null, (signal) => rest.getMe({ signal }));
    return me.handle?.replace(/^@/, '') ?? null;
  } catch (error) {
    log.warn({ err: error }, 'the own handle could not be read; replies may begin with it');
    return null;
  }
}

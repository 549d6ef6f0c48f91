import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isUuid } from '../../base/ids.js';
import { toError } from '../../base/errors.js';
import type { Logger } from '../../base/log.js';
import { newRequestId, problemOf, refusal, type Answer } from '../answer.js';
import type { RestFault } from '../options.js';
import type { Platform } from '../platform.js';
import { splitTarget } from '../target.js';
import { forbidden, invalid, notFound, Problem, unauthorized } from '../world/problem.js';
import type { Principal } from '../world/world.js';
import { readJson } from './body.js';
import type { RestFaults } from './faults.js';
import { Router, type Route, type Surface } from './router.js';

const HEADERS_TIMEOUT_MS = 20_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than the idle time of any client's pool, so that the server is not the one to hang up. */
const KEEP_ALIVE_MS = 75_000;
const MAX_CONNECTIONS = 10_000;
/** What a client may still send after its request was refused, before the connection is cut. */
const MAX_DRAINED_BYTES = 16 * 1024 * 1024;

export interface RestServerDeps {
  readonly platform: Platform;
  readonly routes: readonly Route[];
  readonly faults: RestFaults;
  readonly log: Logger;
  /** Whether a caller may use the development surface; null when it may. */
  readonly judgeDev: (request: IncomingMessage) => Problem | null;
  readonly extraRoutes: ((request: IncomingMessage, response: ServerResponse) => boolean) | null;
}

/**
 * The REST door. Request → route → credential → fault → body → handler → answer. Whatever happens, the caller gets the
 * error envelope; never an HTML page, never nothing.
 */
export function createRestServer(deps: RestServerDeps): Server {
  const router = new Router(deps.routes);
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: 32 * 1024,
    },
    (request, response) => {
      serve(deps, router, request, response);
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const tooLarge = error.code === 'HPE_HEADER_OVERFLOW';
    const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    const problem = problemOf(tooLarge ? 431 : late ? 408 : 400, 'The request could not be read');
    const { body } = refusal(problem, newRequestId());
    const text = body ?? '';
    socket.end(
      `HTTP/1.1 ${problem.status} Bad Request\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
  });
  return server;
}

function serve(deps: RestServerDeps, router: Router, request: IncomingMessage, response: ServerResponse): void {
  const { path, query } = splitTarget(request.url);
  const method = request.method ?? 'GET';
  const found = router.find(method, path);
  if (!found && !isPlatformPath(path) && deps.extraRoutes?.(request, response) === true) return;

  const requestId = newRequestId();
  const answer = (value: Answer) => {
    deps.log.debug({ method, target: request.url, status: value.status, requestId }, 'sandbox call');
    send(request, response, requestId, value);
  };
  const guard = (work: () => void) => {
    try {
      work();
    } catch (error) {
      answer(refusalOf(error, requestId, deps.log));
    }
  };
  response.on('error', (error) => {
    deps.log.debug({ reason: error.message }, 'answer could not be sent');
  });

  guard(() => {
    if (!found) throw notFound('Route');
    const { route, params, idNames } = found;
    const caller = authorize(deps, route.surface, request);
    checkIds(params, idNames);

    const carryOut = (after: (value: Answer) => void) => {
      readJson(request, (problem, body) => {
        guard(() => {
          if (problem) throw problem;
          if (!deps.platform.healthy) throw problemOf(503, 'The sandbox cannot write to its data folder');
          after(route.handle({ caller, params, query, body }));
        });
      });
    };
    const fault = deps.faults.meet(method, path, caller?.id ?? null);
    if (!fault) {
      carryOut(answer);
      return;
    }
    const meet = () => {
      guard(() => {
        applyFault(fault, { request, requestId, answer, carryOut });
      });
    };
    if (fault.delayMs === undefined || fault.delayMs <= 0) meet();
    else deps.platform.clock.after(fault.delayMs, meet);
  });
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly answer: (value: Answer) => void;
  readonly carryOut: (after: (value: Answer) => void) => void;
}

function applyFault(fault: RestFault, { request, requestId, answer, carryOut }: Exchange): void {
  const breakOff = () => {
    request.socket.destroy();
  };
  if (fault.drop === 'before') {
    breakOff();
    return;
  }
  if (fault.status === undefined) {
    carryOut(fault.drop === 'after' ? breakOff : answer);
    return;
  }
  if (fault.body === undefined && fault.status >= 400) {
    const { body } = refusal(problemOf(fault.status, 'Refused on request'), requestId);
    answer({ status: fault.status, body, headers: fault.headers ?? {} });
    return;
  }
  const isText = typeof fault.body === 'string';
  const body = fault.body == null ? null : typeof fault.body === 'string' ? fault.body : JSON.stringify(fault.body);
  answer({
    status: fault.status,
    body,
    headers: { ...(isText ? { 'Content-Type': 'text/plain; charset=utf-8' } : {}), ...fault.headers },
  });
}

function authorize(deps: RestServerDeps, surface: Surface, request: IncomingMessage): Principal | null {
  if (surface === 'open') return null;
  if (surface === 'dev') {
    const problem = deps.judgeDev(request);
    if (problem) throw problem;
    return null;
  }
  const key = credentialOf(request);
  const caller = key === null ? undefined : deps.platform.world.byKey.get(key);
  if (!caller) throw unauthorized();
  if (surface === 'agent' && caller.kind !== 'Agent') throw forbidden('Agent authentication required');
  if (surface === 'me' && caller.kind !== 'User') throw forbidden('User authentication required');
  return caller;
}

/** `X-API-Key`, else a bearer token; both surfaces take either. */
function credentialOf(request: IncomingMessage): string | null {
  const header = request.headers['x-api-key'];
  if (typeof header === 'string' && header !== '') return header.trim();
  return /^Bearer\s+(\S+)\s*$/i.exec(request.headers.authorization ?? '')?.[1] ?? null;
}

function checkIds(params: Record<string, string>, idNames: readonly string[]): void {
  for (const name of idNames) {
    const value = params[name] ?? '';
    if (!isUuid(value)) throw invalid(`/${name}`, 'is invalid');
    params[name] = value.toLowerCase();
  }
}

const isPlatformPath = (path: string): boolean => path.startsWith('/api/') || path.startsWith('/dev/');

function refusalOf(error: unknown, requestId: string, log: Logger): Answer {
  if (error instanceof Problem) return refusal(error, requestId);
  log.error({ err: toError(error), requestId }, 'sandbox call failed');
  return refusal(problemOf(500, 'Internal error'), requestId);
}

function send(request: IncomingMessage, response: ServerResponse, requestId: string, answer: Answer): void {
  if (response.headersSent || response.destroyed) return;
  const { status, body, headers } = answer;
  // Handed over at once and not one by one: most of an answer's cost is its head.
  const head: Record<string, string | number> = { 'X-Request-Id': requestId };
  if (!request.complete && leftUnread(request)) head['Connection'] = 'close';
  if (body === null) {
    response.writeHead(status, { ...head, ...headers });
    response.end();
    return;
  }
  head['Content-Type'] = 'application/json; charset=utf-8';
  head['Content-Length'] = Buffer.byteLength(body);
  response.writeHead(status, headers ? { ...head, ...headers } : head);
  response.end(request.method === 'HEAD' ? undefined : body);
}

/**
 * The rest of a refused request is thrown away, within a limit, so that the client gets to read the answer.
 *
 * @returns whether there is a rest
 */
function leftUnread(request: IncomingMessage): boolean {
  const expected = Number(request.headers['content-length'] ?? 0);
  const hasBody = expected > 0 || request.headers['transfer-encoding'] !== undefined;
  if (!hasBody) return false;
  let drained = 0;
  request.on('data', (chunk: Buffer) => {
    drained += chunk.length;
    if (drained > MAX_DRAINED_BYTES) request.socket.destroy();
  });
  request.resume();
  return true;
}

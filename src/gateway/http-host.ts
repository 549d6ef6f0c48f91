import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { GatewayError } from '../base/errors.js';
import type { HttpListener, HttpMount, UpgradeListener } from '../base/http-mount.js';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { Metrics } from '../base/metrics.js';
import { canDecline, declineUpgrade } from './declined-upgrade.js';
import { sendError } from './http-errors.js';
import type { Lifecycle } from './lifecycle.js';
import { traced } from './tracing.js';

export interface HttpHostOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly publicUrl?: string | undefined;
  readonly maxConnections: number;
  readonly headerTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly maxHeaderBytes: number;
}

/** The one HTTP server of the service: a table from path prefixes to listeners. */
export interface HttpHost extends HttpMount, Lifecycle {
  /** The port that was taken; null before the start. */
  readonly port: number | null;
  /** Address for people on this machine, e.g. `http://127.0.0.1:8080`. */
  readonly localUrl: string;
  /** Answers requests for exactly this path, e.g. `/`. */
  exact(path: string, listener: HttpListener): void;
  /** Until called, unknown paths are answered 503: what they belong to may still be starting. */
  opened(): void;
}

interface Mounted {
  readonly listener: HttpListener;
  readonly upgrade: UpgradeListener | null;
}

// How often Node looks for requests that take too long.
const TIMEOUT_CHECK_MS = 2_000;

/** How long requests in flight may take once the server stops. */
const DRAIN_MS = 5_000;

/**
 * Request → prefix table → listener. Bodies are the listeners' affair; slow or oversized headers, unknown paths and
 * broken requests are answered here.
 */
export function createHttpHost(
  options: HttpHostOptions,
  { log, metrics, clock }: { log: Logger; metrics: Metrics; clock: Clock },
): HttpHost {
  const mounts = new Map<string, Mounted>();
  /** Prefixes that were taken off: their owner restarts, so they are 503, not 404. */
  const absent = new Set<string>();
  const exact = new Map<string, HttpListener>();
  const upgraded = new Set<Duplex>();
  const requests = metrics.counter('band_http_requests_total', 'Answered requests.', ['mount', 'status']);
  const dropped = metrics.counter('band_http_connections_refused_total', 'Connections over the limit.');
  const broken = metrics.counter('band_http_broken_requests_total', 'Requests that were no HTTP, or came too slowly.');
  let deepest = 1;
  let isOpen = false;
  let stopping = false;

  const server = createServer(
    {
      maxHeaderSize: options.maxHeaderBytes,
      headersTimeout: options.headerTimeoutMs,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    },
    (request, response) => {
      const found = find(request);
      const label = found?.prefix ?? 'none';
      const begun = clock.now();
      response.once('close', () => {
        const { statusCode: status } = response;
        requests.inc({ mount: label, status: `${Math.floor(status / 100)}xx` });
        log.debug({ method: request.method, mount: label, status, ms: clock.now() - begun }, 'request answered');
      });
      if (stopping) response.setHeader('connection', 'close');
      if (!found) refuse(request, response);
      else
        traced(request, response, label, () => {
          answer(found.listener, request, response);
        });
    },
  );
  server.requestTimeout = options.requestTimeoutMs;
  server.keepAliveTimeout = options.keepAliveMs;
  server.maxConnections = options.maxConnections;
  // A client that has said all it has to say may close its half and still read.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  server.on('drop', () => {
    dropped.inc();
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (canDecline(request)) {
      declineUpgrade(server, request, socket, head);
      return;
    }
    const upgrade = stopping ? null : find(request)?.upgrade;
    if (!upgrade) {
      socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    upgrade(request, socket, head);
  });
  // An expectation that nobody knows may be ignored; Node's own refusal would be no JSON.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    broken.inc();
    answerBroken(error, socket);
  });

  function find(request: IncomingMessage): (Mounted & { readonly prefix: string }) | null {
    const path = pathOf(request);
    const only = exact.get(path);
    if (only) return { prefix: path, listener: only, upgrade: null };
    for (const prefix of prefixesOf(path, deepest)) {
      const mounted = mounts.get(prefix);
      if (mounted) return { prefix, ...mounted };
    }
    return null;
  }

  function answer(listener: HttpListener, request: IncomingMessage, response: ServerResponse): void {
    try {
      listener(request, response);
    } catch (error) {
      log.error({ err: error, method: request.method, path: pathOf(request) }, 'request failed');
      if (response.headersSent) response.destroy();
      else sendError(response, 500, 'internal_error', 'Something went wrong here; the log knows more.');
    }
  }

  function refuse(request: IncomingMessage, response: ServerResponse): void {
    const awaited = !isOpen || prefixesOf(pathOf(request), deepest).some((prefix) => absent.has(prefix));
    if (awaited) sendError(response, 503, 'starting', 'This part is not running yet.', { 'retry-after': '2' });
    else sendError(response, 404, 'not_found', 'Nothing is served at this path.');
  }

  return {
    name: 'http',
    get port() {
      return portOf(server);
    },
    get localUrl() {
      const host = ['0.0.0.0', '::'].includes(options.host) ? '127.0.0.1' : options.host;
      return `http://${host.includes(':') ? `[${host}]` : host}:${portOf(server) ?? options.port}`;
    },
    get publicUrl() {
      if (options.publicUrl !== undefined) return options.publicUrl.replace(/\/+$/, '');
      const port = portOf(server);
      return port === null ? null : `http://localhost:${port}`;
    },
    mount(prefix, listener, upgrade) {
      if (!/^\/.*[^/]$/.test(prefix))
        throw new TypeError(`A prefix begins with / and does not end with one: ${prefix}`);
      if (mounts.has(prefix) || exact.has(prefix)) {
        const message = `Two parts of the service want ${prefix}; give one of them a port or a path of its own.`;
        throw new GatewayError('CONFIG_INVALID', { message });
      }
      const mounted: Mounted = { listener, upgrade: upgrade ?? null };
      mounts.set(prefix, mounted);
      absent.delete(prefix);
      deepest = Math.max(deepest, prefix.split('/').length - 1);
      return () => {
        if (mounts.get(prefix) !== mounted) return;
        mounts.delete(prefix);
        absent.add(prefix);
      };
    },
    exact(path, listener) {
      exact.set(path, listener);
    },
    opened() {
      isOpen = true;
    },
    async start() {
      await listen(server, options.host, options.port);
      log.info({ host: options.host, port: portOf(server) }, 'http server listens');
    },
    async stop() {
      stopping = true;
      if (!server.listening) return;
      const closed = new Promise<void>((resolve) =>
        server.close(() => {
          resolve();
        }),
      );
      for (const socket of upgraded) socket.destroy();
      server.closeIdleConnections();
      const cancel = clock.after(DRAIN_MS, () => {
        server.closeAllConnections();
      });
      await closed;
      cancel();
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      reject(listenError(error, host, port));
    };
    server.once('error', onError);
    server.listen(port, host, () => {
      server.off('error', onError);
      resolve();
    });
  });
}

/** The error of a server that could not listen, in words that say which setting to change. */
export function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE') {
    const message = `Port ${port} on ${host} is already in use. Stop what uses it, or choose another port (0 takes any free one).`;
    return new GatewayError('PORT_IN_USE', { cause: error, message, details: { host, port } });
  }
  if (error.code === 'EACCES') {
    const message = `Port ${port} on ${host} may not be used by this user. Choose a port above 1023.`;
    return new GatewayError('CONFIG_INVALID', { cause: error, message, details: { host, port } });
  }
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') {
    const message = `${host} is no address of this machine.`;
    return new GatewayError('CONFIG_INVALID', { cause: error, message, details: { host, port } });
  }
  return error;
}

function portOf(server: Server): number | null {
  return (server.address() as AddressInfo | null)?.port ?? null;
}

function pathOf(request: IncomingMessage): string {
  const url = request.url ?? '/';
  const query = url.indexOf('?');
  const path = query === -1 ? url : url.slice(0, query);
  if (path.startsWith('/')) return path;
  // A proxy may send the absolute form.
  return URL.canParse(path) ? new URL(path).pathname : '';
}

/** `/a/b/c` → `/a/b/c`, `/a/b`, `/a`, no deeper than any mount is. */
function prefixesOf(path: string, deepest: number): string[] {
  const prefixes: string[] = [];
  let end = 0;
  for (let depth = 0; depth < deepest; depth += 1) {
    const next = path.indexOf('/', end + 1);
    if (next === -1) {
      prefixes.push(path);
      break;
    }
    prefixes.push(path.slice(0, next));
    end = next;
  }
  return prefixes.reverse();
}

function answerBroken(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'headers_too_large']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'request_timeout']
        : ['400 Bad Request', 'bad_request'];
  const body = JSON.stringify({ error: { code, message: 'The request could not be read.' } });
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

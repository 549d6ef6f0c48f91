import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { GatewayError } from '../../../src/base/errors.js';
import type { HttpListener } from '../../../src/base/http-mount.js';

export interface OwnServer {
  readonly port: number;
  /** Stops listening and closes what is open. */
  close(): Promise<void>;
}

export interface ServerTimeouts {
  readonly headersTimeoutMs: number;
  /** Headers and body together; the body has a deadline of its own. A running stream has received its request. */
  readonly requestTimeoutMs: number;
  /** How often Node looks for requests that take too long. */
  readonly checkEveryMs: number;
}

const TIMEOUTS: ServerTimeouts = { headersTimeoutMs: 15_000, requestTimeoutMs: 50_000, checkEveryMs: 1_000 };

/**
 * A listener of the bridge's own, for an adapter that runs as a library.
 *
 * @throws {GatewayError} `PORT_IN_USE`, with the address in its text
 */
export async function listenOn(
  host: string,
  port: number,
  listener: HttpListener,
  timeouts = TIMEOUTS,
): Promise<OwnServer> {
  const server = createServer(
    {
      headersTimeout: timeouts.headersTimeoutMs,
      requestTimeout: timeouts.requestTimeoutMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
    },
    listener,
  );
  // A client that has said all it has to say may close its half and still read.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  server.on('clientError', answerBroken);
  // An expectation that nobody knows may be ignored; Node's own refusal would be no JSON.
  server.on('checkExpectation', listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EADDRINUSE') reject(cause);
      else
        reject(new GatewayError('PORT_IN_USE', { cause, message: `The address ${host}:${port} is already in use.` }));
    });
    server.listen(port, host, resolve);
  });
  return { port: (server.address() as AddressInfo).port, close: () => closeServer(server) };
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}

/** Requests that are no HTTP, or too slow, are answered in JSON like everything else. */
function answerBroken(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [code, status, phrase] =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? [408, 'DEADLINE_EXCEEDED', 'Request Timeout']
      : error.code === 'HPE_HEADER_OVERFLOW'
        ? [431, 'INVALID_ARGUMENT', 'Request Header Fields Too Large']
        : [400, 'INVALID_ARGUMENT', 'Bad Request'];
  const body = JSON.stringify({ error: { code, status, message: 'The request could not be read.', details: [] } });
  socket.end(
    `HTTP/1.1 ${code} ${phrase}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  );
}

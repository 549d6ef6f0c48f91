import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasBody } from './body.js';
import type { Origin } from './proxy.js';

/** One HTTP request on its way through the bridge. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  readonly pathname: string;
  readonly query: URLSearchParams;
  readonly origin: Origin;
}

/** Headers of every answer. */
export const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const;

export function setCommonHeaders({ response, origin }: Exchange): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  response.setHeader('x-request-id', origin.requestId);
  if (origin.secure) response.setHeader('strict-transport-security', 'max-age=31536000');
}

/** Sends a JSON answer; a body that was not read to its end closes the connection behind it. */
export function sendJson(
  { request, response, method }: Exchange,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent || response.destroyed) return;
  const text = JSON.stringify(body);
  if (!request.complete && hasBody(request)) response.setHeader('connection', 'close');
  response.writeHead(status, {
    'content-type': 'application/json',
    ...headers,
    'content-length': String(Buffer.byteLength(text)),
  });
  response.end(method === 'HEAD' ? undefined : text);
}

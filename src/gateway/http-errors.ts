import type { ServerResponse } from 'node:http';

/** Sends a small JSON answer that no cache keeps. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  response.end(text);
}

/** Sends a refusal in the form that every door of the common server uses where no protocol has one of its own. */
export function sendError(
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendJson(response, status, { error: { code, message } }, headers);
}

/** Refuses a method that a route does not have. */
export function sendMethodNotAllowed(response: ServerResponse, allowed: string): void {
  sendError(response, 405, 'method_not_allowed', `Only ${allowed} is served here.`, { allow: allowed });
}

import type { A2AOptions } from '../settings.js';
import type { Exchange } from './exchange.js';

const EXPOSED = 'A2A-Version, ETag, Retry-After, WWW-Authenticate, X-Request-Id';
const MAX_AGE_SECONDS = 600;

/** Headers for a browser at an allowed origin; others get none. */
export function setCorsHeaders({ request, response }: Exchange, origins: readonly string[]): void {
  if (origins.length === 0) return;
  response.appendHeader('vary', 'Origin');
  const { origin } = request.headers;
  if (origin === undefined) return;
  if (!origins.includes(origin) && !origins.includes('*')) return;
  response.setHeader('access-control-allow-origin', origins.includes(origin) ? origin : '*');
  response.setHeader('access-control-expose-headers', EXPOSED);
}

/** Answers a preflight. @returns false when the request is none */
export function answeredPreflight({ request, response, method }: Exchange, options: A2AOptions): boolean {
  if (method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false;
  if (response.hasHeader('access-control-allow-origin')) {
    response.setHeader('access-control-allow-methods', 'GET, HEAD, POST, DELETE');
    response.setHeader(
      'access-control-allow-headers',
      `A2A-Version, A2A-Extensions, Authorization, Content-Type, ${options.auth.apiKeyHeader}`,
    );
    response.setHeader('access-control-max-age', String(MAX_AGE_SECONDS));
  }
  response.writeHead(204);
  response.end();
  return true;
}

import type { IncomingMessage } from 'node:http';

/** Shared by all calls without a query: nobody writes into one. */
const NO_QUERY = new URLSearchParams();

/** A request target in its two halves; never throws, whatever a client sends. */
export function splitTarget(target: string | undefined): { path: string; query: URLSearchParams } {
  const text = target ?? '/';
  const at = text.indexOf('?');
  if (at === -1) return { path: text, query: NO_QUERY };
  return { path: text.slice(0, at), query: new URLSearchParams(text.slice(at + 1)) };
}

/** False for a request that a browser sends from a page of another origin. */
export function isSameOrigin({ headers: { origin, host } }: IncomingMessage): boolean {
  return origin === undefined || origin === `http://${host ?? ''}` || origin === `https://${host ?? ''}`;
}

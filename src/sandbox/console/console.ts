import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { isLocalVisitor } from '../../base/local-visitor.js';
import { CONSOLE_PAGE } from './page.js';
import { CONSOLE_STYLE } from './style.js';

export interface ConsoleOptions {
  /** The person's key that a visitor on this machine is lent; without one the page asks for a key. */
  readonly apiKey?: string;
}

const MODULES = ['main', 'api', 'composer', 'dom', 'mention', 'model', 'page', 'socket', 'timeline', 'wire'] as const;

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

/**
 * Serves the console: a page at `/`, its style and compiled scripts under `/console/`. The page does everything over the
 * human REST and socket surface, as any other client would.
 *
 * @returns for `extraRoutes` of a sandbox: false for paths that are not the console's
 */
export function createConsole(
  options: ConsoleOptions = {},
): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    const file = fileFor(path, request, options);
    if (!file) return false;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { ...HEADERS, allow: 'GET' }).end();
      return true;
    }
    const etag = `"${createHash('sha256').update(file.body).digest('base64url').slice(0, 27)}"`;
    const caching = { 'cache-control': file.private ? 'no-store' : 'no-cache', etag };
    const headers = { ...HEADERS, ...caching, 'content-type': file.type, ...file.headers };
    if (!file.private && request.headers['if-none-match'] === etag) response.writeHead(304, headers).end();
    else response.writeHead(file.status ?? 200, headers).end(request.method === 'HEAD' ? undefined : file.body);
    return true;
  };
}

interface ServedFile {
  readonly body: string;
  readonly type: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Kept by no cache. */
  readonly private?: boolean;
}

function fileFor(path: string, request: IncomingMessage, { apiKey }: ConsoleOptions): ServedFile | null {
  if (path === '/') {
    return { body: CONSOLE_PAGE, type: 'text/html; charset=utf-8', headers: pagePolicy(request) };
  }
  if (path === '/console/style.css') return { body: CONSOLE_STYLE, type: 'text/css; charset=utf-8' };
  if (path === '/console/session') return sessionFor(request, apiKey);
  const name = /^\/console\/([a-z]+)\.js$/.exec(path)?.[1];
  const module = MODULES.find((one) => one === name);
  const body = module === undefined ? null : script(module);
  return body === null ? null : { body, type: 'text/javascript; charset=utf-8' };
}

/**
 * The key as JSON, which no page of another origin can read, for visitors on this machine under its own name only: a
 * name that somebody else pointed here, or a proxy, gets nothing.
 */
function sessionFor(request: IncomingMessage, apiKey: string | undefined): ServedFile {
  const type = 'application/json; charset=utf-8';
  const site = request.headers['sec-fetch-site'];
  const sameOrigin = site === undefined || site === 'same-origin';
  if (apiKey === undefined || !sameOrigin || !isLocalVisitor(request)) {
    return { body: '{"error":{"code":"forbidden"}}', type, status: 403, private: true };
  }
  return { body: JSON.stringify({ api_key: apiKey }), type, private: true };
}

function pagePolicy(request: IncomingMessage): Record<string, string> {
  // Not every browser takes 'self' to cover the socket of the same host.
  const host = /^[\w.[\]:-]+$/.exec(request.headers.host ?? '')?.[0];
  const socket = host === undefined ? '' : ` ws://${host} wss://${host}`;
  return {
    'content-security-policy':
      `default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'${socket}; ` +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    'x-frame-options': 'DENY',
  };
}

const scripts = new Map<string, string>();

/** @returns null where the program was never built */
function script(name: (typeof MODULES)[number]): string | null {
  const known = scripts.get(name);
  if (known !== undefined) return known;
  const file = fileURLToPath(new URL(`${name}.js`, scriptFolder()));
  if (!existsSync(file)) return null;
  const text = readFileSync(file, 'utf8');
  scripts.set(name, text);
  return text;
}

/** Beside this file once it is compiled; run from its source, the scripts are those of the last build. */
function scriptFolder(): URL {
  const beside = new URL('./browser/', import.meta.url);
  return existsSync(new URL('main.js', beside))
    ? beside
    : new URL('../../../dist/src/sandbox/console/browser/', import.meta.url);
}

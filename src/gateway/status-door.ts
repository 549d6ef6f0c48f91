import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpListener } from '../base/http-mount.js';
import { isLocalVisitor } from '../base/local-visitor.js';
import { sendError, sendJson, sendMethodNotAllowed } from './http-errors.js';
import type { GatewayReport } from './report.js';
import { STATUS_STYLE, statusPage } from './status-page.js';
import { sameSecret } from './same-secret.js';

const COOKIE = 'band_status';

const STYLE_HASH = createHash('sha256').update(STATUS_STYLE).digest('base64');

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/**
 * `GET /`: the status page, or the same report as JSON for `Accept: application/json`. Open to visitors on this machine;
 * with a token, to everybody who brings it: as a bearer token, or once as `?token=`, which a cookie then stands for.
 */
export function createStatusDoor(
  report: () => Promise<GatewayReport>,
  { token, onError }: { token: string | undefined; onError: (error: unknown) => void },
): HttpListener {
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      sendMethodNotAllowed(response, 'GET');
      return;
    }
    const query = new URL(request.url ?? '/', 'http://localhost').searchParams.get('token');
    if (token !== undefined && query !== null && sameSecret(query, token)) {
      // Out of the address bar and the history at once.
      response.writeHead(303, { ...PAGE_HEADERS, location: './', 'set-cookie': cookie(token, request) });
      response.end();
      return;
    }
    if (!mayRead(request, token)) {
      const message =
        token === undefined
          ? 'The status page is open on this machine only; set http.status_token to open it to others.'
          : 'The status page wants its token: as a bearer token or as ?token=.';
      sendError(response, token === undefined ? 403 : 401, 'status_closed', message);
      return;
    }
    report().then(
      (found) => {
        send(request, response, found);
      },
      (error: unknown) => {
        onError(error);
        sendError(response, 500, 'internal_error', 'The report could not be made; the log knows more.');
      },
    );
  };
}

function mayRead(request: IncomingMessage, token: string | undefined): boolean {
  if (token === undefined) return isLocalVisitor(request);
  const bearer = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const kept = new RegExp(`(?:^|;\\s*)${COOKIE}=([^;]+)`).exec(request.headers.cookie ?? '')?.[1];
  if (bearer !== undefined) return sameSecret(bearer, token);
  return kept !== undefined && sameSecret(kept, cookieValue(token));
}

// The cookie holds a digest: whoever reads it cannot use the token elsewhere.
function cookieValue(token: string): string {
  return createHash('sha256').update(`status\u0000${token}`).digest('base64url');
}

function cookie(token: string, request: IncomingMessage): string {
  const secure = request.headers['x-forwarded-proto'] === 'https' ? '; Secure' : '';
  return `${COOKIE}=${cookieValue(token)}; HttpOnly; SameSite=Strict; Path=/; Max-Age=28800${secure}`;
}

function send(request: IncomingMessage, response: ServerResponse, report: GatewayReport): void {
  if (/\bapplication\/json\b/.test(request.headers.accept ?? '')) {
    sendJson(response, 200, report);
    return;
  }
  response.writeHead(200, PAGE_HEADERS);
  response.end(statusPage(report));
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../../src/base/clock.js';
import type { HttpListener } from '../../../src/base/http-mount.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { SlackAppConfig } from '../apps.js';
import { parseForm } from '../parse.js';
import { verifySignature, type SignatureVerdict } from '../signature.js';
import type { Accept, Arrival } from './accept.js';
import { readBody, type BodyOutcome } from './body.js';
import { createRefusalLog } from './refusals.js';

export interface HttpIngressDeps {
  /** The apps whose events come by HTTP. */
  readonly apps: readonly SlackAppConfig[];
  /** Path in front of the routes, e.g. `/slack`; empty where the host takes its own prefix off. */
  readonly mountPath: string;
  readonly accept: Accept;
  /** What a form's sender is answered with once it is on disk; left out or null: nothing. */
  readonly answerTo?: (payload: unknown) => Readonly<Record<string, unknown>> | null;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly bodyLimitBytes: number;
  /** False while the bridge stops: then Slack is asked to repeat. */
  readonly open: () => boolean;
}

const FORM = /^application\/x-www-form-urlencoded\b/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;
/** Both are read as UTF-8; anything else would be misread. */
const READABLE_CHARSET = /^(?:utf-?8|us-ascii)$/i;
const DOORS = ['events', 'interactions', 'commands'];
const BODY_IDLE_MS = 5_000;
const SAY_AGAIN_AFTER_MS = 60_000;
/** Deliveries with a right digest and a wrong time in a row that mean our clock, or Slack's, is off. */
const SKEWED_BEFORE_ALARM = 5;

/**
 * Slack's HTTP door: raw body → signature → form or JSON → `accept` → 200. Works under any framework that hands over
 * Node's request and response, mounted with or without its prefix.
 *
 * @returns a listener; what it answers is in S-020 to S-029
 */
export function createHttpIngress(deps: HttpIngressDeps): HttpListener {
  const { apps, accept, clock, log, metrics, bodyLimitBytes } = deps;
  const routes = routesOf(apps, deps.mountPath);
  const refusedSignatures = metrics.counter('slack_signature_failures_total', 'Requests whose signature did not hold', [
    'app',
    'reason',
  ]);
  const dropped = metrics.counter('slack_events_dropped_total', 'Messages that made no turn', ['app', 'reason']);
  const noteRefusal = createRefusalLog(deps);
  const skewed = new Map<string, number>();
  let drainedToldAt = Number.NEGATIVE_INFINITY;

  const noteSignature = (app: SlackAppConfig, verdict: SignatureVerdict): void => {
    if (verdict.ok) {
      skewed.delete(app.slug);
      return;
    }
    refusedSignatures.inc({ app: app.slug, reason: verdict.reason });
    if (verdict.skewSeconds === null) return;
    const inARow = (skewed.get(app.slug) ?? 0) + 1;
    skewed.set(app.slug, inARow);
    if (inARow !== SKEWED_BEFORE_ALARM) return;
    const fields = { app: app.slug, skewSeconds: verdict.skewSeconds };
    log.error(fields, 'Slack signs with another time than this machine has: set the clock');
  };

  /** The app that is called; null where the request is answered already, whatever its body says. */
  const admit = (request: IncomingMessage, response: ServerResponse): SlackAppConfig | null => {
    const app = appOf(request.url ?? '', routes);
    if (!app) {
      end(response, 404, 'not found');
      return null;
    }
    if (request.method !== 'POST') {
      response.setHeader('Allow', 'POST');
      end(response, 405, 'method not allowed');
      return null;
    }
    if (!deps.open()) {
      end(response, 503, 'stopping');
      return null;
    }
    return app;
  };

  const refuse = (response: ServerResponse, kind: Exclude<BodyOutcome['kind'], 'read'>): void => {
    switch (kind) {
      case 'drained':
        if (clock.now() - drainedToldAt >= SAY_AGAIN_AFTER_MS) {
          drainedToldAt = clock.now();
          log.error('a parser read the body of a Slack request before the bridge: mount it first, or set rawBody');
        }
        end(response, 500, 'body already read');
        return;
      case 'too_large':
        response.setHeader('Connection', 'close');
        end(response, 413, 'body too large');
        return;
      case 'stalled':
        response.setHeader('Connection', 'close');
        end(response, 408, 'body did not arrive');
        return;
      case 'gone':
    }
  };

  /** What a request carries, its sender verified; null where it is answered already. */
  const unpack = (
    app: SlackAppConfig,
    { headers }: IncomingMessage,
    bytes: Buffer,
    response: ServerResponse,
  ): Arrival | null => {
    const isForm = FORM.test(headers['content-type'] ?? '');
    const form = isForm ? parseForm(bytes.toString('utf8')) : null;
    // Slack checks the certificate without signing, and nothing else is looked at then.
    if (form?.kind === 'ssl_check') {
      end(response, 200, '');
      return null;
    }
    const verdict = verifySignature(
      {
        timestamp: single(headers['x-slack-request-timestamp']),
        signature: single(headers['x-slack-signature']),
        body: bytes,
      },
      app.signingSecrets,
      clock.now(),
    );
    noteSignature(app, verdict);
    if (!verdict.ok) {
      end(response, 401, 'invalid signature');
      return null;
    }
    const [, charset = 'utf-8'] = CHARSET.exec(headers['content-type'] ?? '') ?? [];
    const json = form ? null : withoutMark(bytes);
    const payload = json ? parseJson(json.toString('utf8')) : form?.kind === 'payload' ? form.body : undefined;
    const isReadable = READABLE_CHARSET.test(charset);
    if (payload === undefined || !isReadable) {
      const what = isReadable ? (form ? 'form' : 'JSON') : 'charset';
      dropped.inc({ app: app.slug, reason: `bad_${what.toLowerCase()}` });
      end(response, 400, `invalid ${what}`);
      return null;
    }
    const retryNum = Number(single(headers['x-slack-retry-num']) ?? Number.NaN);
    return {
      slug: app.slug,
      transport: 'http',
      payload,
      json,
      retryNum: Number.isInteger(retryNum) ? retryNum : null,
      retryReason: single(headers['x-slack-retry-reason']) ?? null,
    };
  };

  const serve = async (app: SlackAppConfig, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const body = await readBody(request, { limitBytes: bodyLimitBytes, idleMs: BODY_IDLE_MS, clock });
      if (body.kind !== 'read') {
        refuse(response, body.kind);
        return;
      }
      const arrival = unpack(app, request, body.bytes, response);
      if (!arrival) return;
      const acceptance = await accept(arrival);
      if (acceptance.kind === 'challenge') end(response, 200, acceptance.challenge);
      else acknowledge(response, arrival.json ? null : (deps.answerTo?.(arrival.payload) ?? null));
    } catch (error) {
      noteRefusal(error, app.slug);
      if (response.headersSent) response.destroy();
      else end(response, 503, 'try again');
    }
  };

  return (request, response) => {
    const app = admit(request, response);
    if (app) void serve(app, request, response);
  };
}

/** Every path of the door: `/{slug}/{door}`, and `/{door}` where there is one app; each with the mount or without. */
function routesOf(apps: readonly SlackAppConfig[], mountPath: string): ReadonlyMap<string, SlackAppConfig> {
  const routes = new Map<string, SlackAppConfig>();
  const [only] = apps;
  for (const mount of ['', mountPath]) {
    for (const door of DOORS) {
      if (only && apps.length === 1) routes.set(`${mount}/${door}`, only);
      for (const app of apps) routes.set(`${mount}/${app.slug}/${door}`, app);
    }
  }
  return routes;
}

/** The app a path leads to; a query and one slash at the end do not count. */
function appOf(url: string, routes: ReadonlyMap<string, SlackAppConfig>): SlackAppConfig | null {
  const direct = routes.get(url);
  if (direct) return direct;
  const path = url.split('?')[0] ?? '';
  return routes.get(path.endsWith('/') ? path.slice(0, -1) : path) ?? null;
}

/** The bytes behind a byte order mark. */
function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // the caller answers 400
  }
}

function acknowledge(response: ServerResponse, answer: Readonly<Record<string, unknown>> | null): void {
  if (answer === null) {
    end(response, 200, '');
    return;
  }
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(answer));
}

function end(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status;
  if (text !== '') response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  response.end(text);
}

const single = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../base/clock.js';
import { backoffMs } from '../../base/backoff.js';
import { GatewayError, isGatewayError } from '../../base/errors.js';
import { isUuid } from '../../base/ids.js';
import type { Logger } from '../../base/log.js';
import type { Metrics } from '../../base/metrics.js';
import { networkFault } from '../network-error.js';
import { answerError } from './answer-error.js';
import type { CallOptions } from './band-rest.js';
import { httpCall, type HttpAnswer, type HttpCall } from './http-call.js';

/** What one endpoint asks for. */
export interface RestRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below `/api/v1/agent`, made by {@link path}. */
  readonly path: string;
  readonly query?: RestQuery | undefined;
  readonly body?: unknown;
  /**
   * When a failed call is made again. `transient`: after any passing fault. `undelivered`: only when it certainly had
   * no effect. `never`.
   */
  readonly repeat: 'transient' | 'undelivered' | 'never';
}

type RestQuery = Readonly<Record<string, string | number | undefined>>;

/** A 2xx answer. `json` is undefined when there was no body. */
export interface RestAnswer {
  readonly status: number;
  readonly json: unknown;
  /** The call as it reads in a log line: method and path. */
  readonly request: string;
}

interface TransportOptions {
  /** e.g. `https://app.band.ai`; a path in front of `/api/v1` is kept, a trailing slash dropped. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly retries: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly maxAnswerBytes: number;
}

export type Transport = (request: RestRequest, call?: CallOptions) => Promise<RestAnswer>;

const AGENT_API = '/api/v1/agent';
const SUCCESS = { outcome: 'ok' } as const;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

/** Nothing of a request with one of these left the machine. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);

/**
 * A path of fixed words and ids. Ids may come from a model or from outside, so each is one segment and nothing else.
 *
 * @throws {GatewayError} `BAND_INVALID` for an id that no segment can be
 */
export function path(words: TemplateStringsArray, ...ids: string[]): string {
  let joined = words[0] ?? '';
  for (let at = 0; at < ids.length; at += 1) joined += segment(ids[at] ?? '') + (words[at + 1] ?? '');
  return joined;
}

function segment(id: string): string {
  // What all ids of the platform are, and nothing to encode.
  if (isUuid(id)) return id;
  if (/^\.*$/.test(id)) throw new GatewayError('BAND_INVALID', { message: 'An id is empty or not an id.' });
  return encodeURIComponent(id);
}

export function reading(where: string, query?: RestQuery): RestRequest {
  return { method: 'GET', path: where, query, body: undefined, repeat: 'transient' };
}

/** A call that may be made twice without harm. */
export function marking(where: string, body?: unknown): RestRequest {
  return { method: 'POST', path: where, query: undefined, body, repeat: 'transient' };
}

/** A call that would create a second thing. */
export function creating(where: string, body: unknown): RestRequest {
  return { method: 'POST', path: where, query: undefined, body, repeat: 'undelivered' };
}

/** One HTTP call to Band: sends, reads within limits, repeats by the rules of {@link RestRequest.repeat}. */
export function createTransport(options: TransportOptions): Transport {
  const target = targetOf(options);
  const callsTotal = options.metrics.counter('band_rest_calls_total', 'Answers of the Band API, repeats included.', [
    'outcome',
  ]);
  const retriesTotal = options.metrics.counter(
    'band_rest_retries_total',
    'Calls to the Band API that were made again after a failure.',
    ['code'],
  );

  return async (request, { signal, retries = options.retries } = {}) => {
    for (let tries = 1; ; tries += 1) {
      signal?.throwIfAborted();
      try {
        const answer = await attempt(request, signal, target, options);
        callsTotal.inc(SUCCESS);
        return answer;
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        const failure = error as GatewayError;
        callsTotal.inc({ outcome: failure.code });
        if (tries > retries || !mayRepeat(failure, request)) throw failure;
        const askedMs = failure.retryAfterMs;
        if (askedMs !== null && askedMs > MAX_RETRY_MS) throw failure;
        const waitMs =
          askedMs === null
            ? backoffMs(tries, { baseMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS, jitter: 'tenth', random: options.random })
            : askedMs * (1 + 0.1 * options.random()); // never before the time that was asked for
        retriesTotal.inc({ code: failure.code });
        options.log.debug({ ...failure.details, code: failure.code, tries, waitMs }, 'band call will be repeated');
        await options.clock.sleep(waitMs, signal);
      }
    }
  };
}

function mayRepeat(failure: GatewayError, { repeat }: RestRequest): boolean {
  if (!failure.retryable || repeat === 'never') return false;
  if (repeat === 'undelivered') return failure.undelivered || failure.details['status'] === 503;
  return failure.code !== 'BAND_BAD_ANSWER';
}

/** What all calls to one platform have in common. */
interface Target {
  readonly origin: string;
  /** In front of every path. */
  readonly prefix: string;
  readonly headers: { readonly plain: Record<string, string>; readonly withBody: Record<string, string> };
}

function targetOf({ baseUrl, apiKey }: TransportOptions): Target {
  const { origin, pathname } = new URL(baseUrl);
  const plain = { 'x-api-key': apiKey, accept: 'application/json', 'user-agent': 'band-gateway' };
  return {
    origin,
    prefix: pathname.replace(/\/+$/, '') + AGENT_API,
    headers: { plain, withBody: { ...plain, 'content-type': 'application/json' } },
  };
}

/** Sends once. Throws GatewayErrors only. */
function attempt(
  request: RestRequest,
  signal: AbortSignal | undefined,
  { origin, prefix, headers }: Target,
  options: TransportOptions,
): Promise<RestAnswer> {
  const name = `${request.method} ${prefix}${request.path}`;
  const hasBody = request.body !== undefined;
  const call: HttpCall = {
    options: {
      origin,
      method: request.method,
      path: prefix + request.path + queryString(request.query),
      headers: hasBody ? headers.withBody : headers.plain,
      body: hasBody ? JSON.stringify(request.body) : null,
      headersTimeout: options.headersTimeoutMs,
      bodyTimeout: options.bodyTimeoutMs,
    },
    signal,
    maxAnswerBytes: options.maxAnswerBytes,
    tooLarge: () => badAnswer(name, `the body is larger than ${options.maxAnswerBytes} bytes`),
  };
  return httpCall(options.dispatcher, call).then(
    (answer) => readAnswer(answer, name, options),
    (error: unknown) => {
      throw isGatewayError(error) ? error : networkError(error, name, options.apiKey);
    },
  );
}

function readAnswer({ status, headers, text }: HttpAnswer, name: string, options: TransportOptions): RestAnswer {
  if (status < 200 || status > 299) {
    throw answerError({
      status,
      text: text.replaceAll(options.apiKey || '\0', '[redacted]'),
      retryAfterMs: askedWaitMs(headers, options.clock),
      request: name,
    });
  }
  if (text.trim() === '') return { status, json: undefined, request: name };
  try {
    return { status, json: JSON.parse(text) as unknown, request: name };
  } catch (error) {
    throw badAnswer(name, 'the body is not JSON', error);
  }
}

/** An answer that does not have the promised shape. */
export function badAnswer(request: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError('BAND_BAD_ANSWER', { cause, details: { request, why } });
}

/** Errors of the HTTP client name addresses and codes; its own objects may hold the request, so they stay out. */
function networkError(error: unknown, request: string, apiKey: string): GatewayError {
  const { code, message } = networkFault(error);
  const kind = NEVER_SENT.has(code) ? 'BAND_UNREACHABLE' : TIMEOUTS.has(code) ? 'BAND_TIMEOUT' : 'BAND_CONNECTION_LOST';
  return new GatewayError(kind, {
    cause: new Error(message.replaceAll(apiKey || '\0', '[redacted]')),
    details: { request, ...(code === '' ? {} : { reason: code }) },
  });
}

function queryString(query: RestRequest['query']): string {
  if (query === undefined) return '';
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined) params.set(key, String(value));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

/** How long the platform asks to wait: `Retry-After` in seconds or as a date, else `X-RateLimit-Reset` in epoch seconds. */
function askedWaitMs(headers: IncomingHttpHeaders, clock: Clock): number | null {
  const retryAfter = single(headers['retry-after']);
  if (retryAfter !== null) {
    const seconds = Number(retryAfter);
    const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(retryAfter) - clock.now();
    if (ms > 0) return ms;
  }
  const reset = Number(single(headers['x-ratelimit-reset']) ?? Number.NaN);
  const ms = reset * 1_000 - clock.now();
  return ms > 0 ? ms : null;
}

function single(header: string | string[] | undefined): string | null {
  const value = Array.isArray(header) ? header[0] : header;
  return value === undefined || value.trim() === '' ? null : value.trim();
}

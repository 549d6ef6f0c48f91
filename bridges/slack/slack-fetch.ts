import type { FetchFunction } from '@slack/web-api';
import { request, type Dispatcher } from 'undici';
import { childSignal } from '../../src/base/async.js';
import { GatewayError } from '../../src/base/errors.js';
import { proxyErrorIn } from './proxy.js';

export const REQUEST_TIMEOUT_MS = 30_000;
const DEFAULT_RETRY_AFTER_MS = 30_000;
const BODY_LIMIT_BYTES = 32 * 1024 * 1024;

export interface SlackFetchOptions {
  readonly timeoutMs: number;
  readonly dispatcher: Dispatcher | undefined;
  /** Cuts every request in flight. */
  readonly closing: AbortSignal;
  /** What Slack's clock showed when it answered, in whole seconds of the epoch as milliseconds. */
  readonly onDate?: (slackMs: number) => void;
}

/**
 * The `fetch` that the SDKs get. It names every failure by status and by what is known about delivery, since the SDK
 * turns a 429 without a usable header into a plain Error (T-09) and a body that is not JSON into an error code.
 */
export function createSlackFetch({ timeoutMs, dispatcher, closing, onDate }: SlackFetchOptions): FetchFunction {
  return (url, init) =>
    withinTime({ timeoutMs }, closing, async (signal) => {
      const answer = await request(String(url), {
        method: init?.method ?? 'POST',
        headers: init?.headers ?? {},
        body: typeof init?.body === 'string' ? init.body : null,
        signal,
        ...(dispatcher ? { dispatcher } : {}),
      });
      const text = await readText(answer.body);
      const header = (name: string) => single(answer.headers[name.toLowerCase()]);
      const slackMs = Date.parse(header('date') ?? '');
      if (!Number.isNaN(slackMs)) onDate?.(slackMs);
      if (answer.statusCode === 429) {
        throw putOff(header('retry-after'));
      }
      if (answer.statusCode !== 200) {
        throw new GatewayError('SLACK_UNAVAILABLE', { details: { status: answer.statusCode } });
      }
      assertJson(text);
      return toResponse(String(url), answer.statusCode, text, header);
    });
}

/**
 * Sends something to Slack and takes at most `timeoutMs` for it.
 *
 * @throws {GatewayError} `SLACK_TIMEOUT` with `about` as its details, and what {@link fromNetworkError} makes of the
 *   rest; the reason of `parent` when that aborts
 */
export async function withinTime<T>(
  about: { readonly timeoutMs: number; readonly method?: string },
  parent: AbortSignal,
  send: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using child = childSignal(parent);
  const timer = setTimeout(() => {
    child.abort(new GatewayError('SLACK_TIMEOUT', { details: about }));
  }, about.timeoutMs);
  try {
    return await send(child.signal);
  } catch (error) {
    throw child.signal.aborted ? child.signal.reason : fromNetworkError(error);
  } finally {
    clearTimeout(timer);
  }
}

/** What a 429 means, by its `Retry-After`. */
export function putOff(
  header: string | string[] | null | undefined,
  about: { readonly method?: string } = {},
): GatewayError {
  return new GatewayError('SLACK_RATE_LIMITED', {
    retryAfterMs: parseRetryAfterMs(single(header ?? undefined)),
    details: { ...about, status: 429, slackError: 'ratelimited' },
  });
}

/** Milliseconds of a `Retry-After` header in seconds; 30,000 where it is missing or not a number (S-093). */
export function parseRetryAfterMs(header: string | null): number {
  if (header === null || !/^\s*\d{1,6}\s*$/.test(header)) return DEFAULT_RETRY_AFTER_MS;
  return Number(header) * 1_000;
}

/** Failures that happen before a byte of the request left this machine. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** What a failed connection means; a proxy that gave no way is named, since nothing of the request has passed it. */
export function fromNetworkError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const refusal = proxyErrorIn(error);
  if (refusal) {
    return new GatewayError('SLACK_UNREACHABLE', {
      message: `${refusal.message}.`,
      cause: error,
      details: { network: refusal.code, proxy: refusal.proxy },
    });
  }
  const code = networkCode(error);
  return new GatewayError(NEVER_SENT.has(code) ? 'SLACK_UNREACHABLE' : 'SLACK_CONNECTION_LOST', {
    cause: error,
    details: { network: code },
  });
}

function networkCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? networkCode(error.cause) : 'unknown';
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > BODY_LIMIT_BYTES)
      throw new GatewayError('SLACK_BAD_ANSWER', { details: { bodyLimitBytes: BODY_LIMIT_BYTES } });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function assertJson(text: string): void {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && 'ok' in value) return;
  } catch {
    // Reported below, without the text: an error page may hold anything.
  }
  throw new GatewayError('SLACK_BAD_ANSWER', { details: { status: 200, bytes: Buffer.byteLength(text) } });
}

const single = (value: string | string[] | undefined): string | null =>
  (Array.isArray(value) ? value[0] : value) ?? null;

function toResponse(
  url: string,
  status: number,
  text: string,
  header: (name: string) => string | null,
): Awaited<ReturnType<FetchFunction>> {
  return {
    ok: true,
    status,
    statusText: '',
    url,
    headers: { get: header, entries: () => [] },
    arrayBuffer: () => Promise.resolve(new TextEncoder().encode(text).buffer),
    json: () => Promise.resolve(JSON.parse(text) as unknown),
    text: () => Promise.resolve(text),
  };
}

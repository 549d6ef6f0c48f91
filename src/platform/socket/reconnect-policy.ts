import { z } from 'zod';
import { backoffMs } from '../../base/backoff.js';
import type { Clock } from '../../base/clock.js';
import { GatewayError } from '../../base/errors.js';
import type { ConnectionEnd } from './connection.js';
import type { OnConflict } from './socket-url.js';

/** What to do about a connection that ended or never came about. */
export type Verdict =
  | { readonly kind: 'retry'; readonly waitMs: number; readonly why: string; readonly error: GatewayError }
  | { readonly kind: 'final'; readonly error: GatewayError };

export interface ReconnectPolicy {
  /** The parameter of the next upgrade request; undefined leaves it out. */
  readonly onConflict: OnConflict | undefined;
  /** Failed tries and short connections since the link was last stable. */
  readonly failures: number;
  /** A connection opened. */
  opened(): void;
  /** A connection ended after `uptimeMs`, or (null) never opened. */
  judge(end: ConnectionEnd, uptimeMs: number | null): Verdict;
}

/** A connection of this length forgets what went wrong before it. */
export const STABLE_MS = 60_000;
const SHORT_LIVED_MS = 5_000;
const LONGEST_WAIT_MS = 600_000;
const MAX_ASKED_WAIT_MS = 300_000;

const refusalSchema = z.object({
  error: z.object({
    code: z.string().nullish().catch(null),
    message: z.string().nullish().catch(null),
    retry_after: z.number().nonnegative().nullish().catch(null),
  }),
});

/**
 * When and how a link comes back.
 *
 * - 1008, a refused `on_conflict` (400) and a refused identity (409) are final.
 * - 1012: 1–5 s; 1013: 30–60 s; anything else: 0.5 s doubling to 30 s, half of it random.
 * - A connection that lives under 5 s counts as short: the first waits at least 2 s, the second 10 s, further ones a
 *   random part of 60 s growing by 30 s to 300 s, and from the tenth on of 600 s. It never stops trying.
 * - 1000 or 1001 without a supersede notice may mean that somebody took the identity over, so the link waits 30–60 s
 *   (doubling to 600 s when it happens again) and asks with `on_conflict=reject`; 409 then is final.
 * - 60 s of connection forget all of it.
 *
 * The configured policy rides on the first connection only, so that a reconnect never turns into "already running".
 */
export function createReconnectPolicy({
  firstConflict,
  clock,
  random,
}: {
  firstConflict: OnConflict;
  clock: Clock;
  random: () => number;
}): ReconnectPolicy {
  let onConflict: OnConflict | undefined = firstConflict;
  let failures = 0;
  let shortLived = 0;
  let bareCloses = 0;

  const between = (fromMs: number, toMs: number) => fromMs + (toMs - fromMs) * random();

  const politeWaitMs = () => {
    bareCloses += 1;
    onConflict = 'reject';
    return Math.min(LONGEST_WAIT_MS, between(30_000, 60_000) * 2 ** (bareCloses - 1));
  };

  const shortLivedWaitMs = () => {
    if (shortLived === 0) return 0;
    if (shortLived === 1) return 2_000;
    if (shortLived === 2) return 10_000;
    const cooldownMs = shortLived < 10 ? Math.min(300_000, 60_000 + 30_000 * (shortLived - 3)) : LONGEST_WAIT_MS;
    return cooldownMs * between(0.25, 1);
  };

  const usualWaitMs = () => backoffMs(failures, { baseMs: 500, maxMs: 30_000, jitter: 'equal', random });

  const afterClose = (code: number) => {
    if (code === 1000 || code === 1001) return politeWaitMs();
    if (code === 1012) return between(1_000, 5_000);
    if (code === 1013) return between(30_000, 60_000);
    return usualWaitMs();
  };

  return {
    get onConflict() {
      return onConflict;
    },
    get failures() {
      return failures;
    },
    opened() {
      onConflict = undefined;
    },
    judge(end, uptimeMs) {
      if (uptimeMs !== null && uptimeMs >= STABLE_MS) failures = shortLived = bareCloses = 0;
      failures += 1;
      if (uptimeMs !== null && uptimeMs < SHORT_LIVED_MS) shortLived += 1;

      if (end.kind === 'refused') {
        const refusal = readRefusal(end, clock);
        const error = refusalError(end.status, refusal);
        if (onConflict !== undefined && (end.status === 400 || end.status === 409)) return { kind: 'final', error };
        const waitMs = Math.max(usualWaitMs(), (refusal.retryAfterMs ?? 0) * between(1, 1.1));
        return { kind: 'retry', waitMs, why: `refused with HTTP ${end.status}`, error };
      }
      if (end.kind === 'closed' && end.code === 1008) {
        return { kind: 'final', error: lost(end, 'BAND_FORBIDDEN', 'Band closed the connection for good (1008).') };
      }
      // A short life makes the wait longer only where the connection had been open.
      const minimumMs = uptimeMs !== null && uptimeMs < SHORT_LIVED_MS ? shortLivedWaitMs() : 0;
      const waitMs = Math.max(minimumMs, end.kind === 'closed' ? afterClose(end.code) : usualWaitMs());
      return { kind: 'retry', waitMs, why: wordsFor(end), error: lost(end) };
    },
  };
}

interface Refusal {
  readonly code: string | null;
  readonly message: string | null;
  readonly retryAfterMs: number | null;
}

/** `error.retry_after` in seconds, else the header `Retry-After` in seconds or as a date; a longer wait is cut. */
function readRefusal({ headers, body }: Extract<ConnectionEnd, { kind: 'refused' }>, clock: Clock): Refusal {
  let parsed: ReturnType<typeof refusalSchema.safeParse> | null = null;
  try {
    parsed = refusalSchema.safeParse(JSON.parse(body));
  } catch {
    parsed = null; // an empty or foreign body says nothing more than its status
  }
  const { code = null, message = null, retry_after: asked = null } = parsed?.success ? parsed.data.error : {};
  const header = headers['retry-after'];
  const text = Array.isArray(header) ? header[0] : header;
  const fromHeader = text ? (Number.isNaN(Number(text)) ? Date.parse(text) - clock.now() : Number(text) * 1_000) : null;
  const ms = asked === null ? fromHeader : asked * 1_000;
  return { code, message, retryAfterMs: ms !== null && ms > 0 ? Math.min(ms, MAX_ASKED_WAIT_MS) : null };
}

function refusalError(status: number, { code, message, retryAfterMs }: Refusal): GatewayError {
  const details = { status, ...(code === null ? {} : { bandCode: code }), ...(message === null ? {} : { message }) };
  switch (status) {
    case 400:
      return new GatewayError('BAND_INVALID', { details });
    case 401:
    case 403:
      return new GatewayError('BAND_FORBIDDEN', { details });
    case 409:
      return new GatewayError('BAND_ALREADY_CONNECTED', { details });
    case 429:
      return new GatewayError('BAND_RATE_LIMITED', { details, ...(retryAfterMs === null ? {} : { retryAfterMs }) });
    default:
      return new GatewayError('BAND_UNAVAILABLE', { details });
  }
}

function lost(end: ConnectionEnd, code: 'BAND_FORBIDDEN' | null = null, message: string | null = null): GatewayError {
  return new GatewayError(code ?? (end.kind === 'failed' ? 'BAND_UNREACHABLE' : 'BAND_CONNECTION_LOST'), {
    ...(end.kind === 'failed' ? { cause: new Error(end.message) } : {}),
    details: { why: wordsFor(end), ...(end.kind === 'closed' ? { closeCode: end.code } : {}) },
    ...(message === null ? {} : { message }),
  });
}

function wordsFor(end: ConnectionEnd): string {
  switch (end.kind) {
    case 'closed':
      return end.reason === '' ? `closed with ${end.code}` : `closed with ${end.code} (${end.reason.slice(0, 120)})`;
    case 'refused':
      return `refused with HTTP ${end.status}`;
    case 'failed':
      return end.message;
    case 'given_up':
      return end.why;
  }
}

import { within } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import type { Counter, Histogram, Metrics } from '../../../src/base/metrics.js';
import type { Inbox } from '../../../src/store/inbox.js';
import type { JsonAround } from '../../../src/store/json.js';
import type { SlackRecord } from './records.js';
import { sortDelivery } from './sorting.js';

/** One delivery at the door, its sender already verified. */
export interface Arrival {
  readonly slug: string;
  readonly transport: 'http' | 'socket' | 'catch-up';
  readonly payload: unknown;
  /** The payload as JSON, where it came as such: it is kept as it stands. */
  readonly json?: Uint8Array | null;
  readonly retryNum?: number | null;
  readonly retryReason?: string | null;
  /** Replaces the key that the payload gives, for what Slack did not send by itself. */
  readonly key?: string;
  /** See {@link SlackRecord.again}. */
  readonly again?: boolean;
}

/** `challenge` wants to be answered with its text; the other two are acknowledged. */
export type Acceptance =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'repeat' }
  | { readonly kind: 'challenge'; readonly challenge: string };

export interface AcceptDeps {
  readonly inbox: Inbox<SlackRecord>;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Longest wait for the disk; past it the sender is asked to repeat. */
  readonly deadlineMs: number;
  /** Messages that may wait in one thread behind the one that runs. */
  readonly maxQueuedPerThread: number;
}

/** Verified delivery → parse → key → inbox. What resolves is on disk, and only then may Slack be told so (S-030). */
export type Accept = (arrival: Arrival) => Promise<Acceptance>;

const ACK_BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/**
 * @returns a function that throws what the store throws, and `DEADLINE_EXCEEDED`: then nothing may be acknowledged,
 *   and Slack delivers again (S-031)
 */
export function createAccept({ inbox, clock, metrics, deadlineMs, maxQueuedPerThread }: AcceptDeps): Accept {
  const { received, repeats, seconds } = instruments(metrics);
  return async (arrival) => {
    const { slug, transport, payload, retryNum = null, retryReason = null } = arrival;
    const begun = clock.now();
    const sorted = sortDelivery(slug, payload);
    if (sorted.kind === 'challenge') return sorted;
    const { kind, type, lane, messageTs } = sorted;
    received.inc({ app: slug, transport, kind, type });

    const id = arrival.key ?? sorted.key;
    const again = arrival.again ?? false;
    // What an outage has piled up is not its authors' haste.
    const isFresh = messageTs !== null && !again && transport !== 'catch-up';
    const tooMany =
      isFresh &&
      inbox.queue.laneDepth(lane) > maxQueuedPerThread &&
      hasTooMany(inbox.queue.laneTags(lane), messageTs, maxQueuedPerThread);
    const how = { slug, transport, receivedAt: begun, retryNum, retryReason, again, tooMany };
    const item = { id, lane: tooMany ? `full:${lane}` : lane, body: { ...how, payload } };
    const kept = arrival.json ? { ...item, bodyJson: aroundPayload(how, arrival.json) } : item;
    const accepted = await within(clock, deadlineMs, inbox.accept(kept));
    seconds.observe({ app: slug, transport }, (clock.now() - begun) / 1_000);
    if (accepted === 'repeat') repeats.inc({ app: slug, transport, retry: retryNum === null ? 'no' : 'yes' });
    return { kind: accepted };
  };
}

/** A post that came both as a message and as a mention waits once, and its second event is not refused after the first. */
function hasTooMany(waiting: readonly (string | null)[], ts: string, most: number): boolean {
  const posts = new Set(waiting);
  return posts.size > most && !posts.has(ts);
}

/** The record's body as JSON, without writing the payload a second time. */
function aroundPayload(how: Omit<SlackRecord, 'payload'>, bytes: Uint8Array): JsonAround {
  return { before: `${JSON.stringify(how).slice(0, -1)},"payload":`, bytes, after: '}' };
}

function instruments(metrics: Metrics): { received: Counter; repeats: Counter; seconds: Histogram } {
  return {
    received: metrics.counter('slack_events_received_total', 'Deliveries from Slack', [
      'app',
      'transport',
      'kind',
      'type',
    ]),
    repeats: metrics.counter('slack_events_duplicate_total', 'Deliveries that were known already', [
      'app',
      'transport',
      'retry',
    ]),
    seconds: metrics.histogram(
      'slack_ack_seconds',
      'Time from a delivery to its acknowledgement',
      ['app', 'transport'],
      ACK_BUCKETS_SECONDS,
    ),
  };
}

import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import { Inbox } from '../../../src/store/inbox.js';
import type { StateStore } from '../../../src/store/port.js';
import { SeenKeys } from '../../../src/store/seen.js';
import type { SlackOptions } from '../settings.js';
import { createAccept, type Accept } from './accept.js';
import { slackRecords, turnsAndOthers, type SlackRecord } from './records.js';
import { ThreadPast } from './thread-past.js';

export interface IntakeDeps {
  readonly options: SlackOptions;
  readonly store: StateStore;
  readonly prefix: string;
  readonly random: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** What was taken in from Slack, and what is remembered of it. */
export interface Intake {
  /** Deliveries, each once. */
  readonly inbox: Inbox<SlackRecord>;
  /** Messages that were acted on, each once, whatever deliveries told of them. */
  readonly claims: SeenKeys;
  readonly past: ThreadPast;
  readonly accept: Accept;
}

/** Tries of one delivery, about ten minutes in all (S-040). */
export const INBOX_TRIES = 5;
const INBOX_BACKOFF = { baseMs: 2_000, maxMs: 480_000, factor: 4, jitter: 'tenth' } as const;

/** Opens what an earlier process left; nothing is handed on before the inbox's queue is started. */
export async function openIntake({ options, store, prefix, random, clock, log, metrics }: IntakeDeps): Promise<Intake> {
  const retentionMs = options.dedupTtlHours * 3_600_000;
  const inbox = await Inbox.open<SlackRecord>({
    store,
    prefix: `${prefix}/inbox`,
    ...slackRecords,
    clock,
    log,
    maxRunning: turnsAndOthers(options.maxConcurrentTurns),
    maxFailures: INBOX_TRIES,
    backoff: { ...INBOX_BACKOFF, random },
    seenRetentionMs: retentionMs,
  });
  const claims = await SeenKeys.open({ store, prefix: `${prefix}/claims`, clock, retentionMs });
  const past = new ThreadPast();
  const { ackDeadlineMs, maxQueuedPerThread } = options;
  const takeIn = createAccept({ inbox, clock, metrics, deadlineMs: ackDeadlineMs, maxQueuedPerThread });
  return {
    inbox,
    claims,
    past,
    async accept(arrival) {
      try {
        return await takeIn(arrival);
      } catch (error) {
        // What was not taken may be missing from the past of its thread.
        past.forgetAll();
        throw error;
      }
    },
  };
}

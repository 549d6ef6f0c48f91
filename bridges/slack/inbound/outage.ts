import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';
import type { GatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Outcome } from '../../../src/store/durable-queue.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SlackOut, ThreadRef } from '../outbound/port.js';
import type { SlackRecord } from './records.js';

/** Messages whose wait is counted. */
const MAX_TRIES_KEPT = 10_000;
const LOOKS_MS = [2_000, 8_000, 30_000] as const;
const TELL_AFTER_MS = 30_000;

/** Faults that pass by themselves, or once somebody mends the credentials: the message waits for that. */
export function isOutage(error: GatewayError): boolean {
  return (
    (error.retryable && (error.code.startsWith('BAND_') || error.code === 'DEADLINE_EXCEEDED')) ||
    error.code === 'BAND_UNAUTHORIZED'
  );
}

/** How messages wait while Band cannot be reached: as long as it takes, and their authors hear of it. */
export interface Outages {
  /** Band did not do what a message needs: it is tried again after a while. */
  wait(error: GatewayError, thread: ThreadRef, record: QueueRecord<SlackRecord>): Promise<Outcome>;
  /** Half a minute after the message came its author is told, once. */
  tell(thread: ThreadRef, record: QueueRecord<SlackRecord>): Promise<void>;
  over(record: QueueRecord<SlackRecord>): void;
}

export function createOutages({ out, clock, log }: { out: SlackOut; clock: Clock; log: Logger }): Outages {
  const tried = new BoundedMap<string, number>(MAX_TRIES_KEPT);

  const tell: Outages['tell'] = async (thread, record) => {
    if (clock.now() - record.putAt < TELL_AFTER_MS) return;
    const markdown = 'I am having trouble reaching Band. Your message is kept and goes on as soon as that works.';
    await out.reply(thread, { id: `${record.id}:no-band`, markdown, kind: 'notice' });
  };

  return {
    tell,
    async wait(error, thread, record) {
      const tries = (tried.get(record.id) ?? 0) + 1;
      tried.set(record.id, tries);
      log.warn({ err: error, tries, app: thread.slug }, 'Band did not take a Slack message: it waits');
      await tell(thread, record);
      const afterMs = LOOKS_MS[Math.min(tries, LOOKS_MS.length) - 1] ?? LOOKS_MS[2];
      return { kind: 'wait', afterMs, maybeDelivered: !error.undelivered };
    },
    over: ({ id }) => void tried.delete(id),
  };
}

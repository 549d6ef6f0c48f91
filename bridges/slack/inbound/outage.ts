import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError, type GatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Outcome } from '../../../src/store/durable-queue.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import { slackKey } from '../conversation.js';
import type { SlackOut, ThreadRef } from '../outbound/port.js';
import { OnceAnHour } from './once-an-hour.js';
import type { SlackRecord } from './records.js';

/** Messages whose wait is counted. */
const MAX_TRIES_KEPT = 10_000;
const LOOKS_MS = [2_000, 8_000, 30_000] as const;
const TELL_AFTER_MS = 30_000;
const REFUSED_LOOK_MS = 60_000;
const SAY_AGAIN_AFTER_MS = 10 * 60_000;

/** Faults that pass by themselves, or once somebody mends the credentials: the message waits for that. */
export function isOutage(error: GatewayError): boolean {
  return (
    (error.retryable && (error.code.startsWith('BAND_') || error.code === 'DEADLINE_EXCEEDED')) ||
    error.code === 'BAND_UNAUTHORIZED'
  );
}

/** Band takes nothing of this agent: no message can have a room until somebody mends what it may do. */
export function isRefusal({ code }: GatewayError): boolean {
  return code === 'BAND_UNAUTHORIZED' || code === 'BAND_FORBIDDEN';
}

export interface OutagesDeps {
  readonly out: SlackOut;
  /** Asks Band who this agent is. */
  readonly probe: () => Promise<unknown>;
  /** Lets waiting messages be tried at once. */
  readonly wake: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How messages wait while Band cannot be reached or refuses: as long as it takes, and their authors hear of it. */
export interface Outages {
  /** Band did not do what a message needs: it is tried again after a while. */
  wait(error: GatewayError, thread: ThreadRef, record: QueueRecord<SlackRecord>): Promise<Outcome>;
  /** What becomes of a message that needs Band while Band refuses this agent; null where it may be tried. */
  held(thread: ThreadRef): Promise<Outcome | null>;
  /** Half a minute after the message came its author is told, once. */
  tell(thread: ThreadRef, record: QueueRecord<SlackRecord>): Promise<void>;
  over(record: QueueRecord<SlackRecord>): void;
}

export function createOutages({ out, probe, wake, clock, log }: OutagesDeps): Outages {
  const tried = new BoundedMap<string, number>(MAX_TRIES_KEPT);
  const told = new OnceAnHour(clock);
  /** When Band is asked next; null while it does not refuse. */
  let lookAt: number | null = null;
  let saidAt = Number.NEGATIVE_INFINITY;

  const tell: Outages['tell'] = async (thread, record) => {
    if (clock.now() - record.putAt < TELL_AFTER_MS) return;
    const markdown = 'I am having trouble reaching Band. Your message is kept and goes on as soon as that works.';
    await out.reply(thread, { id: `${record.id}:no-band`, markdown, kind: 'notice' });
  };

  const refused = async (thread: ThreadRef): Promise<Outcome> => {
    const now = clock.now();
    lookAt ??= now + REFUSED_LOOK_MS;
    const id = told.next(`no-access:${slackKey(thread)}`);
    const markdown = 'Band does not let me in at the moment. Your message is kept and goes on once that is mended.';
    if (id !== null) await out.reply(thread, { id, markdown, kind: 'notice' });
    return { kind: 'wait', afterMs: Math.max(0, lookAt - now) };
  };

  const noteRefusal = (error: GatewayError): void => {
    lookAt = clock.now() + REFUSED_LOOK_MS;
    if (clock.now() - saidAt < SAY_AGAIN_AFTER_MS) return;
    saidAt = clock.now();
    log.error({ err: error }, 'Band refuses this agent: messages from Slack wait until its key and rights are mended');
  };

  return {
    tell,
    async wait(error, thread, record) {
      if (isRefusal(error)) {
        noteRefusal(error);
        return await refused(thread);
      }
      const tries = (tried.get(record.id) ?? 0) + 1;
      tried.set(record.id, tries);
      log.warn({ err: error, tries, app: thread.slug }, 'Band did not take a Slack message: it waits');
      await tell(thread, record);
      const afterMs = LOOKS_MS[Math.min(tries, LOOKS_MS.length) - 1] ?? LOOKS_MS[2];
      return { kind: 'wait', afterMs, maybeDelivered: !error.undelivered };
    },
    async held(thread) {
      if (lookAt === null) return null;
      if (clock.now() < lookAt) return await refused(thread);
      // One asks, and the others wait for its answer.
      lookAt = clock.now() + REFUSED_LOOK_MS;
      try {
        await probe();
      } catch (error) {
        if (!isGatewayError(error)) throw error;
        if (isRefusal(error)) noteRefusal(error);
        return await refused(thread);
      }
      lookAt = null;
      log.info('Band takes messages of this agent again');
      wake();
      return null;
    },
    over: ({ id }) => void tried.delete(id),
  };
}

import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { StateStore } from './port.js';
import type { Slot } from './queue-lanes.js';
import type { QueueRecords } from './queue-records.js';

/** Ends of the process that one record may be charged with: what ends it whenever it is tried would do so for ever. */
export const MOST_CRASHES = 20;
/** From here on a record is suspected: it is charged only with ends of the process that came while it was tried. */
export const SUSPECTED_FROM = 3;
/** A try that goes on for so long does not end the process. */
const ACQUITTED_AFTER_MS = 60_000;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 60_000;
const STEP_MS = 250;

/**
 * How long a suspected record waits after an unclean start. The others have their tries first, and suspects begin one
 * after the other, so that the one that ends the process takes few with it.
 *
 * @param before - how many suspects are before it
 */
export function suspectDelayMs(crashes: number, before: number): number {
  if (crashes < SUSPECTED_FROM || crashes >= MOST_CRASHES) return 0;
  const own = FIRST_DELAY_MS * 2 ** (crashes - SUSPECTED_FROM);
  return Math.min(own, LONGEST_DELAY_MS) + Math.min(before * STEP_MS, LONGEST_DELAY_MS);
}

export interface CrashTrialDeps<T> {
  readonly store: StateStore;
  readonly records: QueueRecords<T>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The try of a suspected record: that it has begun is on disk before it begins. Who lives through a minute of it is
 * suspected no more.
 *
 * @returns ends the trial; what is written of the record afterwards is the caller's
 */
export async function beginTrial<T>(
  slot: Slot<T>,
  body: T,
  { store, records, clock, log }: CrashTrialDeps<T>,
): Promise<() => Promise<void>> {
  await store.batch([records.begun(slot.key, { ...slot.state, body })]);
  let acquittal = Promise.resolve();
  const cancel = clock.after(ACQUITTED_AFTER_MS, () => {
    slot.state = { ...slot.state, crashes: 0 };
    acquittal = store.batch([records.put(slot.key, { ...slot.state, body })]).then(
      () => undefined,
      (error: unknown) => {
        log.warn({ err: error, id: slot.state.id }, 'a queued record that is well could not be written down as such');
      },
    );
  });
  return async () => {
    cancel();
    await acquittal;
  };
}

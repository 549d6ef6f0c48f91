import { backoffMs, type BackoffOptions } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { isGatewayError, toError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { StateStore, StoreChange } from './port.js';
import { beginTrial, MOST_CRASHES, SUSPECTED_FROM } from './crash-trial.js';
import { createDiskTrouble } from './disk-trouble.js';
import type { Slot } from './queue-lanes.js';
import type { Ending, Handler, Outcome } from './queue-outcome.js';
import type { QueueRecords, QueueState } from './queue-records.js';
import { isStoreFault } from './store-fault.js';

export interface QueueAttemptOptions<T> {
  store: StateStore;
  records: QueueRecords<T>;
  clock: Clock;
  log: Logger;
  /** The queue's name in the log. */
  prefix: string;
  maxFailures: number;
  backoff: BackoffOptions;
  /** True while the queue stops: a try that ends then is not charged. */
  isStopping: () => boolean;
  /** Aborts when a stop has waited long enough. */
  signal: AbortSignal;
  /** The record has left the queue, on disk too; must not reject. */
  ended: (slot: Slot<T>, outcome: Ending) => Promise<void> | void;
}

/**
 * One try of a record: handler → outcome → what that makes of the record → disk. A record has left the queue once its
 * end is on disk, and stays otherwise.
 *
 * @returns a function that says whether the slot has left the queue; it never rejects
 */
export function createAttempt<T>(
  options: QueueAttemptOptions<T>,
  handler: Handler<T>,
  onCrashLoop: Handler<T>,
): (slot: Slot<T>) => Promise<boolean> {
  const { store, records, clock, log, prefix, maxFailures, backoff, isStopping, signal, ended } = options;
  const diskFailed = createDiskTrouble(options);

  return async (slot) => {
    slot.diskTries += 1;
    let body: T;
    try {
      body = slot.body ?? (await records.bodyOf(slot.key));
    } catch (error) {
      // Whether the record can be handled is not known, so nothing is charged to it.
      diskFailed(slot, error, 'queued record not read');
      return false;
    }
    let outcome: Outcome;
    let endTrial: (() => Promise<void>) | null = null;
    try {
      const isOver = slot.state.crashes >= MOST_CRASHES;
      if (!isOver && slot.state.crashes >= SUSPECTED_FROM) endTrial = await beginTrial(slot, body, options);
      outcome = await (isOver ? onCrashLoop : handler)({ ...slot.state, body }, signal);
    } catch (error) {
      outcome = outcomeOf(error);
    }
    await endTrial?.();
    if (outcome.kind === 'retry') outcome = charge(slot, outcome);
    try {
      if (outcome.kind === 'wait') wait(slot, outcome);
      if (outcome.kind === 'wait' || outcome.kind === 'retry') {
        if (slot.isUnwritten || endTrial) await store.batch([records.put(slot.key, { ...slot.state, body })]);
        slot.isUnwritten = false;
        if (outcome.kind === 'wait' || !isStoreFault(outcome.error)) slot.diskTries = 0;
        return false;
      }
      await store.batch(ending(slot, body, outcome));
    } catch (error) {
      // The store did not take the end of this try: the record is tried again, and its handler looks first.
      slot.state = { ...slot.state, maybeDelivered: true };
      slot.isUnwritten = true;
      diskFailed(slot, error, 'end of a queued record not stored');
      if (outcome.kind === 'done' || outcome.kind === 'dead') outcome.abandoned?.();
      return false;
    }
    // Waits only where there is something to wait for: nearly every record ends with nothing to follow.
    const follows = ended(slot, outcome);
    if (follows) await follows;
    return true;
  };

  function outcomeOf(error: unknown): Outcome {
    const known = isGatewayError(error) ? error : null;
    if (known && !known.retryable && !signal.aborted) {
      return { kind: 'dead', code: known.code, reason: known.message };
    }
    const afterMs = known?.retryAfterMs ?? null;
    return {
      kind: 'retry',
      error,
      maybeDelivered: !known?.undelivered,
      ...(afterMs === null ? {} : { afterMs }),
    };
  }

  /** Charges a failed try to the record, and ends one that has failed too often. */
  function charge(slot: Slot<T>, outcome: Extract<Outcome, { kind: 'retry' }>): Outcome {
    // A try that ended because the queue stops, or the disk refuses, is not the record's fault.
    const innocent = isStopping() || isStoreFault(outcome.error);
    const charged = innocent ? 0 : 1;
    const failures = slot.state.failures + (outcome.crashed ? 0 : charged);
    const crashes = slot.state.crashes + (outcome.crashed ? charged : 0);
    if (failures >= maxFailures) {
      const code = isGatewayError(outcome.error) ? outcome.error.code : 'DEADLINE_EXCEEDED';
      return { kind: 'dead', code, reason: toError(outcome.error).message };
    }
    const maybeDelivered = slot.state.maybeDelivered || (outcome.maybeDelivered ?? true);
    slot.state = { ...slot.state, failures, crashes, maybeDelivered };
    slot.isUnwritten = true;
    if (isStoreFault(outcome.error)) {
      diskFailed(slot, outcome.error, 'queued record met a disk that fails');
      return outcome;
    }
    slot.notBefore = clock.now() + (outcome.afterMs ?? backoffMs(failures + crashes, backoff));
    log.warn({ err: outcome.error, queue: prefix, id: slot.state.id, failures, crashes }, 'queued record failed');
    return outcome;
  }

  function wait(slot: Slot<T>, { afterMs, maybeDelivered }: Extract<Outcome, { kind: 'wait' }>): void {
    slot.notBefore = clock.now() + afterMs;
    if (maybeDelivered !== true || slot.state.maybeDelivered) return;
    slot.state = { ...slot.state, maybeDelivered };
    slot.isUnwritten = true;
  }

  function ending(
    { key, state }: { key: string; state: QueueState },
    body: T,
    outcome: Ending,
  ): readonly StoreChange[] {
    const own =
      outcome.kind === 'dead'
        ? records.dead(key, { ...state, body }, outcome.code, outcome.reason)
        : [records.done(key)];
    return outcome.changes ? [...own, ...outcome.changes] : own;
  }
}

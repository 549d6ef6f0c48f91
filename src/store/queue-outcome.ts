import { ERROR_CODES } from '../base/error-codes.js';
import type { StoreChange } from './port.js';
import type { QueueRecord } from './queue-records.js';

/**
 * How a try ended. `done` and `dead` take the record out of the queue in one batch with `changes`, so that what the
 * record led to and its end are on disk together or not at all; `committed` is called once they are, `abandoned` when
 * the batch failed and the record is tried again.
 */
export type Outcome =
  | ({ readonly kind: 'done' } & Consequences)
  | {
      readonly kind: 'retry';
      readonly afterMs?: number;
      readonly error: unknown;
      readonly maybeDelivered?: boolean;
      /** It met a defect: counts as an end of the process does, and not as a failed try. */
      readonly crashed?: boolean;
    }
  /**
   * Something outside the record has to happen first. Holds the lane, is charged to nobody. `maybeDelivered` where
   * something was tried that may have reached the other side.
   */
  | { readonly kind: 'wait'; readonly afterMs: number; readonly maybeDelivered?: boolean }
  | ({ readonly kind: 'dead'; readonly code: string; readonly reason: string } & Consequences);

interface Consequences {
  readonly changes?: readonly StoreChange[];
  readonly committed?: () => void;
  readonly abandoned?: () => void;
}

/** A try that takes its record out of the queue. */
export type Ending = Extract<Outcome, { kind: 'done' | 'dead' }>;

/**
 * Tries one record. A thrown error counts as `retry`, or as `dead` when it is a GatewayError that may not be retried.
 * `signal` aborts when the queue stops.
 */
export type Handler<T> = (record: QueueRecord<T>, signal: AbortSignal) => Promise<Outcome>;

/** The usual end of a record that ends the process whenever it is tried. */
export const crashLoop: Handler<unknown> = () =>
  Promise.resolve({
    kind: 'dead',
    code: 'CRASH_LOOP',
    reason: ERROR_CODES.CRASH_LOOP.text,
  });

import type { DurableQueue, Outcome } from './durable-queue.js';
import type { QueueRecord } from './queue-records.js';
import type { StoreChange } from './port.js';

/** How an outbox writes outside, where the outside has no key that makes a repeat harmless. */
export interface OutboxWriter<T, Receipt> {
  /** Looks for what an earlier try may have written; null when it is certainly not there. */
  find(record: QueueRecord<T>, signal: AbortSignal): Promise<Receipt | null>;
  /** Writes. An error that is not `undelivered` makes the next try look first. */
  write(record: QueueRecord<T>, signal: AbortSignal): Promise<Receipt>;
  /** What is stored in one batch with the record's end, e.g. the id that the outside gave. */
  written?(record: QueueRecord<T>, receipt: Receipt): readonly StoreChange[];
}

/**
 * Hands a queue's records to a writer under the rule *look before you write again*: a record that may have been
 * written already is looked for first, and written only when it is not there.
 */
export function startOutbox<T, Receipt>(queue: DurableQueue<T>, writer: OutboxWriter<T, Receipt>): void {
  queue.start(async (record, signal): Promise<Outcome> => {
    const found = record.maybeDelivered ? await writer.find(record, signal) : null;
    const receipt = found ?? (await writer.write(record, signal));
    return { kind: 'done', changes: writer.written?.(record, receipt) ?? [] };
  });
}

import { isGatewayError } from '../base/errors.js';
import { DurableQueue, type DurableQueueOptions, type QueueItem } from './durable-queue.js';
import { SeenKeys } from './seen.js';

export interface InboxOptions<T> extends DurableQueueOptions<T> {
  /** How long an accepted id is recognised as a repeat after its record is done. */
  seenRetentionMs: number;
  maxSeen?: number;
}

export type Accepted = 'accepted' | 'repeat';

/**
 * What the outside handed over. `accept` resolves once the record is on disk, so that its sender may be told; the same
 * id accepted again is a repeat, while its record waits and long after it is done.
 */
export class Inbox<T> {
  /** The queue behind it: `start`, `stop`, `wake`, depths and dead records. */
  readonly queue: DurableQueue<T>;
  readonly #seen: SeenKeys;

  private constructor(queue: DurableQueue<T>, seen: SeenKeys) {
    this.queue = queue;
    this.#seen = seen;
  }

  static async open<T>({ seenRetentionMs, maxSeen, ...options }: InboxOptions<T>): Promise<Inbox<T>> {
    const { store, prefix, clock } = options;
    const queue = await DurableQueue.open(options);
    const seen = await SeenKeys.open({
      store,
      prefix: `${prefix}/seen`,
      clock,
      retentionMs: seenRetentionMs,
      ...(maxSeen === undefined ? {} : { maxKeys: maxSeen }),
    });
    return new Inbox(queue, seen);
  }

  /** @throws {GatewayError} `QUEUE_FULL`, or what the store throws; the sender must not be told that it was taken */
  async accept(item: QueueItem<T>): Promise<Accepted> {
    try {
      if (!(await this.queue.put(item, () => this.#seen.markAtOnce(item.id)))) return 'repeat';
    } catch (error) {
      if (isGatewayError(error, 'STORE_CONFLICT') && error.details['key'] === this.#seen.keyOf(item.id))
        return 'repeat';
      throw error;
    }
    this.#seen.marked();
    return 'accepted';
  }

  /** Forgets ids past their time. */
  async prune(): Promise<number> {
    return await this.#seen.prune();
  }
}

import { GatewayError, toError } from '../base/errors.js';
import { refusalOf } from './conditions.js';
import { DATA, decodeRevision, encodeStored, META_REVISION } from './level-layout.js';
import type { Level, LevelOperation } from './level.js';
import { weigh } from './limits.js';
import type { StoreChange, StoreKey } from './port.js';

interface Waiting {
  readonly changes: readonly StoreChange[];
  readonly bytes: number;
  readonly resolve: (revision: number) => void;
  readonly reject: (reason: GatewayError) => void;
}

/** Bytes of batches that may wait for the write in flight; one more is refused with `QUEUE_FULL`. */
const MAX_WAITING_BYTES = 64 * 1_024 * 1_024;
/** Bytes that share one write, so that a flood does not make a single write long. */
const MAX_GROUP_BYTES = 4 * 1_024 * 1_024;

export interface CommitLoopOptions {
  level: Level;
  /** Revision of the last group on disk. */
  revision: number;
  /** Reopens after a failed write; null when it is not open again yet (then `resume` follows). */
  onWriteError(cause: Error): Promise<{ level: Level; revision: number } | null>;
}

/**
 * Group commit. One synced write is in flight; batches that come meanwhile form the next group. The conditions of a
 * batch are checked against the disk and the batches before it in its group, so that all see one order.
 */
export class CommitLoop {
  readonly #options: CommitLoopOptions;
  #level: Level | null;
  #revision: number;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #running: Promise<void> | null = null;

  constructor(options: CommitLoopOptions) {
    this.#options = options;
    this.#level = options.level;
    this.#revision = options.revision;
  }

  commit(changes: readonly StoreChange[]): Promise<number> {
    if (!this.#level) return Promise.reject(new GatewayError('STORE_TRIPPED'));
    let bytes: number;
    try {
      bytes = weigh(changes);
    } catch (error) {
      return Promise.reject(toError(error));
    }
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) return Promise.reject(new GatewayError('QUEUE_FULL'));
    this.#waitingBytes += bytes;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ changes, bytes, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Takes writes again, after `onWriteError` answered null and the folder has been reopened since. */
  resume(level: Level, revision: number): void {
    this.#level = level;
    this.#revision = revision;
  }

  /** Resolves when nothing waits and nothing is being written. */
  async drain(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      // A turn of the event loop lets everything that is already on its way join the group.
      await new Promise(setImmediate);
      const level = this.#level;
      if (level) await this.#commitGroup(level, this.#takeGroup());
      else this.#refuseAll();
    }
    this.#running = null;
  }

  #takeGroup(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const batch of this.#waiting) {
      if (count > 0 && bytes + batch.bytes > MAX_GROUP_BYTES) break;
      bytes += batch.bytes;
      count += 1;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  async #commitGroup(level: Level, group: Waiting[]): Promise<void> {
    const accepted: { batch: Waiting; revision: number }[] = [];
    const operations: LevelOperation[] = [];
    let revision = this.#revision;
    try {
      const revisions = this.#revisionsWished(level, group);
      const revisionOf = (key: StoreKey) => revisions.get(key) ?? null;
      // Most groups make no condition: then no key is looked up, which saves the hash of each.
      const areWished = revisions.size > 0;
      for (const batch of group) {
        const refusal = areWished ? refusalOf(batch.changes, revisionOf) : null;
        if (refusal) {
          batch.reject(refusal);
          continue;
        }
        // Each batch has a revision of its own: two batches of one group may write one key.
        revision += 1;
        accepted.push({ batch, revision });
        for (const change of batch.changes) {
          if (change.kind === 'check') continue;
          if (change.kind === 'put') {
            operations.push({ type: 'put', key: DATA + change.key, value: encodeStored(change.value, revision) });
            if (areWished && revisions.has(change.key)) revisions.set(change.key, revision);
          } else {
            operations.push({ type: 'del', key: DATA + change.key });
            if (areWished && revisions.has(change.key)) revisions.set(change.key, null);
          }
        }
      }
      if (accepted.length === 0) return;
      operations.push({ type: 'put', key: META_REVISION, value: encodeStored(new Uint8Array(), revision) });
      await level.write(operations);
    } catch (error) {
      await this.#recover(toError(error), revision, group, accepted);
      return;
    }
    this.#revision = revision;
    for (const { batch, revision: own } of accepted) batch.resolve(own);
  }

  /** The present revision of every key that some batch of the group makes a condition of. */
  #revisionsWished(level: Level, group: readonly Waiting[]): Map<StoreKey, number | null> {
    const revisions = new Map<StoreKey, number | null>();
    for (const { changes } of group) {
      for (const { key, ifRevision } of changes) {
        if (ifRevision === undefined || revisions.has(key)) continue;
        const stored = level.getNow(DATA + key);
        revisions.set(key, stored === undefined ? null : decodeRevision(stored));
      }
    }
    return revisions;
  }

  /** A group commits as one with its last revision, so the reopened folder tells whether the whole of it is there. */
  async #recover(
    cause: Error,
    revision: number,
    group: readonly Waiting[],
    accepted: readonly { batch: Waiting; revision: number }[],
  ): Promise<void> {
    this.#level = null;
    this.#refuseAll();
    const again = await this.#options.onWriteError(cause);
    if (again) {
      this.resume(again.level, again.revision);
      if (again.revision >= revision) for (const { batch, revision: own } of accepted) batch.resolve(own);
    }
    // Settling twice is harmless: what was resolved or refused above stays so.
    const code = again ? 'STORE_TRIPPED' : 'STORE_IO';
    for (const { reject } of group) reject(new GatewayError(code, { cause }));
  }

  #refuseAll(): void {
    for (const batch of this.#waiting.splice(0)) batch.reject(new GatewayError('STORE_TRIPPED'));
    this.#waitingBytes = 0;
  }
}

import type { z } from 'zod';
import { type Deferred, deferred } from '../base/async.js';
import type { BackoffOptions } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { GatewayError, isGatewayError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { JsonAround } from './json.js';
import type { StateStore, StoreChange } from './port.js';
import { suspectDelayMs } from './crash-trial.js';
import { createAttempt } from './queue-attempt.js';
import { type LaneGroups, QueueLanes, type Slot } from './queue-lanes.js';
import { crashLoop, type Ending, type Handler } from './queue-outcome.js';
import { type DeadRecord, QueueRecords, type QueueState } from './queue-records.js';

export type { LaneGroups } from './queue-lanes.js';
export type { Handler, Outcome } from './queue-outcome.js';

export interface DurableQueueOptions<T> {
  store: StateStore;
  /** Where the queue's records stand, without a trailing slash, e.g. `slack/helpdesk/inbox`. */
  prefix: string;
  /** The body's shape, checked when it is read back after a restart. */
  bodySchema: z.ZodType<T>;
  clock: Clock;
  log: Logger;
  /** Lanes handled at the same time, of all or of each group; default 64. */
  maxRunning?: number | LaneGroups;
  /** Records that may wait; one more is refused with `QUEUE_FULL`. Default 10,000. */
  maxWaiting?: number;
  /**
   * What the bodies of waiting records that stay in memory take on disk; those of the others are read again when
   * their turn comes. Default 2 MiB.
   */
  maxBytesInMemory?: number;
  /** What {@link DurableQueue.laneTags} is to know of a record that waits; left out: nothing. */
  tagOf?: (body: T) => string | null;
  /** Dead records that are kept; the oldest goes when one more dies. Default 1,000. */
  maxDead?: number;
  /** Failed tries after which a record is dead; default 10. */
  maxFailures?: number;
  /** Waits between the tries of one record; default 1 s doubling to 60 s. */
  backoff?: BackoffOptions;
}

export interface QueueItem<T> {
  readonly id: string;
  readonly lane: string;
  readonly body: T;
  /** The body as JSON, from who has it already: it is stored as it stands. */
  readonly bodyJson?: JsonAround;
}

/** A prepared put: `changes` go into a batch of the caller's, then exactly one of the two is called. */
export interface StagedPut {
  readonly changes: readonly StoreChange[];
  /** The batch is on disk. */
  committed(): void;
  /** The batch failed, by this error. */
  abandoned(error?: unknown): void;
}

type Changes = readonly StoreChange[];

const DEFAULTS = {
  maxRunning: 64,
  maxWaiting: 10_000,
  maxBytesInMemory: 2 * 1_024 * 1_024,
  tagOf: () => null,
  maxDead: 1_000,
  maxFailures: 10,
};
const DEFAULT_BACKOFF: BackoffOptions = { baseMs: 1_000, maxMs: 60_000 };

/**
 * An ordered, durable queue. What `put` answered is on disk, and is in exactly one of two states, *waiting* (in order
 * in its lane, being tried or about to be) or *dead* (given up, listed, may be retried), until a handler's `done`
 * takes it out. A process that dies anywhere in between tries again after the next `open`: again, never lost.
 *
 * put → {@link QueueRecords} (what is on disk) → {@link QueueLanes} (when it is tried) → {@link createAttempt} (how a
 * try ends) → out.
 */
export class DurableQueue<T> {
  readonly #options: Required<Omit<DurableQueueOptions<T>, 'bodySchema'>>;
  readonly #records: QueueRecords<T>;
  readonly #lanes: QueueLanes<T>;
  /** Ids that wait or are dead. */
  readonly #ids = new Set<string>();
  /** Ids whose put is on its way to the disk, and the promise of those who wait for what becomes of it. */
  readonly #pending = new Map<string, Deferred | null>();
  /** Puts that the disk refused: they may be on it nevertheless. */
  readonly #uncertain = new Map<string, Slot<T>>();
  readonly #stopping = new AbortController();
  #attempt: ((slot: Slot<T>) => Promise<boolean>) | null = null;
  #deadCount = 0;
  #bytesInMemory = 0;

  private constructor({ bodySchema, ...options }: DurableQueueOptions<T>) {
    this.#options = { ...DEFAULTS, backoff: DEFAULT_BACKOFF, ...options };
    const { store, prefix, clock, maxRunning } = this.#options;
    this.#records = new QueueRecords(store, prefix, clock, bodySchema);
    this.#lanes = new QueueLanes({
      clock,
      maxRunning,
      attempt: (slot) => this.#attempt?.(slot) ?? Promise.resolve(false),
    });
  }

  /** Opens the queue with what an earlier process left in it. */
  static async open<T>(options: DurableQueueOptions<T>): Promise<DurableQueue<T>> {
    const queue = new DurableQueue(options);
    const openedAt = options.clock.now();
    let suspects = 0;
    const { deadIds } = await queue.#records.load(({ key, record: { body, ...state }, bytes, isAfterCrash }) => {
      queue.#ids.add(state.id);
      const delayMs = isAfterCrash ? suspectDelayMs(state.crashes, suspects) : 0;
      if (delayMs > 0) suspects += 1;
      queue.#enter(queue.#slot(key, state, body, bytes), delayMs === 0 ? 0 : openedAt + delayMs);
    });
    for (const id of deadIds) queue.#ids.add(id);
    queue.#deadCount = deadIds.length;
    return queue;
  }

  /**
   * Begins to hand records to `handler`; those put before have waited for it.
   *
   * @param onCrashLoop - how a record ends that has crashed twenty times; default: dead, with the code `CRASH_LOOP`
   */
  start(handler: Handler<T>, onCrashLoop: Handler<T> = crashLoop): void {
    const options = {
      ...this.#options,
      records: this.#records,
      signal: this.#stopping.signal,
      isStopping: () => !this.#lanes.isOpen,
      ended: (slot: Slot<T>, outcome: Ending) => this.#ended(slot, outcome),
    };
    this.#attempt = createAttempt(options, handler, onCrashLoop);
    this.#lanes.start();
  }

  /**
   * Queues a record; it is on disk when this resolves.
   *
   * @param also - further changes of the same batch, or what makes them just before it is handed to the store
   * @returns false when a record of this id waits or is dead already; nothing was written then
   * @throws {GatewayError} `QUEUE_FULL`, or what the store throws
   */
  async put(item: QueueItem<T>, also: Changes | (() => Changes) = []): Promise<boolean> {
    // Another put of this id may be on its way: only its success makes this one a repeat.
    while (this.#pending.has(item.id)) await this.#settled(item.id);
    if (this.#uncertain.size > 0) await this.#lookForUncertain();
    const place = this.#placeFor(item);
    if (!place) return false;
    const { slot, change } = place;
    try {
      const further = typeof also === 'function' ? also() : also;
      await this.#options.store.batch([change, ...further]);
    } catch (error) {
      this.#abandoned(slot, error);
      throw error;
    }
    this.#committed(slot);
    return true;
  }

  /** Prepares a put as part of the caller's own batch; null for an id that the queue holds. */
  stage(item: QueueItem<T>): StagedPut | null {
    const place = this.#placeFor(item);
    if (!place) return null;
    const { slot, change } = place;
    return {
      changes: [change],
      committed: () => {
        this.#committed(slot);
      },
      abandoned: (error) => {
        this.#abandoned(slot, error);
      },
    };
  }

  /** The place of a put that is about to be made; null for an id that the queue holds. */
  #placeFor({ id, lane, body, bodyJson }: QueueItem<T>): { slot: Slot<T>; change: StoreChange } | null {
    if (this.has(id)) return null;
    if (this.depth >= this.#options.maxWaiting) {
      throw new GatewayError('QUEUE_FULL', { details: { queue: this.#options.prefix, waiting: this.depth } });
    }
    const state = freshState(id, lane, this.#options.clock.now());
    const key = this.#records.newKey();
    const change = this.#records.put(key, { ...state, body }, bodyJson);
    this.#pending.set(id, null);
    return { slot: this.#slot(key, state, body, Buffer.byteLength(change.value)), change };
  }

  #slot(key: string, state: QueueState, body: T, bytes: number): Slot<T> {
    const tag = this.#options.tagOf(body);
    return { key, state, body, bytes, tag, notBefore: 0, heldUntil: 0, diskTries: 0, isUnwritten: false };
  }

  /** Lets a record that is on disk wait in its lane, with its body as long as there is room for it in memory. */
  #enter(slot: Slot<T>, heldUntil = 0): void {
    slot.heldUntil = heldUntil;
    if (this.#bytesInMemory + slot.bytes <= this.#options.maxBytesInMemory) this.#bytesInMemory += slot.bytes;
    else slot.body = undefined;
    this.#lanes.enter(slot);
  }

  #committed(slot: Slot<T>): void {
    this.#ids.add(slot.state.id);
    this.#settle(slot.state.id);
    this.#enter(slot);
  }

  #abandoned(slot: Slot<T>, error: unknown): void {
    if (isGatewayError(error, 'STORE_IO')) this.#uncertain.set(slot.state.id, slot);
    this.#settle(slot.state.id);
  }

  /** Resolves when the put of this id that is on its way has become one thing or the other. */
  #settled(id: string): Promise<void> {
    const settled = this.#pending.get(id) ?? deferred();
    this.#pending.set(id, settled);
    return settled.promise;
  }

  #settle(id: string): void {
    const settled = this.#pending.get(id);
    this.#pending.delete(id);
    settled?.resolve();
  }

  /** What was refused with `STORE_IO` and is on disk after all is taken up: its sender's repeat is none to the disk. */
  async #lookForUncertain(): Promise<void> {
    for (const [id, slot] of [...this.#uncertain]) {
      const stored = await this.#options.store.get(slot.key);
      if (!this.#uncertain.delete(id) || !stored || this.#ids.has(id)) continue;
      this.#ids.add(id);
      this.#enter(slot);
    }
  }

  /** True while a record of this id is being put, waits, or is dead. */
  has(id: string): boolean {
    return this.#ids.has(id) || this.#pending.has(id);
  }

  /** Records that wait, those being tried included. */
  get depth(): number {
    return this.#ids.size + this.#pending.size - this.#deadCount;
  }

  get deadCount(): number {
    return this.#deadCount;
  }

  laneDepth(lane: string): number {
    return this.#lanes.depthOf(lane);
  }

  /** The tags of what waits in a lane, in order, the record being tried included. */
  laneTags(lane: string): readonly (string | null)[] {
    return this.#lanes.tagsOf(lane);
  }

  /** Milliseconds since the oldest waiting record was put; 0 when none waits. */
  get oldestAgeMs(): number {
    const now = this.#options.clock.now();
    return Math.max(0, now - (this.#lanes.oldestPutAt ?? now));
  }

  /** Ends the waits between tries now: of one lane, or of all. */
  wake(lane?: string): void {
    this.#lanes.wake(lane);
  }

  /** Oldest first. */
  async deadRecords(limit = 100): Promise<DeadRecord<T>[]> {
    return (await this.#records.listDead(limit)).map(({ dead }) => dead);
  }

  /** Puts a dead record at the end of its lane. @returns false when there is none of that id */
  async retryDead(id: string): Promise<boolean> {
    const found = await this.#records.findDead(id);
    if (!found) return false;
    const { entry, dead } = found;
    const { lane, body } = dead;
    const state = { ...freshState(id, lane, this.#options.clock.now()), maybeDelivered: true };
    const key = this.#records.newKey();
    const change = this.#records.put(key, { ...state, body });
    await this.#options.store.batch([{ kind: 'delete', key: entry.key, ifRevision: entry.revision }, change]);
    this.#deadCount -= 1;
    this.#enter(this.#slot(key, state, body, Buffer.byteLength(change.value)));
    return true;
  }

  /** Forgets a dead record. @returns false when there is none of that id */
  async dropDead(id: string): Promise<boolean> {
    const found = await this.#records.findDead(id);
    if (!found) return false;
    await this.#options.store.batch([{ kind: 'delete', key: found.entry.key, ifRevision: found.entry.revision }]);
    this.#deadCount -= 1;
    this.#ids.delete(id);
    return true;
  }

  /** Resolves when no record waits. */
  async drained(): Promise<void> {
    await this.#lanes.empty();
  }

  /**
   * Hands out no further record and waits for the tries under way; after `graceMs` their signals abort. What is not
   * done stays on disk and waits for the next `open`.
   */
  async stop(graceMs = 0): Promise<void> {
    this.#lanes.halt();
    const cancel = this.#options.clock.after(graceMs, () => {
      this.#stopping.abort(new GatewayError('DEADLINE_EXCEEDED', { message: 'The queue was stopped.' }));
    });
    await this.#lanes.still();
    cancel();
    await this.#records.markClean(await this.#unwritten());
  }

  /** What the disk has not taken of what became of records. */
  async #unwritten(): Promise<StoreChange[]> {
    const changes: StoreChange[] = [];
    for (const { key, state, body, isUnwritten } of this.#lanes.slots()) {
      if (isUnwritten)
        changes.push(this.#records.put(key, { ...state, body: body ?? (await this.#records.bodyOf(key)) }));
    }
    return changes;
  }

  /** What follows once the end is on disk; a failure here must not bring the record back. */
  #ended({ state: { id }, body, bytes }: Slot<T>, outcome: Ending): Promise<void> | void {
    if (body !== undefined) this.#bytesInMemory -= bytes;
    if (outcome.kind === 'done') this.#ids.delete(id);
    else this.#deadCount += 1;
    try {
      outcome.committed?.();
    } catch (error) {
      this.#followUpFailed(id, error);
      return;
    }
    if (outcome.kind === 'dead') return this.#died(id, outcome);
  }

  async #died(id: string, { code, reason }: Extract<Ending, { kind: 'dead' }>): Promise<void> {
    const { log, prefix, maxDead } = this.#options;
    log.error({ queue: prefix, id, code, reason }, 'queued record given up');
    if (this.#deadCount <= maxDead) return;
    try {
      const [oldest] = await this.#records.listDead(1);
      if (oldest) await this.dropDead(oldest.dead.id);
    } catch (error) {
      this.#followUpFailed(id, error);
    }
  }

  #followUpFailed(id: string, error: unknown): void {
    this.#options.log.error({ err: error, queue: this.#options.prefix, id }, 'what follows a queued record failed');
  }
}

/** Of a record that has not been tried. */
function freshState(id: string, lane: string, putAt: number): QueueState {
  return { id, lane, putAt, failures: 0, crashes: 0, maybeDelivered: false };
}

import type { z } from 'zod';
import { type Deferred, deferred } from '../base/async.js';
import { backoffMs, type BackoffOptions } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { GatewayError, isGatewayError, toError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { StateStore, StoreChange } from './port.js';
import type { Ending, Handler, Outcome } from './queue-outcome.js';
import { isStoreFault } from './store-fault.js';
import { type DeadRecord, type QueueRecord, QueueRecords } from './queue-records.js';

export type { Handler, Outcome } from './queue-outcome.js';

export interface DurableQueueOptions<T> {
  store: StateStore;
  /** Where the queue's records stand, without a trailing slash, e.g. `slack/helpdesk/inbox`. */
  prefix: string;
  /** The body's shape, checked when it is read back after a restart. */
  bodySchema: z.ZodType<T>;
  clock: Clock;
  log: Logger;
  /** Lanes handled at the same time; default 64. */
  maxRunning?: number;
  /** Records that may wait; one more is refused with `QUEUE_FULL`. Default 10,000. */
  maxWaiting?: number;
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
}

/** A prepared put: `changes` go into a batch of the caller's, then exactly one of the two is called. */
export interface StagedPut {
  readonly changes: readonly StoreChange[];
  /** The batch is on disk. */
  committed(): void;
  /** The batch failed, by this error. */
  abandoned(error?: unknown): void;
}

interface Slot<T> {
  readonly key: string;
  record: QueueRecord<T>;
  notBefore: number;
}

interface Lane<T> {
  readonly slots: Slot<T>[];
  busy: boolean;
  /** Ends the wait before the next try of the lane's head. */
  wake: (() => void) | null;
  /** It was to be woken while its head was being tried: what that try found may be out of date. */
  woken: boolean;
}

const DEFAULTS = { maxRunning: 64, maxWaiting: 10_000, maxDead: 1_000, maxFailures: 10 };
/** Ends of the process, beyond the failed tries, that one record may be charged with. */
const MOST_CRASHES = 20;
const DEFAULT_BACKOFF: BackoffOptions = { baseMs: 1_000, maxMs: 60_000 };

/**
 * An ordered, durable queue. What `put` answered is on disk, and is in exactly one of two states, *waiting* (in order
 * in its lane, being tried or about to be) or *dead* (given up, listed, may be retried), until a handler's `done`
 * takes it out. A process that dies anywhere in between tries again after the next `open`: again, never lost.
 */
export class DurableQueue<T> {
  readonly #options: Required<Omit<DurableQueueOptions<T>, 'bodySchema'>>;
  readonly #records: QueueRecords<T>;
  readonly #lanes = new Map<string, Lane<T>>();
  /** Ids that wait or are dead. */
  readonly #ids = new Set<string>();
  /** Ids whose put is on its way to the disk. */
  readonly #pending = new Map<string, Deferred>();
  /** Puts that the disk refused: they may be on it nevertheless. */
  readonly #uncertain = new Map<string, Slot<T>>();
  readonly #stopping = new AbortController();
  #handler: Handler<T> | null = null;
  #running = 0;
  #deadCount = 0;
  readonly #turns: (() => void)[] = [];
  readonly #whenEmpty: (() => void)[] = [];
  readonly #whenStill: (() => void)[] = [];

  private constructor({ bodySchema, ...options }: DurableQueueOptions<T>) {
    this.#options = { ...DEFAULTS, backoff: DEFAULT_BACKOFF, ...options };
    this.#records = new QueueRecords(options.store, options.prefix, options.clock, bodySchema);
  }

  /** Opens the queue with what an earlier process left in it. */
  static async open<T>(options: DurableQueueOptions<T>): Promise<DurableQueue<T>> {
    const queue = new DurableQueue(options);
    const { waiting, deadIds } = await queue.#records.load();
    for (const { key, record } of waiting) {
      queue.#ids.add(record.id);
      queue.#laneOf(record.lane).slots.push({ key, record, notBefore: 0 });
    }
    for (const id of deadIds) queue.#ids.add(id);
    queue.#deadCount = deadIds.length;
    return queue;
  }

  /** Begins to hand records to `handler`; those put before have waited for it. */
  start(handler: Handler<T>): void {
    this.#handler = handler;
    for (const name of this.#lanes.keys()) void this.#runLane(name);
  }

  /**
   * Queues a record; it is on disk when this resolves.
   *
   * @param also - further changes of the same batch
   * @returns false when a record of this id waits or is dead already; nothing was written then
   * @throws {GatewayError} `QUEUE_FULL`, or what the store throws
   */
  async put(item: QueueItem<T>, also: readonly StoreChange[] = []): Promise<boolean> {
    // Another put of this id may be on its way: only its success makes this one a repeat.
    for (let other = this.#pending.get(item.id); other; other = this.#pending.get(item.id)) await other.promise;
    if (this.#uncertain.size > 0) await this.#lookForUncertain();
    const staged = this.stage(item);
    if (!staged) return false;
    try {
      await this.#options.store.batch([...staged.changes, ...also]);
    } catch (error) {
      staged.abandoned(error);
      throw error;
    }
    staged.committed();
    return true;
  }

  /** Prepares a put as part of the caller's own batch; null for an id that the queue holds. */
  stage(item: QueueItem<T>): StagedPut | null {
    if (this.has(item.id)) return null;
    if (this.depth >= this.#options.maxWaiting) {
      throw new GatewayError('QUEUE_FULL', { details: { queue: this.#options.prefix, waiting: this.depth } });
    }
    const pending = deferred();
    this.#pending.set(item.id, pending);
    const { id, lane, body } = item;
    const record = { id, lane, body, putAt: this.#options.clock.now(), failures: 0, maybeDelivered: false };
    const slot: Slot<T> = { key: this.#records.newKey(), record, notBefore: 0 };
    const settle = () => {
      this.#pending.delete(id);
      pending.resolve();
    };
    return {
      changes: [this.#records.put(slot.key, record)],
      committed: () => {
        this.#ids.add(id);
        settle();
        this.#enter(slot);
      },
      abandoned: (error) => {
        if (isGatewayError(error, 'STORE_IO')) this.#uncertain.set(id, slot);
        settle();
      },
    };
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
    return this.#lanes.get(lane)?.slots.length ?? 0;
  }

  /** Milliseconds since the oldest waiting record was put; 0 when none waits. */
  get oldestAgeMs(): number {
    const now = this.#options.clock.now();
    let oldest = now;
    for (const { slots } of this.#lanes.values()) oldest = Math.min(oldest, slots[0]?.record.putAt ?? now);
    return now - oldest;
  }

  /** Ends the waits between tries now: of one lane, or of all. */
  wake(lane?: string): void {
    for (const [name, state] of this.#lanes) {
      if (lane !== undefined && lane !== name) continue;
      state.woken = true;
      state.wake?.();
    }
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
    const record = {
      id,
      lane: dead.lane,
      body: dead.body,
      putAt: this.#options.clock.now(),
      failures: 0,
      maybeDelivered: true,
    };
    const key = this.#records.newKey();
    await this.#options.store.batch([
      { kind: 'delete', key: entry.key, ifRevision: entry.revision },
      this.#records.put(key, record),
    ]);
    this.#deadCount -= 1;
    this.#enter({ key, record, notBefore: 0 });
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
    if (this.#lanes.size > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  /**
   * Hands out no further record and waits for the tries under way; after `graceMs` their signals abort. What is not
   * done stays on disk and waits for the next `open`.
   */
  async stop(graceMs = 0): Promise<void> {
    this.#handler = null;
    this.wake();
    for (const turn of this.#turns.splice(0)) turn();
    const cancel = this.#options.clock.after(graceMs, () => {
      this.#stopping.abort(new GatewayError('DEADLINE_EXCEEDED', { message: 'The queue was stopped.' }));
    });
    if (this.#running > 0) await new Promise<void>((resolve) => this.#whenStill.push(resolve));
    cancel();
    await this.#records.markClean();
  }

  /** Puts the slot into its lane at the place its key gives it, but never before a head that is being tried. */
  #enter(slot: Slot<T>): void {
    const name = slot.record.lane;
    const isNew = !this.#lanes.has(name);
    const lane = this.#laneOf(name);
    let at = lane.slots.length;
    while (at > (lane.busy ? 1 : 0) && (lane.slots[at - 1]?.key ?? '') > slot.key) at -= 1;
    lane.slots.splice(at, 0, slot);
    if (isNew && this.#handler) void this.#runLane(name);
  }

  #laneOf(name: string): Lane<T> {
    let lane = this.#lanes.get(name);
    if (!lane) this.#lanes.set(name, (lane = { slots: [], busy: false, wake: null, woken: false }));
    return lane;
  }

  /** Handles one lane until it is empty or the queue stops; never rejects. */
  async #runLane(name: string): Promise<void> {
    const lane = this.#laneOf(name);
    while (lane.slots.length > 0) {
      await this.#pause(lane);
      while (this.#handler && this.#running >= this.#options.maxRunning) {
        await new Promise<void>((resolve) => this.#turns.push(resolve));
      }
      const slot = lane.slots[0];
      const handler = this.#handler;
      if (!handler || !slot) return;
      this.#running += 1;
      lane.busy = true;
      lane.woken = false;
      if (await this.#try(handler, slot)) lane.slots.shift();
      lane.busy = false;
      this.#running -= 1;
      this.#turns.shift()?.();
      if (this.#running === 0) for (const resolve of this.#whenStill.splice(0)) resolve();
    }
    this.#lanes.delete(name);
    if (this.#lanes.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  /** Waits until the lane's head may be tried; `wake` and `stop` cut it short. */
  async #pause(lane: Lane<T>): Promise<void> {
    const pauseMs = (lane.slots[0]?.notBefore ?? 0) - this.#options.clock.now();
    if (pauseMs <= 0 || lane.woken || !this.#handler) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(pauseMs, resolve);
      lane.wake = () => {
        cancel();
        resolve();
      };
    });
    lane.wake = null;
  }

  /** @returns whether the slot has left the queue */
  async #try(handler: Handler<T>, slot: Slot<T>): Promise<boolean> {
    const outcome = this.#crashed(slot) ?? this.#judge(slot, await this.#outcomeOf(handler, slot.record));
    const { store, clock, log, prefix, backoff } = this.#options;
    try {
      if (outcome.kind === 'wait') {
        slot.notBefore = clock.now() + outcome.afterMs;
        if (!outcome.maybeDelivered || slot.record.maybeDelivered) return false;
        slot.record = { ...slot.record, maybeDelivered: true };
        await store.batch([this.#records.put(slot.key, slot.record)]);
        return false;
      }
      if (outcome.kind === 'retry') {
        await store.batch([this.#records.put(slot.key, slot.record)]);
        return false;
      }
      await store.batch(this.#ending(slot, outcome));
    } catch (error) {
      // The store did not take the end of this try: the record is tried again, and its handler looks first.
      log.error({ err: error, queue: prefix, id: slot.record.id }, 'end of a queued record not stored');
      slot.record = { ...slot.record, maybeDelivered: true };
      slot.notBefore = clock.now() + backoffMs(slot.record.failures + 1, backoff);
      if (outcome.kind === 'done' || outcome.kind === 'dead') outcome.abandoned?.();
      return false;
    }
    await this.#ended(slot.record.id, outcome);
    return true;
  }

  async #outcomeOf(handler: Handler<T>, record: QueueRecord<T>): Promise<Outcome> {
    try {
      return await handler(record, this.#stopping.signal);
    } catch (error) {
      const known = isGatewayError(error) ? error : null;
      if (known && !known.retryable && !this.#stopping.signal.aborted) {
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
  }

  /** A record that ends the process whenever it is tried would do so for ever. */
  #crashed({ record }: Slot<T>): Outcome | null {
    if (record.failures < this.#options.maxFailures + MOST_CRASHES) return null;
    return { kind: 'dead', code: 'CRASH_LOOP', reason: 'The process ended too often while this was being handled.' };
  }

  /** Charges a failed try to the record, and ends one that has failed too often. */
  #judge(slot: Slot<T>, outcome: Outcome): Outcome {
    if (outcome.kind !== 'retry') return outcome;
    const { clock, log, prefix, maxFailures, backoff } = this.#options;
    // A try that ended because the queue stops, or the disk refuses, is not the record's fault.
    const innocent = this.#handler === null || isStoreFault(outcome.error);
    const failures = slot.record.failures + (innocent ? 0 : 1);
    if (failures >= maxFailures) {
      const code = isGatewayError(outcome.error) ? outcome.error.code : 'DEADLINE_EXCEEDED';
      return { kind: 'dead', code, reason: toError(outcome.error).message };
    }
    const maybeDelivered = slot.record.maybeDelivered || (outcome.maybeDelivered ?? true);
    slot.record = { ...slot.record, failures, maybeDelivered };
    slot.notBefore = clock.now() + (outcome.afterMs ?? backoffMs(failures, backoff));
    log.warn({ err: outcome.error, queue: prefix, id: slot.record.id, failures }, 'queued record failed');
    return outcome;
  }

  #ending({ key, record }: Slot<T>, outcome: Ending): StoreChange[] {
    const own =
      outcome.kind === 'dead'
        ? this.#records.dead(key, record, outcome.code, outcome.reason)
        : [this.#records.done(key)];
    return [...own, ...(outcome.changes ?? [])];
  }

  /** What follows once the end is on disk; a failure here must not bring the record back. */
  async #ended(id: string, outcome: Ending): Promise<void> {
    const { log, prefix, maxDead } = this.#options;
    if (outcome.kind === 'done') this.#ids.delete(id);
    else this.#deadCount += 1;
    try {
      outcome.committed?.();
      if (outcome.kind === 'dead') {
        log.error({ queue: prefix, id, code: outcome.code, reason: outcome.reason }, 'queued record given up');
        if (this.#deadCount > maxDead) {
          const [oldest] = await this.#records.listDead(1);
          if (oldest) await this.dropDead(oldest.dead.id);
        }
      }
    } catch (error) {
      log.error({ err: error, queue: prefix, id }, 'what follows a queued record failed');
    }
  }
}

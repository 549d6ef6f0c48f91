import type { CancelTimer, Clock } from '../../../src/base/clock.js';
import { KeyedLock } from '../../../src/base/keyed-lock.js';
import { readJson } from '../../../src/store/json.js';
import type { StateStore, StoreChange } from '../../../src/store/port.js';
import type { Context, Contexts } from './contexts.js';
import { laneRecordSchema, type LaneRecord, type RecordKeys } from './records.js';

/** The ordered tasks of one context and peer: at most one is running, others wait, interrupted ones stand aside. */
export interface Lane {
  readonly key: string;
  readonly context: Context;
  readonly peerId: string;
  record: LaneRecord;
  /** The task whose answer is awaited, or which is being posted. */
  running: string | null;
  readonly queue: string[];
  /** Newest last. */
  readonly interrupted: string[];
  /** What else must be written into the room, before the next task. */
  readonly notices: (() => Promise<void>)[];
  /** The client's message whose post is under way. */
  inFlight: string | null;
  /** Its worker is at it. */
  busy: boolean;
  /** Steps that use the lane at this moment, so that it is not let go under them. */
  users: number;
  /** Tasks that are being stored and will enter the queue. */
  coming: number;
  /** When the last late reply came. */
  lateAt: number | null;
  /** A write of its record failed and may have reached the disk. */
  doubtful: boolean;
  /** Since when nothing happens in it; null while something does. */
  idleSince: number | null;
}

const TAKEN_KEPT = 32;

/** How long nothing must come, where delivery states can't be read, until an ended task's answer is not waited for. */
export const DEBT_QUIET_MS = 5_000;

/** A conversation that goes on finds its lane and its context in memory for so long. */
const KEPT_IDLE_MS = 60_000;
const MAX_KEPT_IDLE = 1_000;

/** Lanes in memory while anything happens in them, and a little longer; what must outlive that is in their record. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #lock = new KeyedLock();
  readonly #store: StateStore;
  readonly #keys: RecordKeys;
  readonly #contexts: Contexts;
  readonly #clock: Clock;
  #idle = 0;
  #cancelTidying: CancelTimer | null = null;

  constructor(store: StateStore, keys: RecordKeys, contexts: Contexts, clock: Clock) {
    this.#store = store;
    this.#keys = keys;
    this.#contexts = contexts;
    this.#clock = clock;
  }

  /** Lanes in which something happens. */
  get size(): number {
    return this.#lanes.size - this.#idle;
  }

  find(contextKey: string, peerId: string): Lane | null {
    return this.#lanes.get(laneKey(contextKey, peerId)) ?? null;
  }

  all(): IterableIterator<Lane> {
    return this.#lanes.values();
  }

  /** The lane, held in use; every `enter` needs its `leave`. It holds its context for itself. */
  async enter(context: Context, peerId: string): Promise<Lane> {
    const key = laneKey(context.key, peerId);
    const lane = this.#lanes.get(key) ?? (await this.#lock.hold(key, () => this.#load(key, context, peerId)));
    lane.users += 1;
    if (lane.idleSince !== null) {
      lane.idleSince = null;
      this.#idle -= 1;
    }
    return lane;
  }

  leave(lane: Lane): void {
    lane.users -= 1;
    this.settle(lane);
  }

  /** Lets an idle lane go, soon. */
  settle(lane: Lane): void {
    if (!isIdle(lane) || lane.idleSince !== null || this.#lanes.get(lane.key) !== lane) return;
    this.#idle += 1;
    lane.idleSince = this.#clock.now();
    if (lane.doubtful || this.#idle > MAX_KEPT_IDLE) this.#letGo(lane);
    else this.#cancelTidying ??= this.#clock.after(KEPT_IDLE_MS, this.#tidyUp);
  }

  /** Nothing is kept any longer. */
  close(): void {
    this.#cancelTidying?.();
  }

  async #load(key: string, context: Context, peerId: string): Promise<Lane> {
    const known = this.#lanes.get(key);
    if (known) return known;
    const stored = await this.#store.get(this.#keys.lane(context.key, peerId));
    const made: Lane = {
      key,
      context,
      peerId,
      record: stored ? readJson(stored.value, laneRecordSchema) : { taken: [], debt: null },
      running: null,
      queue: [],
      interrupted: [],
      notices: [],
      inFlight: null,
      busy: false,
      users: 0,
      coming: 0,
      lateAt: null,
      doubtful: false,
      idleSince: null,
    };
    this.#lanes.set(key, made);
    this.#contexts.retain(context);
    return made;
  }

  #letGo(lane: Lane): void {
    this.#idle -= 1;
    this.#lanes.delete(lane.key);
    this.#contexts.close(lane.context);
  }

  readonly #tidyUp = (): void => {
    const before = this.#clock.now() - KEPT_IDLE_MS;
    for (const lane of [...this.#lanes.values()]) {
      if (lane.idleSince !== null && lane.idleSince <= before) this.#letGo(lane);
    }
    this.#cancelTidying = this.#idle > 0 ? this.#clock.after(KEPT_IDLE_MS, this.#tidyUp) : null;
  };

  put(lane: Lane): StoreChange {
    return { kind: 'put', key: this.#keys.lane(lane.context.key, lane.peerId), value: JSON.stringify(lane.record) };
  }

  /** After a write of unknown outcome: the record as the store has it. */
  async reread(lane: Lane): Promise<void> {
    const stored = await this.#store.get(this.#keys.lane(lane.context.key, lane.peerId));
    if (stored) lane.record = readJson(stored.value, laneRecordSchema);
    lane.doubtful = false;
  }

  save(lane: Lane): Promise<number> {
    return this.#store.batch([this.put(lane)]);
  }
}

/** How long a lane that owes an answer has heard nothing of it. */
export function quietFor({ record, lateAt }: Lane, now: number): number {
  const at = record.debt?.at ?? now;
  return now - Math.max(at, lateAt ?? at);
}

/** Marks a reply as taken. @returns takes the mark back, for when the step that it belongs to fails */
export function takeReply(lane: Lane, messageId: string): () => void {
  const before = lane.record.taken;
  lane.record = { ...lane.record, taken: [...before, messageId].slice(-TAKEN_KEPT) };
  return () => {
    lane.record = { ...lane.record, taken: lane.record.taken.filter((id) => id !== messageId) };
  };
}

/** Takes a task out of whatever place it has in the lane. */
export function removeFromLane(lane: Lane, taskId: string): void {
  if (lane.running === taskId) lane.running = null;
  for (const list of [lane.queue, lane.interrupted]) {
    const at = list.indexOf(taskId);
    if (at >= 0) list.splice(at, 1);
  }
}

export function tasksOf(lane: Lane): string[] {
  return [...(lane.running === null ? [] : [lane.running]), ...lane.queue, ...lane.interrupted];
}

function isIdle(lane: Lane): boolean {
  return (
    !lane.busy &&
    lane.users === 0 &&
    lane.running === null &&
    lane.queue.length === 0 &&
    lane.interrupted.length === 0 &&
    lane.notices.length === 0
  );
}

function laneKey(contextKey: string, peerId: string): string {
  return `${contextKey}/${peerId}`;
}

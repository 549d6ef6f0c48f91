import type { Clock } from '../base/clock.js';
import type { QueueState } from './queue-records.js';

/** A queued record at its place in a lane. */
export interface Slot<T> {
  /** Its place: slots of one lane are handled in the order of their keys. */
  readonly key: string;
  state: QueueState;
  /** Undefined while it stands on disk alone. */
  body: T | undefined;
  /** What the record takes on disk. */
  readonly bytes: number;
  /** What its owner wants to know of it while it waits, see {@link DurableQueueOptions.tagOf}. */
  readonly tag: string | null;
  /** Not to be tried before this time; 0 for at once. */
  notBefore: number;
  /** The same, and no `wake` brings it forward. */
  heldUntil: number;
  /** Tries since the last one that the disk did not end, the one under way included. */
  diskTries: number;
  /** The disk does not know yet what `state` says. */
  isUnwritten: boolean;
}

interface Lane<T> {
  readonly name: string;
  readonly places: Places;
  readonly slots: Slot<T>[];
  busy: boolean;
  /** Ends the wait before the next try of the lane's head. */
  wake: (() => void) | null;
  /** It was to be woken while its head was being tried: what that try found may be out of date. */
  woken: boolean;
}

/** Lanes that share places, so that those of one kind never take the places of another. */
export interface LaneGroups {
  /** The group a lane belongs to, one of `most`. */
  of(lane: string): string;
  /** Lanes of each group that are handled at the same time. */
  readonly most: Readonly<Record<string, number>>;
}

export interface QueueLanesOptions<T> {
  clock: Clock;
  /** Lanes whose heads are tried at the same time: of all, or of each group. */
  maxRunning: number | LaneGroups;
  /** Tries a slot; never rejects. @returns whether the slot has left the queue */
  attempt(slot: Slot<T>): Promise<boolean>;
}

/** The places of a group of lanes. */
interface Places {
  readonly most: number;
  taken: number;
  /** Lanes that wait for a place, in order; each is told whether it has one. */
  readonly turns: ((isGiven: boolean) => void)[];
}

/** When a queued record is tried: its lane in order and one at a time, lanes side by side up to a cap. */
export class QueueLanes<T> {
  readonly #options: QueueLanesOptions<T>;
  readonly #lanes = new Map<string, Lane<T>>();
  #open = false;
  #running = 0;
  readonly #placesOf: (lane: string) => Places;
  readonly #places: readonly Places[];
  readonly #whenEmpty: (() => void)[] = [];
  readonly #whenStill: (() => void)[] = [];

  constructor(options: QueueLanesOptions<T>) {
    this.#options = options;
    const { maxRunning } = options;
    if (typeof maxRunning === 'number') {
      const shared = placesFor(maxRunning);
      this.#places = [shared];
      this.#placesOf = () => shared;
    } else {
      const groups = new Map(Object.entries(maxRunning.most).map(([group, most]) => [group, placesFor(most)]));
      this.#places = [...groups.values()];
      this.#placesOf = (lane) => {
        const places = groups.get(maxRunning.of(lane));
        if (!places) throw new TypeError(`no such group of lanes: ${maxRunning.of(lane)}`);
        return places;
      };
    }
  }

  /** Begins to try; what was entered before has waited for it. */
  start(): void {
    this.#open = true;
    for (const lane of this.#lanes.values()) void this.#run(lane);
  }

  /** Begins no further try. */
  halt(): void {
    this.#open = false;
    this.wake();
    for (const { turns } of this.#places) for (const turn of turns.splice(0)) turn(false);
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Resolves when nothing is being tried. */
  async still(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#whenStill.push(resolve));
  }

  /** Resolves when no lane has a slot left. */
  async empty(): Promise<void> {
    if (this.#lanes.size > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  /** Puts the slot into its lane at the place its key gives it, but never before a head that is being tried. */
  enter(slot: Slot<T>): void {
    const name = slot.state.lane;
    const lane = this.#lanes.get(name);
    if (!lane) {
      const made = { name, places: this.#placesOf(name), slots: [slot], busy: false, wake: null, woken: false };
      this.#lanes.set(name, made);
      if (this.#open) void this.#run(made);
      return;
    }
    let at = lane.slots.length;
    while (at > (lane.busy ? 1 : 0) && (lane.slots[at - 1]?.key ?? '') > slot.key) at -= 1;
    lane.slots.splice(at, 0, slot);
  }

  depthOf(lane: string): number {
    return this.#lanes.get(lane)?.slots.length ?? 0;
  }

  /** The tags of a lane's records, in order, the one being tried included. */
  tagsOf(lane: string): readonly (string | null)[] {
    return this.#lanes.get(lane)?.slots.map(({ tag }) => tag) ?? [];
  }

  /** What waits or is being tried, lane by lane. */
  *slots(): Generator<Slot<T>> {
    for (const { slots } of this.#lanes.values()) yield* slots;
  }

  /** When the record that has waited longest was put; null when none waits. */
  get oldestPutAt(): number | null {
    let oldest: number | null = null;
    for (const { slots } of this.#lanes.values()) {
      const putAt = slots[0]?.state.putAt;
      if (putAt !== undefined && (oldest === null || putAt < oldest)) oldest = putAt;
    }
    return oldest;
  }

  /** Ends the waits between tries now: of one lane, or of all. */
  wake(name?: string): void {
    for (const lane of this.#lanes.values()) {
      if (name !== undefined && name !== lane.name) continue;
      lane.woken = true;
      lane.wake?.();
    }
  }

  /** Handles one lane until it is empty or nothing more may be begun; never rejects. */
  async #run(lane: Lane<T>): Promise<void> {
    // Who put a record goes on before it is tried.
    await Promise.resolve();
    for (let head = lane.slots[0]; head; head = lane.slots[0]) {
      if (head.heldUntil > 0) await this.#pause(lane, head.heldUntil, 'held');
      if (head.notBefore > 0) await this.#pause(lane, head.notBefore, 'wakeable');
      if (!this.#open) return;
      const { places } = lane;
      if (places.taken < places.most) places.taken += 1;
      else if (!(await new Promise<boolean>((resolve) => places.turns.push(resolve)))) return;
      if (!this.isOpen) {
        this.#leave(places);
        return;
      }
      this.#running += 1;
      lane.busy = true;
      lane.woken = false;
      // A slot that was put earlier may have come in front meanwhile.
      if (await this.#options.attempt(lane.slots[0] ?? head)) lane.slots.shift();
      lane.busy = false;
      this.#running -= 1;
      this.#leave(places);
      if (this.#running === 0) for (const resolve of this.#whenStill.splice(0)) resolve();
    }
    this.#lanes.delete(lane.name);
    if (this.#lanes.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }

  /** The place goes to who waits longest, so that no lane keeps it for all its records. */
  #leave(places: Places): void {
    const next = places.turns.shift();
    if (next) next(true);
    else places.taken -= 1;
  }

  /** Waits until the lane's head may be tried; `halt` cuts it short, and `wake` unless it is held. */
  async #pause(lane: Lane<T>, until: number, how: 'held' | 'wakeable'): Promise<void> {
    const { clock } = this.#options;
    const pauseMs = until - clock.now();
    if (pauseMs <= 0 || (lane.woken && how === 'wakeable') || !this.#open) return;
    await new Promise<void>((resolve) => {
      const cancel = clock.after(pauseMs, resolve);
      lane.wake = () => {
        if (how === 'held' && this.#open) return;
        cancel();
        resolve();
      };
    });
    lane.wake = null;
  }
}

const placesFor = (most: number): Places => ({ most, taken: 0, turns: [] });

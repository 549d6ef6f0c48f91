import type { CancelTimer, Clock } from '../base/clock.js';

/** Something that waits for a moment. The two numbers belong to {@link Deadlines}; the owner only reads them. */
export interface Timed {
  /** Milliseconds since the epoch at which `onDue` is called; meaningless while `slot` is -1. */
  dueAt: number;
  /** Place in the heap, -1 when nothing is waited for. */
  slot: number;
  onDue(): void;
}

/** A clock step back by more than this is met by moving every deadline along. */
const CLOCK_STEP_MS = 1_000;

/**
 * Deadlines of many owners on one timer: thousands of idle rooms cost an array slot each instead of a timer and a
 * closure. An owner has at most one deadline; setting it again moves it. Setting and clearing take O(log n).
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #heap: Timed[] = [];
  #cancel: CancelTimer | null = null;
  #armedFor = 0;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Calls `owner.onDue()` once at `at`, or as soon as possible when that is over. */
  set(owner: Timed, at: number): void {
    if (this.#closed) return;
    const before = owner.slot === -1 ? Number.POSITIVE_INFINITY : owner.dueAt;
    owner.dueAt = at;
    if (owner.slot === -1) {
      owner.slot = this.#heap.length;
      this.#heap.push(owner);
    }
    if (at < before) this.#up(owner.slot);
    else this.#down(owner.slot);
    this.#arm();
  }

  clear(owner: Timed): void {
    if (owner.slot === -1) return;
    this.#remove(owner);
    this.#arm();
  }

  /** Forgets every deadline and takes no more. */
  close(): void {
    this.#closed = true;
    for (const owner of this.#heap) owner.slot = -1;
    this.#heap.length = 0;
    this.#arm();
  }

  #arm(): void {
    const first = this.#heap[0];
    if (first === undefined) {
      this.#cancel?.();
      this.#cancel = null;
      return;
    }
    if (this.#cancel && this.#armedFor === first.dueAt) return;
    this.#cancel?.();
    this.#armedFor = first.dueAt;
    this.#cancel = this.#clock.after(Math.max(0, first.dueAt - this.#clock.now()), () => {
      this.#fire();
    });
  }

  #fire(): void {
    this.#cancel = null;
    let now = this.#clock.now();
    if (now < this.#armedFor - CLOCK_STEP_MS) {
      // The wall clock was set back while we waited. The wait itself was right, so all deadlines move with the clock.
      const shift = now - this.#armedFor;
      for (const owner of this.#heap) owner.dueAt += shift;
    }
    now = Math.max(now, this.#heap[0]?.dueAt ?? now);
    // What a callback sets for this very moment waits for the next firing, so one owner cannot hold the loop.
    const due: Timed[] = [];
    for (let first = this.#heap[0]; first && first.dueAt <= now; first = this.#heap[0]) {
      this.#remove(first);
      due.push(first);
    }
    for (const owner of due) owner.onDue();
    this.#arm();
  }

  #remove(owner: Timed): void {
    const slot = owner.slot;
    const last = this.#heap.pop();
    owner.slot = -1;
    if (last === undefined || last === owner) return;
    this.#heap[slot] = last;
    last.slot = slot;
    this.#up(slot);
    this.#down(last.slot);
  }

  #up(from: number): void {
    let slot = from;
    for (let parent = (slot - 1) >> 1; slot > 0; parent = (slot - 1) >> 1) {
      if (!this.#swapIfEarlier(slot, parent)) return;
      slot = parent;
    }
  }

  #down(from: number): void {
    let slot = from;
    for (;;) {
      const left = 2 * slot + 1;
      const right = left + 1;
      const a = this.#heap[left];
      const b = this.#heap[right];
      if (!a) return;
      const child = b && b.dueAt < a.dueAt ? right : left;
      if (!this.#swapIfEarlier(child, slot)) return;
      slot = child;
    }
  }

  /** Puts the owner at `below` in the place of the one at `above` when its moment comes earlier. */
  #swapIfEarlier(below: number, above: number): boolean {
    const lower = this.#heap[below];
    const upper = this.#heap[above];
    if (!lower || !upper || lower.dueAt >= upper.dueAt) return false;
    this.#heap[below] = upper;
    this.#heap[above] = lower;
    upper.slot = below;
    lower.slot = above;
    return true;
  }
}

import type { Clock } from '../../../src/base/clock.js';

/**
 * Shows the newest state of something by writes that take their time: one at a time, with a gap between them, and what
 * was superseded meanwhile is never written (S-095).
 */
export class Newest<T> {
  readonly #clock: Clock;
  readonly #gapMs: number;
  readonly #write: (state: T, isNewest: () => boolean) => Promise<void>;
  #next: { readonly state: T } | null = null;
  #running: Promise<void> | null = null;
  #lastAt = Number.NEGATIVE_INFINITY;
  #hurry: (() => void) | null = null;

  /** @param write - must not throw; while it waits for its turn it may ask whether its state is still the newest */
  constructor(clock: Clock, gapMs: number, write: (state: T, isNewest: () => boolean) => Promise<void>) {
    this.#clock = clock;
    this.#gapMs = gapMs;
    this.#write = write;
  }

  show(state: T): void {
    this.#next = { state };
    this.#running ??= this.#run();
  }

  /** Shows a state without waiting for the gap. */
  showNow(state: T): void {
    this.#lastAt = Number.NEGATIVE_INFINITY;
    this.show(state);
    this.#hurry?.();
  }

  /** Resolves when the newest state was written. */
  async settled(): Promise<void> {
    while (this.#running) await this.#running;
  }

  get isBusy(): boolean {
    return this.#running !== null;
  }

  async #run(): Promise<void> {
    while (this.#next) {
      await this.#gap();
      const { state } = this.#next;
      this.#next = null;
      await this.#write(state, () => this.#next === null);
      this.#lastAt = this.#clock.now();
    }
    this.#running = null;
  }

  async #gap(): Promise<void> {
    const ms = this.#lastAt + this.#gapMs - this.#clock.now();
    if (ms <= 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#hurry = () => {
        cancel();
        resolve();
      };
    });
    this.#hurry = null;
  }
}

import type { CancelTimer, Clock } from '../../../src/base/clock.js';

const GAP_MS = 2_000;

/** Has a room marked anew after changes, at most once in two seconds, with what holds then. */
export class MarkerSchedule {
  readonly #clock: Clock;
  readonly #post: () => void;
  #timer: CancelTimer | null = null;
  #postedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, post: () => void) {
    this.#clock = clock;
    this.#post = post;
  }

  due(): void {
    if (this.#timer) return;
    const wait = Math.max(0, this.#postedAt + GAP_MS - this.#clock.now());
    this.#timer = this.#clock.after(wait, () => {
      this.#fire();
    });
  }

  /** The marker was just posted by other means. */
  posted(): void {
    this.#postedAt = this.#clock.now();
  }

  /** Posts now what is due. */
  flush(): void {
    if (!this.#timer) return;
    this.#timer();
    this.#fire();
  }

  #fire(): void {
    this.#timer = null;
    this.#postedAt = this.#clock.now();
    this.#post();
  }
}

import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';

const HOUR_MS = 3_600_000;
const MAX_KEPT = 10_000;

/** Things that are said once an hour at most. */
export class OnceAnHour {
  readonly #clock: Clock;
  readonly #saidAt = new BoundedMap<string, number>(MAX_KEPT);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns an id for saying it now, the same after a restart in the hour; null when it was said within the hour */
  next(what: string): string | null {
    const now = this.#clock.now();
    if (now - (this.#saidAt.get(what) ?? Number.NEGATIVE_INFINITY) < HOUR_MS) return null;
    this.#saidAt.set(what, now);
    return `${what}:${Math.floor(now / HOUR_MS)}`;
  }
}

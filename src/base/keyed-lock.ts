import { Lanes } from './lane.js';

/** One holder at a time per key; others wait in the order they came. */
export class KeyedLock {
  readonly #lanes: Lanes;

  /** @param maxWaiting - callers that may wait for one key; one more is refused with `QUEUE_FULL`. Default 1000 */
  constructor(maxWaiting = 1_000) {
    this.#lanes = new Lanes({ maxWaitingPerLane: maxWaiting });
  }

  /** Runs `work` while holding `key`. `signal` ends the wait for the key, not the work. */
  hold<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#lanes.run(key, work, signal);
  }
}

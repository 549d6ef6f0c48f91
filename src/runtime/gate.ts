/**
 * Lets a bounded number of short calls through at a time, first come first served. Thousands of rooms that want to
 * look for missed messages after an outage do it side by side without a burst.
 */
export class Gate {
  readonly #max: number;
  #open = 0;
  readonly #waiting: (() => void)[] = [];
  #head = 0;

  constructor(max: number) {
    this.#max = max;
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#open >= this.#max) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#open += 1;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  /** A place that becomes free goes to the one who waited longest; taking from the front is O(1). */
  #next(): void {
    const resolve = this.#waiting[this.#head];
    if (resolve === undefined) {
      this.#open -= 1;
      return;
    }
    this.#head += 1;
    if (this.#head * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#head);
      this.#head = 0;
    }
    resolve();
  }
}

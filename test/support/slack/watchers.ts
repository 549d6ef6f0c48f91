/** Waits of a test for something to become true. */
export class Watchers {
  readonly #waiting = new Set<() => void>();
  readonly #lately: () => string;

  /** @param lately - what happened last, said when a wait was in vain */
  constructor(lately: () => string) {
    this.#lately = lately;
  }

  /** Something happened: every wait looks again. */
  touch(): void {
    for (const look of [...this.#waiting]) look();
  }

  async until(holds: () => boolean, what: string, limitMs: number): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!holds()) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`${what} did not come within ${limitMs} ms; last calls: ${this.#lately()}`));
      }, limitMs);
      this.#waiting.add(look);
    });
  }
}

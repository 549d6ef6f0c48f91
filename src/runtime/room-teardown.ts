/** What ends with a room's session, in this order. */
export interface TeardownSteps {
  /** Resolves when nothing of the room runs any more. */
  stopped(): Promise<void>;
  /** The adapter drops what it holds for the room. */
  cleanUp(): Promise<void>;
}

/**
 * The end of one room session. Callers share an attempt; what failed is tried again by the next caller, and what
 * succeeded is not, so a repeated clean-up does not stop the room twice.
 */
export class RoomTeardown {
  readonly #steps: TeardownSteps;
  #stopped = false;
  #attempt: Promise<void> | null = null;

  constructor(steps: TeardownSteps) {
    this.#steps = steps;
  }

  run(): Promise<void> {
    this.#attempt ??= this.#run().finally(() => {
      this.#attempt = null;
    });
    return this.#attempt;
  }

  async #run(): Promise<void> {
    if (!this.#stopped) await this.#steps.stopped();
    this.#stopped = true;
    await this.#steps.cleanUp();
  }
}

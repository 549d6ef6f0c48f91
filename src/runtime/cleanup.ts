/** One thing to end; it is tried again until it succeeds, and never after that. */
export type CleanupUnit = () => Promise<void>;

/** Units that belong together, one after the other in the order given. */
export class CleanupPhase {
  #pending: readonly CleanupUnit[];

  constructor(units: readonly CleanupUnit[]) {
    this.#pending = units;
  }

  get done(): boolean {
    return this.#pending.length === 0;
  }

  /** Runs what is still pending. A failed unit stays, and keeps no other from running. @returns the failures */
  async run(): Promise<readonly unknown[]> {
    const failed: CleanupUnit[] = [];
    const failures: unknown[] = [];
    for (const unit of this.#pending) {
      try {
        await unit();
      } catch (error) {
        failed.push(unit);
        failures.push(error);
      }
    }
    this.#pending = failed;
    return failures;
  }
}

/**
 * The phases of a clean-up, in order. Each starts when the one before has settled, well or not; what failed
 * stays pending for the next run, what succeeded is not run again.
 */
export class Cleanup {
  readonly #phases: readonly CleanupPhase[];

  constructor(phases: readonly CleanupPhase[]) {
    this.#phases = phases;
  }

  get done(): boolean {
    return this.#phases.every((phase) => phase.done);
  }

  /** @returns the failures in the order of the phases; a unit that failed as several counts as several */
  async run(): Promise<readonly unknown[]> {
    const failures: unknown[] = [];
    for (const phase of this.#phases) {
      for (const failure of await phase.run()) {
        if (failure instanceof AggregateError) failures.push(...(failure.errors as unknown[]));
        else failures.push(failure);
      }
    }
    return failures;
  }
}

import { BandConfigError } from '../base/band-errors.js';

export type Cleanup = () => Promise<void> | void;

/**
 * The clean-up callbacks of one adapter, and which Agents host it. Registering belongs to the adapter's maker, hosting
 * and running to the runtime:
 *
 *     add* → host → (start fails) unhost → add* …
 *          → host → run until nothing is pending → unhost; disposed of, never hosted again
 */
export class CleanupRegistry {
  readonly #pending: Cleanup[] = [];
  readonly #hosts = new Set<object>();
  #disposed = false;

  /**
   * @throws {TypeError} for anything but a function, such as a promise that already runs
   * @throws {BandConfigError} while an Agent hosts the adapter
   */
  add(callback: Cleanup): void {
    if (typeof callback !== 'function') {
      throw new TypeError('addCleanup() takes a function that is called without arguments at stop');
    }
    if (this.#hosts.size > 0) throw new BandConfigError('Register cleanup before starting the host');
    this.#pending.push(callback);
  }

  /** Callbacks that have not succeeded yet. */
  get pending(): number {
    return this.#pending.length;
  }

  /** True once clean-up ran: what the adapter was made of is gone. */
  get disposed(): boolean {
    return this.#disposed;
  }

  /**
   * Takes the adapter for `owner`. An adapter without callbacks may serve several owners.
   *
   * @throws {BandConfigError} when its clean-up already ran, or another owner hosts it
   */
  host(owner: object): void {
    if (this.#disposed) {
      throw new BandConfigError(
        'The cleanup of this adapter already ran; build a fresh adapter, fresh resources and a fresh Agent',
      );
    }
    if (this.#pending.length > 0 && this.#hosts.size > 0 && !this.#hosts.has(owner)) {
      throw new BandConfigError('This adapter has registered cleanup and already serves another Agent');
    }
    this.#hosts.add(owner);
  }

  unhost(owner: object): void {
    this.#hosts.delete(owner);
  }

  /**
   * Runs what is pending, last registered first, one after the other. A failed callback stays pending and keeps none
   * of the others from running; a succeeded one never runs again.
   *
   * @returns the failures, in the order they happened
   */
  async run(): Promise<readonly unknown[]> {
    const failures: unknown[] = [];
    for (let at = this.#pending.length - 1; at >= 0; at -= 1) {
      this.#disposed = true;
      try {
        await this.#pending[at]?.();
        this.#pending.splice(at, 1);
      } catch (error) {
        failures.push(error);
      }
    }
    return failures;
  }
}

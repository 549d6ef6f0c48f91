import type { Clock } from '../../../src/base/clock.js';
import { Lanes } from '../../../src/base/lane.js';

export interface BucketRate {
  /** Calls that may go at once after a pause. */
  readonly burst: number;
  readonly perMinute: number;
}

const MINUTE_MS = 60_000;
const MAX_WAITING = 100_000;

/**
 * A token bucket with a queue: who asks first goes first. A token counts as used when the answer has come, not when
 * the call left, so that calls never arrive closer together than the rate allows, whatever the network does to them.
 */
export class Bucket {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #refillMs: number;
  readonly #line = new Lanes({ maxWaitingPerLane: MAX_WAITING });
  #tokens: number;
  #at: number;
  #inFlight = 0;
  #pause: { from: number; readonly ms: number } | null = null;

  constructor(clock: Clock, { burst, perMinute }: BucketRate) {
    this.#clock = clock;
    this.#burst = burst;
    this.#refillMs = MINUTE_MS / perMinute;
    this.#tokens = burst;
    this.#at = clock.now();
  }

  /** Waits for a token and holds it until {@link settle}. */
  async take(signal?: AbortSignal | null): Promise<void> {
    await this.#line.run(
      '',
      async () => {
        for (let ms = this.#waitMs(); ms > 0; ms = this.#waitMs()) {
          await this.#clock.sleep(ms, signal ?? undefined);
        }
        this.#inFlight += 1;
      },
      signal ?? undefined,
    );
  }

  /** @param used - false when nothing was sent after all */
  settle(used = true): void {
    this.#inFlight -= 1;
    if (!used) return;
    this.#refill();
    this.#tokens -= 1;
  }

  /** Nobody gets a token for `ms`. */
  pause(ms: number): void {
    this.#pause = { from: this.#clock.now(), ms };
  }

  /** Nothing is known of it that a fresh one would not know. */
  get isFresh(): boolean {
    this.#refill();
    return this.#inFlight === 0 && this.#line.size === 0 && this.#pauseMs() === 0 && this.#tokens >= this.#burst;
  }

  #waitMs(): number {
    this.#refill();
    const lacking = 1 - (this.#tokens - this.#inFlight);
    // While others are in flight their answers decide when the next token is there; look again soon.
    return Math.max(this.#pauseMs(), lacking <= 0 ? 0 : Math.ceil(lacking * this.#refillMs));
  }

  #pauseMs(): number {
    if (!this.#pause) return 0;
    const now = this.#clock.now();
    // A clock that was set back must not make the pause longer.
    if (now < this.#pause.from) this.#pause.from = now;
    const left = this.#pause.ms - (now - this.#pause.from);
    if (left <= 0) this.#pause = null;
    return Math.max(0, left);
  }

  #refill(): void {
    const now = this.#clock.now();
    if (now > this.#at) this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) / this.#refillMs);
    this.#at = now;
  }
}

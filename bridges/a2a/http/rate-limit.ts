import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';

const MAX_KEYS = 10_000;
const MINUTE_MS = 60_000;

interface Bucket {
  tokens: number;
  at: number;
}

/** A token bucket per key: `perMinute` on average, `burst` at once; 0 per minute switches it off. */
export class RateLimit {
  readonly #perMinute: number;
  readonly #burst: number;
  readonly #clock: Clock;
  readonly #buckets = new BoundedMap<string, Bucket>(MAX_KEYS);

  constructor(perMinute: number, burst: number, clock: Clock) {
    this.#perMinute = perMinute;
    this.#burst = burst;
    this.#clock = clock;
  }

  /** @returns null when the request may pass, else how many milliseconds until the next one may */
  take(key: string): number | null {
    if (this.#perMinute === 0) return null;
    const now = this.#clock.now();
    const bucket = this.#buckets.get(key) ?? { tokens: this.#burst, at: now };
    // A clock that was put back gives nothing and takes nothing.
    const gained = (Math.max(0, now - bucket.at) * this.#perMinute) / MINUTE_MS;
    bucket.tokens = Math.min(this.#burst, bucket.tokens + gained);
    bucket.at = now;
    this.#buckets.set(key, bucket);
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) * MINUTE_MS) / this.#perMinute);
    bucket.tokens -= 1;
    return null;
  }
}

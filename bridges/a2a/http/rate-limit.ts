import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';

const MAX_KEYS = 10_000;
const MINUTE_MS = 60_000;

interface Bucket {
  tokens: number;
  at: number;
}

/** `perMinute` on average, `burst` at once; 0 per minute switches the limit off. */
export interface Rate {
  readonly perMinute: number;
  readonly burst: number;
}

/** A token bucket per key. The rate is asked for at each request, so it may change. */
export class RateLimit {
  readonly #rate: () => Rate;
  readonly #clock: Clock;
  readonly #buckets = new BoundedMap<string, Bucket>(MAX_KEYS);

  constructor(rate: () => Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
  }

  /** @returns null when the request may pass, else how many milliseconds until the next one may */
  take(key: string): number | null {
    const { perMinute, burst } = this.#rate();
    if (perMinute === 0) return null;
    const now = this.#clock.now();
    const bucket = this.#buckets.get(key) ?? { tokens: burst, at: now };
    // A clock that was put back gives nothing and takes nothing.
    const gained = (Math.max(0, now - bucket.at) * perMinute) / MINUTE_MS;
    bucket.tokens = Math.min(burst, bucket.tokens + gained);
    bucket.at = now;
    this.#buckets.set(key, bucket);
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) * MINUTE_MS) / perMinute);
    bucket.tokens -= 1;
    return null;
  }
}

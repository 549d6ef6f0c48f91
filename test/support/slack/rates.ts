import type { Clock } from '../../../src/base/clock.js';

const MINUTE_MS = 60_000;
const PER_MINUTE = { 1: 1, 2: 20, 3: 50, 4: 100, free: 600 } as const;
export type Tier = keyof typeof PER_MINUTE | 'post';

interface Bucket {
  tokens: number;
  at: number;
}

export interface RateVerdict {
  ok: boolean;
  /** Whole seconds, as Slack's header has it. */
  retryAfterSeconds: number;
  rule: string;
}

/** Slack's documented rates, each counted where Slack counts it. */
export class Rates {
  readonly #buckets = new Map<string, Bucket>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  take(call: {
    method: string;
    tier: Tier;
    app: string;
    team: string;
    channel: string;
    strictHistory: boolean;
  }): RateVerdict {
    const { method, tier, app, team, channel } = call;
    if (call.strictHistory)
      return this.#take(`strict:${app}:${team}:${method}`, 1, MINUTE_MS, 'history of distributed apps: 1 a minute');
    if (tier === 'post') {
      const perTeam = this.#take(`team:${app}:${team}`, 300, MINUTE_MS / 300, 'posts: 300 a minute and workspace');
      if (!perTeam.ok) return perTeam;
      return this.#take(`post:${app}:${team}:${channel}`, 3, 1_000, 'posts: 1 a second and channel');
    }
    const limit = PER_MINUTE[tier];
    return this.#take(`tier:${app}:${team}:${method}`, limit, MINUTE_MS / limit, `${method}: ${limit} a minute`);
  }

  #take(key: string, burst: number, refillMs: number, rule: string): RateVerdict {
    const now = this.#clock.now();
    const bucket = this.#buckets.get(key) ?? { tokens: burst, at: now };
    bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.at) / refillMs);
    bucket.at = now;
    this.#buckets.set(key, bucket);
    // A twentieth of grace: requests sent a second apart may arrive a little closer than that.
    if (bucket.tokens >= 0.95) {
      bucket.tokens -= 1;
      return { ok: true, retryAfterSeconds: 0, rule };
    }
    return { ok: false, retryAfterSeconds: Math.max(1, Math.ceil(((1 - bucket.tokens) * refillMs) / 1_000)), rule };
  }
}

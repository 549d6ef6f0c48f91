import type { Json } from './world.js';

/** What a fault does to the call it meets. */
export type FaultEffect =
  /** Refused in Slack's words, with HTTP 200; nothing applied. */
  | { readonly kind: 'error'; readonly error: string; readonly extra?: Json }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
    }
  /** The connection breaks before the answer; `applied` says whether Slack had taken the call. */
  | { readonly kind: 'drop'; readonly applied: boolean }
  /** Never answered, and applied once the test says so; the connection breaks at once, or stays open. */
  | { readonly kind: 'late'; readonly until: Promise<void>; readonly connection: 'broken' | 'open' }
  /** Applied (unless it says otherwise), answered late, on the double's clock. */
  | { readonly kind: 'delay'; readonly ms: number; readonly apply?: 'before' | 'after' }
  /** Applied, then half an answer. */
  | { readonly kind: 'truncate' }
  /** Applied, then something that is not JSON. */
  | { readonly kind: 'garbage' }
  /** Applied, and the answer names warnings: in a list, or in one word as older methods do. */
  | { readonly kind: 'warn'; readonly warnings: readonly string[]; readonly old?: boolean }
  /** Held until the test lets it go; applied before or after that. */
  | { readonly kind: 'hold'; readonly until: Promise<void>; readonly apply: 'before' | 'after' };

export interface FaultSpec {
  /** A method, or `*` for all of them; `upload`, `files-pri` or `response` for what Slack serves beside its methods. */
  readonly method: string;
  readonly team?: string;
  readonly channel?: string;
  /** Further wishes about the arguments. */
  readonly when?: (args: Json) => boolean;
  /** Skips this many matching calls first; default 0. */
  readonly after?: number;
  /** How many calls it meets; default 1. */
  readonly times?: number;
  /** Meets a matching call with this chance; default 1. Such a fault may go unmet. */
  readonly probability?: number;
  readonly effect: FaultEffect;
}

interface Armed {
  readonly spec: FaultSpec;
  skipped: number;
  hits: number;
}

export interface FaultCall {
  method: string;
  team: string;
  channel: string;
  args: Json;
  /** A fault for every method does not mean it. */
  isOther?: boolean;
}

/** The faults a test armed, and which of them were met. */
export class Faults {
  readonly #armed: Armed[] = [];
  readonly #random: () => number;
  readonly log: { method: string; effect: string; at: number }[] = [];

  constructor(random: () => number) {
    this.#random = random;
  }

  arm(spec: FaultSpec): { readonly hits: () => number; disarm(): void } {
    const armed: Armed = { spec, skipped: 0, hits: 0 };
    this.#armed.push(armed);
    return {
      hits: () => armed.hits,
      disarm: () => {
        const index = this.#armed.indexOf(armed);
        if (index >= 0) this.#armed.splice(index, 1);
      },
    };
  }

  take(call: FaultCall, at: number): FaultEffect | null {
    for (const armed of this.#armed) {
      const { spec } = armed;
      if (armed.hits >= (spec.times ?? 1)) continue;
      if (spec.method !== call.method && (spec.method !== '*' || call.isOther)) continue;
      if (spec.team !== undefined && spec.team !== call.team) continue;
      if (spec.channel !== undefined && spec.channel !== call.channel) continue;
      if (spec.when && !spec.when(call.args)) continue;
      if (spec.probability !== undefined && this.#random() >= spec.probability) continue;
      if (armed.skipped < (spec.after ?? 0)) {
        armed.skipped += 1;
        continue;
      }
      armed.hits += 1;
      this.log.push({ method: call.method, effect: spec.effect.kind, at });
      return spec.effect;
    }
    return null;
  }

  /** Armed faults that no call has met. */
  unmet(): string[] {
    return this.#armed
      .filter(({ spec, hits }) => hits === 0 && spec.probability === undefined)
      .map(({ spec }) => `${spec.method}: ${spec.effect.kind}`);
  }
}

import { z } from 'zod';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';
import { slackKey, type SlackThread } from '../conversation.js';
import { digest } from './jobs.js';

const HOUR_MS = 3_600_000;
const MAX_TOLD = 10_000;
const toldSchema = z.object({ at: z.number() });

/** The right to tell somebody something, once. */
export interface Claim {
  readonly change: StoreChange;
  /** The batch failed: nobody was told. */
  abandoned(): void;
}

/** What people were told: once per thread and cause in an hour, over restarts. */
export class Tells {
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #told = new BoundedMap<string, number>(MAX_TOLD);

  private constructor(prefix: string, clock: Clock) {
    this.#prefix = prefix;
    this.#clock = clock;
  }

  static async open(store: StateStore, prefix: string, clock: Clock): Promise<Tells> {
    const tells = new Tells(prefix, clock);
    const old: StoreChange[] = [];
    for (const { key, value } of await store.range({ ...prefixRange(`${prefix}/`), limit: MAX_TOLD })) {
      const { at } = readJson(value, toldSchema);
      if (clock.now() - at >= HOUR_MS) old.push({ kind: 'delete', key });
      else tells.#told.set(key, at);
    }
    if (old.length > 0) await store.batch(old);
    return tells;
  }

  /** @returns what marks the person as told, for the batch that queues the words; null when they know */
  claim(thread: SlackThread, cause: string): Claim | null {
    const key = `${this.#prefix}/${digest(slackKey(thread), cause)}`;
    const at = this.#clock.now();
    const before = this.#told.get(key);
    if (at - (before ?? Number.NEGATIVE_INFINITY) < HOUR_MS) return null;
    this.#told.set(key, at);
    return {
      change: { kind: 'put', key, value: toBytes({ at }) },
      abandoned: () => {
        if (before === undefined) this.#told.delete(key);
        else this.#told.set(key, before);
      },
    };
  }
}

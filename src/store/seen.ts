import type { Clock } from '../base/clock.js';
import { prefixRange, type StateStore, type StoreChange } from './port.js';

export interface SeenOptions {
  store: StateStore;
  /** Where the keys stand, without a trailing slash. */
  prefix: string;
  clock: Clock;
  /** Keys older than this are forgotten. */
  retentionMs: number;
  /** Keys kept at most; the oldest go first. Default 200,000. */
  maxKeys?: number;
}

const TIME_DIGITS = 15;
const PAGE = 2_000;
const DEFAULT_MAX_KEYS = 200_000;
const NOTHING = new Uint8Array();

/**
 * Ids that were accepted already, so that a repeat is recognised after a restart too. Each stands twice: by id for the
 * look-up, by time for forgetting.
 */
export class SeenKeys {
  readonly #options: Required<SeenOptions>;
  #count = 0;

  private constructor(options: SeenOptions) {
    this.#options = { maxKeys: DEFAULT_MAX_KEYS, ...options };
  }

  /** Opens the set and forgets what is past its time. */
  static async open(options: SeenOptions): Promise<SeenKeys> {
    const seen = new SeenKeys(options);
    await seen.prune();
    const { from, to } = prefixRange(`${options.prefix}/at/`);
    for (let next = from; ;) {
      const page = await options.store.range({ from: next, to, limit: PAGE });
      seen.#count += page.length;
      const last = page.at(-1);
      if (!last || page.length < PAGE) return seen;
      next = `${last.key}\0`;
    }
  }

  /**
   * The changes that mark an id, for a batch of the caller's. The batch is refused with `STORE_CONFLICT` on
   * {@link keyOf} when the id is marked already; tell {@link marked} when it is on disk.
   */
  mark(id: string): StoreChange[] {
    const at = String(this.#options.clock.now()).padStart(TIME_DIGITS, '0');
    return [
      { kind: 'put', key: this.keyOf(id), value: NOTHING, ifRevision: null },
      { kind: 'put', key: `${this.#options.prefix}/at/${at}/${id}`, value: NOTHING },
    ];
  }

  marked(): void {
    this.#count += 1;
  }

  keyOf(id: string): string {
    return `${this.#options.prefix}/id/${id}`;
  }

  async has(id: string): Promise<boolean> {
    return (await this.#options.store.get(this.keyOf(id))) !== null;
  }

  get size(): number {
    return this.#count;
  }

  /** Forgets what is too old, or too much. Call it now and then. @returns how many keys were forgotten */
  async prune(): Promise<number> {
    const { store, prefix, clock, retentionMs, maxKeys } = this.#options;
    const { from, to } = prefixRange(`${prefix}/at/`);
    const cutoff = clock.now() - retentionMs;
    let forgotten = 0;
    for (;;) {
      const page = await store.range({ from, to, limit: PAGE });
      const tooMany = Math.max(0, this.#count - forgotten - maxKeys);
      const old = page.filter(
        (entry, index) => index < tooMany || Number(entry.key.slice(from.length).slice(0, TIME_DIGITS)) < cutoff,
      );
      if (old.length === 0) break;
      await store.batch(
        old.flatMap(({ key }): StoreChange[] => [
          { kind: 'delete', key },
          { kind: 'delete', key: this.keyOf(key.slice(from.length + TIME_DIGITS + 1)) },
        ]),
      );
      forgotten += old.length;
    }
    this.#count = Math.max(0, this.#count - forgotten);
    return forgotten;
  }
}

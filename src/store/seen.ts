import type { Clock } from '../base/clock.js';
import { IdFilter } from './id-filter.js';
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
/** A filter holds more ids than are kept, since what is remembered of a batch that failed counts too. */
const FILTER_FACTOR = 2;

/**
 * Ids that were accepted already, so that a repeat is recognised after a restart too. Each stands twice: by id for the
 * look-up, by time for forgetting. The keys have one owner at a time, as the folder of the store has.
 */
export class SeenKeys {
  readonly #options: Required<SeenOptions>;
  #count = 0;
  /** What may be on the disk: the ids of the opening and those marked since. */
  #recent: IdFilter;
  /** The filter before, so that the two together know at least the {@link SeenOptions.maxKeys} newest. */
  #earlier: IdFilter | null = null;
  /** Ids that were new when {@link #recent} was given them. */
  #newOnes = 0;

  private constructor(options: SeenOptions) {
    this.#options = { maxKeys: DEFAULT_MAX_KEYS, ...options };
    this.#recent = this.#emptyFilter();
  }

  /** Opens the set and forgets what is past its time. */
  static async open(options: SeenOptions): Promise<SeenKeys> {
    const seen = new SeenKeys(options);
    await seen.prune();
    const { from, to } = prefixRange(`${options.prefix}/at/`);
    for (let next = from; ;) {
      const page = await options.store.range({ from: next, to, limit: PAGE });
      for (const { key } of page) seen.#recent.add(idOf(key, from));
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
    this.#remember(id);
    return this.#changes(id, false);
  }

  /**
   * As {@link mark}, without a look at the disk for an id that is certainly new. Only for a batch that is handed to the
   * store before anything else runs: of two batches for one id, the first to ask must be the first to be written.
   */
  markAtOnce(id: string): StoreChange[] {
    return this.#changes(id, this.#remember(id));
  }

  #changes(id: string, isNew: boolean): StoreChange[] {
    const at = String(this.#options.clock.now()).padStart(TIME_DIGITS, '0');
    const key = this.keyOf(id);
    return [
      isNew ? { kind: 'put', key, value: NOTHING } : { kind: 'put', key, value: NOTHING, ifRevision: null },
      { kind: 'put', key: `${this.#options.prefix}/at/${at}/${id}`, value: NOTHING },
    ];
  }

  /** @returns true for an id that is certainly new */
  #remember(id: string): boolean {
    if (!this.#recent.add(id)) return false;
    if (this.#earlier?.mayHave(id)) return false;
    this.#newOnes += 1;
    if (this.#newOnes >= FILTER_FACTOR * this.#options.maxKeys) {
      this.#earlier = this.#recent;
      this.#recent = this.#emptyFilter();
      this.#newOnes = 0;
    }
    return true;
  }

  #emptyFilter(): IdFilter {
    return new IdFilter(FILTER_FACTOR * this.#options.maxKeys);
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
          { kind: 'delete', key: this.keyOf(idOf(key, from)) },
        ]),
      );
      forgotten += old.length;
    }
    this.#count = Math.max(0, this.#count - forgotten);
    return forgotten;
  }
}

const idOf = (atKey: string, from: string): string => atKey.slice(from.length + TIME_DIGITS + 1);

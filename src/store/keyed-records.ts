import type { z } from 'zod';
import { KeyedLock } from '../base/keyed-lock.js';
import { readJson } from './json.js';
import { prefixRange, type StateStore } from './port.js';

export interface KeyedRecordsOptions<S extends z.ZodType> {
  store: StateStore;
  /** Where the records stand, without a trailing slash. */
  prefix: string;
  schema: S;
  /** What a key holds before anything was written. */
  empty: z.output<S>;
}

const PAGE = 1_000;

/** One record per key, changed by one caller at a time. */
export class KeyedRecords<S extends z.ZodType> {
  readonly #options: KeyedRecordsOptions<S>;
  readonly #lock = new KeyedLock();

  constructor(options: KeyedRecordsOptions<S>) {
    this.#options = options;
  }

  async get(key: string): Promise<z.output<S>> {
    const stored = await this.#options.store.get(this.#keyOf(key));
    return stored ? readJson(stored.value, this.#options.schema) : this.#options.empty;
  }

  /** Writes what `change` makes of the record; calls for one key follow one another. @returns what was written */
  async change(key: string, change: (record: z.output<S>) => z.output<S>): Promise<z.output<S>> {
    return await this.#lock.hold(key, async () => {
      const after = change(await this.get(key));
      await this.#options.store.batch([{ kind: 'put', key: this.#keyOf(key), value: JSON.stringify(after) }]);
      return after;
    });
  }

  /** Calls for one key follow one another: what a change under way writes is forgotten too. */
  async forget(key: string): Promise<void> {
    await this.#lock.hold(key, async () => {
      await this.#options.store.batch([{ kind: 'delete', key: this.#keyOf(key) }]);
    });
  }

  /** Every record in the order of the keys, read page by page. */
  async *all(): AsyncGenerator<{ readonly key: string; readonly record: z.output<S> }> {
    const { from, to } = prefixRange(`${this.#options.prefix}/`);
    for (let next = from; ;) {
      const page = await this.#options.store.range({ from: next, to, limit: PAGE });
      for (const { key, value } of page) {
        yield { key: key.slice(from.length), record: readJson(value, this.#options.schema) };
      }
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      next = `${last.key}\0`;
    }
  }

  #keyOf(key: string): string {
    return `${this.#options.prefix}/${key}`;
  }
}

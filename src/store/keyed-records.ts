import type { z } from 'zod';
import { KeyedLock } from '../base/keyed-lock.js';
import { readJson, toBytes } from './json.js';
import { prefixRange, type StateStore } from './port.js';

export interface KeyedRecordsOptions<S extends z.ZodType> {
  store: StateStore;
  /** Where the records stand, without a trailing slash. */
  prefix: string;
  schema: S;
  /** What a key holds before anything was written. */
  empty: z.output<S>;
}

const MAX_LISTED = 10_000;

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
      await this.#options.store.batch([{ kind: 'put', key: this.#keyOf(key), value: toBytes(after) }]);
      return after;
    });
  }

  async forget(key: string): Promise<void> {
    await this.#options.store.batch([{ kind: 'delete', key: this.#keyOf(key) }]);
  }

  /** The first 10,000 records in the order of their keys. */
  async all(): Promise<{ readonly key: string; readonly record: z.output<S> }[]> {
    const range = prefixRange(`${this.#options.prefix}/`);
    const entries = await this.#options.store.range({ ...range, limit: MAX_LISTED });
    return entries.map(({ key, value }) => ({
      key: key.slice(range.from.length),
      record: readJson(value, this.#options.schema),
    }));
  }

  #keyOf(key: string): string {
    return `${this.#options.prefix}/${key}`;
  }
}

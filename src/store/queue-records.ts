import { z } from 'zod';
import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { aroundToBytes, type JsonAround, readJson, toBytes } from './json.js';
import { SUSPECTED_FROM } from './crash-trial.js';
import { prefixRange, type StateStore, type StoreChange, type StoreEntry, type StorePut } from './port.js';

/** What is known of a queued record without its body. */
export interface QueueState {
  /** The owner's key: one id is in the queue at most once. */
  readonly id: string;
  /** Records of one lane are handled one at a time, in the order they were put. */
  readonly lane: string;
  /** Milliseconds since the epoch. */
  readonly putAt: number;
  /** Tries that failed so far. */
  readonly failures: number;
  /** Tries that met a defect, and ends of the process while it was the head of its lane. */
  readonly crashes: number;
  /**
   * An earlier try may have reached the other side without our knowing: the process died in it, or it failed in a way
   * that leaves it open. The handler looks before it writes again.
   */
  readonly maybeDelivered: boolean;
}

/** What is queued, as its handler sees it. */
export interface QueueRecord<T> extends QueueState {
  readonly body: T;
}

/** A record that was given up. */
export interface DeadRecord<T> {
  readonly id: string;
  readonly lane: string;
  readonly body: T;
  readonly putAt: number;
  readonly diedAt: number;
  readonly code: string;
  readonly reason: string;
}

export interface WaitingEntry<T> {
  readonly key: string;
  readonly record: QueueRecord<T>;
  /** What it takes on disk. */
  readonly bytes: number;
  /** The process that left it did not stop in order. */
  readonly isAfterCrash: boolean;
}

const SEQUENCE_DIGITS = 16;
const PAGE = 1_000;

/**
 * A queue's records in the store: `<prefix>/waiting/<sequence>` in order, `<prefix>/dead/<sequence>`, and
 * `<prefix>/clean` while the last stop was an orderly one.
 */
export class QueueRecords<T> {
  readonly #store: StateStore;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #recordSchema;
  readonly #deadSchema;
  #sequence = 0;

  constructor(store: StateStore, prefix: string, clock: Clock, bodySchema: z.ZodType<T>) {
    this.#store = store;
    this.#prefix = prefix;
    this.#clock = clock;
    const shared = { id: z.string(), lane: z.string(), body: bodySchema, putAt: z.number() };
    this.#recordSchema = z.object({
      ...shared,
      failures: z.number(),
      crashes: z.number().default(0),
      maybeDelivered: z.boolean(),
      begun: z.boolean().default(false),
    });
    this.#deadSchema = z.object({ ...shared, diedAt: z.number(), code: z.string(), reason: z.string() });
  }

  /**
   * What an earlier process left. After an unclean end the head of each lane counts as crashed once more, since
   * the process may have died in it: a record that kills the process does not do so for ever. A suspected one counts
   * only when its try had begun.
   *
   * @param enter - is handed each waiting record, in order
   */
  async load(enter: (entry: WaitingEntry<T>) => void): Promise<{ deadIds: string[] }> {
    const cleanKey = `${this.#prefix}/clean`;
    const clean = (await this.#store.get(cleanKey)) !== null;
    const heads = new Set<string>();
    let tried: StoreChange[] = [];
    for await (const { key, value } of this.#all('waiting')) {
      const { begun, ...stored } = readJson(value, this.#recordSchema);
      let record = stored as QueueRecord<T>;
      if (!clean && !heads.has(record.lane)) {
        heads.add(record.lane);
        const crashes = record.crashes + (begun || record.crashes < SUSPECTED_FROM ? 1 : 0);
        record = { ...record, crashes, maybeDelivered: true };
        tried.push({ kind: 'put', key, value: toBytes(record) });
      }
      if (tried.length >= PAGE) {
        await this.#store.batch(tried);
        tried = [];
      }
      enter({ key, record, bytes: value.byteLength, isAfterCrash: !clean });
      this.#sequence = Math.max(this.#sequence, sequenceOf(key));
    }
    await this.#store.batch([...tried, { kind: 'delete', key: cleanKey }]);
    const deadIds: string[] = [];
    for await (const { key, value } of this.#all('dead')) {
      deadIds.push(readJson(value, this.#deadSchema).id);
      this.#sequence = Math.max(this.#sequence, sequenceOf(key));
    }
    return { deadIds };
  }

  /** A fresh place at the end of the queue. */
  newKey(): string {
    // Time first, so that order holds across a restart that found the queue empty; never the same number twice.
    this.#sequence = Math.max(this.#sequence + 1, this.#clock.now() * 1_000);
    return `${this.#prefix}/waiting/${digits(this.#sequence)}`;
  }

  /** @param bodyJson - the body as JSON, where it is at hand; stored as it stands */
  put(key: string, record: QueueRecord<T>, bodyJson?: JsonAround): StorePut {
    if (bodyJson === undefined) return { kind: 'put', key, value: toBytes(record) };
    const { id, lane, putAt, failures, crashes, maybeDelivered } = record;
    const rest = JSON.stringify({ id, lane, putAt, failures, crashes, maybeDelivered });
    const { before, bytes, after } = bodyJson;
    const value = aroundToBytes({ before: `${rest.slice(0, -1)},"body":${before}`, bytes, after: `${after}}` });
    return { kind: 'put', key, value };
  }

  /** The record with the mark that its try has begun; without it in every other form. */
  begun(key: string, record: QueueRecord<T>): StoreChange {
    return { kind: 'put', key, value: toBytes({ ...record, begun: true }) };
  }

  /** The body of a waiting record. @throws {GatewayError} `STORE_DAMAGED` where it is gone, or what the store throws */
  async bodyOf(key: string): Promise<T> {
    const stored = await this.#store.get(key);
    if (!stored) throw new GatewayError('STORE_DAMAGED', { details: { key } });
    return readJson(stored.value, this.#recordSchema).body;
  }

  done(key: string): StoreChange {
    return { kind: 'delete', key };
  }

  dead(key: string, record: QueueRecord<T>, code: string, reason: string): StoreChange[] {
    const { id, lane, body, putAt } = record;
    const dead: DeadRecord<T> = { id, lane, body, putAt, diedAt: this.#clock.now(), code, reason };
    const deadKey = `${this.#prefix}/dead/${digits(sequenceOf(key))}`;
    return [this.done(key), { kind: 'put', key: deadKey, value: toBytes(dead) }];
  }

  /** Oldest first. */
  async listDead(limit: number): Promise<{ entry: StoreEntry; dead: DeadRecord<T> }[]> {
    const entries = await this.#store.range({ ...prefixRange(`${this.#prefix}/dead/`), limit });
    return entries.map((entry) => ({ entry, dead: this.#readDead(entry) }));
  }

  async findDead(id: string): Promise<{ entry: StoreEntry; dead: DeadRecord<T> } | null> {
    for await (const entry of this.#all('dead')) {
      const dead = this.#readDead(entry);
      if (dead.id === id) return { entry, dead };
    }
    return null;
  }

  /** The queue stops in order, with these last changes. */
  async markClean(changes: readonly StoreChange[]): Promise<void> {
    await this.#store.batch([...changes, { kind: 'put', key: `${this.#prefix}/clean`, value: new Uint8Array() }]);
  }

  #readDead(entry: StoreEntry): DeadRecord<T> {
    return readJson(entry.value, this.#deadSchema);
  }

  async *#all(state: 'waiting' | 'dead'): AsyncGenerator<StoreEntry> {
    const { from, to } = prefixRange(`${this.#prefix}/${state}/`);
    for (let next = from; ;) {
      const page = await this.#store.range({ from: next, to, limit: PAGE });
      yield* page;
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      next = `${last.key}\0`;
    }
  }
}

const digits = (sequence: number): string => String(sequence).padStart(SEQUENCE_DIGITS, '0');
const sequenceOf = (key: string): number => Number(key.slice(-SEQUENCE_DIGITS));

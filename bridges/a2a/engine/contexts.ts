import type { Clock } from '../../../src/base/clock.js';
import { KeyedLock } from '../../../src/base/keyed-lock.js';
import { readJson } from '../../../src/store/json.js';
import type { StateStore, StoreChange } from '../../../src/store/port.js';
import { contextKeyOf, contextRecordSchema, type ContextRecord, type RecordKeys } from './records.js';

/** A conversation of one principal: which room mirrors it and who is there. Shared by everybody who holds it. */
export interface Context {
  readonly key: string;
  record: ContextRecord;
  /** The record as the store has it. */
  saved: ContextRecord | null;
}

interface Held {
  readonly context: Context;
  uses: number;
}

export interface ContextsDeps {
  readonly store: StateStore;
  readonly keys: RecordKeys;
  readonly clock: Clock;
  /** How long a context is kept that nobody uses. */
  readonly retentionMs: number;
  /** A room bound in an earlier life of the store, for a context that is not known. */
  findBinding(owner: string, contextId: string): Promise<{ roomId: string; peers: readonly string[] } | null>;
}

const NOTED_EVERY_MS = 60_000;

/** A use is not written down while one so short ago stands there: a conversation's every request would write it. */
export function noteEveryMs(retentionMs: number): number {
  return Math.min(NOTED_EVERY_MS, retentionMs / 100);
}

/** Contexts by (principal, context id); in memory while somebody uses them, else in the store. */
export class Contexts {
  readonly #deps: ContextsDeps;
  readonly #held = new Map<string, Held>();
  readonly #rooms = new Map<string, string>();
  readonly #lock = new KeyedLock();

  constructor(deps: ContextsDeps) {
    this.#deps = deps;
  }

  /**
   * The context, made on first use; every `open` needs its `close`.
   *
   * @param isNew - the id was made just now, so no room can know it
   */
  open(owner: string, contextId: string, isNew = false): Promise<Context> {
    return this.#hold(contextKeyOf(owner, contextId), async () => {
      const found = isNew ? null : await this.#deps.findBinding(owner, contextId);
      return {
        owner,
        contextId,
        roomId: found?.roomId ?? null,
        peers: [...(found?.peers ?? [])],
        addressed: [...(found?.peers ?? [])],
        cursor: null,
        lastUsedAt: this.#deps.clock.now(),
      };
    }) as Promise<Context>;
  }

  /** The context that a room mirrors, or null; held like one from {@link open}. */
  async openByRoom(roomId: string): Promise<Context | null> {
    const key = this.#rooms.get(roomId) ?? (await this.#keyOfRoom(roomId));
    if (key === null) return null;
    const context = await this.#hold(key, null);
    if (context && context.record.roomId !== roomId) {
      this.close(context);
      return null;
    }
    return context;
  }

  /** Whether a room is a context's. */
  async knowsRoom(roomId: string): Promise<boolean> {
    return this.#rooms.has(roomId) || (await this.#keyOfRoom(roomId)) !== null;
  }

  /** Another hold of a context that is held already. */
  retain(context: Context): void {
    const held = this.#held.get(context.key);
    if (held) held.uses += 1;
  }

  close(context: Context): void {
    const held = this.#held.get(context.key);
    if (!held) return;
    held.uses -= 1;
    if (held.uses > 0) return;
    this.#held.delete(context.key);
    if (context.record.roomId !== null) this.#rooms.delete(context.record.roomId);
  }

  /** The context is used for a request to a peer. */
  use(context: Context, peerId: string): void {
    const { record, saved } = context;
    const now = this.#deps.clock.now();
    const isAddressed = record.addressed.includes(peerId);
    const isNoted = record === saved && Math.abs(now - record.lastUsedAt) < noteEveryMs(this.#deps.retentionMs);
    if (isAddressed && isNoted) return;
    const addressed = isAddressed ? record.addressed : [...record.addressed, peerId];
    context.record = { ...record, lastUsedAt: now, addressed };
  }

  /** The records of a context as it stands now, to commit with something else; none when the store has them. */
  puts(context: Context): StoreChange[] {
    const { keys } = this.#deps;
    if (context.saved === context.record) return [];
    context.saved = context.record;
    const { roomId } = context.record;
    const puts: StoreChange[] = [
      { kind: 'put', key: keys.context(context.key), value: JSON.stringify(context.record) },
    ];
    if (roomId !== null) puts.push({ kind: 'put', key: keys.room(roomId), value: JSON.stringify(context.key) });
    return puts;
  }

  async save(context: Context, also: readonly StoreChange[] = []): Promise<void> {
    try {
      await this.#deps.store.batch([...also, ...this.puts(context)]);
    } catch (error) {
      context.saved = null;
      throw error;
    }
  }

  async bindRoom(context: Context, roomId: string): Promise<void> {
    context.record = { ...context.record, roomId, peers: [], cursor: null };
    this.#rooms.set(roomId, context.key);
    await this.save(context);
  }

  /** A room is gone: the next request opens another, unless the context has another already. */
  async unbindRoom(context: Context, roomId: string): Promise<void> {
    this.#rooms.delete(roomId);
    if (context.record.roomId !== roomId) return;
    context.record = { ...context.record, roomId: null, peers: [], cursor: null };
    await this.save(context, [{ kind: 'delete', key: this.#deps.keys.room(roomId) }]);
  }

  #hold(key: string, make: (() => Promise<ContextRecord>) | null): Promise<Context | null> {
    const held = this.#held.get(key);
    if (held) {
      held.uses += 1;
      return Promise.resolve(held.context);
    }
    return this.#lock.hold(key, async () => {
      const meanwhile = this.#held.get(key);
      if (meanwhile) {
        meanwhile.uses += 1;
        return meanwhile.context;
      }
      const stored = await this.#deps.store.get(this.#deps.keys.context(key));
      const record = stored ? readJson(stored.value, contextRecordSchema) : await make?.();
      if (!record) return null;
      const context: Context = { key, record, saved: stored ? record : null };
      this.#held.set(key, { context, uses: 1 });
      if (record.roomId !== null) this.#rooms.set(record.roomId, key);
      return context;
    });
  }

  async #keyOfRoom(roomId: string): Promise<string | null> {
    const stored = await this.#deps.store.get(this.#deps.keys.room(roomId));
    return stored ? (JSON.parse(Buffer.from(stored.value).toString('utf8')) as string) : null;
  }
}

import { z } from 'zod';
import { KeyedLock } from '../base/keyed-lock.js';
import { readJson, toBytes } from '../store/json.js';
import { prefixRange, type StateStore } from '../store/port.js';

const waitSchema = z.object({
  /** The peer that owes an answer. */
  peerId: z.string(),
  peerName: z.string(),
  /** The message that was asked, by its id outside. */
  messageId: z.string(),
  /** Milliseconds since the epoch. */
  since: z.number(),
  /** What the person was told so far. */
  told: z.enum(['nothing', 'slow', 'timeout']),
});
export type Wait = z.infer<typeof waitSchema>;

const talkSchema = z.object({
  /** The peer that is asked when a message names none. */
  peerId: z.string().nullable(),
  /** Peers that were brought into the room. */
  peerIds: z.array(z.string()),
  waits: z.array(waitSchema),
  /** Answers since a person last wrote. */
  hops: z.number(),
});
/** What the relay remembers of one conversation. */
export type Talk = z.infer<typeof talkSchema>;

const EMPTY: Talk = { peerId: null, peerIds: [], waits: [], hops: 0 };
const MAX_LOADED = 10_000;
/** Questions that may be open in one conversation; the oldest is forgotten first. */
const MAX_WAITS = 20;

/** The relay's memory, one record per room under `prefix`. */
export class RelayTalks {
  readonly #store: StateStore;
  readonly #prefix: string;
  readonly #lock = new KeyedLock();

  constructor(store: StateStore, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
  }

  async get(roomId: string): Promise<Talk> {
    const stored = await this.#store.get(this.#keyOf(roomId));
    return stored ? readJson(stored.value, talkSchema) : EMPTY;
  }

  /** Changes one room's record; calls for one room follow one another. */
  async change(roomId: string, change: (talk: Talk) => Talk): Promise<Talk> {
    return await this.#lock.hold(roomId, async () => {
      const before = await this.get(roomId);
      const changed = change(before);
      const after = { ...changed, waits: changed.waits.slice(-MAX_WAITS) };
      await this.#store.batch([{ kind: 'put', key: this.#keyOf(roomId), value: toBytes(after) }]);
      return after;
    });
  }

  async forget(roomId: string): Promise<void> {
    await this.#store.batch([{ kind: 'delete', key: this.#keyOf(roomId) }]);
  }

  /** Every room in which an answer is still owed. */
  async waiting(): Promise<{ roomId: string; talk: Talk }[]> {
    const range = prefixRange(`${this.#prefix}/`);
    const entries = await this.#store.range({ ...range, limit: MAX_LOADED });
    return entries
      .map(({ key, value }) => ({ roomId: key.slice(range.from.length), talk: readJson(value, talkSchema) }))
      .filter(({ talk }) => talk.waits.length > 0);
  }

  #keyOf(roomId: string): string {
    return `${this.#prefix}/${roomId}`;
  }
}

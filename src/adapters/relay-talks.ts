import { z } from 'zod';
import { KeyedRecords } from '../store/keyed-records.js';
import type { StateStore } from '../store/port.js';

const waitSchema = z.object({
  /** The peer that owes an answer. */
  peerId: z.string(),
  peerName: z.string(),
  /** The handing-over of the message that was asked. */
  messageId: z.string(),
  /** Milliseconds since the epoch. */
  since: z.number(),
  /** What the person was told so far. */
  told: z.enum(['nothing', 'slow', 'timeout']),
});
export type Wait = z.infer<typeof waitSchema>;

const trySchema = z.object({
  delivery: z.string(),
  peer: z.object({ id: z.string(), name: z.string(), handle: z.string().nullable() }),
  /** The words as they were sent: made anew they may differ, by a name that cannot be read or by an edit. */
  content: z.string(),
  /** Milliseconds since the epoch. */
  at: z.number(),
});
/** A post whose end is not known. */
export type Try = z.infer<typeof trySchema>;

const talkSchema = z.object({
  /** The peer that is asked when a message names none. */
  peerId: z.string().nullable(),
  /** Peers that were brought into the room. */
  peerIds: z.array(z.string()),
  waits: z.array(waitSchema),
  /** What was posted into the room last: by which handing-over, as which message there. */
  posted: z.array(z.object({ delivery: z.string(), id: z.string() })).default([]),
  /** What is about to be posted, on disk before it is sent: a process that ends in between may have left it. */
  tries: z.array(trySchema).default([]),
  /** Where the room's own record was last read to: a mark that gives its last page, null before the first reading. */
  readTo: z.string().nullable().default(null),
  /** Answers since a person last wrote. */
  hops: z.number(),
});
/** What the relay remembers of one conversation. */
export type Talk = z.infer<typeof talkSchema>;

const EMPTY: Talk = { peerId: null, peerIds: [], waits: [], posted: [], tries: [], readTo: null, hops: 0 };
/** Questions that may be open in one conversation; the oldest is forgotten first. */
const MAX_WAITS = 20;
const MAX_POSTED = 50;
/** Posts of unknown end that are remembered of one conversation. */
const MAX_TRIES = 20;

/** The relay's memory, one record per room under `prefix`. */
export class RelayTalks {
  readonly #records: KeyedRecords<typeof talkSchema>;

  constructor(store: StateStore, prefix: string) {
    this.#records = new KeyedRecords({ store, prefix, schema: talkSchema, empty: EMPTY });
  }

  get(roomId: string): Promise<Talk> {
    return this.#records.get(roomId);
  }

  async change(roomId: string, change: (talk: Talk) => Talk): Promise<Talk> {
    return await this.#records.change(roomId, (before) => {
      const after = change(before);
      return {
        ...after,
        waits: after.waits.slice(-MAX_WAITS),
        posted: after.posted.slice(-MAX_POSTED),
        tries: after.tries.slice(-MAX_TRIES),
      };
    });
  }

  forget(roomId: string): Promise<void> {
    return this.#records.forget(roomId);
  }

  /** Every room in which an answer is still owed. */
  async waiting(): Promise<{ roomId: string; talk: Talk }[]> {
    const waiting: { roomId: string; talk: Talk }[] = [];
    for await (const { key, record } of this.#records.all()) {
      if (record.waits.length > 0) waiting.push({ roomId: key, talk: record });
    }
    return waiting;
  }
}

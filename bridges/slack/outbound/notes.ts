import { z } from 'zod';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';

const unsureSchema = z.object({
  /** The piece. */
  path: z.string(),
  /** When its sending was begun, milliseconds since the epoch. */
  begunAt: z.number(),
  /** From when on it shows if Slack has taken it; null while it is being sent. */
  landedBy: z.number().nullable(),
});
/** A piece of which nobody knows whether Slack has taken it. */
export type Unsure = z.infer<typeof unsureSchema>;

const noteSchema = z.object({
  /** Tries that failed with an answer that may be followed by another try. */
  tries: z.number(),
  /** When the first of them failed. */
  since: z.number().nullable(),
  /** Remedies that were tried; each is tried once. */
  tried: z.array(z.string()),
  /** Pieces that Slack has taken, with their `ts`. */
  sent: z.record(z.string(), z.string()),
  /** Pieces that were cut or converted further. */
  reshaped: z.record(z.string(), z.enum(['mrkdwn', 'smaller', 'file'])),
  /** Where the posts go: into the thread, to the channel, or under a new first message. */
  place: z.enum(['thread', 'channel', 'root']),
  /** The new first message, once it stands. */
  rootTs: z.string().nullable(),
  /** The file of an upload in progress. */
  fileId: z.string().nullable(),
  /** On disk before the piece is sent: what is found here after a crash is looked for. */
  unsure: unsureSchema.nullable().default(null),
  /** Since when a look-up fails; null when the last one did not. */
  lookingSince: z.number().nullable().default(null),
});

const PAGE = 500;

/** What is known of the tries of one record, beside the record. */
export type Note = z.infer<typeof noteSchema>;

export const freshNote = (): Note => ({
  tries: 0,
  since: null,
  tried: [],
  sent: {},
  reshaped: {},
  place: 'thread',
  rootTs: null,
  fileId: null,
  unsure: null,
  lookingSince: null,
});

/** The notes of records that are not simply written: parts of a long reply, remedies tried, files on their way. */
export class Notes {
  readonly #store: StateStore;
  readonly #prefix: string;

  constructor(store: StateStore, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
  }

  async get(id: string): Promise<Note> {
    const stored = await this.#store.get(this.#key(id));
    return stored ? readJson(stored.value, noteSchema) : freshNote();
  }

  async put(id: string, note: Note): Promise<void> {
    await this.#store.batch([{ kind: 'put', key: this.#key(id), value: toBytes(note) }]);
  }

  /** A record that was given up may be tried again later: what Slack has taken stays known, remedies may be tried anew. */
  renew(id: string, note: Note): StoreChange {
    const tried = note.tried.filter((remedy) => remedy === 'named');
    const renewed: Note = { ...note, tries: 0, since: null, tried, lookingSince: null };
    return { kind: 'put', key: this.#key(id), value: toBytes(renewed) };
  }

  forget(id: string): StoreChange {
    return { kind: 'delete', key: this.#key(id) };
  }

  /** Removes the notes of records that are gone. */
  async sweep(isKnown: (id: string) => boolean): Promise<void> {
    const { from, to } = prefixRange(`${this.#prefix}/`);
    for (let next = from; ;) {
      const page = await this.#store.range({ from: next, to, limit: PAGE });
      const orphans = page.filter(({ key }) => !isKnown(key.slice(this.#prefix.length + 1)));
      if (orphans.length > 0) await this.#store.batch(orphans.map(({ key }) => ({ kind: 'delete', key })));
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      next = `${last.key}\0`;
    }
  }

  #key(id: string): string {
    return `${this.#prefix}/${id}`;
  }
}

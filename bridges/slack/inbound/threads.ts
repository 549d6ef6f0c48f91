import { z } from 'zod';
import { KeyedLock } from '../../../src/base/keyed-lock.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import type { StateStore } from '../../../src/store/port.js';

const threadSchema = z.object({
  /** People who wrote in it. */
  people: z.array(z.string()),
  /** Another bot has written. */
  otherBots: z.boolean(),
  /** Bot messages since a person last wrote. */
  botRun: z.number(),
  muted: z.boolean(),
  paused: z.boolean(),
  /** `ts` of the newest message that was looked at. */
  lastTs: z.string().nullable(),
  /** When something last happened, milliseconds since the epoch. */
  touchedAt: z.number(),
});
/** What is remembered of one thread beside its room. */
export type ThreadState = z.infer<typeof threadSchema>;

const FRESH: ThreadState = {
  people: [],
  otherBots: false,
  botRun: 0,
  muted: false,
  paused: false,
  lastTs: null,
  touchedAt: 0,
};
const MAX_PEOPLE = 200;

/** The threads' states, one record each under `prefix`. */
export class Threads {
  readonly #store: StateStore;
  readonly #prefix: string;
  readonly #lock = new KeyedLock();

  constructor(store: StateStore, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
  }

  async get(key: string): Promise<ThreadState> {
    const stored = await this.#store.get(`${this.#prefix}/${key}`);
    return stored ? readJson(stored.value, threadSchema) : FRESH;
  }

  async change(key: string, change: (state: ThreadState) => ThreadState): Promise<ThreadState> {
    return await this.#lock.hold(key, async () => {
      const after = change(await this.get(key));
      const value = toBytes({ ...after, people: after.people.slice(-MAX_PEOPLE) });
      await this.#store.batch([{ kind: 'put', key: `${this.#prefix}/${key}`, value }]);
      return after;
    });
  }

  /** Somebody wrote in the thread. */
  async note(
    key: string,
    message: { readonly ts: string; readonly user: string | null; readonly isBot: boolean },
    now: number,
  ): Promise<ThreadState> {
    return await this.change(key, (state) => ({
      ...state,
      lastTs: state.lastTs !== null && state.lastTs > message.ts ? state.lastTs : message.ts,
      touchedAt: now,
      otherBots: state.otherBots || message.isBot,
      botRun: message.isBot ? state.botRun + 1 : 0,
      people:
        message.isBot || message.user === null || state.people.includes(message.user)
          ? state.people
          : [...state.people, message.user],
    }));
  }
}

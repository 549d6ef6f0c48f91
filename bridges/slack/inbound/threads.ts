import { z } from 'zod';
import { KeyedRecords } from '../../../src/store/keyed-records.js';
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
  /** When it was last stopped, milliseconds since the epoch. */
  pausedAt: z.number().default(0),
  /** `ts` of the newest message that was looked at. */
  lastTs: z.string().nullable(),
  /** `ts` of the oldest replies, oldest first: where the thread goes on when its first message is gone. */
  replies: z.array(z.string()).default([]),
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
  pausedAt: 0,
  lastTs: null,
  replies: [],
  touchedAt: 0,
};
const MAX_PEOPLE = 200;
const MAX_REPLIES = 5;

/** Bot messages in a row before the message of this `ts`, which a try before this one may have counted. */
export function botRunBefore({ botRun, lastTs }: ThreadState, ts: string): number {
  return lastTs === ts ? Math.max(0, botRun - 1) : botRun;
}

/** The threads' states, one record each under `prefix`. */
export class Threads {
  readonly #records: KeyedRecords<typeof threadSchema>;

  constructor(store: StateStore, prefix: string) {
    this.#records = new KeyedRecords({ store, prefix, schema: threadSchema, empty: FRESH });
  }

  get(key: string): Promise<ThreadState> {
    return this.#records.get(key);
  }

  async change(key: string, change: (state: ThreadState) => ThreadState): Promise<ThreadState> {
    return await this.#records.change(key, (before) => {
      const after = change(before);
      return { ...after, people: after.people.slice(-MAX_PEOPLE) };
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
      replies: key.endsWith(`:${message.ts}`) ? state.replies : oldest([...state.replies, message.ts]),
      touchedAt: now,
      otherBots: state.otherBots || message.isBot,
      botRun: message.isBot ? botRunBefore(state, message.ts) + 1 : 0,
      people:
        message.isBot || message.user === null || state.people.includes(message.user)
          ? state.people
          : [...state.people, message.user],
    }));
  }
}

const oldest = (replies: readonly string[]): string[] => [...new Set(replies)].sort().slice(0, MAX_REPLIES);

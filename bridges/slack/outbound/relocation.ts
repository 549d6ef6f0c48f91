import { BoundedMap } from '../../../src/base/bounded.js';
import type { SlackClient } from '../client.js';
import { slackKey } from '../conversation.js';
import { readMessages } from '../web-methods.js';
import type { Moves } from './moves.js';
import type { ThreadRef } from './port.js';

export interface RelocationDeps {
  readonly moves: Moves;
  /** `ts` of people's replies in a thread, as far as they are known, oldest first. */
  readonly replies: (thread: ThreadRef) => Promise<readonly string[]>;
  /** The conversation goes on under another first message. */
  readonly moved: (thread: ThreadRef, newTs: string) => Promise<void>;
}

/** Where a conversation goes on whose thread Slack has closed. */
export interface Relocation {
  /** Under which message its posts go; null: at the top level of the channel. */
  threadTs(thread: ThreadRef): string | null;
  /** One of our posts stands in the thread. */
  posted(thread: ThreadRef, ts: string): void;
  /**
   * Goes on under the oldest message of the thread that is known and still there.
   *
   * @returns false where there is none
   */
  toSurvivor(thread: ThreadRef, client: SlackClient, signal: AbortSignal): Promise<boolean>;
  /** Goes on under a message that was posted for it. */
  toRoot(thread: ThreadRef, ts: string): Promise<void>;
  /** The channel takes no replies: its conversations go on at its top level. */
  toChannel(thread: ThreadRef): Promise<void>;
}

const MAX_THREADS = 5_000;
/** Messages that are looked at; somebody waits for the answer meanwhile. */
const MOST_LOOKS = 5;

export function createRelocation({ moves, replies, moved }: RelocationDeps): Relocation {
  /** The first of our own posts in each thread. */
  const own = new BoundedMap<string, string>(MAX_THREADS);
  const move = async (thread: ThreadRef, ts: string): Promise<void> => {
    await moves.put(thread, ts);
    await moved(thread, ts);
  };

  return {
    threadTs: (thread) => moves.threadTs(thread),
    posted(thread, ts) {
      const key = slackKey(thread);
      if (!own.get(key)) own.set(key, ts);
    },
    async toSurvivor(thread, client, signal) {
      const gone = moves.threadTs(thread);
      const known = [...(await replies(thread)), own.get(slackKey(thread))];
      const candidates = known.filter((ts) => ts !== undefined && ts !== gone).sort();
      for (const ts of candidates.slice(0, MOST_LOOKS)) {
        if (ts === undefined || !(await isThere(client, thread.channel, ts, signal))) continue;
        await move(thread, ts);
        return true;
      }
      return false;
    },
    toRoot: move,
    async toChannel(thread) {
      if (moves.threadTs(thread) !== null) await moves.put(thread, null);
    },
  };
}

/** Where Slack does not say, it counts as gone: a new first message is certain to be seen. */
async function isThere(client: SlackClient, channel: string, ts: string, signal: AbortSignal): Promise<boolean> {
  try {
    const { messages } = await readMessages(client, { channel, ts, limit: 1 }, { signal, whenPutOff: 'throw' });
    return messages.some((message) => message.ts === ts);
  } catch (error) {
    if (signal.aborted) throw error;
    return false;
  }
}

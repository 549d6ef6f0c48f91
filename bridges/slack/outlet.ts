import type { Outlet } from '../../src/core/outside.js';
import { slackKey } from './conversation.js';
import type { Bindings } from './inbound/bindings.js';
import type { Threads } from './inbound/threads.js';
import type { MentionRule, SlackOut, ThreadRef, ThreadStatus } from './outbound/port.js';
import type { SlackOptions } from './settings.js';

export interface OutletDeps {
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly out: SlackOut;
  /** The status shown for each room, as long as it is shown. */
  readonly statuses: Map<string, ThreadStatus>;
  readonly options: SlackOptions;
  readonly signal: AbortSignal;
}

/** Band is told that an answer is dealt with when Slack has it, or after this wait, when it is safe on disk. */
const POST_WAIT_MS = 30_000;

/** How a brain that speaks at any time reaches the thread a room stands for. A room that stands for none is silent. */
export function createOutlet({ bindings, threads, out, statuses, options, signal }: OutletDeps): Outlet {
  const placeOf = async (roomId: string): Promise<{ thread: ThreadRef; mentions: MentionRule } | null> => {
    const binding = await bindings.resolve(roomId, signal);
    if (!binding) return null;
    const { people } = await threads.get(slackKey(binding.thread));
    const { outbound, allowBroadcast, allowUserGroups } = options.mentions;
    return {
      thread: { ...binding.thread, askerId: people.at(-1) ?? null },
      mentions: {
        users: outbound === 'thread' ? people : outbound,
        groups: allowUserGroups,
        broadcast: allowBroadcast,
        channels: [binding.thread.channel],
      },
    };
  };

  return {
    async answer(roomId, { id, markdown, from }) {
      const place = await placeOf(roomId);
      if (!place) return;
      const { thread, mentions } = place;
      const speaker = { name: from.name, icon: null };
      const waitMs = POST_WAIT_MS;
      await out.reply(thread, { id: `band:${id}`, markdown, kind: 'relay', speaker, mentions, waitMs });
    },
    async notice(roomId, { id, text }) {
      const place = await placeOf(roomId);
      if (place) await out.reply(place.thread, { id: `relay:${id}`, markdown: text, kind: 'notice' });
    },
    waiting(roomId, on) {
      const binding = bindings.ofRoom(roomId);
      if (!binding) return;
      const status = statuses.get(roomId) ?? out.status({ ...binding.thread, askerId: null });
      if (on) {
        statuses.set(roomId, status);
        status.set();
      } else {
        statuses.delete(roomId);
        status.clear();
      }
    },
  };
}

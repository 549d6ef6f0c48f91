import { viewOf, indexOfSeq } from './facts.js';
import { badCursor, type Listing } from './paging.js';
import { workList, type WorkStatus } from './deliveries.js';
import type { Message, Room } from './world.js';

/** Lists of messages, read from any place without walking what lies before it. Places are places in the room. */

/** An agent's work list. */
export function workListing(
  room: Room,
  agentId: string,
  status: WorkStatus | null,
  order: 'asc' | 'desc',
): Listing<Message> {
  const list = workList(room, agentId, status);
  const descending = order === 'desc';
  return {
    total: list.total,
    after(place) {
      const seq = seqOf(place);
      if (descending) return list.walk(seq === null ? room.messages.length : seq - 1, true);
      return list.walk(seq === null ? 0 : seq + 1, false);
    },
    placeOf: ({ seq }) => String(seq),
  };
}

/** All that an agent wrote and every text that mentions it, oldest first. */
export function contextListing(room: Room, agentId: string): Listing<Message> {
  const { context } = viewOf(room, agentId);
  return {
    total: context.length,
    *after(place) {
      const seq = seqOf(place);
      for (let at = seq === null ? 0 : indexOfSeq(context, seq + 1); at < context.length; at += 1) {
        const message = context[at];
        if (message) yield message;
      }
    },
    placeOf: ({ seq }) => String(seq),
  };
}

/**
 * Everything in a room, newest first, for people.
 *
 * @param types - only messages of these; null for all
 * @param since - a moment; only what came after it
 */
export function roomListing(room: Room, types: readonly string[] | null, since: string | null): Listing<Message> {
  const { messages } = room;
  const floor = since === null ? 0 : firstAfter(messages, since);
  const matches = (message: Message) => types === null || types.includes(message.messageType);
  return {
    total: totalIn(room, types, floor, matches),
    *after(place) {
      const seq = seqOf(place);
      for (let at = (seq === null ? messages.length : Math.min(seq, messages.length)) - 1; at >= floor; at -= 1) {
        const message = messages[at];
        if (message && matches(message)) yield message;
      }
    },
    placeOf: ({ seq }) => String(seq),
  };
}

function totalIn(
  room: Room,
  types: readonly string[] | null,
  floor: number,
  matches: (message: Message) => boolean,
): number {
  if (floor > 0) return room.messages.slice(floor).filter(matches).length;
  if (types === null) return room.messages.length;
  return types.reduce((total, type) => total + (room.countByType.get(type) ?? 0), 0);
}

function firstAfter(messages: readonly Message[], since: string): number {
  let low = 0;
  let high = messages.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((messages[middle]?.insertedAt ?? '') <= since) low = middle + 1;
    else high = middle;
  }
  return low;
}

function seqOf(place: string | null): number | null {
  if (place === null) return null;
  if (!/^\d{1,15}$/.test(place)) throw badCursor();
  return Number(place);
}

import type { RawHistoryMessage } from '../core/history.js';
import type { Roster } from '../core/participants.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import type { ChatMessage } from '../platform/wire/objects.js';
import { readableMentions } from './mention-tokens.js';
import { createdAt, senderName, type WireMessage } from './wire-message.js';

const PAGE_ROWS = 100;
/** Bound of a room's past that is read: ten thousand rows. */
const MAX_PAGES = 100;

/** A room's past as the platform keeps it for this agent, oldest first, every page (W-16). */
export async function readContext(
  rest: Pick<BandRest, 'getContext'>,
  roomId: string,
  signal: AbortSignal,
): Promise<{ readonly rows: readonly ChatMessage[]; readonly complete: boolean }> {
  const rows: ChatMessage[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const answer = await rest.getContext(roomId, { limit: PAGE_ROWS, ...(cursor ? { cursor } : {}), signal });
    rows.push(...answer.data);
    if (!answer.hasMore || !answer.nextCursor) return { rows, complete: true };
    cursor = answer.nextCursor;
  }
  return { rows, complete: false };
}

/** What was said strictly before `trigger`: neither the trigger itself nor anything later. */
export function historyBefore(
  rows: readonly ChatMessage[],
  trigger: { readonly id: string; readonly createdAt: Date },
  roster: Pick<Roster, 'get'>,
): readonly RawHistoryMessage[] {
  const at = rows.findIndex(({ id }) => id === trigger.id);
  const before =
    at >= 0 ? rows.slice(0, at) : rows.filter((row) => createdAt(row).getTime() < trigger.createdAt.getTime());
  return before.map((row) => rawHistoryMessage(row, roster));
}

function rawHistoryMessage(row: WireMessage, roster: Pick<Roster, 'get'>): RawHistoryMessage {
  return {
    id: row.id,
    role: row.sender_type === 'Agent' ? 'assistant' : 'user',
    content: readableMentions(row.content, roster),
    senderName: senderName(row, roster),
    senderType: row.sender_type,
    messageType: row.message_type,
    metadata: row.metadata ?? {},
    createdAt: createdAt(row),
  };
}

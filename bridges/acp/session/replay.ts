import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import { parseMarker, type Marker } from '../conversation.js';
import { promptUpdates, replyUpdates, sayUpdate, type RowContext } from './updates.js';

const PAGE_SIZE = 100;
/** Rooms longer than this are read no further: 50,000 rows. */
const MAX_PAGES = 500;

/** A room as the bridge may read it: its own rows and the texts that mention it. */
export interface RoomHistory {
  /** The newest one that counts; null for a room that is no session. */
  readonly marker: Marker | null;
  /** Texts, oldest first, at most as many as asked for. */
  readonly texts: readonly ChatMessage[];
  /** Texts that are older than those. */
  readonly omitted: number;
  /** Whether the bridge ever posted a prompt here. */
  readonly hasPrompt: boolean;
  /** When the newest row was written; null for an empty room. */
  readonly lastAt: string | null;
  /** Cursor of the last page. */
  readonly cursor: string | undefined;
}

/** Reads a room from its beginning. */
export async function readRoom(
  rest: BandRest,
  roomId: string,
  selfId: string,
  options: { readonly keep: number; readonly signal?: AbortSignal | undefined },
): Promise<RoomHistory> {
  let marker: Marker | null = null;
  let texts: ChatMessage[] = [];
  let omitted = 0;
  let hasPrompt = false;
  let lastAt: string | null = null;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { data, hasMore, nextCursor } = await rest.getContext(roomId, {
      limit: PAGE_SIZE,
      cursor,
      signal: options.signal,
    });
    for (const row of data) {
      lastAt = row.inserted_at ?? lastAt;
      marker = parseMarker(row, roomId, selfId) ?? marker;
      if (row.message_type !== 'text') continue;
      hasPrompt ||= row.sender_id.toLowerCase() === selfId;
      texts.push(row);
    }
    // Cut now and then only, so that a long room costs no more than its rows.
    if (texts.length > options.keep * 2 + PAGE_SIZE) {
      omitted += texts.length - options.keep;
      texts = texts.slice(-options.keep);
    }
    if (!hasMore || nextCursor === null) break;
    cursor = nextCursor;
  }
  if (texts.length > options.keep) {
    omitted += texts.length - options.keep;
    texts = options.keep === 0 ? [] : texts.slice(-options.keep);
  }
  return { marker, texts, omitted, hasPrompt, lastAt, cursor };
}

/** A room's texts as an editor that opens the session anew sees them. */
export function replayUpdates(history: RoomHistory, context: Omit<RowContext, 'replay' | 'late'>): SessionUpdate[] {
  const updates: SessionUpdate[] = [];
  if (history.omitted > 0) {
    updates.push(
      sayUpdate(`${history.omitted} older messages are not shown here; they are in the Band room.`, { replay: true }),
    );
  }
  for (const row of history.texts) {
    updates.push(
      ...(row.sender_id.toLowerCase() === context.self.id
        ? promptUpdates(row, context.handleOf)
        : replyUpdates(row, { ...context, replay: true })),
    );
  }
  return updates;
}

import { z } from 'zod';
import { isGatewayError } from '../../../src/base/errors.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import type { ChatMessage, ChatRoom } from '../../../src/platform/wire/objects.js';
import { ANY_TEAM, type SlackThread } from '../conversation.js';

/** A room whose own history says which thread it stands for. */
export interface FoundRoom {
  readonly roomId: string;
  readonly thread: SlackThread;
}

const bootstrapSchema = z.looseObject({
  slack_app_slug: z.string().min(1),
  slack_channel_id: z.string().min(1),
  slack_thread_ts: z.string().min(1),
  slack_team_id: z.string().min(1).nullish().catch(null),
});

const PAGE_SIZE = 100;
/** A hundred thousand rooms, which take ten minutes or so. */
const MAX_PAGES = 1_000;
const AT_ONCE = 4;
/** The platform's clock and ours may differ by this much. */
const CLOCK_SKEW_MS = 5 * 60_000;

/** The thread that a room's rows name; the last one that names any wins (S-079). */
export function boundThread(
  rows: readonly { readonly messageType: string; readonly metadata: unknown }[],
): SlackThread | null {
  for (const { messageType, metadata } of [...rows].reverse()) {
    if (messageType !== 'task') continue;
    const parsed = bootstrapSchema.safeParse(metadata);
    if (!parsed.success) continue;
    const { slack_app_slug: slug, slack_channel_id: channel, slack_thread_ts: threadTs } = parsed.data;
    return { slug, channel, threadTs, team: parsed.data.slack_team_id ?? ANY_TEAM };
  }
  return null;
}

export interface ScanOptions {
  /** Only rooms made after this moment, milliseconds since the epoch; default all. */
  readonly since?: number;
  /** Called when there are more rooms than are looked at. */
  readonly onLimit?: (rooms: number) => void;
  /** Called with how many rooms were read just now. */
  readonly onRead?: (rooms: number) => void;
}

/** Reads the agent's rooms, newest first, four at a time. */
export async function* scanRooms(
  rest: BandRest,
  signal: AbortSignal,
  { since = 0, onLimit = () => undefined, onRead = () => undefined }: ScanOptions = {},
): AsyncGenerator<FoundRoom> {
  const rooms = (await listRooms(rest, signal, onLimit)).filter((room) => madeAt(room) >= since - CLOCK_SKEW_MS);
  rooms.sort((a, b) => madeAt(b) - madeAt(a));
  for (let first = 0; first < rooms.length; first += AT_ONCE) {
    const some = rooms.slice(first, first + AT_ONCE);
    const found = await Promise.all(
      some.map(async ({ id }) => ({ roomId: id, thread: boundThread(await readRows(rest, id, signal)) })),
    );
    onRead(some.length);
    for (const { roomId, thread } of found) if (thread) yield { roomId, thread };
  }
}

async function listRooms(rest: BandRest, signal: AbortSignal, onLimit: (rooms: number) => void): Promise<ChatRoom[]> {
  const rooms: ChatRoom[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { data, totalPages } = await rest.listChats({ page, pageSize: PAGE_SIZE, signal });
    rooms.push(...data);
    if (page >= totalPages || data.length === 0) return rooms;
  }
  onLimit(rooms.length);
  return rooms;
}

/** The bootstrap event is the first thing in a room, and a moved binding is written again soon after: two pages do. */
async function readRows(
  rest: BandRest,
  roomId: string,
  signal: AbortSignal,
): Promise<{ messageType: string; metadata: unknown }[]> {
  const rows: ChatMessage[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < 2; page += 1) {
    const answer = await rest.getContext(roomId, { limit: PAGE_SIZE, signal, cursor }).catch((error: unknown) => {
      // It went between the list and its turn to be read.
      if (isGatewayError(error, 'BAND_NOT_FOUND')) return null;
      throw error;
    });
    if (!answer) return [];
    rows.push(...answer.data);
    if (!answer.hasMore || answer.nextCursor === null) break;
    cursor = answer.nextCursor;
  }
  return rows.map((row) => ({ messageType: row.message_type, metadata: row.metadata }));
}

const madeAt = (room: ChatRoom): number => {
  const at = Date.parse(room.inserted_at ?? '');
  return Number.isNaN(at) ? Number.POSITIVE_INFINITY : at;
};

import { z } from 'zod';
import type { Logger } from '../../../src/base/log.js';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import type { ChatRoom } from '../../../src/platform/wire/objects.js';
import { prefixRange, type StateStore } from '../../../src/store/port.js';
import { normalizeCwd, type Marker } from '../conversation.js';
import { AcpFault } from '../errors.js';
import { readRoom } from './replay.js';

const entrySchema = z.object({
  roomId: z.string(),
  sessionId: z.string(),
  cwd: z.string().nullable(),
  title: z.string().nullable(),
  /** ISO 8601. */
  updatedAt: z.string().nullable(),
  principal: z.string().nullable(),
});
/** What is known of a session without asking Band: ids, folder, title, time. No content, no keys. */
export type IndexEntry = z.infer<typeof entrySchema>;

const PAGE_SIZE = 50;
const SCAN_GAP_MS = 60_000;
const SCAN_ROOMS = 200;
const SCAN_ROOM_PAGES = 20;
const SCAN_AT_ONCE = 4;
const MAX_ENTRIES = 10_000;
const UNTITLED = 'New chat';

export interface SessionIndex {
  get(roomId: string): IndexEntry | null;
  /** The room of a session id that is not a room's id. */
  findAlias(sessionId: string): IndexEntry | null;
  put(entry: IndexEntry): void;
  /** Changes an entry that is there. */
  touch(roomId: string, change: Partial<Pick<IndexEntry, 'title' | 'updatedAt' | 'cwd'>>): void;
  drop(roomId: string): void;
  /**
   * One page, newest activity first.
   *
   * @throws {AcpFault} `invalid_cursor`
   */
  page(query: { readonly principal: string | null; readonly cwd: string | null; readonly cursor: string | null }): {
    readonly entries: readonly IndexEntry[];
    readonly nextCursor: string | null;
  };
  /** Finds sessions among the agent's rooms, at most once a minute; calls that come meanwhile share one scan. */
  scan(rest: BandRest, selfId: string, signal?: AbortSignal): Promise<void>;
  /** True until a first scan has succeeded. */
  readonly isUnscanned: boolean;
  readonly isEmpty: boolean;
}

/** Where entries survive a restart; losing it loses nothing that a scan does not find again. */
export interface IndexStore {
  readonly store: StateStore;
  /** Ends in `/`. */
  readonly prefix: string;
}

/** A cache of the agent's sessions. Unreadable records are dropped and found again by the next scan. */
export async function openSessionIndex(deps: {
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: IndexStore | null;
  readonly onWriteError: (error: unknown) => void;
}): Promise<SessionIndex> {
  const entries = new Map<string, IndexEntry>();
  /** Rooms that were read and are no sessions. */
  const others = new Set<string>();
  let scannedAt: number | null = null;
  let scanning: Promise<void> | null = null;
  const { clock, log, store } = deps;

  const keyOf = (roomId: string) => `${store?.prefix ?? ''}${roomId}`;
  const persist = (roomId: string, entry: IndexEntry | null) => {
    if (!store) return;
    const key = keyOf(roomId);
    const change = entry
      ? ({ kind: 'put', key, value: new TextEncoder().encode(JSON.stringify(entry)) } as const)
      : ({ kind: 'delete', key } as const);
    store.store.batch([change]).catch(deps.onWriteError);
  };
  if (store) await readBack(store, entries, log);

  const put = (entry: IndexEntry) => {
    others.delete(entry.roomId);
    entries.set(entry.roomId, entry);
    if (entries.size > MAX_ENTRIES) drop(oldest(entries));
    persist(entry.roomId, entry);
  };
  const drop = (roomId: string) => {
    if (entries.delete(roomId)) persist(roomId, null);
  };

  const scanOnce = async (rest: BandRest, selfId: string, signal?: AbortSignal) => {
    const { rooms, complete } = await newestRooms(rest, signal);
    const present = new Set(rooms.map(({ id }) => id.toLowerCase()));
    if (complete) {
      for (const roomId of [...entries.keys()]) if (!present.has(roomId)) drop(roomId);
      for (const roomId of others) if (!present.has(roomId)) others.delete(roomId);
    }
    const queue = rooms.slice(0, SCAN_ROOMS);
    const worker = async () => {
      for (let room = queue.shift(); room; room = queue.shift()) await scanRoom(room, rest, selfId, signal);
    };
    await Promise.all(Array.from({ length: SCAN_AT_ONCE }, worker));
    scannedAt = clock.now();
  };
  const scanRoom = async (room: ChatRoom, rest: BandRest, selfId: string, signal?: AbortSignal) => {
    const roomId = room.id.toLowerCase();
    if (others.has(roomId)) return;
    const known = entries.get(roomId);
    if (known) {
      const title = titleOf(room);
      if (title !== known.title) put({ ...known, title });
      return;
    }
    const history = await readRoom(rest, roomId, selfId, { keep: 0, signal }).catch((error: unknown) => {
      // Left or removed since the rooms were listed.
      if (isGatewayError(error, 'BAND_NOT_FOUND') || isGatewayError(error, 'BAND_FORBIDDEN')) return null;
      throw error;
    });
    if (!history) return;
    if (!history.marker || history.marker.deleted) others.add(roomId);
    else put(entryOf(history.marker, titleOf(room), history.lastAt ?? room.updated_at ?? null));
  };

  return {
    get: (roomId) => entries.get(roomId) ?? null,
    findAlias: (sessionId) => [...entries.values()].find((entry) => entry.sessionId === sessionId) ?? null,
    put,
    touch(roomId, change) {
      const entry = entries.get(roomId);
      if (entry) put({ ...entry, ...change });
    },
    drop,
    page({ principal, cwd, cursor }) {
      const wanted = cwd === null ? null : normalizeCwd(cwd);
      const after = cursor === null ? null : parseCursor(cursor);
      const matching = [...entries.values()]
        .filter((entry) => entry.principal === principal && entry.cwd !== null)
        .filter((entry) => wanted === null || normalizeCwd(entry.cwd ?? '') === wanted)
        .sort(newestFirst)
        .filter((entry) => after === null || newestFirst(after, entry) < 0);
      const page = matching.slice(0, PAGE_SIZE);
      const last = page.at(-1);
      return { entries: page, nextCursor: last && matching.length > page.length ? makeCursor(last) : null };
    },
    async scan(rest, selfId, signal) {
      if (scannedAt !== null && clock.now() - scannedAt < SCAN_GAP_MS) return;
      scanning ??= scanOnce(rest, selfId, signal).finally(() => {
        scanning = null;
      });
      await scanning;
    },
    get isUnscanned() {
      return scannedAt === null;
    },
    get isEmpty() {
      return entries.size === 0;
    },
  };
}

export function entryOf(marker: Marker, title: string | null, updatedAt: string | null): IndexEntry {
  const { roomId, sessionId, cwd, principal } = marker;
  return { roomId: roomId.toLowerCase(), sessionId, cwd, title, updatedAt, principal };
}

/** A room's title, unless it is the one the platform gives to rooms without one. */
export function titleOf(room: ChatRoom): string | null {
  return room.title && room.title !== UNTITLED ? room.title : null;
}

async function newestRooms(rest: BandRest, signal?: AbortSignal): Promise<{ rooms: ChatRoom[]; complete: boolean }> {
  const rooms: ChatRoom[] = [];
  let complete = false;
  for (let page = 1; page <= SCAN_ROOM_PAGES; page += 1) {
    const { data, totalPages } = await rest.listChats({ page, pageSize: 100, signal });
    rooms.push(...data);
    complete = page >= totalPages;
    if (complete || data.length === 0) break;
  }
  rooms.sort((a, b) => (b.updated_at ?? '').localeCompare(a.updated_at ?? ''));
  return { rooms, complete };
}

async function readBack(from: IndexStore, into: Map<string, IndexEntry>, log: Logger): Promise<void> {
  const { from: first, to } = prefixRange(from.prefix);
  try {
    for (const { key, value } of await from.store.range({ from: first, to, limit: MAX_ENTRIES })) {
      const entry = parseEntry(value);
      if (entry) into.set(entry.roomId, entry);
      else log.warn({ key }, 'a record of the session index could not be read; it will be found again');
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    log.warn({ err: error }, 'the session index could not be read; sessions will be found again');
  }
}

function parseEntry(value: Uint8Array): IndexEntry | null {
  try {
    return entrySchema.parse(JSON.parse(new TextDecoder().decode(value)));
  } catch {
    // Half a record or one of another version: a scan makes it anew.
    return null;
  }
}

type Place = Pick<IndexEntry, 'updatedAt' | 'sessionId'>;

function newestFirst(a: Place, b: Place): number {
  const byTime = (b.updatedAt ?? '').localeCompare(a.updatedAt ?? '');
  return byTime !== 0 ? byTime : a.sessionId.localeCompare(b.sessionId);
}

function makeCursor({ updatedAt, sessionId }: Place): string {
  return Buffer.from(JSON.stringify([updatedAt, sessionId])).toString('base64url');
}

const cursorSchema = z.tuple([z.string().nullable(), z.string()]);

function parseCursor(cursor: string): Place {
  try {
    const [updatedAt, sessionId] = cursorSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()));
    return { updatedAt, sessionId };
  } catch (error) {
    throw new AcpFault('invalid_cursor', {}, { cause: error });
  }
}

function oldest(entries: ReadonlyMap<string, IndexEntry>): string {
  return [...entries.values()].sort(newestFirst).at(-1)?.roomId ?? '';
}

import type { Clock } from '../base/clock.js';
import { isGatewayError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { OutsideOrigin } from '../core/outside.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import type { RelayTalks, Talk } from './relay-talks.js';
import { isSameText } from './relay-text.js';

export interface RelayRoomDeps {
  readonly rest: BandRest;
  readonly talks: RelayTalks;
  readonly clock: Clock;
  readonly log: Logger;
  readonly agentId: string;
}

/** Words that may stand in the room. */
export interface Sought<T> {
  readonly content: string;
  readonly from: T;
}

const CONTEXT_PAGE = 100;
/** Fifty thousand rows; the next reading goes on where this one ended. */
const MAX_CONTEXT_PAGES = 500;
/** The platform's clock and ours may differ by this much. */
const CLOCK_SKEW_MS = 5 * 60_000;
/** A request may be on its way, or in work, for so long after its sender is gone. */
const SETTLED_AFTER_MS = 5_000;

/**
 * What an earlier try left in the room: the room shows it, since a post carries no key. A request that was sent just
 * now may still be on its way there: what is not found is looked for once more when that is over.
 *
 * @param sought - the words of every earlier try, and those that would be posted now
 * @param sentAt - when the last of the tries was begun; null where none is known of
 * @returns null when the room does not hold any of it
 */
export async function findInRoom<T>(
  deps: RelayRoomDeps,
  roomId: string,
  sought: readonly Sought<T>[],
  sentAt: number | null,
  origin: OutsideOrigin,
  signal: AbortSignal,
): Promise<{ readonly id: string; readonly from: T } | null> {
  const { clock } = deps;
  const found = await readRoom(deps, roomId, sought, origin, signal);
  const leftMs = sentAt === null ? 0 : Math.min(SETTLED_AFTER_MS, sentAt + SETTLED_AFTER_MS - clock.now());
  if (found || leftMs <= 0) return found;
  await clock.sleep(leftMs, signal);
  return await readRoom(deps, roomId, sought, origin, signal);
}

/**
 * The same words of another handing-over are not it. Rows come oldest first, so that how far they were read is kept:
 * only the first reading of a long room is long.
 */
async function readRoom<T>(
  { rest, talks, log, agentId }: RelayRoomDeps,
  roomId: string,
  sought: readonly Sought<T>[],
  origin: OutsideOrigin,
  signal: AbortSignal,
): Promise<{ readonly id: string; readonly from: T } | null> {
  const { posted, readTo }: Talk = await talks.get(roomId);
  let cursor = readTo;
  for (let page = 0; page < MAX_CONTEXT_PAGES; page += 1) {
    const options = { limit: CONTEXT_PAGE, signal, ...(cursor === null ? {} : { cursor }) };
    const { data, hasMore, nextCursor } = await rest.getContext(roomId, options).catch(async (error: unknown) => {
      // A mark that the platform no longer takes: the room is read from its beginning.
      if (page > 0 || cursor === null || !isGatewayError(error, 'BAND_INVALID')) throw error;
      return await rest.getContext(roomId, { limit: CONTEXT_PAGE, signal });
    });
    for (const row of data) {
      const isOurs =
        row.sender_id === agentId &&
        row.message_type === 'text' &&
        posted.every(({ id }) => id !== row.id) &&
        Date.parse(row.inserted_at ?? '') >= origin.acceptedAt - CLOCK_SKEW_MS;
      const same = isOurs ? sought.find(({ content }) => isSameText(row.content, content)) : undefined;
      if (same) return { id: row.id, from: same.from };
    }
    if (!hasMore || nextCursor === null) return null;
    cursor = nextCursor;
    const mark = cursor;
    await talks.change(roomId, (talk) => ({ ...talk, readTo: mark }));
  }
  log.warn({ roomId, rows: MAX_CONTEXT_PAGES * CONTEXT_PAGE }, 'a room is longer than is looked through');
  return null;
}

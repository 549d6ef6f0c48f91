import { ApiError, TurnEndedError } from '../../base/band-errors.js';
import type { BoundedMap } from '../../base/bounded.js';
import type { Clock } from '../../base/clock.js';
import { isGatewayError, type GatewayError } from '../../base/errors.js';
import type { BandRest, CallOptions, MentionInput } from '../../platform/rest/band-rest.js';
import type { ChatMessage } from '../../platform/wire/objects.js';
import type { Participant } from '../../core/participants.js';
import type { Turn } from '../../core/turn.js';

/** Waits before each look into the room; a post is made at most once more than there are waits. */
const LOOK_WAITS_MS = [1_000, 2_000] as const;
const PAGE_ROWS = 100;
/** Bound of a room's past that is read: ten thousand rows. */
const MAX_PAGES = 100;

/** What it takes to tell a post whose answer was lost from one that never happened. */
export interface LookBack {
  /** The message that the turn is about: what the turn posts stands behind it in the room. */
  readonly after: string;
  /** Ids of what this room session posted and knows of; each post is found by one call only. */
  readonly posted: BoundedMap<string, true>;
  readonly clock: Clock;
}

export interface PostOnceDeps {
  readonly rest: Pick<BandRest, 'getContext'>;
  readonly roomId: string;
  readonly agentId: string | null;
  readonly turn: Turn;
  readonly call: CallOptions;
  /** Null where nothing is known of the room's past: a lost answer is a failed post then. */
  readonly lookBack: LookBack | null;
}

/**
 * Posts. Band takes no key by which it would know a repeat, so after an answer that never came, or said nothing, the
 * room is looked at first: a row that stands there is the answer, and only what is certainly missing is posted again.
 *
 * @param isIt - whether a row that this agent wrote is what `post` writes
 * @param fromRow - the answer that was lost, by the row
 * @throws what `post` threw, when the room cannot tell, or when the last try failed too
 */
export async function postOnce<T extends { readonly id: string }>(
  deps: PostOnceDeps,
  post: () => Promise<T>,
  isIt: (row: ChatMessage) => boolean,
  fromRow: (row: ChatMessage) => T,
): Promise<T> {
  const { lookBack, turn, call, roomId } = deps;
  for (let tries = 0; ; tries += 1) {
    try {
      const sent = await post();
      lookBack?.posted.set(sent.id, true);
      return sent;
    } catch (error) {
      if (!lookBack || !mayHaveLanded(error)) throw error;
      const waitMs = LOOK_WAITS_MS[tries];
      await lookBack.clock.sleep(waitMs ?? 0, call.signal);
      const row = await look(deps, lookBack, isIt).catch((reason: unknown) => {
        call.signal?.throwIfAborted();
        turn.log.warn({ err: reason, roomId }, 'a room could not be looked at for a post whose answer was lost');
        throw error;
      });
      if (row) {
        lookBack.posted.set(row.id, true);
        turn.log.info({ roomId, messageId: row.id, code: error.code }, 'a post whose answer was lost had arrived');
        return fromRow(row);
      }
      if (waitMs === undefined) throw error;
      if (turn.ended) throw new TurnEndedError();
    }
  }
}

/** The answer was lost or says nothing; 503 says that nothing happened, and was repeated already. */
function mayHaveLanded(error: unknown): error is GatewayError {
  if (!isGatewayError(error) || error.undelivered || !error.retryable) return false;
  return !(error.cause instanceof ApiError && error.cause.statusCode === 503);
}

async function look(
  { rest, roomId, agentId, call }: PostOnceDeps,
  { after, posted }: LookBack,
  isIt: (row: ChatMessage) => boolean,
): Promise<ChatMessage | null> {
  let cursor: string | undefined;
  let isBehind = false;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { data, hasMore, nextCursor } = await rest.getContext(roomId, { limit: PAGE_ROWS, cursor, ...call });
    for (const row of data) {
      if (row.id === after) isBehind = true;
      else if (isBehind && row.sender_id === agentId && !posted.has(row.id) && isIt(row)) return row;
    }
    if (!hasMore || nextCursor === null) {
      if (isBehind) return null;
      break;
    }
    cursor = nextCursor;
  }
  throw new Error('The message of the turn was not found in its room.');
}

/** Whether a stored text is what was sent: the platform turns mentions into tokens, and puts missing ones in front. */
export function isSentText(
  stored: ChatMessage,
  content: string,
  mentions: readonly MentionInput[],
  participants: readonly Participant[],
): boolean {
  if (stored.message_type !== 'text') return false;
  const spellings = mentions.flatMap(({ id, handle, name }) => {
    const known = participants.find((one) => one.id === id);
    return [handle, name, known?.handle, known?.name].filter((text) => text != null && text !== '') as string[];
  });
  return withoutMentions(stored.content, spellings) === withoutMentions(content, spellings);
}

/** A token, with the part of a longer handle that may be left behind it. */
const TOKEN = /@\[\[[^\]\s]+\]\](?:\/[\p{L}\p{N}_-]+)?/gu;

function withoutMentions(content: string, spellings: readonly string[]): string {
  const longestFirst = [...spellings].sort((a, b) => b.length - a.length);
  const plain = longestFirst.reduce((text, word) => text.replaceAll(`@${word.replace(/^@/, '')}`, ' '), content);
  return plain.replace(TOKEN, ' ').replace(/\s+/g, ' ').trim();
}

/** Whether a stored event is what was sent: type, text, and every field of the metadata that was given. */
export function isSentEvent(
  stored: ChatMessage,
  content: string,
  messageType: string,
  metadata: Readonly<Record<string, unknown>> | null,
): boolean {
  if (stored.message_type !== messageType || stored.content !== content) return false;
  const kept = stored.metadata ?? {};
  return Object.entries(metadata ?? {}).every(([key, value]) => JSON.stringify(kept[key]) === JSON.stringify(value));
}

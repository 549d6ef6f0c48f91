import { z } from 'zod';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import { messageMetadataSchema } from '../../../src/platform/wire/objects.js';
import type { BandCalls } from '../band.js';
import type { Context } from './contexts.js';

const PAGE_LIMIT = 100;
/** Rows of a page that only has to reach from the last post to the end of the room. */
const SHORT_PAGE_LIMIT = 20;
/** So many short pages past a whole reading the next whole one follows, so that the stored place moves too. */
const SHORT_PAGES = 10;
/** Rooms whose next look begins where the last one found its post. */
const NEAR_ROOMS = 1_000;

interface Page {
  /** Where it begins; null for the beginning of the room. */
  readonly cursor: string | null;
  readonly rows: readonly ChatMessage[];
}

type ReadContext = Pick<BandCalls, 'getContext'>;

async function* pagesFrom(
  rest: ReadContext,
  roomId: string,
  begin: string | null,
  limit: number,
  signal: AbortSignal,
): AsyncGenerator<Page, void, undefined> {
  for (let cursor = begin; ;) {
    const page = await rest.getContext(roomId, { limit, signal, ...(cursor !== null && { cursor }) });
    yield { cursor, rows: page.data };
    if (!page.hasMore || page.nextCursor === null) return;
    cursor = page.nextCursor;
  }
}

/** The pages from the stored place on. The place moves with the reading, one page behind. */
async function* storedPages(
  rest: ReadContext,
  context: Context,
  roomId: string,
  signal: AbortSignal,
): AsyncGenerator<Page, void, undefined> {
  let [behind, last] = [context.record.cursor, context.record.cursor];
  for await (const page of pagesFrom(rest, roomId, last, PAGE_LIMIT, signal)) {
    const { record } = context;
    if (record.roomId === roomId && record.cursor !== behind) context.record = { ...record, cursor: behind };
    yield page;
    [behind, last] = [last, page.cursor];
  }
}

/**
 * What this agent wrote into a room and what mentions it, from the stored place on. The place stays so far behind that
 * what was written last is always read again.
 */
export async function* readForward(
  rest: ReadContext,
  context: Context,
  roomId: string,
  signal: AbortSignal,
): AsyncGenerator<ChatMessage, void, undefined> {
  for await (const { rows } of storedPages(rest, context, roomId, signal)) yield* rows;
}

export type DeliveryState = 'delivered' | 'processing' | 'processed' | 'failed';
/** `none`: no state on the row; `unknown`: the row was not found. */
export type Look = DeliveryState | 'none' | 'unknown';

/** A look at a delivery that has ended, and at what the peer said since. */
export interface WholeLook {
  readonly look: Look;
  /** The peer's newest text in the room that is for this agent; read only once the delivery has ended. */
  readonly lastReplyId: string | null;
  /** When the peer's turn was over, by the platform's clock; null where it is not, or is not said. */
  readonly endedAt: number | null;
}

/** Where a room's last look found its post, and how many short pages past the last whole reading that is. */
interface Near {
  readonly cursor: string | null;
  readonly pages: number;
}

const STATES = z.enum(['delivered', 'processing', 'processed', 'failed']);

/**
 * What the platform says about the delivery of our own messages. Whether it says anything to an agent is found out at
 * the first reply; where it does not, nobody asks again.
 */
export class DeliveryStates {
  readonly #rest: ReadContext;
  /** By room: a conversation that rests for a while is let go with its context, and goes on here all the same. */
  readonly #near = new BoundedMap<string, Near>(NEAR_ROOMS);
  #readable: boolean | null = null;

  constructor(rest: ReadContext) {
    this.#rest = rest;
  }

  /** null until the first look after a reply. */
  get readable(): boolean | null {
    return this.#readable;
  }

  /**
   * @param replied - the peer has answered, so the platform must know a state if it ever shows one
   * @returns `none` at once when states are known not to be shown
   */
  async look(
    context: Context,
    messageId: string,
    peerId: string,
    replied: boolean,
    signal: AbortSignal,
  ): Promise<Look> {
    return (await this.lookWhole(context, messageId, peerId, replied, signal)).look;
  }

  /** {@link look}, and which of the peer's replies is the last one of a turn that has ended. */
  async lookWhole(
    context: Context,
    messageId: string,
    peerId: string,
    replied: boolean,
    signal: AbortSignal,
  ): Promise<WholeLook> {
    const { roomId } = context.record;
    if (this.#readable === false || roomId === null) return { look: 'none', lastReplyId: null, endedAt: null };
    let post: ChatMessage | null = null;
    let look: Look = 'unknown';
    let lastReplyId: string | null = null;
    let endedAt: number | null = null;
    for await (const row of this.#since(context, roomId, messageId, signal)) {
      if (row.id === messageId) {
        post = row;
        look = this.#stateOf(row, peerId, replied);
        endedAt = look === 'processed' ? endOf(row, peerId) : null;
        if (look !== 'processed' && look !== 'failed') break;
      } else if (post && row.sender_id === peerId && isTextFor(row, post.sender_id)) {
        lastReplyId = row.id;
      }
    }
    return { look, lastReplyId, endedAt };
  }

  /** The peer's last answer to a post that stands in the room, taken already or not; null for none. */
  async lastReply(context: Context, messageId: string, peerId: string, signal: AbortSignal): Promise<string | null> {
    const { roomId } = context.record;
    if (roomId === null) return null;
    let post: ChatMessage | null = null;
    let lastReplyId: string | null = null;
    for await (const row of this.#since(context, roomId, messageId, signal)) {
      if (row.id === messageId) post = row;
      else if (post && row.sender_id === peerId && isTextFor(row, post.sender_id)) lastReplyId = row.id;
    }
    return lastReplyId;
  }

  /**
   * A message of a room and what follows it; nothing when the room does not show it. Posts come one after the other, so
   * the next is looked for where the last one stood, and from the stored place on only when it is not there.
   */
  async *#since(context: Context, roomId: string, messageId: string, signal: AbortSignal): AsyncGenerator<ChatMessage> {
    const near = this.#near.get(roomId);
    if (near && near.pages < SHORT_PAGES) {
      const short = pagesFrom(this.#rest, roomId, near.cursor, SHORT_PAGE_LIMIT, signal);
      const found = yield* this.#fromPost(short, messageId, (cursor) => {
        this.#near.set(roomId, { cursor, pages: near.pages + (cursor === near.cursor ? 0 : 1) });
      });
      if (found) return;
      this.#near.delete(roomId);
    }
    yield* this.#fromPost(storedPages(this.#rest, context, roomId, signal), messageId, (cursor) => {
      this.#near.set(roomId, { cursor, pages: 0 });
    });
  }

  /** @returns whether the post was among the rows */
  async *#fromPost(
    pages: AsyncGenerator<Page>,
    messageId: string,
    onFound: (cursor: string | null) => void,
  ): AsyncGenerator<ChatMessage, boolean> {
    let found = false;
    for await (const { cursor, rows } of pages) {
      const at = found ? 0 : rows.findIndex(({ id }) => id === messageId);
      if (at < 0) continue;
      if (!found) onFound(cursor);
      found = true;
      yield* rows.slice(at);
    }
    return found;
  }

  #stateOf(row: ChatMessage, peerId: string, replied: boolean): Look {
    const metadata = messageMetadataSchema.safeParse(row.metadata ?? {});
    const states = metadata.success ? metadata.data.delivery_status : null;
    if (!states || Object.keys(states).length === 0) {
      if (replied) this.#readable ??= false;
      return 'none';
    }
    this.#readable = true;
    const state = STATES.safeParse(states[peerId]?.status);
    return state.success ? state.data : 'none';
  }
}

function endOf(row: ChatMessage, peerId: string): number | null {
  const metadata = messageMetadataSchema.safeParse(row.metadata ?? {});
  const said = metadata.success ? metadata.data.delivery_status?.[peerId]?.['processed_at'] : null;
  const at = typeof said === 'string' ? Date.parse(said) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}

function isTextFor(row: ChatMessage, agentId: string | null | undefined): boolean {
  const metadata = messageMetadataSchema.safeParse(row.metadata ?? {});
  const mentions = metadata.success ? (metadata.data.mentions ?? []) : [];
  return row.message_type === 'text' && mentions.some(({ id }) => id === agentId);
}

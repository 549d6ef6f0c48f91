import { z } from 'zod';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import { messageMetadataSchema } from '../../../src/platform/wire/objects.js';
import type { BandCalls } from '../band.js';
import type { Context } from './contexts.js';

const PAGE_LIMIT = 100;

/**
 * What this agent wrote into a room and what mentions it, from the stored place on. The place moves with the reading,
 * one page behind, so that what was written last is always read again.
 */
export async function* readForward(
  rest: Pick<BandCalls, 'getContext'>,
  context: Context,
  roomId: string,
  signal: AbortSignal,
): AsyncGenerator<ChatMessage, void, undefined> {
  let { cursor } = context.record;
  let previous = cursor;
  for (;;) {
    const page = await rest.getContext(roomId, { limit: PAGE_LIMIT, signal, ...(cursor !== null && { cursor }) });
    yield* page.data;
    if (!page.hasMore || page.nextCursor === null) return;
    if (context.record.roomId === roomId) context.record = { ...context.record, cursor: previous };
    previous = cursor;
    cursor = page.nextCursor;
  }
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

const STATES = z.enum(['delivered', 'processing', 'processed', 'failed']);

/**
 * What the platform says about the delivery of our own messages. Whether it says anything to an agent is found out at
 * the first reply; where it does not, nobody asks again.
 */
export class DeliveryStates {
  readonly #rest: Pick<BandCalls, 'getContext'>;
  #readable: boolean | null = null;

  constructor(rest: Pick<BandCalls, 'getContext'>) {
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
    for await (const row of readForward(this.#rest, context, roomId, signal)) {
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
    for await (const row of readForward(this.#rest, context, roomId, signal)) {
      if (row.id === messageId) post = row;
      else if (post && row.sender_id === peerId && isTextFor(row, post.sender_id)) lastReplyId = row.id;
    }
    return lastReplyId;
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

import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import { messageMetadataSchema, type ChatMessage } from '../../../src/platform/wire/objects.js';
import type { Clock } from '../../../src/base/clock.js';

/** Waits before each look at the delivery states of a message, counted anew from a reply; the last one repeats. */
export const DELIVERY_LOOKS_MS = [50, 150, 400, 1_000, 2_000, 5_000] as const;

const PAGE_SIZE = 100;
const MAX_PAGES_PER_LOOK = 20;

/**
 * Where in a room's history the bridge has read to: the cursor of the last page that was not the last. Rows of a room
 * come oldest first, so what is new always stands behind it.
 */
export interface HistoryTail {
  cursor: string | undefined;
}

/** What one look found: the states by agent id, or that the platform does not show them. */
export type DeliveryLook =
  | {
      readonly kind: 'states';
      readonly states: ReadonlyMap<string, string>;
      /** Texts behind the message, oldest first, on its page and the next one. */
      readonly texts: readonly ChatMessage[];
    }
  | { readonly kind: 'hidden' }
  | { readonly kind: 'not_found' };

/** Reads the delivery states of one of the agent's own messages, and what was said after it. */
export async function lookAtDelivery(
  rest: BandRest,
  roomId: string,
  messageId: string,
  tail: HistoryTail,
  signal: AbortSignal,
): Promise<DeliveryLook> {
  for (let page = 0; page < MAX_PAGES_PER_LOOK; page += 1) {
    const { data, hasMore, nextCursor } = await rest.getContext(roomId, {
      limit: PAGE_SIZE,
      cursor: tail.cursor,
      signal,
    });
    const at = data.findIndex(({ id }) => id === messageId);
    const row = data[at];
    if (row) {
      const metadata = messageMetadataSchema.safeParse(row.metadata ?? {});
      const marks = metadata.success ? metadata.data.delivery_status : null;
      if (!marks) return { kind: 'hidden' };
      const later = data.slice(at + 1);
      // The message may end its page, and the answer begin the next one.
      if (hasMore && nextCursor !== null) {
        later.push(...(await rest.getContext(roomId, { limit: PAGE_SIZE, cursor: nextCursor, signal })).data);
      }
      return {
        kind: 'states',
        states: new Map(Object.entries(marks).map(([id, mark]) => [id.toLowerCase(), mark.status])),
        texts: later.filter((one) => one.message_type === 'text'),
      };
    }
    if (!hasMore || nextCursor === null) break;
    tail.cursor = nextCursor;
  }
  return { kind: 'not_found' };
}

/** Whether this platform shows delivery states; learnt once, for all sessions. */
export interface DeliverySupport {
  isOff: boolean;
}

export interface DeliveryWatch {
  /** A reply came: look soon again. */
  hurry(): void;
  stop(): void;
}

/**
 * Looks at a message's delivery states while its turn waits. Where a reply has come and no state is shown, the
 * platform hides them, and nobody looks again.
 */
export function watchDelivery(deps: {
  readonly clock: Clock;
  readonly support: DeliverySupport;
  readonly look: () => Promise<DeliveryLook>;
  readonly onStates: (states: ReadonlyMap<string, string>, texts: readonly ChatMessage[]) => Promise<void>;
  readonly onError: (error: unknown) => void;
}): DeliveryWatch {
  const { clock, support } = deps;
  let step = 0;
  let replied = false;
  let stopped = support.isOff;
  let looking = false;
  let cancel: () => void = () => undefined;

  const arm = () => {
    cancel();
    if (stopped || support.isOff || looking) return;
    const wait = DELIVERY_LOOKS_MS[Math.min(step, DELIVERY_LOOKS_MS.length - 1)] ?? 5_000;
    step += 1;
    cancel = clock.after(wait, () => void look());
  };
  const look = async () => {
    looking = true;
    const afterReply = replied;
    try {
      const found = await deps.look();
      if (stopped) return;
      if (found.kind === 'states') await deps.onStates(found.states, found.texts);
      else if (found.kind === 'hidden' && afterReply) support.isOff = true;
    } catch (error) {
      if (!stopped) deps.onError(error);
    } finally {
      looking = false;
      arm();
    }
  };
  arm();
  return {
    hurry() {
      replied = true;
      step = 0;
      arm();
    },
    stop() {
      stopped = true;
      cancel();
    },
  };
}

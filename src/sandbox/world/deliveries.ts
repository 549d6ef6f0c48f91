import type { Change } from './change.js';
import { indexOfSeq, viewOf } from './facts.js';
import { pushToPeople } from './messages.js';
import { invalid, notFound, Problem } from './problem.js';
import { isStopped, type Attempt, type Delivery, type Message, type Room } from './world.js';

/** Attempts kept per message and agent, the latest ones; the frame that shows them has a size limit. */
const KEPT_ATTEMPTS = 20;
const KEPT_ERROR_CHARS = 2_000;

/** How an attempt ends. */
type End = { readonly mark: 'processed' } | { readonly mark: 'failed'; readonly error: string };
/** What an agent says of a message: it begins, or how it went. */
export type Mark = { readonly mark: 'processing' } | End;
export const WORK_STATUSES = ['pending', 'processing', 'processed', 'failed', 'all'] as const;
export type WorkStatus = (typeof WORK_STATUSES)[number];

/** The oldest message that the agent has not processed, whatever its state; null when stopped or when all is done. */
export function nextWork(room: Room, agentId: string): Message | null {
  if (isStopped(room, agentId)) return null;
  const view = viewOf(room, agentId);
  return view.work[view.firstOpen] ?? null;
}

/** Notes that a message has reached an agent, unless more than that is known already. */
export function markDelivered(change: Change, room: Room, message: Message, agentId: string): void {
  if (message.deliveries.has(agentId)) return;
  const at = change.world.timeline.next();
  record(change, room, message, agentId, at, {
    status: 'delivered',
    currentAttempt: 0,
    deliveredAt: at,
    processedAt: null,
    attempts: [],
  });
}

/**
 * Opens or closes an attempt of an agent on a message.
 *
 * @param keepsAttempt - `processing` while an attempt is open changes nothing instead of opening another
 * @returns the number of the attempt, or null when the agent is stopped in the room and nothing was changed
 * @throws {Problem} 404 when the message does not mention the agent, 422 without an open attempt or for a blank error
 */
export function mark(
  change: Change,
  room: Room,
  agentId: string,
  messageId: string,
  to: Mark,
  keepsAttempt = false,
): number | null {
  const message = workMessage(room, agentId, messageId);
  if (isStopped(room, agentId)) return null;
  const at = change.world.timeline.next();
  const before = message.deliveries.get(agentId) ?? null;
  if (keepsAttempt && to.mark === 'processing' && before?.status === 'processing') return before.currentAttempt;
  const after = to.mark === 'processing' ? opened(before, at) : closed(before, at, to);
  record(change, room, message, agentId, at, after);
  return after.currentAttempt;
}

/** An agent's work in a room by status, oldest first. */
export interface WorkList {
  /** How many there are in all. */
  readonly total: number;
  /** Walks the list from a place in the room onwards, or backwards from it. */
  walk(fromSeq: number, descending: boolean): Generator<Message>;
}

/** @param status - null: everything not processed */
export function workList(room: Room, agentId: string, status: WorkStatus | null): WorkList {
  const { work, counts, firstOpen } = viewOf(room, agentId);
  const matches = (message: Message) => isInStatus(message.deliveries.get(agentId), status);
  const skipsDone = status !== 'processed' && status !== 'all';
  return {
    total: totalOf(counts, status),
    *walk(fromSeq, descending) {
      const floor = skipsDone ? firstOpen : 0;
      if (descending) {
        for (let at = indexOfSeq(work, fromSeq + 1) - 1; at >= floor; at -= 1) {
          const message = work[at];
          if (message && matches(message)) yield message;
        }
        return;
      }
      for (let at = Math.max(floor, indexOfSeq(work, fromSeq)); at < work.length; at += 1) {
        const message = work[at];
        if (message && matches(message)) yield message;
      }
    },
  };
}

function isInStatus(delivery: Delivery | undefined, status: WorkStatus | null): boolean {
  const state = delivery?.status ?? 'none';
  switch (status) {
    case null:
      return state !== 'processed';
    case 'all':
      return true;
    case 'pending':
      return state === 'none' || state === 'delivered' || state === 'failed';
    case 'processing':
    case 'processed':
    case 'failed':
      return state === status;
  }
}

function totalOf(counts: ReturnType<typeof viewOf>['counts'], status: WorkStatus | null): number {
  const { none, delivered, processing, processed, failed } = counts;
  switch (status) {
    case null:
      return none + delivered + processing + failed;
    case 'all':
      return none + delivered + processing + processed + failed;
    case 'pending':
      return none + delivered + failed;
    case 'processing':
    case 'processed':
    case 'failed':
      return counts[status];
  }
}

function workMessage(room: Room, agentId: string, messageId: string): Message {
  const message = room.messageById.get(messageId);
  const isWork = message?.mentions?.some(({ id, kind }) => id === agentId && kind === 'mention') ?? false;
  if (!message || !isWork) throw notFound('Message');
  return message;
}

function opened(before: Delivery | null, at: string): Delivery {
  const number = (before?.currentAttempt ?? 0) + 1;
  const attempt: Attempt = { number, status: 'processing', startedAt: at, completedAt: null, error: null };
  return {
    status: 'processing',
    currentAttempt: number,
    deliveredAt: before?.deliveredAt ?? at,
    processedAt: null,
    attempts: [...(before?.attempts ?? []), attempt].slice(-KEPT_ATTEMPTS),
  };
}

function closed(before: Delivery | null, at: string, to: End): Delivery {
  const open = before?.attempts.at(-1);
  if (!before || open?.status !== 'processing') {
    throw new Problem(422, 'validation_error', 'No active processing attempt', {
      '/processing_attempt': ['no active processing attempt'],
    });
  }
  if (to.mark === 'failed' && to.error.trim() === '') throw invalid('/error', "can't be blank");
  const attempt: Attempt = {
    ...open,
    status: to.mark === 'processed' ? 'success' : 'failed',
    completedAt: at,
    error: to.mark === 'failed' ? to.error.slice(0, KEPT_ERROR_CHARS) : null,
  };
  return {
    ...before,
    status: to.mark,
    processedAt: to.mark === 'processed' ? at : null,
    attempts: [...before.attempts.slice(0, -1), attempt],
  };
}

function record(change: Change, room: Room, message: Message, agentId: string, at: string, delivery: Delivery): void {
  change.add({ kind: 'delivery', roomId: room.record.id, messageId: message.id, agentId, delivery, at });
  pushToPeople(change, room, 'message_updated', message, 'all');
}

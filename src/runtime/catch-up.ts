import { isGatewayError } from '../base/errors.js';
import type { ChatMessage } from '../platform/wire/objects.js';
import { retryAcks, retryFailMarks } from './acknowledge.js';
import type { RoomEnvironment, RoomState } from './room-state.js';
import type { PassResult } from './schedule.js';
import { workMessage, type WorkOutcome } from './work-message.js';

const PAGE_ROWS = 100;
/** Bound of a work list that is read in one go. */
const MAX_PAGES = 50;

/**
 * How a pass ended. Beside what the schedule knows: `deferred` (a message keeps its place, newer ones wait) and
 * `void` (a signal or a stop overtook it; whoever sent that has planned what follows).
 */
export type CatchUpResult = PassResult | 'deferred' | 'void';

/**
 * Works off what no push brought: outstanding acknowledgements first, then the platform's oldest open message again
 * and again until it has none.
 */
export async function catchUp(env: RoomEnvironment, room: RoomState): Promise<CatchUpResult> {
  if (!room.paused) {
    if (!(await retryAcks(env, room))) return overtaken(room) ? 'void' : 'failed';
    await retryFailMarks(env, room);
  }
  let worked = false;
  let retrying = false;
  let last: string | null = null;
  while (!room.ended) {
    const probing = room.paused;
    const { controls } = room;
    const head = await readNext(env, room);
    if (probing ? hasEnded(room) || room.controls !== controls : overtaken(room)) return 'void';
    // A message that failed with attempts left is still to come, before anything newer.
    if (head === 'failed') return retrying ? 'deferred' : 'failed';
    if (head === null) return worked ? 'worked' : 'empty';
    // Something to hand out means that a play was missed, or that the stop ended with nobody telling.
    if (probing && !(await retryAcks(env, room))) return 'void';
    if (probing && room.controls !== controls) return 'void';
    const outcome = head.id === last ? 'skipped' : await workMessage(env, room, head, 'work_list');
    last = head.id;
    retrying = outcome === 'retry';
    switch (outcome) {
      case 'done':
        worked = true;
        break;
      case 'retry':
        worked = true;
        last = null;
        break;
      case 'skipped':
      case 'unsure':
        return lookPast(env, room, worked);
      case 'deferred':
        return room.paused ? 'void' : 'deferred';
      case 'unacknowledged':
        return overtaken(room) ? 'void' : 'failed';
      case 'halted':
        return 'void';
    }
  }
  return 'void';
}

/** A stopped process left these in hand; they come before anything else. */
export async function recoverStuck(env: RoomEnvironment, room: RoomState): Promise<CatchUpResult> {
  return workListed(env, room, 'processing');
}

/** The head of the work list cannot run here, so the list itself is read for what can (R-195, W-02). */
async function lookPast(env: RoomEnvironment, room: RoomState, workedBefore: boolean): Promise<CatchUpResult> {
  const result = await workListed(env, room);
  if (result === 'empty') return workedBefore ? 'worked' : 'blocked';
  return result;
}

async function workListed(env: RoomEnvironment, room: RoomState, status?: 'processing'): Promise<CatchUpResult> {
  const probing = room.paused;
  const { controls } = room;
  const listed = await readWorkList(env, room, status);
  let worked = false;
  if (listed === 'failed') return hasEnded(room) ? 'void' : 'failed';
  for (const message of listed) {
    if (hasEnded(room) || (room.paused && (!probing || room.controls !== controls))) return 'void';
    const outcome = await workUntilSettled(env, room, message);
    if (outcome === 'deferred') return room.paused ? 'void' : 'deferred';
    if (outcome === 'unacknowledged') return overtaken(room) ? 'void' : 'failed';
    if (outcome === 'halted') return 'void';
    if (outcome === 'done') worked = true;
  }
  return worked ? 'worked' : 'empty';
}

/** A failure with attempts left is met again at once: newer messages wait for it. */
async function workUntilSettled(env: RoomEnvironment, room: RoomState, message: ChatMessage): Promise<WorkOutcome> {
  for (;;) {
    const outcome = await workMessage(env, room, message, 'work_list');
    if (outcome !== 'retry' || room.ended) return outcome;
  }
}

async function readNext(env: RoomEnvironment, room: RoomState): Promise<ChatMessage | null | 'failed'> {
  try {
    const head = await env.gate.pass(async () => {
      room.reads.throwIfAborted();
      return env.rest.nextMessage(room.roomId, { signal: room.reads });
    });
    env.trouble.succeeded();
    return head;
  } catch (error) {
    noteFailedRead(env, room, error);
    return 'failed';
  }
}

async function readWorkList(
  env: RoomEnvironment,
  room: RoomState,
  status?: 'processing',
): Promise<readonly ChatMessage[] | 'failed'> {
  const byId = new Map<string, ChatMessage>();
  let cursor: string | undefined;
  try {
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const at = cursor;
      const answer = await env.gate.pass(async () => {
        room.reads.throwIfAborted();
        return env.rest.listMessages(room.roomId, {
          limit: PAGE_ROWS,
          ...(status ? { status } : {}),
          ...(at ? { cursor: at } : {}),
          signal: room.reads,
        });
      });
      for (const message of answer.data) if (!byId.has(message.id)) byId.set(message.id, message);
      if (!answer.hasMore || !answer.nextCursor) break;
      cursor = answer.nextCursor;
    }
    return [...byId.values()];
  } catch (error) {
    noteFailedRead(env, room, error);
    return 'failed';
  }
}

function noteFailedRead(env: RoomEnvironment, room: RoomState, error: unknown): void {
  if (room.reads.aborted) return;
  env.trouble.failed(error, room.roomId);
  if (isGatewayError(error, 'BAND_NOT_FOUND')) env.roomNotFound(room.roomId);
}

// Asked anew after every wait, whatever was known before it.
const hasEnded = (room: RoomState) => room.ended;
const overtaken = (room: RoomState) => room.ended || room.paused;

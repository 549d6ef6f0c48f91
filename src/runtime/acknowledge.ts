import { isGatewayError } from '../base/errors.js';
import type { MarkResult } from '../platform/rest/band-rest.js';
import type { RoomEnvironment, RoomState } from './room-state.js';

/**
 * Tells the platform that a message is done. That it is done is recorded before the call, so whatever becomes of the
 * call, only the call is made again.
 *
 * @returns false when the platform does not know yet
 */
export async function acknowledge(env: RoomEnvironment, room: RoomState, messageId: string): Promise<boolean> {
  env.ledger.intendAck(room.roomId, messageId);
  const { controls } = room;
  try {
    const mark = await env.rest.markProcessed(room.roomId, messageId, { signal: env.lastResort });
    return taken(env, room, messageId, mark, controls);
  } catch (error) {
    // Our claim opened the attempt. If none is open any more, a mark got through and its answer did not.
    if (isGatewayError(error, 'BAND_INVALID')) {
      env.ledger.complete(room.roomId, messageId);
      return true;
    }
    env.log.warn({ err: error, roomId: room.roomId, messageId }, 'a message is done but could not be marked yet');
    return false;
  }
}

/**
 * Repeats an acknowledgement whose first call failed.
 *
 * @param state - `handed_out`: the platform holds the message as open; `unknown`: it may have taken the mark
 */
export async function retryAck(
  env: RoomEnvironment,
  room: RoomState,
  messageId: string,
  state: 'handed_out' | 'unknown',
): Promise<boolean> {
  const { rest, ledger, log, lastResort } = env;
  const { roomId, controls } = room;
  try {
    const mark = await rest.markProcessed(roomId, messageId, { signal: lastResort }).catch(async (error: unknown) => {
      if (!isGatewayError(error, 'BAND_INVALID')) throw error;
      if (state === 'unknown') return ACCEPTED;
      // It is open and has no attempt, so it needs one before it can be marked.
      const claim = await rest.markProcessing(roomId, messageId, { signal: lastResort });
      return claim.kind === 'stopped' ? claim : rest.markProcessed(roomId, messageId, { signal: lastResort });
    });
    return taken(env, room, messageId, mark, controls);
  } catch (error) {
    if (lastResort.aborted) return false;
    const left = ledger.ackRetryFailed(roomId, messageId);
    log.warn({ err: error, roomId, messageId, givenUp: left === 'given_up' }, 'a done message could not be marked');
    return false;
  }
}

/** Repeats every outstanding acknowledgement of the room. @returns false when one is still outstanding */
export async function retryAcks(env: RoomEnvironment, room: RoomState): Promise<boolean> {
  for (const messageId of env.ledger.ackPendingOf(room.roomId)) {
    if (room.ended || !(await retryAck(env, room, messageId, 'unknown'))) {
      if (env.ledger.isAckPending(room.roomId, messageId)) return false;
    }
  }
  return true;
}

/** Tells the platform that an attempt failed. @returns false when the platform does not know yet */
export async function markFailed(
  env: RoomEnvironment,
  room: RoomState,
  messageId: string,
  text: string,
): Promise<boolean> {
  const { roomId, controls } = room;
  try {
    const mark = await env.rest.markFailed(roomId, messageId, text, { signal: env.lastResort });
    if (mark.kind === 'stopped') room.stoppedByPlatform(controls);
    return mark.kind === 'accepted';
  } catch (error) {
    env.log.warn({ err: error, roomId, messageId }, 'a failed message could not be marked');
    return isGatewayError(error, 'BAND_INVALID') || isGatewayError(error, 'BAND_NOT_FOUND');
  }
}

/** Repeats the final `failed` marks that could not be made; nothing waits for them. */
export async function retryFailMarks(env: RoomEnvironment, room: RoomState): Promise<void> {
  const { roomId } = room;
  for (const [messageId, text] of env.ledger.failPendingOf(roomId)) {
    if (room.ended) return;
    if (await markFailed(env, room, messageId, text)) env.ledger.failMarked(roomId, messageId);
  }
}

const ACCEPTED: MarkResult = { kind: 'accepted', attempt: 0 };

function taken(env: RoomEnvironment, room: RoomState, messageId: string, mark: MarkResult, controls: number): boolean {
  if (mark.kind === 'stopped') {
    room.stoppedByPlatform(controls);
    return false;
  }
  env.ledger.complete(room.roomId, messageId);
  return true;
}

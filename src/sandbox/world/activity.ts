import type { Change } from './change.js';
import { peopleIn } from './messages.js';
import { formatMicros } from './timeline.js';
import type { Room, World } from './world.js';

/** A report that nobody repeats is worth this long. */
export const ACTIVITY_TTL_MS = 10_000;

/**
 * Takes an agent's word on whether it is working in a room. Only a change is pushed; a repeat extends the time.
 *
 * @returns whether the agent counts as working now: never while it is stopped, by which it can tell
 */
export function reportActivity(change: Change, room: Room, agentId: string, reported: boolean, nowMs: number): boolean {
  const { world } = change;
  const execution = room.executions.get(agentId);
  if (!execution) return false;
  const working = reported && !execution.stopped;
  const before = world.working.get(execution.id);
  if (!working) {
    world.working.delete(execution.id);
    if (before) pushActivity(change, room, agentId, null);
    return false;
  }
  const expiresAtMs = nowMs + ACTIVITY_TTL_MS;
  world.working.set(execution.id, { roomId: room.record.id, agentId, expiresAtMs });
  if (!before) pushActivity(change, room, agentId, expiresAtMs);
  return true;
}

/** Ends every report whose time is over. @returns when to look again, or null when nobody is working */
export function expireActivity(change: Change, nowMs: number): number | null {
  const { world } = change;
  let next: number | null = null;
  for (const [executionId, { roomId, agentId, expiresAtMs }] of world.working) {
    if (expiresAtMs > nowMs) {
      next = Math.min(next ?? Infinity, expiresAtMs);
      continue;
    }
    world.working.delete(executionId);
    const room = world.rooms.get(roomId);
    if (room) pushActivity(change, room, agentId, null);
  }
  return next;
}

export function isWorking(world: World, executionId: string, nowMs: number): boolean {
  return (world.working.get(executionId)?.expiresAtMs ?? 0) > nowMs;
}

function pushActivity(change: Change, room: Room, agentId: string, expiresAtMs: number | null): void {
  change.push({
    to: peopleIn(room),
    topic: `chat_room:${room.record.id}`,
    event: 'agent_activity',
    payload: () => ({
      agent_id: agentId,
      chat_room_id: room.record.id,
      working: expiresAtMs !== null,
      expires_at: expiresAtMs === null ? null : formatMicros(expiresAtMs * 1_000),
    }),
    roomId: room.record.id,
  });
}

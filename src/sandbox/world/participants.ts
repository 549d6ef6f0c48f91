import type { Change } from './change.js';
import { isReachable } from './peers.js';
import { conflict, forbidden, limitReached, notFound, Problem } from './problem.js';
import { enterRoom, roomsTopic } from './rooms.js';
import * as shapes from './shapes.js';
import { principalById, type Member, type Principal, type Role, type Room } from './world.js';

/**
 * Brings somebody into a room.
 *
 * @throws {Problem} 404 unknown, 403 out of the caller's reach or role not his to give, 409 already there,
 *   403 `limit_reached`
 */
export function addParticipant(change: Change, room: Room, caller: Principal, targetId: string, role: Role): Member {
  const { world } = change;
  const target = principalById(world, targetId);
  if (!target) throw notFound('Participant');
  if (room.members.has(targetId)) throw conflict('Already a participant of this room');
  if (!isReachable(world, caller, target)) throw forbidden('You are not allowed to add this participant');
  const own = room.members.get(caller.id)?.role;
  if ((role === 'admin' && own === 'member') || (role === 'owner' && own !== 'owner')) {
    throw forbidden('Your role does not allow you to give this role');
  }
  if (room.members.size >= world.limits.participantsPerRoom) throw limitReached('participants');

  const others = [...room.members.keys()];
  const member = enterRoom(change, room, target, role);
  change.push({
    to: [...others, member.id],
    topic: `room_participants:${room.record.id}`,
    event: 'participant_added',
    payload: () => shapes.participantAdded(world, member),
    roomId: room.record.id,
  });
  return member;
}

/**
 * Takes somebody, or the caller, out of a room.
 *
 * @returns the membership that ended
 * @throws {Problem} 404 not there, 403 not allowed, 403 `cannot_remove_sole_owner`
 */
export function removeParticipant(change: Change, room: Room, caller: Principal, targetId: string): Member {
  const target = room.members.get(targetId);
  const own = room.members.get(caller.id);
  if (!target || !own) throw notFound('Participant');
  refuseRemoval(room, caller, own, target);
  dropFromRoom(change, room, targetId);
  return target;
}

function refuseRemoval(room: Room, caller: Principal, own: Member, target: Member): void {
  if (target.id !== own.id) {
    if (own.role === 'member') throw forbidden('Only the owner or an admin can remove participants');
    if (caller.kind === 'Agent' && target.kind === 'User') throw forbidden('Agents cannot remove people');
    if (own.role === 'admin' && target.role === 'owner') throw forbidden('An admin cannot remove the owner');
  }
  const owners = [...room.members.values()].filter(({ role }) => role === 'owner').length;
  if (target.role === 'owner' && owners === 1) {
    throw new Problem(403, 'cannot_remove_sole_owner', 'The only owner cannot leave the room');
  }
}

/** The removal itself, with what both sides are told; asks nobody for permission. */
export function dropFromRoom(change: Change, room: Room, id: string): void {
  const { world } = change;
  const member = room.members.get(id);
  if (!member) return;
  const at = world.timeline.next();
  const told = shapes.participantRemoved(world, member);
  change.add({ kind: 'member_gone', roomId: room.record.id, id });
  change.push({
    to: [id],
    topic: roomsTopic(member),
    event: 'room_removed',
    payload: () => shapes.roomRemoved(room, at),
  });
  change.push({
    to: [...room.members.keys()],
    topic: `room_participants:${room.record.id}`,
    event: 'participant_removed',
    payload: () => told,
    roomId: room.record.id,
  });
}

import type { Change } from './change.js';
import { charactersIn, isVisible } from './content.js';
import { forbidden, invalid, limitReached, notFound } from './problem.js';
import * as shapes from './shapes.js';
import { startExecution } from './control.js';
import { readableContent } from './mentions.js';
import type { Member, Mention, Principal, Room, RoomRecord, World } from './world.js';

const MAX_TITLE_CHARS = 120;
const AUTOMATIC_TITLE_CHARS = 60;
const UNTITLED = 'New chat';

/** The room, if `callerId` is in it; otherwise its existence is hidden. */
export function roomFor(world: World, callerId: string, roomId: string): Room {
  const room = world.rooms.get(roomId);
  if (!room?.members.has(callerId)) throw notFound('Chat room');
  return room;
}

/** @throws {Problem} 403 when `callerId` is not an owner of the room */
export function requireOwner(room: Room, callerId: string): void {
  if (room.members.get(callerId)?.role !== 'owner') throw forbidden('Only the room owner can do this');
}

/** @throws {Problem} 403 `limit_reached`, 422 for a title that breaks the rules */
export function createRoom(change: Change, creator: Principal, title: string | null, taskId: string | null): Room {
  const { world } = change;
  if (world.rooms.size >= world.limits.rooms) throw limitReached('chat rooms');
  const wanted = title === null || title.trim() === '' ? null : checkedTitle(title);
  const at = world.timeline.next();
  const record: RoomRecord = {
    id: world.newId(),
    title: wanted ?? UNTITLED,
    titleLocked: wanted !== null,
    taskId,
    insertedAt: at,
    updatedAt: at,
  };
  change.add({ kind: 'room', room: record });
  const room = world.rooms.get(record.id);
  if (!room) throw new Error('room was not created');
  enterRoom(change, room, creator, 'owner');
  return room;
}

/** Makes somebody a member and tells them; the other members are the caller's affair. */
export function enterRoom(change: Change, room: Room, who: Principal, role: Member['role']): Member {
  const { world } = change;
  const member: Member = { id: who.id, kind: who.kind, role, insertedAt: world.timeline.next() };
  change.add({ kind: 'member', roomId: room.record.id, member });
  if (who.kind === 'Agent') startExecution(change, room, who.id);
  change.push({
    to: [who.id],
    topic: roomsTopic(who),
    event: 'room_added',
    payload: () => shapes.roomAdded(world, room, member),
  });
  return member;
}

/** The same title again is fine. */
export function renameRoom(change: Change, room: Room, callerId: string, title: string): void {
  requireOwner(room, callerId);
  const checked = checkedTitle(title);
  change.add({
    kind: 'room',
    room: { ...room.record, title: checked, titleLocked: true, updatedAt: change.world.timeline.next() },
  });
}

/** The first text gives a room without a title its name: first line, 60 characters. */
export function titleFromText(change: Change, room: Room, content: string, mentions: readonly Mention[]): void {
  if (room.record.titleLocked || room.record.title !== UNTITLED) return;
  const line =
    readableContent(content, mentions)
      .trim()
      .split(/[\r\n]/, 1)[0] ?? '';
  const title = Array.from(line.replaceAll('\0', '')).slice(0, AUTOMATIC_TITLE_CHARS).join('').trim();
  if (!isVisible(title)) return;
  change.add({ kind: 'room', room: { ...room.record, title } });
}

export function deleteRoom(change: Change, room: Room, callerId: string): void {
  requireOwner(room, callerId);
  const { world } = change;
  const at = world.timeline.next();
  const members = [...room.members.values()];
  change.push({
    to: members.map(({ id }) => id),
    topic: `room_participants:${room.record.id}`,
    event: 'room_deleted',
    payload: () => ({ id: room.record.id }),
  });
  for (const member of members) {
    change.push({
      to: [member.id],
      topic: roomsTopic(member),
      event: 'room_removed',
      payload: () => shapes.roomRemoved(room, at),
    });
  }
  change.add({ kind: 'room_gone', roomId: room.record.id });
}

export function roomsTopic({ kind, id }: { kind: 'User' | 'Agent'; id: string }): string {
  return kind === 'Agent' ? `agent_rooms:${id}` : `user_rooms:${id}`;
}

function checkedTitle(title: string): string {
  const trimmed = title.trim();
  const length = charactersIn(trimmed);
  if (!isVisible(trimmed)) throw invalid('/chat/title', "can't be blank");
  if (length > MAX_TITLE_CHARS) throw invalid('/chat/title', `should be at most ${MAX_TITLE_CHARS} character(s)`);
  if (/[\r\n\0]/.test(trimmed)) throw invalid('/chat/title', 'must not contain line breaks or NUL');
  return trimmed;
}

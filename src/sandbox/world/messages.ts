import type { Change } from './change.js';
import { charactersIn, isVisible, nestingOf } from './content.js';
import { normaliseContent, resolveMentions } from './mentions.js';
import { forbidden, invalid, limitReached } from './problem.js';
import { titleFromText } from './rooms.js';
import * as shapes from './shapes.js';
import {
  isStopped,
  type Agent,
  type Message,
  type MessageRecord,
  type Principal,
  type Room,
  type World,
} from './world.js';

export const EVENT_TYPES = ['tool_call', 'tool_result', 'thought', 'error', 'task', 'attention'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

const MAX_CONTENT_BYTES = 512 * 1024;
/** A frame has to stay under 1 MiB; what surrounds the message in it fits into the difference. */
const MAX_MESSAGE_JSON_BYTES = 1024 * 1024 - 16 * 1024;
const MAX_EVENT_CHARS = 16_384;
const MAX_EVENT_METADATA_BYTES = 65_536;
const MAX_EVENT_METADATA_NESTING = 200;
const ATTENTION_KINDS = new Set<unknown>(['question', 'assumption', 'failure', 'review']);

/**
 * Writes a text message: work for every agent it mentions.
 *
 * @param mentions - entries as posted; resolved and checked here
 * @throws {Problem} 403 while the sender is stopped, 403 `limit_reached`, 422 for content and mentions
 */
export function postMessage(
  change: Change,
  room: Room,
  sender: Principal,
  content: string,
  mentions: readonly unknown[],
): Message {
  const { world } = change;
  refuseStopped(room, sender, 'messages');
  if (!isVisible(content)) throw invalid('/message/content', "can't be blank");
  const bytes = Buffer.byteLength(content);
  if (bytes > MAX_CONTENT_BYTES) throw tooLong();
  const named = resolveMentions(world, room, sender.id, mentions);
  refuseFull(world, room);
  const record = newRecord(world, room, sender, {
    content: normaliseContent(content, named),
    messageType: 'text',
    mentions: named,
    metadata: {},
  });
  // JSON may spell one byte as six, so only long or widely addressed texts need the exact answer.
  if (bytes + named.length * 1_024 > MAX_MESSAGE_JSON_BYTES / 6 && jsonBytes(record) > MAX_MESSAGE_JSON_BYTES) {
    throw tooLong();
  }

  const message = write(change, room, record);
  titleFromText(change, room, content, named);
  pushToPeople(change, room, 'message_created', message, 'none');
  for (const { id, kind } of named) {
    if (kind !== 'mention' || !world.agents.has(id) || isStopped(room, id)) continue;
    change.push({
      to: [id],
      topic: `chat_room:${room.record.id}`,
      event: 'message_created',
      payload: () => shapes.messagePayload(message, 'none'),
      roomId: room.record.id,
      delivers: message,
    });
  }
  return message;
}

/**
 * Writes an event: a row beside the conversation, which only its author and people see.
 *
 * @throws {Problem} 403 while the agent is stopped, 403 `limit_reached`, 422 for content and metadata
 */
export function postEvent(
  change: Change,
  room: Room,
  agent: Agent,
  messageType: EventType,
  content: string,
  metadata: Readonly<Record<string, unknown>> | null,
): Message {
  refuseStopped(room, agent, 'events');
  if (!isVisible(content)) throw invalid('/event/content', "can't be blank");
  if (charactersIn(content) > MAX_EVENT_CHARS) {
    throw invalid('/event/content', `should be at most ${MAX_EVENT_CHARS} character(s)`);
  }
  checkMetadata(messageType, metadata);
  refuseFull(change.world, room);
  const message = write(
    change,
    room,
    newRecord(change.world, room, agent, { content, messageType, mentions: null, metadata: metadata ?? {} }),
  );
  pushToPeople(change, room, 'event_created', message, 'none');
  return message;
}

/** Tells the people in a room about a message; agents hear of messages only by being mentioned. */
export function pushToPeople(
  change: Change,
  room: Room,
  event: string,
  message: Message,
  shown: shapes.ShownDeliveries,
): void {
  const to = peopleIn(room);
  // In a room of agents alone, every row and every mark comes by here for nobody.
  if (to.length === 0) return;
  change.push({
    to,
    topic: `chat_room:${room.record.id}`,
    event,
    payload: () => shapes.messagePayload(message, shown),
    roomId: room.record.id,
  });
}

export function peopleIn(room: Room): string[] {
  const people: string[] = [];
  for (const member of room.members.values()) if (member.kind === 'User') people.push(member.id);
  return people;
}

function newRecord(
  world: World,
  room: Room,
  sender: Principal,
  says: Pick<MessageRecord, 'content' | 'messageType' | 'mentions' | 'metadata'>,
): MessageRecord {
  return {
    id: world.newId(),
    roomId: room.record.id,
    ...says,
    senderId: sender.id,
    senderKind: sender.kind,
    senderName: sender.name,
    insertedAt: world.timeline.next(),
  };
}

function write(change: Change, room: Room, record: MessageRecord): Message {
  change.add({ kind: 'message', message: record });
  const message = room.messageById.get(record.id);
  if (!message) throw new Error('message was not written');
  return message;
}

/** The sentence is part of the protocol: clients know the state by it. */
function refuseStopped(room: Room, sender: Principal, what: 'messages' | 'events'): void {
  if (isStopped(room, sender.id)) throw forbidden(`Agent execution is stopped; cannot post ${what}`);
}

function refuseFull(world: World, room: Room): void {
  if (room.messages.length >= world.limits.messagesPerRoom) throw limitReached('messages in this room');
  if (world.messageCount >= world.limits.messages) throw limitReached('messages');
}

function checkMetadata(messageType: EventType, metadata: Readonly<Record<string, unknown>> | null): void {
  if (metadata !== null) {
    if (nestingOf(metadata, MAX_EVENT_METADATA_NESTING) > MAX_EVENT_METADATA_NESTING) {
      throw invalid('/event/metadata', `must not nest deeper than ${MAX_EVENT_METADATA_NESTING} levels`);
    }
    if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_EVENT_METADATA_BYTES) {
      throw invalid('/event/metadata', `should be at most ${MAX_EVENT_METADATA_BYTES} byte(s)`);
    }
  }
  if (messageType === 'attention' && !ATTENTION_KINDS.has(metadata?.['kind'])) {
    throw invalid('/event/metadata/kind', 'is invalid');
  }
}

const jsonBytes = ({ content, mentions }: MessageRecord) => Buffer.byteLength(JSON.stringify([content, mentions]));

const tooLong = () => invalid('/message/content', 'is too long');

import type {
  Agent,
  Contact,
  ContactRequest,
  Delivery,
  Execution,
  Member,
  Message,
  Principal,
  Room,
  User,
  World,
} from './world.js';
import { principalById } from './world.js';

/** Objects of the world in the wire's spelling (Band API: objects, message metadata, socket payloads). */

export const agentMe = (agent: Agent) => ({
  id: agent.id,
  name: agent.name,
  handle: agent.handle,
  owner_uuid: agent.ownerId,
  description: agent.description,
  listed_in_directory: agent.global,
  tags: agent.tags,
  feature_flags: { ff_file_transfer: false, ff_room_tasks: false },
  inserted_at: agent.insertedAt,
  updated_at: agent.updatedAt,
});

export const myAgent = (agent: Agent) => ({
  id: agent.id,
  name: agent.name,
  description: agent.description,
  is_external: true,
  slug: agent.handle.slice(agent.handle.indexOf('/') + 1),
  listed_in_directory: agent.global,
  registry_access: true,
  shared_with_organization: agent.global,
  model_type: null,
  system_prompt_id: null,
  tags: agent.tags,
  inserted_at: agent.insertedAt,
  updated_at: agent.updatedAt,
});

export function profile(user: User) {
  const [first = '', ...rest] = user.name.split(' ');
  return {
    id: user.id,
    email: user.email,
    handle: user.handle,
    role: 'user',
    first_name: first,
    last_name: rest.join(' '),
    listed_in_directory: false,
  };
}

export const peer = (
  who: Principal,
  source: 'registry' | 'contact',
  { isContact, online }: { readonly isContact: boolean; readonly online: boolean },
) => ({
  id: who.id,
  name: who.name,
  handle: who.handle,
  type: who.kind,
  description: who.kind === 'Agent' ? who.description : null,
  is_contact: isContact,
  is_external: who.kind === 'Agent' ? true : null,
  listed_in_directory: who.kind === 'Agent' ? who.global : false,
  online,
  source,
  tags: who.kind === 'Agent' ? who.tags : null,
});

export const chatRoom = ({ record }: Room) => ({
  id: record.id,
  title: record.title,
  task_id: record.taskId,
  inserted_at: record.insertedAt,
  updated_at: record.updatedAt,
});

export const roomType = (room: Room) => (room.record.taskId === null ? 'group' : 'task');

export const meChatRoom = (room: Room) => ({
  ...chatRoom(room),
  type: roomType(room),
  status: 'active',
  last_message_at: room.lastMessageAt,
});

export function participant(world: World, member: Member, status = 'active') {
  const who = principalById(world, member.id);
  return {
    id: member.id,
    name: who?.name ?? '',
    type: member.kind,
    role: member.role,
    status,
    handle: who?.handle ?? null,
    online: world.isOnline(member.id),
  };
}

export function participantDetails(world: World, member: Member) {
  const who = principalById(world, member.id);
  const isAgent = who?.kind === 'Agent';
  return {
    ...participant(world, member),
    description: isAgent ? who.description : null,
    is_external: isAgent ? true : null,
  };
}

export function deliveryStatus(delivery: Delivery) {
  return {
    status: delivery.status,
    current_attempt: delivery.currentAttempt,
    delivered_at: delivery.deliveredAt,
    processed_at: delivery.processedAt,
    attempts: delivery.attempts.map((attempt) => ({
      attempt_number: attempt.number,
      status: attempt.status,
      started_at: attempt.startedAt,
      ...(attempt.completedAt === null ? {} : { completed_at: attempt.completedAt }),
      ...(attempt.error === null ? {} : { error: attempt.error }),
    })),
  };
}

/** Whose delivery states a reader is shown. */
export type ShownDeliveries = 'all' | 'none' | { readonly only: string };

export function messageMetadata(message: Message, shown: ShownDeliveries): Record<string, unknown> {
  if (message.mentions === null) return { ...message.metadata };
  const deliveries: Record<string, unknown> = {};
  if (shown !== 'none') {
    for (const [agentId, delivery] of message.deliveries) {
      if (shown === 'all' || shown.only === agentId) deliveries[agentId] = deliveryStatus(delivery);
    }
  }
  return {
    mentions: message.mentions,
    status: 'sent',
    ...(shown === 'none' ? {} : { delivery_status: deliveries }),
  };
}

export const chatMessage = (message: Message, shown: ShownDeliveries) => ({
  id: message.id,
  content: message.content,
  message_type: message.messageType,
  sender_id: message.senderId,
  sender_type: message.senderKind,
  sender_name: message.senderName,
  chat_room_id: message.roomId,
  metadata: messageMetadata(message, shown),
  inserted_at: message.insertedAt,
  updated_at: message.updatedAt,
});

/** The payload of `message_created`, `message_updated` and `event_created`. */
export const messagePayload = (message: Message, shown: ShownDeliveries) => ({
  thread_id: null,
  ...chatMessage(message, shown),
});

export function roomAdded(world: World, room: Room, member: Member) {
  const ownerId = [...room.members.values()].find(({ role }) => role === 'owner')?.id;
  const owner = ownerId === undefined ? undefined : principalById(world, ownerId);
  return {
    ...chatRoom(room),
    owner: owner ? { id: owner.id, name: owner.name, type: owner.kind } : null,
    status: 'active',
    type: roomType(room),
    participant_role: member.role,
  };
}

export const roomRemoved = (room: Room, removedAt: string) => ({
  ...chatRoom(room),
  status: 'active',
  type: roomType(room),
  removed_at: removedAt,
});

export function participantAdded(world: World, member: Member) {
  const details = participantDetails(world, member);
  return { ...details, is_remote: details.is_external };
}

export function participantRemoved(world: World, member: Member) {
  const { id, name, type, handle } = participant(world, member);
  return { id, name, type, handle };
}

export const execution = (record: Execution, working: boolean) => ({
  id: record.id,
  agent_id: record.agentId,
  chat_room_id: record.roomId,
  status: record.stopped ? 'stopped' : 'active',
  working,
  inserted_at: record.insertedAt,
  updated_at: record.updatedAt,
});

const reference = (who: Principal | undefined) => (who ? { id: who.id, handle: who.handle, name: who.name } : null);

export function agentContact(world: World, contact: Contact) {
  const who = principalById(world, contact.contactId);
  const isAgent = who?.kind === 'Agent';
  return {
    id: contact.id,
    handle: who?.handle ?? '',
    name: who?.name ?? null,
    type: who?.kind ?? 'User',
    description: isAgent ? who.description : null,
    is_external: isAgent ? true : null,
    listed_in_directory: isAgent ? who.global : null,
    tags: isAgent ? who.tags : null,
    online: world.isOnline(contact.contactId),
    inserted_at: contact.insertedAt,
  };
}

export function myContact(world: World, contact: Contact) {
  const who = principalById(world, contact.contactId);
  return {
    id: contact.id,
    contact_id: contact.contactId,
    contact_type: who?.kind ?? 'User',
    status: 'active',
    source: 'request',
    online: world.isOnline(contact.contactId),
    inserted_at: contact.insertedAt,
    user: {
      id: contact.contactId,
      handle: who?.handle ?? null,
      name: who?.name ?? null,
      ...(who?.kind === 'User' ? { email: who.email } : {}),
      listed_in_directory: who?.kind === 'Agent' ? who.global : null,
      tags: who?.kind === 'Agent' ? who.tags : null,
    },
  };
}

export function receivedRequest(world: World, request: ContactRequest) {
  const from = principalById(world, request.requesterId);
  return {
    id: request.id,
    from_handle: from?.handle ?? null,
    from_name: from?.name ?? null,
    message: request.message,
    status: request.status,
    inserted_at: request.insertedAt,
  };
}

export function sentRequest(world: World, request: ContactRequest) {
  const to = principalById(world, request.recipientId);
  return {
    id: request.id,
    to_handle: to?.handle ?? null,
    to_name: to?.name ?? null,
    message: request.message,
    status: request.status,
    inserted_at: request.insertedAt,
  };
}

export function contactRequest(world: World, request: ContactRequest) {
  const requester = principalById(world, request.requesterId);
  const recipient = principalById(world, request.recipientId);
  return {
    id: request.id,
    status: request.status,
    message: request.message,
    requester_id: request.requesterId,
    requester_type: requester?.kind ?? 'User',
    requester: reference(requester),
    recipient_id: request.recipientId,
    recipient_type: recipient?.kind ?? 'User',
    recipient: reference(recipient),
    responded_at: request.respondedAt,
    inserted_at: request.insertedAt,
  };
}

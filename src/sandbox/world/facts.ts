import type {
  Agent,
  AgentView,
  Contact,
  ContactRequest,
  Delivery,
  Execution,
  Member,
  Message,
  MessageRecord,
  Room,
  RoomRecord,
  User,
  World,
} from './world.js';

/** One thing that became true. Facts in order are the whole history: replayed, they make the same world. */
export type Fact =
  | { readonly kind: 'user'; readonly user: User }
  | { readonly kind: 'agent'; readonly agent: Agent }
  | { readonly kind: 'agent_gone'; readonly agentId: string }
  | { readonly kind: 'room'; readonly room: RoomRecord }
  | { readonly kind: 'room_gone'; readonly roomId: string }
  | { readonly kind: 'member'; readonly roomId: string; readonly member: Member }
  | { readonly kind: 'member_gone'; readonly roomId: string; readonly id: string }
  | { readonly kind: 'execution'; readonly execution: Execution }
  | { readonly kind: 'message'; readonly message: MessageRecord }
  | {
      readonly kind: 'delivery';
      readonly roomId: string;
      readonly messageId: string;
      readonly agentId: string;
      readonly delivery: Delivery;
      readonly at: string;
    }
  | { readonly kind: 'request'; readonly request: ContactRequest }
  | { readonly kind: 'contact'; readonly contact: Contact }
  | { readonly kind: 'contact_gone'; readonly holderId: string; readonly contactId: string };

/** Makes a fact true. Facts about rooms or messages that do not exist are ignored. */
export function apply(world: World, fact: Fact): void {
  switch (fact.kind) {
    case 'user':
      world.users.set(fact.user.id, fact.user);
      index(world, fact.user);
      return;
    case 'agent':
      world.agents.set(fact.agent.id, fact.agent);
      index(world, fact.agent);
      setOf(world.agentsOf, fact.agent.ownerId).add(fact.agent.id);
      return;
    case 'agent_gone':
      forgetAgent(world, fact.agentId);
      return;
    case 'room':
      applyRoom(world, fact.room);
      return;
    case 'room_gone':
      forgetRoom(world, fact.roomId);
      return;
    case 'member': {
      const room = world.rooms.get(fact.roomId);
      if (!room) return;
      room.members.set(fact.member.id, fact.member);
      setOf(world.roomsOf, fact.member.id).add(room);
      return;
    }
    case 'member_gone': {
      const room = world.rooms.get(fact.roomId);
      if (!room) return;
      leave(world, room, fact.id);
      return;
    }
    case 'execution':
      world.rooms.get(fact.execution.roomId)?.executions.set(fact.execution.agentId, fact.execution);
      return;
    case 'message':
      applyMessage(world, fact.message);
      return;
    case 'delivery': {
      const room = world.rooms.get(fact.roomId);
      const message = room?.messageById.get(fact.messageId);
      if (!room || !message?.mentions) return;
      applyDelivery(room, message, fact.agentId, fact.delivery);
      message.updatedAt = fact.at;
      return;
    }
    case 'request':
      world.requests.set(fact.request.id, fact.request);
      return;
    case 'contact':
      mapOf(world.contacts, fact.contact.holderId).set(fact.contact.contactId, fact.contact);
      return;
    case 'contact_gone':
      world.contacts.get(fact.holderId)?.delete(fact.contactId);
      return;
  }
}

/** The latest moment a fact speaks of, so that a replayed world goes on after it. */
export function momentOf(fact: Fact): string | null {
  switch (fact.kind) {
    case 'user':
      return fact.user.updatedAt;
    case 'agent':
      return fact.agent.updatedAt;
    case 'room':
      return fact.room.updatedAt;
    case 'member':
      return fact.member.insertedAt;
    case 'execution':
      return fact.execution.updatedAt;
    case 'message':
      return fact.message.insertedAt;
    case 'delivery':
      return fact.at;
    case 'request':
      return fact.request.respondedAt ?? fact.request.insertedAt;
    case 'contact':
      return fact.contact.insertedAt;
    case 'agent_gone':
    case 'room_gone':
    case 'member_gone':
    case 'contact_gone':
      return null;
  }
}

/** The shortest history that makes the same world: what a snapshot holds. */
export function* factsOf(world: World): Generator<Fact> {
  for (const user of world.users.values()) yield { kind: 'user', user };
  for (const agent of world.agents.values()) yield { kind: 'agent', agent };
  for (const room of world.rooms.values()) yield { kind: 'room', room: room.record };
  yield* membersOf(world);
  for (const room of world.rooms.values()) {
    const roomId = room.record.id;
    for (const execution of room.executions.values()) yield { kind: 'execution', execution };
    for (const message of room.messages) {
      yield { kind: 'message', message: recordOf(message) };
      for (const [agentId, delivery] of message.deliveries) {
        yield { kind: 'delivery', roomId, messageId: message.id, agentId, delivery, at: message.updatedAt };
      }
    }
    // Replaying messages moved the room's own moment.
    yield { kind: 'room', room: room.record };
  }
  for (const request of world.requests.values()) yield { kind: 'request', request };
  for (const contacts of world.contacts.values()) {
    for (const contact of contacts.values()) yield { kind: 'contact', contact };
  }
}

/** In the order of joining, over all rooms: it is the order in which everybody's rooms are listed. */
function membersOf(world: World): Fact[] {
  const facts = [...world.rooms.values()].flatMap((room) =>
    [...room.members.values()].map((member) => ({ kind: 'member' as const, roomId: room.record.id, member })),
  );
  return facts.sort((a, b) => (a.member.insertedAt < b.member.insertedAt ? -1 : 1));
}

const newView = (): AgentView => ({
  work: [],
  context: [],
  firstOpen: 0,
  counts: { none: 0, delivered: 0, processing: 0, processed: 0, failed: 0 },
});
const EMPTY_VIEW = newView();

/** What an agent may see of a room. */
export function viewOf(room: Room, agentId: string): AgentView {
  return room.views.get(agentId) ?? EMPTY_VIEW;
}

/** Index of the first message of a list with `seq` or more. */
export function indexOfSeq(messages: readonly Message[], seq: number): number {
  let low = 0;
  let high = messages.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((messages[middle]?.seq ?? Infinity) < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

function index(world: World, principal: User | Agent): void {
  world.byKey.set(principal.apiKey, principal);
  world.byHandle.set(principal.handle.toLowerCase(), principal);
}

function forgetAgent(world: World, agentId: string): void {
  const agent = world.agents.get(agentId);
  if (!agent) return;
  world.agents.delete(agentId);
  world.byKey.delete(agent.apiKey);
  world.byHandle.delete(agent.handle.toLowerCase());
  world.agentsOf.get(agent.ownerId)?.delete(agentId);
  world.roomsOf.delete(agentId);
  world.contacts.delete(agentId);
}

function applyRoom(world: World, record: RoomRecord): void {
  const room = world.rooms.get(record.id);
  if (room) {
    room.record = record;
    return;
  }
  world.rooms.set(record.id, {
    record,
    lastMessageAt: null,
    members: new Map(),
    executions: new Map(),
    messages: [],
    messageById: new Map(),
    countByType: new Map(),
    views: new Map(),
  });
}

function forgetRoom(world: World, roomId: string): void {
  const room = world.rooms.get(roomId);
  if (!room) return;
  for (const id of [...room.members.keys()]) leave(world, room, id);
  world.rooms.delete(roomId);
  world.messageCount -= room.messages.length;
}

function leave(world: World, room: Room, id: string): void {
  room.members.delete(id);
  world.roomsOf.get(id)?.delete(room);
  const execution = room.executions.get(id);
  if (execution) world.working.delete(execution.id);
  room.executions.delete(id);
}

function ownView(room: Room, agentId: string): AgentView {
  let view = room.views.get(agentId);
  if (!view) room.views.set(agentId, (view = newView()));
  return view;
}

/** Rows that mention nobody are delivered to nobody; there are as many of them as of others. */
const NO_DELIVERIES = new Map<string, Delivery>();

function applyMessage(world: World, record: MessageRecord): void {
  const room = world.rooms.get(record.roomId);
  if (!room || room.messageById.has(record.id)) return;
  const message: Message = {
    seq: room.messages.length,
    updatedAt: record.insertedAt,
    deliveries: record.mentions ? new Map<string, Delivery>() : NO_DELIVERIES,
    ...record,
  };
  room.messages.push(message);
  room.messageById.set(message.id, message);
  room.countByType.set(message.messageType, (room.countByType.get(message.messageType) ?? 0) + 1);
  room.lastMessageAt = message.insertedAt;
  room.record = { ...room.record, updatedAt: message.insertedAt };
  world.messageCount += 1;

  if (message.senderKind === 'Agent') ownView(room, message.senderId).context.push(message);
  for (const mention of message.mentions ?? []) {
    if (mention.kind !== 'mention' || !world.agents.has(mention.id)) continue;
    const view = ownView(room, mention.id);
    view.work.push(message);
    view.context.push(message);
    view.counts.none += 1;
  }
}

function applyDelivery(room: Room, message: Message, agentId: string, delivery: Delivery): void {
  const view = ownView(room, agentId);
  view.counts[message.deliveries.get(agentId)?.status ?? 'none'] -= 1;
  view.counts[delivery.status] += 1;
  message.deliveries.set(agentId, delivery);
  if (delivery.status !== 'processed') {
    const first = view.work[view.firstOpen];
    if (!first || message.seq < first.seq) view.firstOpen = indexOfSeq(view.work, message.seq);
    return;
  }
  while (view.work[view.firstOpen]?.deliveries.get(agentId)?.status === 'processed') view.firstOpen += 1;
}

function recordOf(message: Message): MessageRecord {
  const { id, roomId, content, messageType, senderId, senderKind, senderName, mentions, metadata, insertedAt } =
    message;
  return { id, roomId, content, messageType, senderId, senderKind, senderName, mentions, metadata, insertedAt };
}

function setOf<K, V>(map: Map<K, Set<V>>, key: K): Set<V> {
  let set = map.get(key);
  if (!set) map.set(key, (set = new Set()));
  return set;
}

function mapOf<K, L, V>(map: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let inner = map.get(key);
  if (!inner) map.set(key, (inner = new Map<L, V>()));
  return inner;
}

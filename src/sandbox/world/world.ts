import type { NewId } from '../../base/ids.js';
import type { SandboxLimits } from '../options.js';
import type { Timeline } from './timeline.js';

export interface User {
  readonly kind: 'User';
  readonly id: string;
  readonly handle: string;
  readonly name: string;
  readonly email: string;
  readonly apiKey: string;
  readonly insertedAt: string;
  readonly updatedAt: string;
}

export interface Agent {
  readonly kind: 'Agent';
  readonly id: string;
  readonly ownerId: string;
  readonly handle: string;
  readonly name: string;
  readonly description: string;
  readonly apiKey: string;
  readonly global: boolean;
  readonly tags: readonly string[];
  readonly insertedAt: string;
  readonly updatedAt: string;
}

export type Principal = User | Agent;
export type Role = 'owner' | 'admin' | 'member';

export interface Member {
  readonly id: string;
  readonly kind: 'User' | 'Agent';
  readonly role: Role;
  readonly insertedAt: string;
}

/** One agent in one room, as far as control signals and the working indicator go. */
export interface Execution {
  readonly id: string;
  readonly agentId: string;
  readonly roomId: string;
  readonly stopped: boolean;
  readonly insertedAt: string;
  readonly updatedAt: string;
}

export interface Mention {
  readonly id: string;
  readonly handle: string;
  readonly name: string;
  readonly kind: 'mention' | 'reference';
}

export type DeliveryStatus = 'delivered' | 'processing' | 'processed' | 'failed';

export interface Attempt {
  readonly number: number;
  readonly status: 'processing' | 'success' | 'failed';
  readonly startedAt: string;
  readonly completedAt: string | null;
  readonly error: string | null;
}

/** What became of a message for one agent that it mentions. */
export interface Delivery {
  readonly status: DeliveryStatus;
  /** Number of the latest attempt; 0 before the first. */
  readonly currentAttempt: number;
  readonly deliveredAt: string | null;
  readonly processedAt: string | null;
  readonly attempts: readonly Attempt[];
}

/** What a message says; the same rows carry text and events. */
export interface MessageRecord {
  readonly id: string;
  readonly roomId: string;
  readonly content: string;
  readonly messageType: string;
  readonly senderId: string;
  readonly senderKind: 'User' | 'Agent';
  readonly senderName: string;
  /** Null on events. */
  readonly mentions: readonly Mention[] | null;
  /** What the author of an event posted with it. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly insertedAt: string;
}

export interface Message extends MessageRecord {
  /** Place in the room, from 0. */
  readonly seq: number;
  updatedAt: string;
  readonly deliveries: Map<string, Delivery>;
}

/** What one agent may see of a room, kept ready so that no read walks through all messages. */
export interface AgentView {
  /** Text that mentions the agent, oldest first. */
  readonly work: Message[];
  /** The work, and all that the agent wrote, oldest first. */
  readonly context: Message[];
  /** Everything in `work` before this index is processed. */
  firstOpen: number;
  /** How many messages of `work` are in which state; `none` counts those without an entry. */
  readonly counts: Record<DeliveryStatus | 'none', number>;
}

export interface RoomRecord {
  readonly id: string;
  readonly title: string;
  /** The title was chosen by somebody, so the first message does not replace it. */
  readonly titleLocked: boolean;
  readonly taskId: string | null;
  readonly insertedAt: string;
  readonly updatedAt: string;
}

export interface Room {
  record: RoomRecord;
  lastMessageAt: string | null;
  readonly members: Map<string, Member>;
  /** By agent id. */
  readonly executions: Map<string, Execution>;
  readonly messages: Message[];
  readonly messageById: Map<string, Message>;
  readonly countByType: Map<string, number>;
  /** By agent id. Kept when an agent leaves: what it may read is decided at the door. */
  readonly views: Map<string, AgentView>;
}

export interface ContactRequest {
  readonly id: string;
  readonly requesterId: string;
  readonly recipientId: string;
  readonly message: string | null;
  readonly status: 'pending' | 'approved' | 'rejected' | 'cancelled';
  readonly insertedAt: string;
  readonly respondedAt: string | null;
}

/** One side of a contact: `holderId` has `contactId` in its list. */
export interface Contact {
  readonly id: string;
  readonly holderId: string;
  readonly contactId: string;
  readonly insertedAt: string;
}

/** Everything the platform knows. Only `apply` in facts.ts writes to it. */
export interface World {
  readonly users: Map<string, User>;
  readonly agents: Map<string, Agent>;
  readonly byKey: Map<string, Principal>;
  readonly byHandle: Map<string, Principal>;
  readonly agentsOf: Map<string, Set<string>>;
  readonly rooms: Map<string, Room>;
  /** The rooms a user or agent is in, in the order of joining. */
  readonly roomsOf: Map<string, Set<Room>>;
  readonly requests: Map<string, ContactRequest>;
  /** By holder id, then by contact id. */
  readonly contacts: Map<string, Map<string, Contact>>;
  /** Execution id → until when it counts as working. Not kept across restarts. */
  readonly working: Map<string, { readonly roomId: string; readonly agentId: string; expiresAtMs: number }>;
  messageCount: number;
  readonly timeline: Timeline;
  readonly newId: NewId;
  readonly limits: SandboxLimits;
  /** Whether a user or agent has a socket open: the one thing that the doors know and the world does not. */
  readonly isOnline: (id: string) => boolean;
}

/** A message with its delivery takes about 2.4 KB of memory, so the sum of them stays well inside a default heap. */
export const DEFAULT_LIMITS: SandboxLimits = {
  users: 10_000,
  agents: 10_000,
  rooms: 200_000,
  participantsPerRoom: 1_000,
  messagesPerRoom: 200_000,
  messages: 500_000,
  contactRequests: 20_000,
};

export interface WorldDeps {
  readonly timeline: Timeline;
  readonly newId: NewId;
  readonly isOnline: (id: string) => boolean;
  readonly limits?: Partial<SandboxLimits> | undefined;
}

export function createWorld({ timeline, newId, isOnline, limits = {} }: WorldDeps): World {
  return {
    users: new Map(),
    agents: new Map(),
    byKey: new Map(),
    byHandle: new Map(),
    agentsOf: new Map(),
    rooms: new Map(),
    roomsOf: new Map(),
    requests: new Map(),
    contacts: new Map(),
    working: new Map(),
    messageCount: 0,
    timeline,
    newId,
    limits: { ...DEFAULT_LIMITS, ...limits },
    isOnline,
  };
}

/** Forgets everybody and everything. */
export function emptyWorld(world: World): void {
  for (const part of Object.values(world)) if (part instanceof Map) part.clear();
  world.messageCount = 0;
}

export function principalById(world: World, id: string): Principal | undefined {
  return world.users.get(id) ?? world.agents.get(id);
}

/** @param handle - in any case, with or without the leading `@` */
export function principalByHandle(world: World, handle: string): Principal | undefined {
  return world.byHandle.get(handle.trim().replace(/^@/, '').toLowerCase());
}

export function isStopped(room: Room, agentId: string): boolean {
  return room.executions.get(agentId)?.stopped ?? false;
}

import type { CursorPage, Page, ParticipantRole, WireRecord } from '../platform/rest/band-rest.js';
import type { ChatMessage, EventCreated, MessageSent, Peer } from '../platform/wire/objects.js';
import type { Capability } from './features.js';
import type { Participant } from './participants.js';
import type { Turn } from './turn.js';

export type { CursorPage, Page, ParticipantRole, WireRecord } from '../platform/rest/band-rest.js';
export type { ChatMessage, EventCreated, MessageSent, Peer } from '../platform/wire/objects.js';

/** Whom a message is for: a handle, name or id to look up in the room, or an id to pass on as it is. */
export type Mention = string | { readonly id: string; readonly handle?: string };

/** Kinds of events that an agent writes beside the conversation. */
export type EventType = 'thought' | 'error' | 'task' | 'tool_call' | 'tool_result';

/** Why a turn could not be finished, as the room gets to see it. Secrets are hidden before it is posted. */
export interface AgentFailure {
  /** Who failed, e.g. `openai`; `band-runtime` is this runtime itself. */
  readonly provider: string;
  readonly message: string;
  readonly code?: string | null;
  /** Anything that can be written as JSON; what cannot is dropped. */
  readonly detail?: unknown;
}

export type ParticipantChange =
  | { readonly status: 'already_in_room'; readonly id: string; readonly name: string | null }
  | { readonly status: 'added'; readonly id: string; readonly name: string | null; readonly role: ParticipantRole }
  | { readonly status: 'removed'; readonly id: string; readonly name: string | null };

/** What came of a tool call. */
export interface ToolCallOutcome {
  /** The tool's result; on failure the error text, so that a model can read it. */
  readonly value: unknown;
  readonly ok: boolean;
  readonly errorMessage: string | null;
}

export type JsonSchema = Record<string, unknown>;

export interface OpenAiToolSchema {
  readonly type: 'function';
  readonly function: { readonly name: string; readonly description: string; readonly parameters: JsonSchema };
}

export interface AnthropicToolSchema {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
}

export interface ToolSchemaByFormat {
  readonly openai: OpenAiToolSchema;
  readonly anthropic: AnthropicToolSchema;
}
export type ToolFormat = keyof ToolSchemaByFormat;
export type ToolSchema = ToolSchemaByFormat[ToolFormat];

export interface ContactPages {
  /** From 1; default 1. */
  readonly page?: number;
  /** 1 to 100; default 50. */
  readonly pageSize?: number;
}

export type SentStatus = 'pending' | 'approved' | 'rejected' | 'cancelled' | 'all';
export type ContactAction = 'approve' | 'reject' | 'cancel';

/** The agent's contacts, independent of any room. Answers keep the wire's spelling. */
export interface ContactTools {
  listContacts(pages?: ContactPages): Promise<Page<WireRecord>>;
  addContact(handle: string, message?: string | null): Promise<WireRecord>;
  /** @throws {ValueError} when neither is given */
  removeContact(contact: { readonly handle?: string | null; readonly contactId?: string | null }): Promise<WireRecord>;
  listContactRequests(
    options?: ContactPages & { readonly sentStatus?: SentStatus },
  ): Promise<{ readonly data: WireRecord; readonly metadata: WireRecord }>;
  /** @throws {ValueError} when neither is given */
  respondContactRequest(
    action: ContactAction,
    request: { readonly handle?: string | null; readonly requestId?: string | null },
  ): Promise<WireRecord>;
}

export type MemoryType = 'iconic' | 'echoic' | 'haptic' | 'episodic' | 'semantic' | 'procedural';

export interface MemoryFilters {
  readonly subjectId?: string;
  readonly scope?: 'subject' | 'organization' | 'all';
  readonly system?: 'sensory' | 'working' | 'long_term';
  readonly type?: MemoryType;
  readonly segment?: 'user' | 'agent' | 'tool' | 'guideline';
  readonly contentQuery?: string;
  /** 1 to 50; default 50. */
  readonly pageSize?: number;
  readonly status?: 'active' | 'superseded' | 'archived' | 'all';
}

export interface NewMemory {
  readonly content: string;
  readonly system: 'sensory' | 'working' | 'long_term';
  /** Sensory: iconic, echoic, haptic. Working and long-term: episodic, semantic, procedural. */
  readonly type: MemoryType;
  readonly segment: 'user' | 'agent' | 'tool' | 'guideline';
  readonly thought: string;
  readonly scope: 'subject' | 'organization';
  /** Required with scope `subject`. */
  readonly subjectId?: string | null;
  readonly metadata?: Record<string, unknown> | null;
}

/**
 * All that an adapter can do in the message's room, one instance per turn. What the platform answers 401 or 403
 * surfaces as ApiError with that status; memory calls answer 403 without the plan for them.
 *
 * After the turn ended every method that would change something rejects with a BandToolError and changes nothing
 * . A post that the platform refuses because the agent is stopped in the room aborts the cycle and rejects
 * with RoomExecutionStoppedError.
 */
export interface AgentToolsProtocol extends ContactTools {
  readonly roomId: string;
  readonly agentId: string | null;
  /** A snapshot; this agent included. */
  readonly participants: readonly Participant[];
  /** True in the room that collects contact events. */
  readonly isHubRoom: boolean;
  readonly turn: Turn;

  /** Everyone with a handle except this agent, with a leading `@`. */
  availableMentionHandles(): string[];

  /**
   * The answer. Text without a visible character is refused: null, and nothing is posted or recorded.
   *
   * @param mentions - at least one participant
   * @throws {BandToolError} without a mention
   * @throws {ValueError} for a mention of somebody who is not in the room, of nobody in particular, or of itself
   */
  sendMessage(content: string, mentions?: readonly Mention[] | null): Promise<MessageSent | null>;
  /** The same post, but not the answer: the turn still owes one. */
  sendNotice(content: string, mentions?: readonly Mention[] | null): Promise<MessageSent | null>;
  /**
   * Writes beside the conversation; nobody is addressed. Blank text is refused with null, text over 16,384 characters
   * keeps its head and tail.
   */
  sendEvent(
    content: string,
    messageType: EventType,
    metadata?: Record<string, unknown> | null,
  ): Promise<EventCreated | null>;
  /** Tells the room why the turn failed; the runtime then adds no report of its own. */
  sendFailure(failure: AgentFailure): Promise<EventCreated>;
  /** Ends the turn without an answer; makes no request. */
  noReply(reason?: string | null): Promise<{ status: 'no_reply' }>;

  /** @throws {ValueError} when no peer has this handle, name or id */
  addParticipant(identifier: string, role?: ParticipantRole): Promise<ParticipantChange>;
  /** @throws {ValueError} when nobody in the room has this handle, name or id */
  removeParticipant(identifier: string): Promise<ParticipantChange>;
  getParticipants(): Promise<readonly Participant[]>;
  /** Peers that are not in the room. @param page - from 1 @param pageSize - 1 to 100, default 50 */
  lookupPeers(page?: number, pageSize?: number): Promise<Page<Peer>>;
  /** @returns the new room's id */
  createChatroom(taskId?: string | null): Promise<string>;
  /** What this agent wrote in a room and what was said to it, oldest first. */
  fetchRoomContext(options: {
    readonly roomId: string;
    readonly cursor?: string;
    /** At most 100; default 50. */
    readonly limit?: number;
  }): Promise<CursorPage<ChatMessage>>;

  listMemories(
    filters?: MemoryFilters,
  ): Promise<{ readonly data: readonly WireRecord[]; readonly metadata: WireRecord }>;
  /** @throws {ValueError} for a type that does not fit the system, or scope `subject` without a subject */
  storeMemory(memory: NewMemory): Promise<WireRecord>;
  getMemory(memoryId: string): Promise<WireRecord>;
  supersedeMemory(memoryId: string): Promise<WireRecord>;
  archiveMemory(memoryId: string): Promise<WireRecord>;

  /** The tools on offer, one source for every format. Bounds are enforced at execution and not advertised. */
  getToolSchemas<F extends ToolFormat>(
    format: F,
    options?: { readonly capabilities?: ReadonlySet<Capability> },
  ): ToolSchemaByFormat[F][];
  /** {@link executeToolCallStructured}, the value only. */
  executeToolCall(name: string, args: Record<string, unknown>): Promise<unknown>;
  /**
   * Runs a tool by the name a model knows. Whatever goes wrong is an outcome with `ok: false`, except a BandToolError,
   * which is meant for the adapter and rejects.
   */
  executeToolCallStructured(name: string, args: Record<string, unknown>): Promise<ToolCallOutcome>;
}

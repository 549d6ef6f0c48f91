import type {
  AgentMe,
  ChatMessage,
  ChatParticipant,
  ChatRoom,
  EventCreated,
  EventMessageType,
  MessageSent,
  Peer,
} from '../wire/objects.js';

/** What every call takes beside its own arguments. */
export interface CallOptions {
  /** Ends the call, its retries and its waits. */
  readonly signal?: AbortSignal | undefined;
  /** Repeats after a transient failure, over the client's default of 3; 0 where the caller has a schedule of its own. */
  readonly retries?: number;
}

export interface PageOptions extends CallOptions {
  /** From 1. */
  readonly page?: number;
  /** At most 100. */
  readonly pageSize?: number;
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly page: number;
  readonly pageSize: number;
  readonly totalCount: number;
  readonly totalPages: number;
}

export interface CursorOptions extends CallOptions {
  readonly cursor?: string | undefined;
  /** At most 100. */
  readonly limit?: number;
}

export interface CursorPage<T> {
  readonly data: readonly T[];
  readonly hasMore: boolean;
  readonly nextCursor: string | null;
}

/** Whom a message is for: the platform resolves `id` first, else `handle`; `name` is display only. */
export interface MentionInput {
  readonly id?: string;
  readonly handle?: string;
  readonly name?: string;
}

/** The platform's word on a delivery mark: taken, or refused because the agent is stopped in the room (204). */
export type MarkResult = { readonly kind: 'accepted'; readonly attempt: number } | { readonly kind: 'stopped' };

export type WorkStatus = 'pending' | 'processing' | 'processed' | 'failed' | 'all';

export type ParticipantRole = 'owner' | 'admin' | 'member';

/**
 * Band's agent API, a method per endpoint (paths under `/api/v1/agent`). Answers keep the wire's spelling.
 *
 * Every method throws a GatewayError: `BAND_UNREACHABLE`, `BAND_TIMEOUT`, `BAND_CONNECTION_LOST`,
 * `BAND_RATE_LIMITED`, `BAND_UNAVAILABLE`, `BAND_BAD_ANSWER`, `BAND_UNAUTHORIZED`, `BAND_FORBIDDEN`,
 * `BAND_NOT_FOUND`, `BAND_CONFLICT`, `BAND_INVALID`, `BAND_ROOM_STOPPED`, `ROOM_LIMIT`; an HTTP answer behind it is
 * its `cause`, an ApiError with status, body and request id. When `signal` aborts, its reason is thrown.
 *
 * Reads, marks and participant calls are repeated up to three times after 408, 429, 5xx, a timeout or a lost
 * connection, as late as `Retry-After` or `X-RateLimit-Reset` say, else after 1, 2 and 4 s within ten percent; an
 * asked wait above 60 s is left to the caller as `retryAfterMs`. A call that creates a room, message, event, contact
 * or memory is repeated only when it certainly had no effect (no connection, 429, 503): otherwise the caller looks
 * first. 409 is never repeated: here it names a state that a repeat does not change.
 */
export interface BandRest {
  getMe(options?: CallOptions): Promise<AgentMe>;
  listPeers(options?: PageOptions & { readonly notInChat?: string }): Promise<Page<Peer>>;

  listChats(options?: PageOptions): Promise<Page<ChatRoom>>;
  createChat(room?: { title?: string | null; taskId?: string | null }, options?: CallOptions): Promise<ChatRoom>;
  getChat(roomId: string, options?: CallOptions): Promise<ChatRoom>;
  renameChat(roomId: string, title: string, options?: CallOptions): Promise<ChatRoom>;

  /** The agent's work list, oldest first; without a status everything not processed. */
  listMessages(
    roomId: string,
    options?: CursorOptions & { readonly status?: WorkStatus; readonly sortOrder?: 'asc' | 'desc' },
  ): Promise<CursorPage<ChatMessage>>;
  postMessage(
    roomId: string,
    message: { content: string; mentions: readonly MentionInput[] },
    options?: CallOptions,
  ): Promise<MessageSent>;
  /** The oldest message not yet processed; null when there is none, or while the agent is stopped in the room. */
  nextMessage(roomId: string, options?: CallOptions): Promise<ChatMessage | null>;
  markProcessing(roomId: string, messageId: string, options?: CallOptions): Promise<MarkResult>;
  markProcessed(roomId: string, messageId: string, options?: CallOptions): Promise<MarkResult>;
  markFailed(roomId: string, messageId: string, error: string, options?: CallOptions): Promise<MarkResult>;

  postEvent(
    roomId: string,
    event: { content: string; messageType: EventMessageType; metadata?: Record<string, unknown> | null },
    options?: CallOptions,
  ): Promise<EventCreated>;
  /** What this agent wrote, all types, and every text that mentions it, oldest first. */
  getContext(roomId: string, options?: CursorOptions): Promise<CursorPage<ChatMessage>>;

  listParticipants(roomId: string, options?: CallOptions): Promise<readonly ChatParticipant[]>;
  /** Someone already in the room is `BAND_CONFLICT`. */
  addParticipant(
    roomId: string,
    participant: { participantId: string; role?: ParticipantRole },
    options?: CallOptions,
  ): Promise<ChatParticipant>;
  removeParticipant(roomId: string, participantId: string, options?: CallOptions): Promise<ChatParticipant>;

  /** Never repeated; `timeoutMs` is its own deadline, default 2 s. */
  reportActivity(roomId: string, working: boolean, options?: CallOptions & { timeoutMs?: number }): Promise<void>;

  readonly contacts: BandContacts;
  readonly memories: BandMemories;
}

export type WireRecord = Record<string, unknown>;
export type ContactSelector = { readonly handle: string } | { readonly contactId: string };
export type RequestSelector = { readonly handle: string } | { readonly requestId: string };

/** `/api/v1/agent/contacts` */
export interface BandContacts {
  list(options?: PageOptions): Promise<Page<WireRecord>>;
  add(handle: string, message?: string | null, options?: CallOptions): Promise<WireRecord>;
  remove(selector: ContactSelector, options?: CallOptions): Promise<WireRecord>;
  requests(
    options?: PageOptions & { readonly sentStatus?: string },
  ): Promise<{ readonly data: WireRecord; readonly metadata: WireRecord }>;
  respond(
    action: 'approve' | 'reject' | 'cancel',
    selector: RequestSelector,
    options?: CallOptions,
  ): Promise<WireRecord>;
}

/** `/api/v1/agent/memories`; on a platform without the plan every call is `BAND_FORBIDDEN`. */
export interface BandMemories {
  list(
    filters?: WireRecord,
    options?: CallOptions,
  ): Promise<{ readonly data: readonly WireRecord[]; readonly metadata: WireRecord }>;
  store(memory: WireRecord, options?: CallOptions): Promise<WireRecord>;
  get(memoryId: string, options?: CallOptions): Promise<WireRecord>;
  supersede(memoryId: string, options?: CallOptions): Promise<WireRecord>;
  archive(memoryId: string, options?: CallOptions): Promise<WireRecord>;
}

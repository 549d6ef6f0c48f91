import { ApiError } from '../base/band-errors.js';
import type { ErrorCode } from '../base/error-codes.js';
import { GatewayError } from '../base/errors.js';
import { newUuid } from '../base/ids.js';
import type {
  BandContacts,
  BandMemories,
  BandRest,
  MentionInput,
  Page,
  WireRecord,
} from '../platform/rest/band-rest.js';
import type { ChatMessage, ChatParticipant, Peer } from '../platform/wire/objects.js';

/** A message as it was posted. */
export interface PostedMessage {
  readonly roomId: string;
  readonly content: string;
  readonly mentions: readonly MentionInput[];
}

/** An event as it was posted. */
export interface PostedEvent {
  readonly roomId: string;
  readonly content: string;
  readonly messageType: string;
  readonly metadata: Record<string, unknown> | null;
}

/** A call of the platform, by the name of its method. */
export interface PlatformCall {
  readonly method: string;
  readonly args: readonly unknown[];
}

export interface FakeRestOptions {
  /** Who writes; default `agent-1`. */
  readonly agentId?: string;
  readonly participants?: readonly ChatParticipant[];
  readonly peers?: readonly Peer[];
  /** What was said before; what the agent writes is added to it. */
  readonly context?: readonly ChatMessage[];
}

/** {@link BandRest} in memory: one agent's view of the platform, and a record of everything asked of it. */
export interface FakeRest extends BandRest {
  readonly calls: readonly PlatformCall[];
  readonly messages: readonly PostedMessage[];
  readonly events: readonly PostedEvent[];
  /** The next call of `method` (`contacts.add` for those of a group) fails with `error`. */
  failNext(method: string, error: Error): void;
}

/** The error that a REST client throws for an answer of that status. */
export function refusal(statusCode: number, code: ErrorCode, message?: string): GatewayError {
  return new GatewayError(code, { cause: new ApiError({ statusCode, message: message ?? null }) });
}

export function createFakeRest(options: FakeRestOptions = {}): FakeRest {
  const calls: PlatformCall[] = [];
  const messages: PostedMessage[] = [];
  const events: PostedEvent[] = [];
  const failures = new Map<string, Error[]>();
  const peers = options.peers ?? [];
  const participants = new Map((options.participants ?? []).map((one) => [one.id, one]));
  const memories = new Map<string, WireRecord>();
  const context: ChatMessage[] = [...(options.context ?? [])];
  const remember = (roomId: string, message_type: string, content: string, metadata: Record<string, unknown>) => {
    const id = newUuid();
    context.push({
      id,
      content,
      message_type,
      metadata,
      sender_id: options.agentId ?? 'agent-1',
      sender_type: 'Agent',
      chat_room_id: roomId,
    });
    return id;
  };

  const failing = (method: string) => failures.get(method)?.shift();
  const called = (method: string, args: readonly unknown[]) => {
    calls.push({ method, args });
    const failure = failing(method);
    if (failure) throw failure;
  };
  const memoryOf = (id: string): WireRecord => {
    const memory = memories.get(id);
    if (!memory) throw refusal(404, 'BAND_NOT_FOUND');
    return memory;
  };

  const contacts: BandContacts = {
    list: (options = {}) => Promise.resolve(pageOf([], options)),
    add: () => Promise.resolve({ id: newUuid(), status: 'pending' }),
    remove: () => Promise.resolve({ status: 'removed' }),
    requests: () => Promise.resolve({ data: { received: [], sent: [] }, metadata: {} }),
    respond: (action) => Promise.resolve({ id: newUuid(), status: RESPONDED[action] }),
  };
  const memoryRest: BandMemories = {
    list: () => Promise.resolve({ data: [...memories.values()], metadata: {} }),
    store: (memory) => {
      const stored = { id: newUuid(), status: 'active', ...memory };
      memories.set(stored.id, stored);
      return Promise.resolve(stored);
    },
    get: (id) => Promise.resolve(memoryOf(id)),
    supersede: (id) => Promise.resolve(Object.assign(memoryOf(id), { status: 'superseded' })),
    archive: (id) => Promise.resolve(Object.assign(memoryOf(id), { status: 'archived' })),
  };
  const room = (id: string, title: string | null = null, taskId: string | null = null) => ({
    id,
    title,
    task_id: taskId,
  });

  const rest: BandRest = {
    getMe: () => Promise.resolve({ id: newUuid(), name: 'Fake', description: 'A fake agent' }),
    listPeers: ({ notInChat, ...pages } = {}) =>
      Promise.resolve(pageOf(notInChat === undefined ? peers : peers.filter(({ id }) => !participants.has(id)), pages)),
    listChats: (pages = {}) => Promise.resolve(pageOf([], pages)),
    createChat: ({ title, taskId } = {}) => Promise.resolve(room(newUuid(), title ?? null, taskId ?? null)),
    getChat: (roomId) => Promise.resolve(room(roomId)),
    renameChat: (roomId, title) => Promise.resolve(room(roomId, title)),
    listMessages: () => Promise.resolve({ data: [], hasMore: false, nextCursor: null }),
    postMessage: (roomId, { content, mentions }) => {
      messages.push({ roomId, content, mentions });
      const id = remember(roomId, 'text', content, { mentions });
      return Promise.resolve({ id, success: true, recipients: [] });
    },
    nextMessage: () => Promise.resolve(null),
    markProcessing: () => Promise.resolve({ kind: 'accepted', attempt: 1 }),
    markProcessed: () => Promise.resolve({ kind: 'accepted', attempt: 1 }),
    markFailed: () => Promise.resolve({ kind: 'accepted', attempt: 1 }),
    postEvent: (roomId, { content, messageType, metadata }) => {
      events.push({ roomId, content, messageType, metadata: metadata ?? null });
      const id = remember(roomId, messageType, content, metadata ?? {});
      return Promise.resolve({ id, message_type: messageType, success: true });
    },
    getContext: () => Promise.resolve({ data: [...context], hasMore: false, nextCursor: null }),
    listParticipants: () => Promise.resolve([...participants.values()]),
    addParticipant: (_roomId, { participantId, role }) => {
      if (participants.has(participantId)) throw refusal(409, 'BAND_CONFLICT');
      const peer = peers.find(({ id }) => id === participantId);
      if (!peer) throw refusal(404, 'BAND_NOT_FOUND');
      const { id, name, type, handle } = peer;
      const added = { id, name, type, handle, role: role ?? 'member', status: 'active' };
      participants.set(id, added);
      return Promise.resolve(added);
    },
    removeParticipant: (_roomId, participantId) => {
      const removed = participants.get(participantId);
      if (!removed) throw refusal(404, 'BAND_NOT_FOUND');
      participants.delete(participantId);
      return Promise.resolve({ ...removed, status: 'removed' });
    },
    reportActivity: () => Promise.resolve(),
    contacts: recorded(contacts, 'contacts.', called),
    memories: recorded(memoryRest, 'memories.', called),
  };
  return Object.assign(recorded(rest, '', called), {
    calls,
    messages,
    events,
    failNext(method: string, error: Error) {
      failures.set(method, [...(failures.get(method) ?? []), error]);
    },
  });
}

const RESPONDED = { approve: 'approved', reject: 'rejected', cancel: 'cancelled' } as const;

/** The same methods, each noted before it runs; a failure is a rejection. */
function recorded<T extends object>(methods: T, prefix: string, called: (method: string, args: unknown[]) => void): T {
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]: [string, unknown]) => [
      name,
      typeof method !== 'function'
        ? method
        : // eslint-disable-next-line @typescript-eslint/require-await -- turns a throw into a rejection
          async (...args: unknown[]) => {
            called(prefix + name, args);
            return (method as (...args: unknown[]) => unknown)(...args);
          },
    ]),
  ) as T;
}

function pageOf<T>(all: readonly T[], { page = 1, pageSize = 20 }: { page?: number; pageSize?: number }): Page<T> {
  return {
    data: all.slice((page - 1) * pageSize, page * pageSize),
    page,
    pageSize,
    totalCount: all.length,
    totalPages: Math.max(1, Math.ceil(all.length / pageSize)),
  };
}

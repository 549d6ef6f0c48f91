import { deferred, onAbort, type Deferred } from '../../src/base/async.js';
import { ApiError } from '../../src/base/band-errors.js';
import type { ErrorCode } from '../../src/base/error-codes.js';
import { GatewayError } from '../../src/base/errors.js';
import type { BandRest, MarkResult } from '../../src/platform/rest/band-rest.js';
import type { ChatMessage, ChatParticipant } from '../../src/platform/wire/objects.js';
import { FakeLink } from './fake-link.js';

export const AGENT_ID = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
export const USER_ID = '11111111-1111-4111-8111-111111111111';

/** One REST call that the agent made. */
export interface FakeCall {
  readonly method: string;
  readonly roomId: string | null;
  readonly messageId: string | null;
  readonly body: unknown;
  /** By the fake's clock. */
  readonly at: number;
}

export type DeliveryState = 'pending' | 'processing' | 'processed' | 'failed';

interface FakeMessage {
  readonly row: ChatMessage;
  /** Null for what is no work of this agent, such as its own rows. */
  state: DeliveryState | null;
  attempts: { status: 'processing' | 'success' | 'failed'; error?: string }[];
}

interface FakeRoom {
  readonly id: string;
  participants: ChatParticipant[];
  readonly messages: FakeMessage[];
  stopped: boolean;
}

interface Fault {
  readonly method: string;
  readonly roomId: string | undefined;
  readonly messageId: string | undefined;
  times: number;
  readonly error: () => unknown;
}

export interface FakeBandOptions {
  readonly now: () => number;
  readonly name?: string;
  readonly description?: string | null;
  /** How far the platform's clock is ahead; default one second. */
  readonly skewMs?: number;
}

/**
 * Band as one agent sees it, in memory: rooms, messages with their delivery states, the agent API and the link. Calls
 * answer within microtasks unless they are held; every call is written down.
 */
export class FakeBand {
  readonly calls: FakeCall[] = [];
  readonly rooms = new Map<string, FakeRoom>();
  readonly links: FakeLink[] = [];
  readonly activity: { roomId: string; working: boolean; at: number }[] = [];
  name: string;
  description: string | null;
  /** Whether mentions stand in front of a stored message, as on the platform. */
  storesTokens = false;
  /** Rows of contact requests, as the listing has them. */
  contactRequests: { received: Record<string, unknown>[]; sent: Record<string, unknown>[] } = {
    received: [],
    sent: [],
  };
  /** Rows of the contacts listing. */
  contacts: Record<string, unknown>[] = [];
  readonly rest: BandRest;
  readonly #now: () => number;
  readonly #faults: Fault[] = [];
  readonly #losses: { method: string; code: ErrorCode }[] = [];
  readonly #holds: { method: string; roomId: string | undefined; held: Deferred; met: Deferred }[] = [];
  readonly #waiting: { held: Deferred }[] = [];
  #ids = 0;
  readonly #skewMs: number;
  #micros = 0;

  constructor(options: FakeBandOptions) {
    this.#now = options.now;
    this.#skewMs = options.skewMs ?? 1_000;
    this.name = options.name ?? 'Helper';
    this.description = options.description === undefined ? 'Answers questions' : options.description;
    this.rest = this.#createRest();
  }

  /** The link of the latest connection. */
  get link(): FakeLink {
    return this.links.at(-1)!;
  }

  createLink(): FakeLink {
    const link = new FakeLink();
    this.links.push(link);
    return link;
  }

  addRoom(roomId: string, participants: Partial<ChatParticipant>[] = []): FakeRoom {
    const everyone = [
      { id: AGENT_ID, type: 'Agent', name: 'Helper', handle: 'jane/helper' },
      { id: USER_ID, type: 'User', name: 'Jane Doe', handle: 'jane' },
      ...participants,
    ] as ChatParticipant[];
    const room: FakeRoom = { id: roomId, participants: everyone, messages: [], stopped: false };
    this.rooms.set(roomId, room);
    return room;
  }

  /**
   * Somebody writes to the agent. Pushed when the link is up, the room joined and the agent not stopped.
   *
   * @returns the message's id
   */
  post(
    roomId: string,
    content: string,
    options: { id?: string; push?: boolean; row?: Partial<ChatMessage> } = {},
  ): string {
    const id = options.id ?? `m${++this.#ids}`;
    const row = this.row(roomId, id, content, options.row);
    const room = this.#room(roomId);
    room.messages.push({ row, state: 'pending', attempts: [] });
    if (options.push !== false && !room.stopped) this.push(roomId, id);
    return id;
  }

  /** What the agent, or somebody else, wrote before: part of the history, no work. */
  remember(roomId: string, content: string, row: Partial<ChatMessage> = {}): string {
    const id = row.id ?? `h${++this.#ids}`;
    this.#room(roomId).messages.push({ row: this.row(roomId, id, content, row), state: null, attempts: [] });
    return id;
  }

  /** Pushes a message (again), as `message_created`. */
  push(roomId: string, messageId: string): void {
    const { row } = this.#message(roomId, messageId);
    this.links.at(-1)?.push({
      kind: 'message_created',
      roomId,
      message: { ...row, inserted_at: row.inserted_at!, updated_at: row.updated_at!, metadata: row.metadata ?? {} },
    });
  }

  row(roomId: string, id: string, content: string, more: Partial<ChatMessage> = {}): ChatMessage {
    // Microseconds that never repeat, by the clock of the test.
    this.#micros = Math.max(this.#micros + 1, (this.#now() + this.#skewMs) * 1_000 + 1);
    const ms = Math.floor(this.#micros / 1_000);
    const at = new Date(ms).toISOString().replace('Z', `${String(this.#micros % 1_000).padStart(3, '0')}Z`);
    return {
      id,
      content,
      message_type: 'text',
      sender_id: USER_ID,
      sender_type: 'User',
      sender_name: 'Jane Doe',
      chat_room_id: roomId,
      metadata: { mentions: [{ id: AGENT_ID, handle: 'jane/helper' }], status: 'sent' },
      inserted_at: at,
      updated_at: at,
      ...more,
    };
  }

  /** The platform stops or plays the agent in a room, with or without the signal reaching it. */
  setStopped(roomId: string, stopped: boolean, signal = true): void {
    this.#room(roomId).stopped = stopped;
    if (signal) this.signal(stopped ? 'stop' : 'play', roomId);
  }

  signal(mode: 'interrupt' | 'stop' | 'play', roomId: string | null, correlationId: string | null = null): void {
    this.link.control({
      mode,
      scope: roomId === null ? 'agent' : 'room',
      agent_id: AGENT_ID,
      room_id: roomId,
      execution_id: null,
      correlation_id: correlationId,
    });
  }

  state(roomId: string, messageId: string): DeliveryState | null {
    return this.#message(roomId, messageId).state;
  }

  attempts(roomId: string, messageId: string): readonly { status: string; error?: string }[] {
    return this.#message(roomId, messageId).attempts;
  }

  /** Rows the agent wrote into a room, oldest first. */
  written(roomId: string, messageType?: string): readonly ChatMessage[] {
    return this.#room(roomId)
      .messages.map(({ row }) => row)
      .filter((row) => row.sender_id === AGENT_ID && (!messageType || row.message_type === messageType));
  }

  /** Calls by method, in order; with a room, only of that room. */
  called(method: string, roomId?: string): readonly FakeCall[] {
    return this.calls.filter((call) => call.method === method && (roomId === undefined || call.roomId === roomId));
  }

  /** The next `times` calls fail. */
  fail(
    method: string,
    fault: {
      times?: number;
      roomId?: string;
      messageId?: string;
      code?: ErrorCode;
      statusCode?: number;
      error?: () => unknown;
    } = {},
  ): void {
    const { code = 'BAND_UNAVAILABLE', statusCode = 503 } = fault;
    this.#faults.push({
      method,
      roomId: fault.roomId,
      messageId: fault.messageId,
      times: fault.times ?? 1,
      error:
        fault.error ??
        (() =>
          new GatewayError(code, {
            cause: new ApiError({ statusCode, requestId: 'req-1' }),
            details: { requestId: 'req-1' },
          })),
    });
  }

  /** The next call is carried out, and its answer is lost. */
  lose(method: 'postMessage' | 'postEvent', code: ErrorCode = 'BAND_TIMEOUT'): void {
    this.#losses.push({ method, code });
  }

  heal(): void {
    this.#faults.length = 0;
    this.#losses.length = 0;
  }

  /** Holds the next call of a method. @returns resolves when the call is made; `release` lets it go on */
  hold(method: string, roomId?: string): { readonly met: Promise<void>; release(): void } {
    const hold = { method, roomId, held: deferred(), met: deferred() };
    this.#holds.push(hold);
    return {
      met: hold.met.promise,
      release: () => {
        hold.held.resolve();
      },
    };
  }

  /** Lets every held call go on, and holds no more. */
  releaseAll(): void {
    this.#waiting.splice(0).forEach(({ held }) => {
      held.resolve();
    });
    this.#holds.length = 0;
  }

  /** Held calls are never carried out: the process that made them is gone. */
  loseHeld(): void {
    this.#waiting.length = 0;
    this.#holds.length = 0;
  }

  #room(roomId: string): FakeRoom {
    const room = this.rooms.get(roomId);
    if (!room) throw new GatewayError('BAND_NOT_FOUND', { cause: new ApiError({ statusCode: 404 }) });
    return room;
  }

  #message(roomId: string, messageId: string): FakeMessage {
    const message = this.#room(roomId).messages.find(({ row }) => row.id === messageId);
    if (!message) throw new GatewayError('BAND_NOT_FOUND', { cause: new ApiError({ statusCode: 404 }) });
    return message;
  }

  /** Writes a call down, holds it, fails it. */
  async #call(
    method: string,
    about: { roomId?: string; messageId?: string; body?: unknown; signal?: AbortSignal | undefined } = {},
  ): Promise<void> {
    const { roomId, messageId, signal } = about;
    this.calls.push({
      method,
      roomId: roomId ?? null,
      messageId: messageId ?? null,
      body: about.body ?? null,
      at: this.#now(),
    });
    const at = this.#holds.findIndex((hold) => hold.method === method && (!hold.roomId || hold.roomId === roomId));
    if (at >= 0) {
      const [hold] = this.#holds.splice(at, 1);
      hold!.met.resolve();
      this.#waiting.push(hold!);
      await Promise.race([hold!.held.promise, aborted(signal)]);
    }
    await Promise.resolve();
    signal?.throwIfAborted();
    const fault = this.#faults.find(
      (one) =>
        one.times > 0 &&
        one.method === method &&
        (!one.roomId || one.roomId === roomId) &&
        (!one.messageId || one.messageId === messageId),
    );
    if (fault) {
      fault.times -= 1;
      throw fault.error() as Error;
    }
  }

  #loseAnswer(method: string): void {
    const at = this.#losses.findIndex((loss) => loss.method === method);
    const [loss] = at < 0 ? [] : this.#losses.splice(at, 1);
    if (loss) throw new GatewayError(loss.code);
  }

  #open(room: FakeRoom): FakeMessage[] {
    return room.messages.filter(({ state }) => state !== null && state !== 'processed');
  }

  async #mark(
    method: string,
    roomId: string,
    messageId: string,
    signal?: AbortSignal,
    error?: string,
  ): Promise<MarkResult> {
    await this.#call(method, { roomId, messageId, signal, body: error });
    const room = this.#room(roomId);
    const message = this.#message(roomId, messageId);
    if (room.stopped) return { kind: 'stopped' };
    if (method === 'markProcessing') {
      message.attempts.push({ status: 'processing' });
      message.state = 'processing';
      return { kind: 'accepted', attempt: message.attempts.length };
    }
    const attempt = message.attempts.at(-1);
    if (attempt?.status !== 'processing') {
      throw new GatewayError('BAND_INVALID', { cause: new ApiError({ statusCode: 422 }) });
    }
    attempt.status = method === 'markProcessed' ? 'success' : 'failed';
    if (error !== undefined) attempt.error = error;
    message.state = method === 'markProcessed' ? 'processed' : 'failed';
    return { kind: 'accepted', attempt: message.attempts.length };
  }

  #refuseWhenStopped(room: FakeRoom, what: string): void {
    if (!room.stopped) return;
    throw new GatewayError('BAND_ROOM_STOPPED', {
      cause: new ApiError({ statusCode: 403, message: `Agent execution is stopped; cannot post ${what}` }),
    });
  }

  #createRest(): BandRest {
    const unused = (): Promise<never> => Promise.reject(new Error('not part of this fake'));
    return {
      getMe: async (options) => {
        await this.#call('getMe', { signal: options?.signal });
        return { id: AGENT_ID, name: this.name, description: this.description };
      },
      listPeers: async () => {
        await this.#call('listPeers');
        return { data: [], page: 1, pageSize: 100, totalCount: 0, totalPages: 1 };
      },
      listChats: async (options) => {
        await this.#call('listChats', { body: options?.page, signal: options?.signal });
        const page = options?.page ?? 1;
        const pageSize = options?.pageSize ?? 20;
        const all = [...this.rooms.keys()].map((id) => ({ id }));
        return {
          data: all.slice((page - 1) * pageSize, page * pageSize),
          page,
          pageSize,
          totalCount: all.length,
          totalPages: Math.max(1, Math.ceil(all.length / pageSize)),
        };
      },
      createChat: async (room, options) => {
        await this.#call('createChat', { body: room, signal: options?.signal });
        const id = `made-${++this.#ids}`;
        this.addRoom(id);
        return { id };
      },
      getChat: async (roomId, options) => {
        await this.#call('getChat', { roomId, signal: options?.signal });
        return { id: this.#room(roomId).id };
      },
      renameChat: unused,
      listMessages: async (roomId, options) => {
        await this.#call('listMessages', { roomId, body: options?.status ?? null, signal: options?.signal });
        const open = this.#open(this.#room(roomId)).filter(({ state }) => !options?.status || state === options.status);
        const from = Number(options?.cursor ?? 0);
        const limit = options?.limit ?? 20;
        const data = open.slice(from, from + limit).map((message) => message.row);
        const hasMore = from + limit < open.length;
        return { data, hasMore, nextCursor: hasMore ? String(from + limit) : null };
      },
      nextMessage: async (roomId, options) => {
        await this.#call('nextMessage', { roomId, signal: options?.signal });
        const room = this.#room(roomId);
        return room.stopped ? null : (this.#open(room)[0]?.row ?? null);
      },
      markProcessing: (roomId, id, options) => this.#mark('markProcessing', roomId, id, options?.signal),
      markProcessed: (roomId, id, options) => this.#mark('markProcessed', roomId, id, options?.signal),
      markFailed: (roomId, id, error, options) => this.#mark('markFailed', roomId, id, options?.signal, error),
      postMessage: async (roomId, message, options) => {
        await this.#call('postMessage', { roomId, body: message, signal: options?.signal });
        const room = this.#room(roomId);
        this.#refuseWhenStopped(room, 'messages');
        const tokens = message.mentions.flatMap(({ id }) => (id === undefined ? [] : [`@[[${id}]]`]));
        const stored = this.storesTokens ? [...tokens, message.content].join(' ') : message.content;
        const id = this.remember(roomId, stored, {
          sender_id: AGENT_ID,
          sender_type: 'Agent',
          sender_name: 'Helper',
        });
        this.#loseAnswer('postMessage');
        return { id, success: true, recipients: [] };
      },
      postEvent: async (roomId, event, options) => {
        await this.#call('postEvent', { roomId, body: event, signal: options?.signal });
        this.#refuseWhenStopped(this.#room(roomId), 'events');
        const id = this.remember(roomId, event.content, {
          sender_id: AGENT_ID,
          sender_type: 'Agent',
          message_type: event.messageType,
          metadata: event.metadata ?? {},
        });
        this.#loseAnswer('postEvent');
        return { id, message_type: event.messageType, success: true };
      },
      getContext: async (roomId, options) => {
        await this.#call('getContext', { roomId, signal: options?.signal });
        const rows = this.#room(roomId).messages.map(({ row }) => row);
        const from = Number(options?.cursor ?? 0);
        const limit = options?.limit ?? 50;
        const hasMore = from + limit < rows.length;
        return { data: rows.slice(from, from + limit), hasMore, nextCursor: hasMore ? String(from + limit) : null };
      },
      listParticipants: async (roomId, options) => {
        await this.#call('listParticipants', { roomId, signal: options?.signal });
        return this.#room(roomId).participants;
      },
      addParticipant: unused,
      removeParticipant: unused,
      reportActivity: async (roomId, working, options) => {
        this.activity.push({ roomId, working, at: this.#now() });
        await this.#call('reportActivity', {
          roomId,
          body: { working, timeoutMs: options?.timeoutMs },
          signal: options?.signal,
        });
      },
      contacts: {
        list: async (options) => {
          await this.#call('contacts.list', { body: options?.page, signal: options?.signal });
          const { page = 1, pageSize = 20 } = options ?? {};
          const data = this.contacts.slice((page - 1) * pageSize, page * pageSize);
          const totalPages = Math.max(1, Math.ceil(this.contacts.length / pageSize));
          return { data, page, pageSize, totalCount: this.contacts.length, totalPages };
        },
        add: unused,
        remove: unused,
        requests: async (options) => {
          await this.#call('contacts.requests', { signal: options?.signal });
          return { data: this.contactRequests, metadata: {} };
        },
        respond: async (action, selector) => {
          await this.#call('contacts.respond', { body: { action, selector } });
          return { status: 'approved' };
        },
      },
      memories: { list: unused, store: unused, get: unused, supersede: unused, archive: unused },
    };
  }
}

function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    onAbort(signal, () => {
      resolve();
    });
  });
}

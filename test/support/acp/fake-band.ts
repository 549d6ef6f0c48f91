import { randomUUID } from 'node:crypto';
import { ApiError } from '../../../src/base/band-errors.js';
import { GatewayError } from '../../../src/base/errors.js';
import type { ErrorCode } from '../../../src/base/error-codes.js';
import type { BandRest, CursorPage, MentionInput, Page } from '../../../src/platform/rest/band-rest.js';
import type { AgentMe, ChatMessage, ChatParticipant, ChatRoom, Peer } from '../../../src/platform/wire/objects.js';

export interface FakePerson {
  readonly id: string;
  readonly name: string;
  readonly handle: string;
  readonly type: 'Agent' | 'User';
  readonly description?: string;
}

export const person = (slug: string, type: 'Agent' | 'User' = 'Agent', description?: string): FakePerson => ({
  id: randomUUID(),
  name: slug.charAt(0).toUpperCase() + slug.slice(1),
  handle: type === 'Agent' ? `ana/${slug}` : slug,
  type,
  ...(description === undefined ? {} : { description }),
});

export interface FakeRoom {
  readonly id: string;
  title: string | null;
  readonly participants: Map<string, FakePerson>;
  readonly rows: (ChatMessage & { delivery: Record<string, string> })[];
}

export interface Call {
  readonly method: string;
  readonly roomId: string | null;
  readonly args: unknown;
}

type Hook = (call: Call) => void | Promise<void>;

/** Told of a message that mentions the bridge agent. */
export type Deliver = (row: ChatMessage, roomId: string) => Promise<void>;

/**
 * Band as one agent sees it, strict where the bridge might lean on more: mentions only, 422 without one, own rows and
 * texts that mention it as context, no events of others.
 */
export class FakeBand {
  readonly self = person('gateway');
  readonly owner = person('ana', 'User');
  readonly peers: FakePerson[] = [];
  readonly rooms = new Map<string, FakeRoom>();
  readonly calls: Call[] = [];
  readonly hooks: Hook[] = [];
  readonly refusedInvites = new Set<string>();
  /** Whether own rows in the context carry delivery states. */
  showsDelivery = false;
  pageSize = 100;
  deliver: Deliver = () => Promise.resolve();
  /** Called after a prompt was posted: how peers answer. */
  onPrompt: ((room: FakeRoom, row: ChatMessage, mentioned: readonly FakePerson[]) => void) | null = null;
  #clock = Date.UTC(2026, 0, 1);

  constructor(peers: readonly FakePerson[] = []) {
    this.peers.push(...peers);
  }

  /** Calls of one method. */
  of(method: string): Call[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** The next `times` calls of a method fail with this. */
  fail(method: string, code: ErrorCode, times = 1, cause?: { status: number; code?: string }): void {
    let left = times;
    this.hooks.push((call) => {
      if (call.method !== method || left <= 0) return;
      left -= 1;
      const api = cause
        ? new ApiError({ statusCode: cause.status, code: cause.code ?? null, requestId: 'req-1' })
        : undefined;
      throw new GatewayError(code, api ? { cause: api } : {});
    });
  }

  room(id: string): FakeRoom {
    const room = this.rooms.get(id);
    if (!room) throw new Error(`no room ${id}`);
    return room;
  }

  get onlyRoom(): FakeRoom {
    if (this.rooms.size !== 1) throw new Error(`${this.rooms.size} rooms`);
    return [...this.rooms.values()][0]!;
  }

  addRoom(id: string = randomUUID()): FakeRoom {
    const room: FakeRoom = { id, title: null, participants: new Map([[this.self.id, this.self]]), rows: [] };
    this.rooms.set(id, room);
    return room;
  }

  /** Puts a row into a room without telling anybody. */
  addRow(room: FakeRoom, from: FakePerson, content: string, more: Partial<ChatMessage> = {}): FakeRoom['rows'][number] {
    this.#clock += 1_000;
    const at = new Date(this.#clock).toISOString();
    const row = {
      id: randomUUID(),
      content,
      message_type: 'text',
      sender_id: from.id,
      sender_type: from.type,
      sender_name: from.name,
      chat_room_id: room.id,
      metadata: {},
      inserted_at: at,
      updated_at: at,
      delivery: {},
      ...more,
    };
    room.rows.push(row);
    return row;
  }

  /** Somebody writes to the bridge agent. */
  async say(room: FakeRoom, from: FakePerson, text: string, more: Partial<ChatMessage> = {}): Promise<ChatMessage> {
    const mention = { id: this.self.id, handle: this.self.handle, name: this.self.name };
    const row = this.addRow(room, from, `@[[${this.self.id}]] ${text}`, { metadata: { mentions: [mention] }, ...more });
    await this.deliver(row, room.id);
    return row;
  }

  get rest(): BandRest {
    return this.#rest as unknown as BandRest;
  }

  readonly #rest = {
    getMe: async (): Promise<AgentMe> => {
      await this.#called('getMe', null, null);
      return { ...this.self, owner_uuid: this.owner.id, description: 'bridge' };
    },
    listPeers: async (): Promise<Page<Peer>> => {
      await this.#called('listPeers', null, null);
      return {
        data: this.peers.map((one) => ({ ...one })),
        page: 1,
        pageSize: 100,
        totalCount: this.peers.length,
        totalPages: 1,
      };
    },
    listChats: async ({ page = 1, pageSize = 20 } = {}): Promise<Page<ChatRoom>> => {
      await this.#called('listChats', null, { page });
      const all = [...this.rooms.values()]
        .filter(({ participants }) => participants.has(this.self.id))
        .map((room) => this.#wire(room));
      const data = all.slice((page - 1) * pageSize, page * pageSize);
      return {
        data,
        page,
        pageSize,
        totalCount: all.length,
        totalPages: Math.max(1, Math.ceil(all.length / pageSize)),
      };
    },
    createChat: async (): Promise<ChatRoom> => {
      await this.#called('createChat', null, null);
      return this.#wire(this.addRoom());
    },
    getChat: async (roomId: string): Promise<ChatRoom> => {
      await this.#called('getChat', roomId, null);
      return this.#wire(this.#mine(roomId));
    },
    renameChat: async (roomId: string, title: string): Promise<ChatRoom> => {
      await this.#called('renameChat', roomId, title);
      const room = this.#mine(roomId);
      room.title = title;
      return this.#wire(room);
    },
    postMessage: async (
      roomId: string,
      message: { content: string; mentions: readonly MentionInput[] },
      { signal }: { signal?: AbortSignal } = {},
    ) => {
      await this.#called('postMessage', roomId, message);
      signal?.throwIfAborted();
      const room = this.#mine(roomId);
      if (message.mentions.length === 0)
        throw new GatewayError('BAND_INVALID', { cause: new ApiError({ statusCode: 422, code: 'mentions_required' }) });
      const mentioned = message.mentions.map(({ id }) => {
        const found = room.participants.get(id ?? '');
        if (!found || found.id === this.self.id)
          throw new GatewayError('BAND_INVALID', {
            cause: new ApiError({ statusCode: 422, code: 'mentioned_participant_not_in_room' }),
          });
        return found;
      });
      let content = message.content;
      for (const one of mentioned)
        content = content.replaceAll(
          new RegExp(`(?<!\\w)@(?:${one.handle}|${one.name})(?![\\w/-])`, 'g'),
          `@[[${one.id}]]`,
        );
      const row = this.addRow(room, this.self, content, { metadata: { mentions: message.mentions } });
      this.onPrompt?.(room, row, mentioned);
      return { id: row.id, success: true, recipients: mentioned };
    },
    postEvent: async (
      roomId: string,
      event: { content: string; messageType: string; metadata?: Record<string, unknown> },
    ) => {
      await this.#called('postEvent', roomId, event);
      const row = this.addRow(this.#mine(roomId), this.self, event.content, {
        message_type: event.messageType,
        metadata: event.metadata ?? {},
      });
      return { id: row.id, message_type: event.messageType, success: true };
    },
    getContext: async (
      roomId: string,
      { cursor, limit = 50 }: { cursor?: string; limit?: number } = {},
    ): Promise<CursorPage<ChatMessage>> => {
      await this.#called('getContext', roomId, { cursor });
      const rows = this.#mine(roomId).rows.filter((row) => this.#sees(row));
      const from = cursor === undefined ? 0 : Number(cursor);
      const size = Math.min(limit, this.pageSize);
      const data = rows.slice(from, from + size).map(({ delivery, ...row }) => {
        const shown = this.showsDelivery && row.sender_id === this.self.id && row.message_type === 'text';
        const marks = Object.fromEntries(Object.entries(delivery).map(([id, status]) => [id, { status }]));
        return shown ? { ...row, metadata: { ...row.metadata, delivery_status: marks } } : row;
      });
      const hasMore = from + size < rows.length;
      return { data, hasMore, nextCursor: hasMore ? String(from + size) : null };
    },
    listParticipants: async (roomId: string): Promise<readonly ChatParticipant[]> => {
      await this.#called('listParticipants', roomId, null);
      return [...this.#mine(roomId).participants.values()].map((one) => ({ ...one, role: 'member', status: 'active' }));
    },
    addParticipant: async (roomId: string, { participantId }: { participantId: string }): Promise<ChatParticipant> => {
      await this.#called('addParticipant', roomId, participantId);
      const room = this.#mine(roomId);
      if (this.refusedInvites.has(participantId))
        throw new GatewayError('BAND_FORBIDDEN', { cause: new ApiError({ statusCode: 403 }) });
      if (room.participants.has(participantId))
        throw new GatewayError('BAND_CONFLICT', { cause: new ApiError({ statusCode: 409 }) });
      const found = [...this.peers, this.owner].find(({ id }) => id === participantId);
      if (!found) throw new GatewayError('BAND_NOT_FOUND', { cause: new ApiError({ statusCode: 404 }) });
      room.participants.set(found.id, found);
      return { ...found, role: 'member', status: 'active' };
    },
  };

  async #called(method: string, roomId: string | null, args: unknown): Promise<void> {
    const call = { method, roomId, args };
    this.calls.push(call);
    await Promise.resolve();
    for (const hook of this.hooks) await hook(call);
  }

  #mine(roomId: string): FakeRoom {
    const room = this.rooms.get(roomId);
    if (!room?.participants.has(this.self.id))
      throw new GatewayError('BAND_NOT_FOUND', { cause: new ApiError({ statusCode: 404 }) });
    return room;
  }

  #sees(row: ChatMessage): boolean {
    if (row.sender_id === this.self.id) return true;
    const mentions = (row.metadata?.['mentions'] ?? []) as { id: string }[];
    return row.message_type === 'text' && mentions.some(({ id }) => id === this.self.id);
  }

  #wire(room: FakeRoom): ChatRoom {
    const at = room.rows.at(-1)?.inserted_at ?? '2026-01-01T00:00:00.000Z';
    return { id: room.id, title: room.title ?? 'New chat', inserted_at: at, updated_at: at };
  }
}

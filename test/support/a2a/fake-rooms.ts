import { ApiError } from '../../../src/base/band-errors.js';
import type { ErrorCode } from '../../../src/base/error-codes.js';
import { GatewayError } from '../../../src/base/errors.js';
import type { BandCalls } from '../../../bridges/a2a/band.js';
import type { ChatMessage, Peer } from '../../../src/platform/wire/objects.js';

export const GATEWAY = {
  id: 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb',
  handle: 'jane/gateway',
  name: 'Gateway',
} as const;
export const HELPER = peer('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'Helper', 'jane/helper');
export const WEATHER = peer('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaa0002', 'Weather  Bot!', 'jane/weather-bot');
export const JANE = peer('11111111-1111-4111-8111-111111111111', 'Jane Doe', 'jane', { type: 'User' });

export function peer(id: string, name: string, handle: string | null, more: Partial<Peer> = {}): Peer {
  return { id, name, handle, type: 'Agent', description: `${name} answers questions`, tags: [], ...more };
}

/** A call as the wire would have it. */
export interface RecordedCall {
  readonly call: string;
  readonly body: unknown;
}

interface Fault {
  readonly method: keyof BandCalls;
  times: number;
  readonly error: () => unknown;
  /** The call is carried out and then fails. */
  readonly after: boolean;
}

interface Room {
  readonly id: string;
  readonly rows: ChatMessage[];
  readonly members: Set<string>;
  readonly madeAt: number;
}

/**
 * The platform as the A2A bridge uses it, in memory: rooms with what the gateway agent wrote, a directory, and faults on
 * demand. Every call is written down.
 */
export class FakeRooms {
  readonly calls: RecordedCall[] = [];
  readonly rooms = new Map<string, Room>();
  peers: Peer[];
  /** Delivery state by message id, shown on the gateway's own rows while {@link showDelivery} is on. */
  readonly delivery = new Map<string, string>();
  showDelivery = false;
  /** When the turn about a message was over, where the platform says so. */
  readonly processedAt = new Map<string, number>();
  /** Delivery state of every message at its post, where states are shown. */
  deliveredAs = 'processing';
  /** The platform's own clock. */
  now: () => number = () => Date.UTC(2026, 0, 1);
  /** Called when a message was stored and before the call returns. */
  onPost: ((roomId: string, messageId: string, content: string) => void | Promise<void>) | null = null;
  readonly rest: BandCalls;
  readonly #faults: Fault[] = [];
  readonly #held = new Map<keyof BandCalls, Promise<void>>();
  #ids = 0;

  constructor(peers: readonly Peer[] = [HELPER, WEATHER]) {
    this.peers = [...peers];
    this.rest = this.#createRest();
  }

  /** The same rooms for a new process: no calls yet, no faults, nothing held. */
  reborn(): FakeRooms {
    const again = new FakeRooms(this.peers);
    for (const [id, room] of this.rooms) again.rooms.set(id, room);
    again.#ids = this.#ids + 1_000;
    return again;
  }

  /** Writes into rooms: method, path and body, in order. */
  get writes(): RecordedCall[] {
    return this.calls.filter(({ call }) => call.startsWith('POST'));
  }

  /** Texts that the gateway posted, in order. */
  get posted(): { roomId: string; id: string; content: string }[] {
    return [...this.rooms.values()].flatMap((room) =>
      room.rows
        .filter((row) => row.message_type === 'text' && row.sender_id === GATEWAY.id)
        .map((row) => ({ roomId: room.id, id: row.id, content: row.content })),
    );
  }

  countOf(call: RegExp): number {
    return this.calls.filter((one) => call.test(one.call)).length;
  }

  /** The next `times` calls of a method fail; with `after` they are carried out first. */
  fail(method: keyof BandCalls, error: unknown, options: { times?: number; after?: boolean } = {}): void {
    this.#faults.push({ method, times: options.times ?? 1, error: () => error, after: options.after ?? false });
  }

  clearFaults(): void {
    this.#faults.length = 0;
  }

  /** Calls of a method wait until the returned function is called. */
  hold(method: keyof BandCalls): () => void {
    let release!: () => void;
    this.#held.set(method, new Promise((resolve) => (release = resolve)));
    return () => {
      this.#held.delete(method);
      release();
    };
  }

  newId(kind: string): string {
    this.#ids += 1;
    return `${kind}-0000-4000-8000-${String(this.#ids).padStart(12, '0')}`;
  }

  /** A row somebody else wrote, or the gateway in an earlier life. */
  addRow(roomId: string, row: Partial<ChatMessage> & Pick<ChatMessage, 'message_type' | 'sender_id'>): ChatMessage {
    const room = this.rooms.get(roomId) ?? this.addRoom(roomId);
    const full: ChatMessage = {
      id: this.newId('eeeeeeee'),
      content: '',
      sender_type: 'Agent',
      metadata: {},
      chat_room_id: roomId,
      ...row,
    };
    room.rows.push(full);
    return full;
  }

  addRoom(id: string, members: readonly string[] = []): Room {
    const room: Room = { id, rows: [], members: new Set([GATEWAY.id, ...members]), madeAt: this.now() };
    this.rooms.set(id, room);
    return room;
  }

  #createRest(): BandCalls {
    const call = async <T>(
      method: keyof BandCalls,
      name: string,
      body: unknown,
      run: () => T | Promise<T>,
      signal?: AbortSignal,
    ): Promise<T> => {
      this.calls.push({ call: name, body });
      const held = this.#held.get(method);
      if (held) await Promise.race([held, aborted(signal)]);
      const fault = this.#faults.find((one) => one.method === method && one.times > 0);
      if (fault) fault.times -= 1;
      if (fault && !fault.after) throw fault.error();
      const result = await run();
      if (fault) throw fault.error();
      return result;
    };
    const roomOf = (roomId: string): Room => {
      const room = this.rooms.get(roomId);
      if (!room) throw refused(404, 'BAND_NOT_FOUND');
      return room;
    };
    return {
      getMe: (options) =>
        call('getMe', 'GET /me', null, () => ({ ...GATEWAY, description: 'A gateway' }), options?.signal),
      listPeers: ({ page = 1, pageSize = 20, signal } = {}) =>
        call(
          'listPeers',
          `GET /peers?page=${page}`,
          null,
          () => ({
            data: this.peers.slice((page - 1) * pageSize, page * pageSize),
            page,
            pageSize,
            totalCount: this.peers.length,
            totalPages: Math.max(1, Math.ceil(this.peers.length / pageSize)),
          }),
          signal,
        ),
      listChats: ({ page = 1, pageSize = 20, signal } = {}) =>
        call(
          'listChats',
          `GET /chats?page=${page}`,
          null,
          () => {
            const rooms = [...this.rooms.values()];
            return {
              data: rooms
                .slice((page - 1) * pageSize, page * pageSize)
                .map(({ id, madeAt }) => ({ id, inserted_at: new Date(madeAt).toISOString() })),
              page,
              pageSize,
              totalCount: rooms.length,
              totalPages: Math.max(1, Math.ceil(rooms.length / pageSize)),
            };
          },
          signal,
        ),
      createChat: (room, options) =>
        call(
          'createChat',
          'POST /chats',
          { chat: room ?? {} },
          () => ({ id: this.addRoom(this.newId('cccccccc')).id, title: null }),
          options?.signal,
        ),
      listParticipants: (roomId, options) =>
        call(
          'listParticipants',
          `GET /chats/${roomId}/participants`,
          null,
          () => [...roomOf(roomId).members].map((id) => ({ id, type: 'Agent' })),
          options?.signal,
        ),
      addParticipant: (roomId, { participantId, role }, options) =>
        call(
          'addParticipant',
          `POST /chats/${roomId}/participants`,
          { participant: { participant_id: participantId, role } },
          () => {
            const room = roomOf(roomId);
            if (room.members.has(participantId)) throw refused(409, 'BAND_CONFLICT');
            room.members.add(participantId);
            return { id: participantId, type: 'Agent' };
          },
          options?.signal,
        ),
      postEvent: (roomId, { content, messageType, metadata }, options) =>
        call(
          'postEvent',
          `POST /chats/${roomId}/events`,
          { event: { content, message_type: messageType, metadata } },
          () => {
            roomOf(roomId);
            const row = this.addRow(roomId, {
              message_type: messageType,
              sender_id: GATEWAY.id,
              content,
              metadata: metadata ?? {},
            });
            return { id: row.id, message_type: messageType, success: true };
          },
          options?.signal,
        ),
      postMessage: (roomId, { content, mentions }, options) =>
        call(
          'postMessage',
          `POST /chats/${roomId}/messages`,
          { message: { content, mentions } },
          async () => {
            const room = roomOf(roomId);
            for (const { id } of mentions) if (!room.members.has(id ?? '')) throw refused(422, 'BAND_INVALID');
            const row = this.addRow(roomId, {
              id: this.newId('dddddddd'),
              message_type: 'text',
              sender_id: GATEWAY.id,
              content,
              metadata: { mentions },
            });
            this.delivery.set(row.id, this.deliveredAs);
            await this.onPost?.(roomId, row.id, content);
            return { id: row.id, success: true, recipients: [] };
          },
          options?.signal,
        ),
      getContext: (roomId, { cursor, limit = 50, signal } = {}) =>
        call(
          'getContext',
          `GET /chats/${roomId}/context`,
          { cursor: cursor ?? null },
          () => {
            const { rows } = roomOf(roomId);
            const from = cursor === undefined ? 0 : Number(cursor);
            const data = rows.slice(from, from + limit).map((row) => this.#shown(row));
            const hasMore = from + limit < rows.length;
            return { data, hasMore, nextCursor: hasMore ? String(from + limit) : null };
          },
          signal,
        ),
    };
  }

  #shown(row: ChatMessage): ChatMessage {
    const state = this.delivery.get(row.id);
    if (!this.showDelivery || state === undefined) return row;
    const [mention] = (row.metadata as { mentions?: { id: string }[] }).mentions ?? [];
    const at = this.processedAt.get(row.id);
    const delivery = { status: state, ...(at !== undefined && { processed_at: new Date(at).toISOString() }) };
    return { ...row, metadata: { ...row.metadata, delivery_status: { [mention?.id ?? '']: delivery } } };
  }
}

/** The error of a REST answer with that status. */
export function refused(statusCode: number, code: ErrorCode, retryAfterMs?: number): GatewayError {
  return new GatewayError(code, {
    cause: new ApiError({ statusCode, message: 'canary-exception-text' }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
}

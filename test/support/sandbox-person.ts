import { DEMO } from '../../src/sandbox/index.js';
import { callRest, type RestAnswer } from './rest-call.js';
import { openRawSocket, type RawSocket } from './raw-socket.js';

/** A row of the human message list. */
export interface SeenMessage {
  readonly id: string;
  readonly content: string;
  readonly message_type: string;
  readonly sender_id: string;
  readonly sender_name: string;
  readonly chat_room_id: string;
  readonly metadata: Record<string, unknown> & {
    readonly delivery_status?: Record<
      string,
      { status: string; attempts: { attempt_number: number; status: string; error?: string }[] }
    >;
  };
  readonly inserted_at: string;
}

/** A person at the human surface of a sandbox: REST with a user key, and a socket that listens to the person's rooms. */
export interface SandboxPerson {
  readonly id: string;
  readonly apiKey: string;
  readonly socket: RawSocket;
  readonly call: (method: string, path: string, body?: unknown) => Promise<RestAnswer>;
  /** Makes a room with these participants, and listens to it. @returns the room's id */
  readonly createRoom: (participantIds?: readonly string[], title?: string) => Promise<string>;
  /** Listens to a room that somebody else made. */
  readonly listen: (roomId: string) => Promise<void>;
  readonly add: (roomId: string, participantId: string, role?: string) => Promise<void>;
  readonly remove: (roomId: string, participantId: string) => Promise<void>;
  /** @returns the message's id */
  readonly post: (roomId: string, content: string, mentionIds: readonly string[]) => Promise<string>;
  /** Everything in the room, newest first, up to 100 rows. */
  readonly messages: (roomId: string, query?: string) => Promise<SeenMessage[]>;
  /** The first text by `senderId` in a room that fits, come already or to come. */
  readonly reply: (roomId: string, senderId: string, fits?: (message: SeenMessage) => boolean) => Promise<SeenMessage>;
  /** The first event of a type in a room that fits. */
  readonly event: (
    roomId: string,
    messageType: string,
    fits?: (message: SeenMessage) => boolean,
  ) => Promise<SeenMessage>;
  /** Waits until an agent's delivery of a message has a status, and hands out the delivery. */
  readonly delivery: (
    messageId: string,
    agentId: string,
    status: string,
  ) => Promise<{ status: string; attempts: { attempt_number: number; status: string; error?: string }[] }>;
  readonly stop: (roomId: string) => Promise<void>;
  readonly play: (roomId: string) => Promise<void>;
  readonly interrupt: (roomId: string, agentId: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** @param apiKey - a user's key; default the demo person's */
export async function sandboxPerson(
  { restUrl, wsUrl }: { readonly restUrl: string; readonly wsUrl: string },
  apiKey: string = DEMO.user.apiKey,
): Promise<SandboxPerson> {
  const call = (method: string, path: string, body?: unknown) =>
    callRest(restUrl, method, `/api/v1/me${path}`, apiKey, body);
  const must = async (method: string, path: string, body?: unknown) => {
    const answer = await call(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status} ${answer.text}`);
    return answer.body as { data: Record<string, unknown> };
  };
  const { data: profile } = await must('GET', '/profile');
  const id = String(profile['id']);
  const socket = await openRawSocket(`${wsUrl}?api_key=${apiKey}&vsn=2.0.0`);
  await socket.join(`user_rooms:${id}`);

  const listen = async (roomId: string) => {
    await socket.join(`chat_room:${roomId}`);
    await socket.join(`room_participants:${roomId}`);
  };
  const add = async (roomId: string, participantId: string, role?: string) => {
    const participant = { participant_id: participantId, ...(role === undefined ? {} : { role }) };
    await must('POST', `/chats/${roomId}/participants`, { participant });
  };
  const seen = async (event: string, fits: (message: SeenMessage) => boolean) =>
    (await socket.push(event, (payload) => fits(payload as unknown as SeenMessage))) as unknown as SeenMessage;

  return {
    id,
    apiKey,
    socket,
    call,
    async createRoom(participantIds = [], title) {
      const { data } = await must('POST', '/chats', { chat: title === undefined ? {} : { title } });
      const roomId = String(data['id']);
      await listen(roomId);
      for (const participantId of participantIds) await add(roomId, participantId);
      return roomId;
    },
    listen,
    add,
    async remove(roomId, participantId) {
      await must('DELETE', `/chats/${roomId}/participants/${participantId}`);
    },
    async post(roomId, content, mentionIds) {
      const mentions = mentionIds.map((mentionId) => ({ id: mentionId }));
      const { data } = await must('POST', `/chats/${roomId}/messages`, { message: { content, mentions } });
      return String(data['id']);
    },
    async messages(roomId, query = 'limit=100') {
      const { data } = await must('GET', `/chats/${roomId}/messages?${query}`);
      return data as unknown as SeenMessage[];
    },
    reply: (roomId, senderId, fits = () => true) =>
      seen(
        'message_created',
        (message) => message.chat_room_id === roomId && message.sender_id === senderId && fits(message),
      ),
    event: (roomId, messageType, fits = () => true) =>
      seen(
        'event_created',
        (message) => message.chat_room_id === roomId && message.message_type === messageType && fits(message),
      ),
    async delivery(messageId, agentId, status) {
      const isThere = (message: SeenMessage) =>
        message.id === messageId && message.metadata.delivery_status?.[agentId]?.status === status;
      const message = await seen('message_updated', isThere);
      const delivery = message.metadata.delivery_status?.[agentId];
      if (!delivery) throw new Error('unreachable: the push was chosen by this entry');
      return delivery;
    },
    async stop(roomId) {
      await must('POST', `/chats/${roomId}/agents/stop`);
    },
    async play(roomId) {
      await must('POST', `/chats/${roomId}/agents/play`);
    },
    async interrupt(roomId, agentId) {
      await must('POST', `/chats/${roomId}/agents/${agentId}/interrupt`);
    },
    close: () => socket.close(),
  };
}

import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../../base/clock.js';
import { withDeadline } from '../../base/async.js';
import { GatewayError, isGatewayError } from '../../base/errors.js';
import { type Logger, silentLogger } from '../../base/log.js';
import { type Metrics, noMetrics } from '../../base/metrics.js';
import {
  agentMeSchema,
  chatMessageSchema,
  chatParticipantSchema,
  chatRoomSchema,
  eventCreatedSchema,
  messageSentSchema,
  messageStatusSchema,
  peerSchema,
} from '../wire/objects.js';
import { cursorPageOf, dataOf, pageOf, rowsOf } from './answers.js';
import type { BandRest, CallOptions, MarkResult } from './band-rest.js';
import { createContacts } from './contacts.js';
import { createMemories } from './memories.js';
import { badAnswer, createTransport, creating, marking, path, reading, type Transport } from './transport.js';

export interface RestClientOptions {
  /** e.g. `https://app.band.ai`; a trailing slash is dropped. */
  restUrl: string;
  /** Sent as it is in `x-api-key`; in no error and no log line. */
  apiKey: string;
  dispatcher: Dispatcher;
  clock?: Clock;
  random?: () => number;
  log?: Logger;
  metrics?: Metrics;
  /** Repeats after transient failures; default 3. */
  retries?: number;
  /** Milliseconds until the answer's head, default 30,000. */
  headersTimeoutMs?: number;
  /** Milliseconds between two pieces of the answer's body, default 30,000. */
  bodyTimeoutMs?: number;
  /** Largest answer; default 64 MiB, more than a hundred messages of the greatest size. */
  maxAnswerBytes?: number;
}

const ACTIVITY_DEADLINE_MS = 2_000;

/** {@link BandRest} over HTTP. Holds nothing but its options: the dispatcher owns the connections and is closed by its owner. */
export function createRestClient(options: RestClientOptions): BandRest {
  const { clock = systemClock, log = silentLogger } = options;
  const send = createTransport({
    baseUrl: options.restUrl,
    apiKey: options.apiKey,
    dispatcher: options.dispatcher,
    clock,
    random: options.random ?? Math.random,
    log,
    metrics: options.metrics ?? noMetrics,
    retries: options.retries ?? 3,
    headersTimeoutMs: options.headersTimeoutMs ?? 30_000,
    bodyTimeoutMs: options.bodyTimeoutMs ?? 30_000,
    maxAnswerBytes: options.maxAnswerBytes ?? 64 * 1024 * 1024,
  });

  return {
    async getMe(call) {
      return dataOf(await send(reading('/me'), call), agentMeSchema);
    },

    async listPeers({ notInChat, page, pageSize, ...call } = {}) {
      const query = { not_in_chat: notInChat, page, page_size: pageSize };
      return pageOf(await send(reading('/peers', query), call), peerSchema, { page, pageSize }, log);
    },

    async listChats({ page, pageSize, ...call } = {}) {
      const query = { page, page_size: pageSize };
      return pageOf(await send(reading('/chats', query), call), chatRoomSchema, { page, pageSize }, log);
    },

    async createChat({ title, taskId } = {}, call) {
      const chat = { ...(title === undefined ? {} : { title }), ...(taskId === undefined ? {} : { task_id: taskId }) };
      return dataOf(await send(creating('/chats', { chat }), call), chatRoomSchema);
    },

    async getChat(roomId, call) {
      return dataOf(await send(reading(path`/chats/${roomId}`), call), chatRoomSchema);
    },

    async renameChat(roomId, title, call) {
      const renaming = { ...marking(path`/chats/${roomId}`, { chat: { title } }), method: 'PATCH' } as const;
      return dataOf(await send(renaming, call), chatRoomSchema);
    },

    async listMessages(roomId, { status, cursor, limit, sortOrder, ...call } = {}) {
      const query = { status, cursor, limit, sort_order: sortOrder };
      return cursorPageOf(await send(reading(path`/chats/${roomId}/messages`, query), call), chatMessageSchema, log);
    },

    async postMessage(roomId, { content, mentions }, call) {
      const message = { content, mentions };
      const answer = await send(creating(path`/chats/${roomId}/messages`, { message }), call);
      const sent = dataOf(answer, messageSentSchema);
      if (!sent.success) throw badAnswer(answer.request, 'success is false');
      return sent;
    },

    async nextMessage(roomId, call) {
      const answer = await send(reading(path`/chats/${roomId}/messages/next`), call);
      return answer.status === 204 ? null : dataOf(answer, chatMessageSchema);
    },

    markProcessing: (roomId, messageId, call) => mark(send, { roomId, messageId, state: 'processing' }, call),
    markProcessed: (roomId, messageId, call) => mark(send, { roomId, messageId, state: 'processed' }, call),
    markFailed: (roomId, messageId, error, call) => mark(send, { roomId, messageId, state: 'failed', error }, call),

    async postEvent(roomId, { content, messageType, metadata }, call) {
      const event = { content, message_type: messageType, metadata };
      const answer = await send(creating(path`/chats/${roomId}/events`, { event }), call);
      const created = dataOf(answer, eventCreatedSchema);
      if (!created.success) throw badAnswer(answer.request, 'success is false');
      return created;
    },

    async getContext(roomId, { cursor, limit, ...call } = {}) {
      const answer = await send(reading(path`/chats/${roomId}/context`, { cursor, limit }), call);
      return cursorPageOf(answer, chatMessageSchema, log);
    },

    async listParticipants(roomId, call) {
      const answer = await send(reading(path`/chats/${roomId}/participants`), call);
      return rowsOf(answer, chatParticipantSchema, log).rows;
    },

    async addParticipant(roomId, { participantId, role }, call) {
      const participant = { participant_id: participantId, role };
      const answer = await send(marking(path`/chats/${roomId}/participants`, { participant }), call);
      return dataOf(answer, chatParticipantSchema);
    },

    async removeParticipant(roomId, participantId, call) {
      const removing = { ...marking(path`/chats/${roomId}/participants/${participantId}`), method: 'DELETE' } as const;
      return dataOf(await send(removing, call), chatParticipantSchema);
    },

    async reportActivity(roomId, working, { signal, timeoutMs = ACTIVITY_DEADLINE_MS } = {}) {
      const where = path`/chats/${roomId}/activity`;
      try {
        await withDeadline(clock, timeoutMs, signal, async (within) => {
          await send({ method: 'POST', path: where, body: { working }, repeat: 'never' }, { signal: within });
        });
      } catch (error) {
        if (!isGatewayError(error, 'DEADLINE_EXCEEDED')) throw error;
        throw new GatewayError('BAND_TIMEOUT', { cause: error, details: { request: `POST ${where}` } });
      }
    },

    contacts: createContacts(send, log),
    memories: createMemories(send),
  };
}

interface Mark {
  readonly roomId: string;
  readonly messageId: string;
  readonly state: 'processing' | 'processed' | 'failed';
  readonly error?: string;
}

/** 204 says that the agent is stopped in the room; anything but an accepted 200 is no mark. */
async function mark(
  send: Transport,
  { roomId, messageId, state, error }: Mark,
  call?: CallOptions,
): Promise<MarkResult> {
  const body = error === undefined ? undefined : { error };
  const answer = await send(marking(path`/chats/${roomId}/messages/${messageId}/${state}`, body), call);
  if (answer.status === 204) return { kind: 'stopped' };
  const status = dataOf(answer, messageStatusSchema);
  if (!status.success) throw badAnswer(answer.request, 'success is false');
  return { kind: 'accepted', attempt: status.attempt_number ?? 1 };
}

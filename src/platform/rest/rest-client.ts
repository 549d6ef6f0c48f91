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
import { badAnswer, createTransport, path, per, type Transport } from './transport.js';

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
      return dataOf(await send({ ...reading, path: '/me', ...per(call) }), agentMeSchema);
    },

    async listPeers({ notInChat, page, pageSize, ...call } = {}) {
      const query = { not_in_chat: notInChat, page, page_size: pageSize };
      return pageOf(
        await send({ ...reading, path: '/peers', query, ...per(call) }),
        peerSchema,
        { page, pageSize },
        log,
      );
    },

    async listChats({ page, pageSize, ...call } = {}) {
      const query = { page, page_size: pageSize };
      const answer = await send({ ...reading, path: '/chats', query, ...per(call) });
      return pageOf(answer, chatRoomSchema, { page, pageSize }, log);
    },

    async createChat({ title, taskId } = {}, call) {
      const chat = { ...(title === undefined ? {} : { title }), ...(taskId === undefined ? {} : { task_id: taskId }) };
      return dataOf(await send({ ...creating, path: '/chats', body: { chat }, ...per(call) }), chatRoomSchema);
    },

    async getChat(roomId, call) {
      return dataOf(await send({ ...reading, path: path`/chats/${roomId}`, ...per(call) }), chatRoomSchema);
    },

    async renameChat(roomId, title, call) {
      const body = { chat: { title } };
      const answer = await send({ ...marking, method: 'PATCH', path: path`/chats/${roomId}`, body, ...per(call) });
      return dataOf(answer, chatRoomSchema);
    },

    async listMessages(roomId, { status, cursor, limit, sortOrder, ...call } = {}) {
      const query = { status, cursor, limit, sort_order: sortOrder };
      const answer = await send({ ...reading, path: path`/chats/${roomId}/messages`, query, ...per(call) });
      return cursorPageOf(answer, chatMessageSchema, log);
    },

    async postMessage(roomId, { content, mentions }, call) {
      const body = { message: { content, mentions } };
      const answer = await send({ ...creating, path: path`/chats/${roomId}/messages`, body, ...per(call) });
      const sent = dataOf(answer, messageSentSchema);
      if (!sent.success) throw badAnswer(answer.request, 'success is false');
      return sent;
    },

    async nextMessage(roomId, call) {
      const answer = await send({ ...reading, path: path`/chats/${roomId}/messages/next`, ...per(call) });
      return answer.status === 204 ? null : dataOf(answer, chatMessageSchema);
    },

    async markProcessing(roomId, messageId, call) {
      return mark(send, path`/chats/${roomId}/messages/${messageId}/processing`, undefined, call);
    },
    async markProcessed(roomId, messageId, call) {
      return mark(send, path`/chats/${roomId}/messages/${messageId}/processed`, undefined, call);
    },
    async markFailed(roomId, messageId, error, call) {
      return mark(send, path`/chats/${roomId}/messages/${messageId}/failed`, { error }, call);
    },

    async postEvent(roomId, { content, messageType, metadata }, call) {
      const event = { content, message_type: messageType, ...(metadata === undefined ? {} : { metadata }) };
      const answer = await send({ ...creating, path: path`/chats/${roomId}/events`, body: { event }, ...per(call) });
      const created = dataOf(answer, eventCreatedSchema);
      if (!created.success) throw badAnswer(answer.request, 'success is false');
      return created;
    },

    async getContext(roomId, { cursor, limit, ...call } = {}) {
      const answer = await send({
        ...reading,
        path: path`/chats/${roomId}/context`,
        query: { cursor, limit },
        ...per(call),
      });
      return cursorPageOf(answer, chatMessageSchema, log);
    },

    async listParticipants(roomId, call) {
      const answer = await send({ ...reading, path: path`/chats/${roomId}/participants`, ...per(call) });
      return rowsOf(answer, chatParticipantSchema, log).rows;
    },

    async addParticipant(roomId, { participantId, role }, call) {
      const body = { participant: { participant_id: participantId, ...(role === undefined ? {} : { role }) } };
      const answer = await send({ ...marking, path: path`/chats/${roomId}/participants`, body, ...per(call) });
      return dataOf(answer, chatParticipantSchema);
    },

    async removeParticipant(roomId, participantId, call) {
      const where = path`/chats/${roomId}/participants/${participantId}`;
      return dataOf(await send({ ...marking, method: 'DELETE', path: where, ...per(call) }), chatParticipantSchema);
    },

    async reportActivity(roomId, working, { signal, timeoutMs = ACTIVITY_DEADLINE_MS } = {}) {
      const where = path`/chats/${roomId}/activity`;
      try {
        await withDeadline(clock, timeoutMs, signal, async (within) => {
          await send({ method: 'POST', path: where, body: { working }, repeat: 'never', signal: within });
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

const reading = { method: 'GET', repeat: 'transient' } as const;
/** Calls that may be made twice without harm. */
const marking = { method: 'POST', repeat: 'transient' } as const;
/** Calls that would create a second thing. */
const creating = { method: 'POST', repeat: 'undelivered' } as const;

/** 204 says that the agent is stopped in the room; anything but an accepted 200 is no mark. */
async function mark(send: Transport, where: string, body: unknown, call?: CallOptions): Promise<MarkResult> {
  const answer = await send({ ...marking, path: where, body, ...per(call) });
  if (answer.status === 204) return { kind: 'stopped' };
  const status = dataOf(answer, messageStatusSchema);
  if (!status.success) throw badAnswer(answer.request, 'success is false');
  return { kind: 'accepted', attempt: status.attempt_number ?? 1 };
}

import { z } from 'zod';
import { data, json, noContent, type Answer } from '../answer.js';
import type { Platform } from '../platform.js';
import { reportActivity } from '../world/activity.js';
import { mark, markDelivered, nextWork, WORK_STATUSES, type Mark } from '../world/deliveries.js';
import { contextListing, workListing } from '../world/listings.js';
import { EVENT_TYPES, postEvent, postMessage } from '../world/messages.js';
import { answerAsk, plainListing, readAsk } from '../world/paging.js';
import { addParticipant, removeParticipant } from '../world/participants.js';
import { peersOf } from '../world/peers.js';
import { createRoom, renameRoom, roomFor } from '../world/rooms.js';
import * as shapes from '../world/shapes.js';
import type { Agent, Message, Room } from '../world/world.js';
import {
  bothFamilies,
  choice,
  deprecation,
  newChat,
  newMessage,
  newParticipant,
  queryUuid,
  renamedChat,
  requiredText,
} from './fields.js';
import { parseBody } from './body.js';
import { agentRoute, type Call, type Route } from './router.js';

const newEvent = z.object({
  event: z.object({
    content: requiredText,
    message_type: z.enum(EVENT_TYPES, { error: 'is invalid' }),
    metadata: z.record(z.string(), z.unknown(), { error: 'must be an object' }).nullish(),
  }),
});
const activityReport = z.object({ working: z.boolean({ error: 'must be true or false' }) });
const failure = z.object({ error: requiredText });

type AgentCall = Call<Agent>;

/** The agent API: `/api/v1/agent/…`, without contacts. */
export function agentRoutes(platform: Platform): Route[] {
  const { world } = platform;
  const room = ({ caller, params }: AgentCall): Room => roomFor(world, caller.id, params['chat_id'] ?? '');

  return [
    agentRoute('GET', '/me', ({ caller }) => data(shapes.agentMe(caller))),

    agentRoute('GET', '/peers', ({ caller, query }) => {
      const notIn = queryUuid(query, 'not_in_chat');
      const members = notIn === null ? null : roomFor(world, caller.id, notIn).members;
      const peers = peersOf(world, caller).filter(({ id }) => members?.has(id) !== true);
      const answered = answerAsk(readAsk(query, 'page', 'peers'), plainListing(peers), 'peers');
      return json(200, { data: answered.rows, metadata: answered.pages });
    }),

    agentRoute('GET', '/chats', ({ caller, query }) => {
      const rooms = [...(world.roomsOf.get(caller.id) ?? [])];
      const answered = answerAsk(readAsk(query, 'page', 'chats'), plainListing(rooms), 'chats');
      return json(200, { data: answered.rows.map(shapes.chatRoom), metadata: answered.pages });
    }),

    agentRoute('POST', '/chats', ({ caller, body }) => {
      const { chat } = parseBody(newChat, body);
      const created = platform.run((change) => createRoom(change, caller, chat?.title ?? null, chat?.task_id ?? null));
      return data(shapes.chatRoom(created), 201);
    }),

    agentRoute('GET', '/chats/:chat_id', (call) => data(shapes.chatRoom(room(call)))),

    agentRoute('PATCH', '/chats/:chat_id', (call) => {
      const renamed = room(call);
      const { chat } = parseBody(renamedChat, call.body);
      platform.run((change) => {
        renameRoom(change, renamed, call.caller.id, chat.title);
      });
      return data(shapes.chatRoom(renamed));
    }),

    agentRoute('GET', '/chats/:chat_id/messages', (call) => listWork(platform, room(call), call)),

    agentRoute('POST', '/chats/:chat_id/messages', (call) => {
      const target = room(call);
      const { message } = parseBody(newMessage, call.body);
      const sent = platform.run((change) =>
        postMessage(change, target, call.caller, message.content, message.mentions ?? []),
      );
      return messageSent(sent);
    }),

    agentRoute('GET', '/chats/:chat_id/messages/next', (call) => {
      const source = room(call);
      const message = nextWork(source, call.caller.id);
      if (!message) return noContent;
      handOver(platform, source, call.caller.id, [message]);
      return data(shapes.chatMessage(message, { only: call.caller.id }));
    }),

    agentRoute('POST', '/chats/:chat_id/messages/:id/processing', (call) =>
      marked(platform, room(call), call, { mark: 'processing' }),
    ),
    agentRoute('POST', '/chats/:chat_id/messages/:id/processed', (call) =>
      marked(platform, room(call), call, { mark: 'processed' }),
    ),
    agentRoute('POST', '/chats/:chat_id/messages/:id/failed', (call) => {
      const target = room(call);
      const { error } = parseBody(failure, call.body);
      return marked(platform, target, call, { mark: 'failed', error });
    }),

    agentRoute('POST', '/chats/:chat_id/events', (call) => {
      const target = room(call);
      const { event } = parseBody(newEvent, call.body);
      const { id } = platform.run((change) =>
        postEvent(change, target, call.caller, event.message_type, event.content, event.metadata ?? null),
      );
      return data({ id, message_type: event.message_type, success: true }, 201);
    }),

    agentRoute('GET', '/chats/:chat_id/participants', (call) =>
      data([...room(call).members.values()].map((member) => shapes.participant(world, member))),
    ),

    agentRoute('POST', '/chats/:chat_id/participants', (call) => {
      const target = room(call);
      const { participant } = parseBody(newParticipant, call.body);
      const member = platform.run((change) =>
        addParticipant(change, target, call.caller, participant.participant_id, participant.role ?? 'member'),
      );
      return data(shapes.participant(world, member), 201);
    }),

    agentRoute('DELETE', '/chats/:chat_id/participants/:id', (call) => {
      const target = room(call);
      const member = platform.run((change) => removeParticipant(change, target, call.caller, call.params['id'] ?? ''));
      return data(shapes.participant(world, member, 'removed'));
    }),

    agentRoute('GET', '/chats/:chat_id/context', (call) => readContext(platform, room(call), call)),

    agentRoute('POST', '/chats/:chat_id/activity', (call) => {
      const target = room(call);
      const report = parseBody(activityReport, call.body);
      const working = platform.run((change) =>
        reportActivity(change, target, call.caller.id, report.working, platform.clock.now()),
      );
      return data({ working });
    }),
  ];
}

/** The 201 of a posted message, on both surfaces. */
export function messageSent(message: Message): Answer {
  const recipients = (message.mentions ?? [])
    .filter(({ kind }) => kind === 'mention')
    .map(({ id, handle, name }) => ({ id, handle, name }));
  return data({ id: message.id, success: true, recipients }, 201);
}

function listWork(platform: Platform, room: Room, { caller, query }: AgentCall): Answer {
  const status = choice(query, 'status', WORK_STATUSES);
  const order = choice(query, 'sort_order', ['asc', 'desc']) ?? 'asc';
  const filters = `work ${room.record.id} ${status ?? ''} ${order}`;
  const ask = readAsk(query, 'both', filters);
  const answered = answerAsk(ask, workListing(room, caller.id, status, order), filters);
  handOver(platform, room, caller.id, answered.rows);
  const rows = answered.rows.map((message) => shapes.chatMessage(message, { only: caller.id }));
  return bothFamilies(answered, rows, { status_filter: status }).answer;
}

function readContext(platform: Platform, room: Room, { caller, query }: AgentCall): Answer {
  const filters = `context ${room.record.id}`;
  const answered = answerAsk(readAsk(query, 'both', filters, 50), contextListing(room, caller.id), filters);
  const own = platform.switches.deliveryStatusOnOwnRows ? 'all' : 'none';
  const rows = answered.rows.map((message) =>
    shapes.chatMessage(message, message.senderId === caller.id ? own : { only: caller.id }),
  );
  const { metadata } = bothFamilies(answered, rows);
  return json(200, { data: rows, metadata, meta: metadata }, deprecation(answered));
}

/** A read that shows a message to its agent delivers it, unless the agent is stopped. */
function handOver(platform: Platform, room: Room, agentId: string, messages: readonly Message[]): void {
  const fresh = messages.filter((message) => !message.deliveries.has(agentId));
  if (fresh.length === 0 || room.executions.get(agentId)?.stopped === true) return;
  platform.run((change) => {
    for (const message of fresh) markDelivered(change, room, message, agentId);
  });
}

function marked(platform: Platform, room: Room, { caller, params }: AgentCall, to: Mark): Answer {
  const id = params['id'] ?? '';
  const keepsAttempt = platform.switches.repeatedProcessingKeepsAttempt;
  const attempt = platform.run((change) => mark(change, room, caller.id, id, to, keepsAttempt));
  if (attempt === null) return noContent;
  return data({ id, status: to.mark, attempt_number: attempt, success: true });
}

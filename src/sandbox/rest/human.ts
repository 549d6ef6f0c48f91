import { z } from 'zod';
import { data, json, type Answer } from '../answer.js';
import type { Platform } from '../platform.js';
import { roomListing } from '../world/listings.js';
import { EVENT_TYPES, postMessage } from '../world/messages.js';
import { answerAsk, plainListing, readAsk, sortedListing } from '../world/paging.js';
import { addParticipant, removeParticipant } from '../world/participants.js';
import { peersOf } from '../world/peers.js';
import { renameUser } from '../world/people.js';
import { createRoom, deleteRoom, renameRoom, roomFor } from '../world/rooms.js';
import { invalid } from '../world/problem.js';
import * as shapes from '../world/shapes.js';
import type { Room, User } from '../world/world.js';
import { messageSent } from './agent.js';
import { parseBody } from './body.js';
import {
  bothFamilies,
  choice,
  newChat,
  newMessage,
  newParticipant,
  queryMoment,
  queryUuid,
  renamedChat,
  text,
} from './fields.js';
import { userRoute, type Call, type Route } from './router.js';

const newProfile = z.object({
  user: z.object({ first_name: text.nullish(), last_name: text.nullish() }, { error: 'must be an object' }),
});

type UserCall = Call<User>;

/** The human API: `/api/v1/me/…`, without agents, control and contacts. */
export function humanRoutes(platform: Platform): Route[] {
  const { world } = platform;
  const room = ({ caller, params }: UserCall): Room => roomFor(world, caller.id, params['chat_id'] ?? '');

  return [
    userRoute('GET', '/profile', ({ caller }) => data(shapes.profile(caller))),

    userRoute('PUT', '/profile', ({ caller, body }) => {
      const { user } = parseBody(newProfile, body);
      const now = shapes.profile(caller);
      const name = `${user.first_name ?? now.first_name} ${user.last_name ?? now.last_name}`.trim();
      if (name === '') throw invalid('/user/first_name', "can't be blank");
      return data(shapes.profile(platform.run((change) => renameUser(change, caller, name))));
    }),

    userRoute('GET', '/peers', ({ caller, query }) => {
      const notIn = queryUuid(query, 'not_in_chat');
      const type = choice(query, 'type', ['User', 'Agent']);
      const members = notIn === null ? null : roomFor(world, caller.id, notIn).members;
      const peers = peersOf(world, caller).filter(
        (peer) => members?.has(peer.id) !== true && (type === null || peer.type === type),
      );
      const answered = answerAsk(readAsk(query, 'page', 'peers'), plainListing(peers), 'peers');
      return json(200, { data: answered.rows, metadata: answered.pages });
    }),

    userRoute('GET', '/chats', ({ caller, query }) => listRooms(platform, caller, query)),

    userRoute('POST', '/chats', ({ caller, body }) => {
      const { chat } = parseBody(newChat, body);
      const created = platform.run((change) => createRoom(change, caller, chat?.title ?? null, chat?.task_id ?? null));
      return data(shapes.meChatRoom(created), 201);
    }),

    userRoute('GET', '/chats/:chat_id', (call) => data(shapes.meChatRoom(room(call)))),

    userRoute('PATCH', '/chats/:chat_id', (call) => {
      const renamed = room(call);
      const { chat } = parseBody(renamedChat, call.body);
      platform.run((change) => {
        renameRoom(change, renamed, call.caller.id, chat.title);
      });
      return data(shapes.meChatRoom(renamed));
    }),

    userRoute('DELETE', '/chats/:chat_id', (call) => {
      const target = room(call);
      const answer = data(shapes.meChatRoom(target));
      platform.run((change) => {
        deleteRoom(change, target, call.caller.id);
      });
      return answer;
    }),

    userRoute('GET', '/chats/:chat_id/messages', (call) => listMessages(room(call), call)),

    userRoute('POST', '/chats/:chat_id/messages', (call) => {
      const target = room(call);
      const { message } = parseBody(newMessage, call.body);
      return messageSent(
        platform.run((change) => postMessage(change, target, call.caller, message.content, message.mentions ?? [])),
      );
    }),

    userRoute('GET', '/chats/:chat_id/participants', (call) => {
      const source = room(call);
      const type = choice(call.query, 'participant_type', ['User', 'Agent']);
      const filters = `participants ${source.record.id} ${type ?? ''}`;
      const members = [...source.members.values()].filter(({ kind }) => type === null || kind === type);
      const listing = sortedListing(members, ({ id, insertedAt }) => ({ sort: insertedAt, id }), 'asc');
      const answered = answerAsk(readAsk(call.query, 'both', filters), listing, filters);
      const rows = answered.rows.map((member) => shapes.participantDetails(world, member));
      return bothFamilies(answered, rows).answer;
    }),

    userRoute('POST', '/chats/:chat_id/participants', (call) => {
      const target = room(call);
      const { participant } = parseBody(newParticipant, call.body);
      const member = platform.run((change) =>
        addParticipant(change, target, call.caller, participant.participant_id, participant.role ?? 'member'),
      );
      return data(shapes.participant(world, member), 201);
    }),

    userRoute('DELETE', '/chats/:chat_id/participants/:id', (call) => {
      const target = room(call);
      const member = platform.run((change) => removeParticipant(change, target, call.caller, call.params['id'] ?? ''));
      return data(shapes.participant(world, member, 'removed'));
    }),
  ];
}

function listRooms({ world }: Platform, caller: User, query: URLSearchParams): Answer {
  const status = choice(query, 'status', ['active', 'archived', 'closed']);
  const type = choice(query, 'type', ['direct', 'group', 'task']);
  const sortBy = choice(query, 'sort_by', ['inserted_at', 'updated_at']) ?? 'inserted_at';
  const order = choice(query, 'order', ['asc', 'desc']) ?? 'desc';
  const filters = `chats ${status ?? ''} ${type ?? ''} ${sortBy} ${order}`;
  // Rooms of the sandbox are active until they are deleted.
  const rooms = [...(world.roomsOf.get(caller.id) ?? [])].filter(
    (room) => (status === null || status === 'active') && (type === null || shapes.roomType(room) === type),
  );
  const listing = sortedListing(
    rooms,
    ({ record }) => ({ sort: sortBy === 'inserted_at' ? record.insertedAt : record.updatedAt, id: record.id }),
    order,
  );
  const answered = answerAsk(readAsk(query, 'both', filters), listing, filters);
  return bothFamilies(answered, answered.rows.map(shapes.meChatRoom)).answer;
}

function listMessages(room: Room, { query }: UserCall): Answer {
  const types = messageTypes(query);
  const since = queryMoment(query, 'since');
  if (since !== null && query.has('cursor')) throw invalid('/since', 'cannot be combined with cursor');
  const filters = `messages ${room.record.id} ${types?.join() ?? ''}`;
  const answered = answerAsk(readAsk(query, 'both', filters), roomListing(room, types, since), filters);
  return bothFamilies(
    answered,
    answered.rows.map((message) => shapes.chatMessage(message, 'all')),
  ).answer;
}

const MESSAGE_TYPES: readonly string[] = ['text', ...EVENT_TYPES];

/** The types asked for by one of three parameters, in the order of the table; null for all. */
function messageTypes(query: URLSearchParams): readonly string[] | null {
  const names = ['message_type', 'message_types', 'exclude_message_types'].filter((name) => query.has(name));
  const [name, another] = names;
  if (another !== undefined) throw invalid(`/${another}`, 'cannot be combined with another type filter');
  if (name === undefined || query.get(name) === '') return null;
  // A list comes as one value with commas, or as the parameter repeated.
  const values = query.getAll(name).flatMap((value) => (name === 'message_type' ? [value] : value.split(',')));
  if (!values.every((value) => MESSAGE_TYPES.includes(value))) throw invalid(`/${name}`, 'is invalid');
  return MESSAGE_TYPES.filter((type) => values.includes(type) !== (name === 'exclude_message_types'));
}

import { z } from 'zod';
import type { LinkEvent } from './link-port.js';
import { parseTopic, type TopicKind } from './topics.js';
import {
  agentControlSchema,
  type AgentControl,
  contactAddedSchema,
  contactRemovedSchema,
  contactRequestReceivedSchema,
  contactRequestUpdatedSchema,
  messageCreatedSchema,
  participantAddedSchema,
  participantRemovedSchema,
  roomChangedSchema,
  roomDeletedSchema,
  type Supersede,
  supersedeSchema,
} from './wire/socket-events.js';

/** What a push turned out to be. */
type Push =
  | { readonly kind: 'event'; readonly event: LinkEvent }
  | { readonly kind: 'control'; readonly control: AgentControl }
  | { readonly kind: 'supersede'; readonly supersede: Supersede }
  /** An event this version does not know: newer platforms may send more. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'invalid'; readonly problem: string };

type Payload = Readonly<Record<string, unknown>>;
/** From the payload and the id in the topic to the event; null for a payload that fails its schema. */
type Reader = (payload: Payload, topicId: string) => Push;

function reader<S extends z.ZodType>(schema: S, toPush: (payload: z.infer<S>, topicId: string) => Push): Reader {
  return (payload, topicId) => {
    const parsed = schema.safeParse(payload);
    return parsed.success
      ? toPush(parsed.data, topicId)
      : { kind: 'invalid', problem: z.prettifyError(parsed.error).slice(0, 300) };
  };
}

const event = (it: LinkEvent): Push => ({ kind: 'event', event: it });

/** Every event an agent's socket may carry, by the topic that carries it. */
const READERS: Readonly<Record<TopicKind, Readonly<Record<string, Reader>>>> = {
  control: {
    supersede: reader(supersedeSchema, (supersede) => ({ kind: 'supersede', supersede })),
    'agent.control': reader(agentControlSchema, (control) => ({ kind: 'control', control })),
  },
  rooms: {
    room_added: reader(roomChangedSchema, (room) => event({ kind: 'room_added', roomId: room.id, room })),
    room_removed: reader(roomChangedSchema, (room) => event({ kind: 'room_removed', roomId: room.id, room })),
  },
  contacts: {
    contact_request_received: reader(contactRequestReceivedSchema, (request) =>
      event({ kind: 'contact_request_received', request }),
    ),
    contact_request_updated: reader(contactRequestUpdatedSchema, (request) =>
      event({ kind: 'contact_request_updated', request }),
    ),
    contact_added: reader(contactAddedSchema, (contact) => event({ kind: 'contact_added', contact })),
    contact_removed: reader(contactRemovedSchema, (contact) => event({ kind: 'contact_removed', contact })),
  },
  chat_room: {
    // The topic says which room it is; a payload that named another one would be worked on in the wrong place.
    message_created: reader(messageCreatedSchema, (message, roomId) =>
      event({ kind: 'message_created', roomId, message }),
    ),
  },
  participants: {
    participant_added: reader(participantAddedSchema, (participant, roomId) =>
      event({ kind: 'participant_added', roomId, participant }),
    ),
    participant_removed: reader(participantRemovedSchema, (participant, roomId) =>
      event({ kind: 'participant_removed', roomId, participant }),
    ),
    room_deleted: reader(roomDeletedSchema, (_room, roomId) => event({ kind: 'room_deleted', roomId })),
  },
  other: {},
};

/** Reads a push at the door: its payload is checked here and trusted from here on. */
export function readPush(topic: string, name: string, payload: Payload): Push {
  const { kind, id } = parseTopic(topic);
  const readers = READERS[kind];
  const read = Object.hasOwn(readers, name) ? readers[name] : undefined;
  return read ? read(payload, id) : { kind: 'unknown' };
}

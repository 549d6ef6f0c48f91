import { z } from 'zod';
import { mentionSchema } from './objects.js';

/**
 * Payloads of Band's socket events, in the wire's own spelling. Required keys are those that a writer always sends;
 * a payload without them is dropped by its reader. Unknown keys pass through.
 */

const id = z.string().min(1);
const text = z.string();
const optionalText = z.string().nullish();

/** `message_created` (and, to people only, `message_updated`) on `chat_room:{room}`. */
export const messageCreatedSchema = z.looseObject({
  id,
  content: text,
  message_type: text,
  sender_id: id,
  sender_type: text,
  sender_name: optionalText,
  chat_room_id: optionalText,
  thread_id: optionalText,
  metadata: z.looseObject({ mentions: z.array(mentionSchema).nullish() }).nullish(),
  inserted_at: text,
  updated_at: text,
});
export type MessageCreated = z.infer<typeof messageCreatedSchema>;

/** `room_added` and `room_removed` on `agent_rooms:{agent}`. */
export const roomChangedSchema = z.looseObject({
  id,
  title: optionalText,
  task_id: optionalText,
  inserted_at: text,
  updated_at: text,
  status: optionalText,
  type: optionalText,
  participant_role: optionalText,
  removed_at: optionalText,
});
export type RoomChanged = z.infer<typeof roomChangedSchema>;

/** `room_deleted` on `room_participants:{room}`. */
export const roomDeletedSchema = z.looseObject({ id });

/** `participant_added` on `room_participants:{room}`. */
export const participantAddedSchema = z.looseObject({
  id,
  name: text,
  type: text,
  handle: optionalText,
  description: optionalText,
  is_external: z.boolean().nullish(),
  is_remote: z.boolean().nullish(),
  role: optionalText,
  status: optionalText,
});
export type ParticipantAdded = z.infer<typeof participantAddedSchema>;

/**
 * `participant_removed` on `room_participants:{room}`. Writers send `name` and `type` as well; a reader that insists
 * on them goes on believing in someone who left, so only the id is required here.
 */
export const participantRemovedSchema = z.looseObject({ id, name: optionalText, type: optionalText });
export type ParticipantRemoved = z.infer<typeof participantRemovedSchema>;

/** `contact_request_received` on `agent_contacts:{agent}`. */
export const contactRequestReceivedSchema = z.looseObject({
  id,
  status: text,
  inserted_at: text,
  from_handle: optionalText,
  from_name: optionalText,
  message: optionalText,
});
export type ContactRequestReceived = z.infer<typeof contactRequestReceivedSchema>;

/** `contact_request_updated` on `agent_contacts:{agent}`. */
export const contactRequestUpdatedSchema = z.looseObject({ id, status: text });
export type ContactRequestUpdated = z.infer<typeof contactRequestUpdatedSchema>;

/** `contact_added` on `agent_contacts:{agent}`; the keys `handle` and `name` are always there, possibly null. */
export const contactAddedSchema = z.looseObject({
  id,
  type: text,
  inserted_at: text,
  handle: text.nullable(),
  name: text.nullable(),
  description: optionalText,
  is_external: z.boolean().nullish(),
});
export type ContactAdded = z.infer<typeof contactAddedSchema>;

/** `contact_removed` on `agent_contacts:{agent}`. */
export const contactRemovedSchema = z.looseObject({ id });
export type ContactRemoved = z.infer<typeof contactRemovedSchema>;

/** `supersede` on `agent_control:{agent}`: a newer connection took this agent's place. */
export const supersedeSchema = z.looseObject({
  reason: text,
  message: text,
  correlation_id: optionalText,
  retryable: z.boolean().catch(false),
  retry_after: z.int().nullable().catch(null),
});
export type Supersede = z.infer<typeof supersedeSchema>;

/** `agent.control` on `agent_control:{agent}`; `room_id` null with scope `agent` means every room. */
export const agentControlSchema = z.looseObject({
  mode: z.enum(['interrupt', 'stop', 'play']),
  scope: z.enum(['agent', 'room']),
  agent_id: id,
  execution_id: optionalText,
  room_id: optionalText,
  correlation_id: optionalText,
  reason: optionalText,
});
export type AgentControl = z.infer<typeof agentControlSchema>;

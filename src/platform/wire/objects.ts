import { z } from 'zod';

/** Objects of Band's REST answers and socket payloads, in the wire's own spelling. Unknown keys pass through. */

const timestamp = z.string();
const id = z.string();

export const agentMeSchema = z.looseObject({
  id,
  name: z.string(),
  handle: z.string().nullish(),
  owner_uuid: z.string().nullish(),
  description: z.string().nullish(),
  inserted_at: timestamp.nullish(),
  updated_at: timestamp.nullish(),
  feature_flags: z.record(z.string(), z.unknown()).nullish(),
});
export type AgentMe = z.infer<typeof agentMeSchema>;

export const peerSchema = z.looseObject({
  id,
  name: z.string(),
  handle: z.string().nullish(),
  type: z.string(),
  description: z.string().nullish(),
  is_contact: z.boolean().nullish(),
  is_external: z.boolean().nullish(),
  listed_in_directory: z.boolean().nullish(),
  source: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
});
export type Peer = z.infer<typeof peerSchema>;

export const chatRoomSchema = z.looseObject({
  id,
  title: z.string().nullish(),
  task_id: z.string().nullish(),
  inserted_at: timestamp.nullish(),
  updated_at: timestamp.nullish(),
});
export type ChatRoom = z.infer<typeof chatRoomSchema>;

export const mentionSchema = z.looseObject({
  id,
  handle: z.string().nullish(),
  name: z.string().nullish(),
  kind: z.string().nullish(),
});

const deliverySchema = z.looseObject({
  status: z.string(),
  current_attempt: z.number().nullish(),
  attempts: z.array(z.looseObject({ attempt_number: z.number().nullish(), status: z.string().nullish() })).nullish(),
});

export const messageMetadataSchema = z.looseObject({
  mentions: z.array(mentionSchema).nullish(),
  status: z.string().nullish(),
  delivery_status: z.record(z.string(), deliverySchema).nullish(),
});

export const chatMessageSchema = z.looseObject({
  id,
  content: z.string(),
  message_type: z.string(),
  sender_id: z.string(),
  sender_type: z.string(),
  sender_name: z.string().nullish(),
  chat_room_id: z.string().nullish(),
  // Events carry whatever their author posted, so the shape is only read where it is needed.
  metadata: z.record(z.string(), z.unknown()).nullish(),
  inserted_at: timestamp.nullish(),
  updated_at: timestamp.nullish(),
});
export type ChatMessage = z.infer<typeof chatMessageSchema>;

export const chatParticipantSchema = z.looseObject({
  id,
  name: z.string().nullish(),
  type: z.string(),
  role: z.string().nullish(),
  status: z.string().nullish(),
  handle: z.string().nullish(),
  description: z.string().nullish(),
});
export type ChatParticipant = z.infer<typeof chatParticipantSchema>;

export const messageSentSchema = z.looseObject({
  id,
  success: z.boolean(),
  recipients: z.array(z.looseObject({ id, handle: z.string().nullish(), name: z.string().nullish() })).nullish(),
});
export type MessageSent = z.infer<typeof messageSentSchema>;

export const eventCreatedSchema = z.looseObject({ id, message_type: z.string(), success: z.boolean() });
export type EventCreated = z.infer<typeof eventCreatedSchema>;

export const messageStatusSchema = z.looseObject({
  id,
  status: z.string(),
  attempt_number: z.number().nullish(),
  success: z.boolean(),
});

/** `message_type` of everything but `text`: rows an agent writes beside the conversation. */
export const EVENT_TYPES = ['tool_call', 'tool_result', 'thought', 'error', 'task', 'attention'] as const;
export type EventMessageType = (typeof EVENT_TYPES)[number];

/** What Band accepts at most. */
export const MAX_EVENT_CONTENT_CHARS = 16_384;
export const MAX_EVENT_METADATA_BYTES = 65_536;

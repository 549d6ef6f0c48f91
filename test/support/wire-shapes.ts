import { z } from 'zod';

/**
 * Band's objects exactly as the API describes them: a field that is missing, misspelled, of another type or not
 * described makes the parse fail.
 */

const uuid = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
const timestamp = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
const count = z.number().int().nonnegative();

export const agentMeShape = z.strictObject({
  id: uuid,
  name: z.string().min(1),
  handle: z.string().regex(/^[^@/]+\/[^@/]+$/),
  owner_uuid: uuid,
  description: z.string().min(1),
  inserted_at: timestamp,
  updated_at: timestamp,
  listed_in_directory: z.boolean(),
  tags: z.array(z.string()),
  feature_flags: z.record(z.string(), z.boolean()),
});

export const peerShape = z.strictObject({
  id: uuid,
  name: z.string(),
  handle: z.string().regex(/^[^@]+$/),
  type: z.enum(['User', 'Agent']),
  description: z.string().nullable(),
  is_contact: z.boolean(),
  is_external: z.boolean().nullable(),
  listed_in_directory: z.boolean().nullable(),
  online: z.boolean(),
  source: z.enum(['registry', 'contact']),
  tags: z.array(z.string()).nullable(),
});

const room = {
  id: uuid,
  title: z.string().nullable(),
  task_id: uuid.nullable(),
  inserted_at: timestamp,
  updated_at: timestamp,
};
export const chatRoomShape = z.strictObject(room);
export const meChatRoomShape = z.strictObject({
  ...room,
  type: z.enum(['direct', 'group', 'task']),
  status: z.enum(['active', 'archived', 'closed']),
  last_message_at: timestamp.nullable(),
});

const mentionShape = z.strictObject({
  id: uuid,
  handle: z.string(),
  name: z.string(),
  kind: z.enum(['mention', 'reference']),
});
const attemptShape = z.strictObject({
  attempt_number: z.number().int().min(1),
  status: z.enum(['processing', 'success', 'failed']),
  started_at: timestamp,
  completed_at: timestamp.optional(),
  error: z.string().optional(),
});
export const deliveryShape = z.strictObject({
  status: z.enum(['delivered', 'processing', 'processed', 'failed']),
  current_attempt: count,
  delivered_at: timestamp.nullable(),
  processed_at: timestamp.nullable(),
  attempts: z.array(attemptShape),
});

const message = {
  id: uuid,
  content: z.string(),
  sender_id: uuid,
  sender_type: z.enum(['User', 'Agent']),
  sender_name: z.string(),
  chat_room_id: uuid,
  inserted_at: timestamp,
  updated_at: timestamp,
};
const textMetadata = z.strictObject({
  mentions: z.array(mentionShape),
  status: z.literal('sent'),
  delivery_status: z.record(uuid, deliveryShape).optional(),
});
const eventTypes = z.enum(['tool_call', 'tool_result', 'thought', 'error', 'task', 'attention']);
export const textMessageShape = z.strictObject({ ...message, message_type: z.literal('text'), metadata: textMetadata });
export const eventMessageShape = z.strictObject({
  ...message,
  message_type: eventTypes,
  metadata: z.record(z.string(), z.unknown()),
});
export const chatMessageShape = z.union([textMessageShape, eventMessageShape]);
export const messagePayloadShape = z.strictObject({
  ...message,
  message_type: z.literal('text'),
  metadata: textMetadata,
  thread_id: z.null(),
});
export const eventPayloadShape = z.strictObject({
  ...message,
  message_type: eventTypes,
  metadata: z.record(z.string(), z.unknown()),
  thread_id: z.null(),
});

const participant = {
  id: uuid,
  name: z.string(),
  type: z.enum(['User', 'Agent']),
  role: z.enum(['owner', 'admin', 'member']),
  status: z.string(),
  handle: z.string().nullable(),
  online: z.boolean(),
};
export const participantShape = z.strictObject(participant);
export const participantDetailsShape = z.strictObject({
  ...participant,
  description: z.string().nullable(),
  is_external: z.boolean().nullable(),
});

export const messageSentShape = z.strictObject({
  id: uuid,
  success: z.literal(true),
  recipients: z.array(z.strictObject({ id: uuid, handle: z.string(), name: z.string() })),
});
export const eventCreatedShape = z.strictObject({ id: uuid, message_type: eventTypes, success: z.literal(true) });
export const messageStatusShape = z.strictObject({
  id: uuid,
  status: z.enum(['processing', 'processed', 'failed']),
  attempt_number: z.number().int().min(1),
  success: z.literal(true),
});

export const errorShape = z.strictObject({
  error: z.strictObject({
    code: z.string().min(1),
    message: z.string().min(1),
    request_id: z.string().min(1),
    details: z.record(z.string(), z.array(z.string())).optional(),
  }),
});

const page = { page: count, page_size: count, total_count: count, total_pages: z.number().int().min(1) };
const cursor = { has_more: z.boolean(), limit: count, next_cursor: z.string().nullable() };
export const pageMetadataShape = z.strictObject(page);
export const bothMetadataShape = z.strictObject({ ...page, ...cursor });
export const workMetadataShape = z.strictObject({ ...page, ...cursor, status_filter: z.string().nullable() });

export const listShape = <Row extends z.ZodType, Metadata extends z.ZodType>(row: Row, metadata: Metadata) =>
  z.strictObject({ data: z.array(row), metadata });
export const oneShape = <Data extends z.ZodType>(data: Data) => z.strictObject({ data });

export const profileShape = z.strictObject({
  id: uuid,
  email: z.string(),
  handle: z.string(),
  role: z.enum(['user', 'admin']),
  first_name: z.string(),
  last_name: z.string(),
  listed_in_directory: z.boolean(),
});
export const myAgentShape = z.strictObject({
  id: uuid,
  name: z.string(),
  description: z.string().nullable(),
  is_external: z.boolean(),
  slug: z.string().nullable(),
  listed_in_directory: z.boolean(),
  registry_access: z.boolean(),
  shared_with_organization: z.boolean(),
  model_type: z.string().nullable(),
  system_prompt_id: z.string().nullable(),
  tags: z.array(z.string()),
  inserted_at: timestamp,
  updated_at: timestamp,
});
export const executionShape = z.strictObject({
  id: uuid,
  agent_id: uuid,
  chat_room_id: uuid,
  status: z.enum(['active', 'stopped']),
  working: z.boolean(),
  inserted_at: timestamp,
  updated_at: timestamp,
});

export const roomAddedShape = z.strictObject({
  ...room,
  title: z.string(),
  owner: z.strictObject({ id: uuid, name: z.string(), type: z.enum(['User', 'Agent']) }),
  status: z.string(),
  type: z.string(),
  participant_role: z.enum(['owner', 'admin', 'member']),
});
export const roomRemovedShape = z.strictObject({
  ...room,
  title: z.string(),
  status: z.string(),
  type: z.string(),
  removed_at: timestamp,
});
export const participantAddedShape = z.strictObject({
  ...participant,
  description: z.string().nullable(),
  is_external: z.boolean().nullable(),
  is_remote: z.boolean().nullable(),
});
export const participantRemovedShape = z.strictObject({
  id: uuid,
  name: z.string(),
  type: z.enum(['User', 'Agent']),
  handle: z.string(),
});
export const supersedeShape = z.strictObject({
  reason: z.literal('session.already_connected'),
  message: z.string().min(1),
  retryable: z.literal(false),
  retry_after: z.null(),
  target_socket_id: z.string(),
  correlation_id: z.string(),
});
export const controlShape = z.strictObject({
  type: z.literal('agent.control'),
  mode: z.enum(['interrupt', 'stop', 'play']),
  scope: z.enum(['agent', 'room']),
  agent_id: uuid,
  execution_id: uuid.nullable(),
  room_id: uuid.nullable(),
  correlation_id: uuid,
});
export const activityShape = z.strictObject({
  agent_id: uuid,
  chat_room_id: uuid,
  working: z.boolean(),
  expires_at: timestamp.nullable(),
});

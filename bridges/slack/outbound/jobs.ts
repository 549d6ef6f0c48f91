import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { MentionPolicy } from '../convert/index.js';
import { CONTROL_ACTIONS, type MentionRule } from './port.js';

const threadSchema = z.object({
  slug: z.string(),
  team: z.string(),
  channel: z.string(),
  threadTs: z.string(),
  askerId: z.string().nullable(),
});
const mentionsSchema = z.object({
  users: z.union([z.enum(['none', 'any']), z.array(z.string())]),
  groups: z.boolean(),
  broadcast: z.boolean(),
  channels: z.union([z.literal('any'), z.array(z.string())]),
});
const buttonsSchema = z.array(
  z.object({ action: z.enum(CONTROL_ACTIONS), value: z.string(), label: z.string().optional() }),
);

const postJobSchema = z.object({
  kind: z.literal('post'),
  thread: threadSchema,
  post: z.enum(['reply', 'relay', 'notice', 'error', 'control']),
  markdown: z.string(),
  mentions: mentionsSchema,
  speaker: z.object({ name: z.string(), icon: z.string().nullable() }).nullable(),
  buttons: buttonsSchema,
  broadcast: z.boolean(),
});
const ephemeralJobSchema = z.object({
  kind: z.literal('ephemeral'),
  thread: threadSchema,
  userId: z.string(),
  text: z.string(),
  buttons: buttonsSchema,
  /** By direct message first: the channel takes nothing from us. */
  direct: z.boolean().default(false),
  /** See {@link ResponseWay}. */
  response: z.object({ url: z.string(), until: z.number(), replace: z.boolean().optional() }).nullable().default(null),
});
const editJobSchema = z.object({
  kind: z.literal('edit'),
  thread: threadSchema,
  ts: z.string(),
  markdown: z.string(),
  buttons: buttonsSchema,
});
const uploadJobSchema = z.object({
  kind: z.literal('upload'),
  thread: threadSchema,
  filename: z.string(),
  title: z.string().nullable(),
  comment: z.string().nullable(),
  mentions: mentionsSchema,
  /** The bytes stand beside the record, in chunks. */
  length: z.number(),
  chunks: z.number(),
});
const reactionJobSchema = z.object({
  kind: z.literal('reaction'),
  thread: threadSchema,
  ts: z.string(),
  emoji: z.string(),
  on: z.boolean(),
});
/** A room learns that something did not reach Slack. */
const roomErrorJobSchema = z.object({
  kind: z.literal('room_error'),
  thread: threadSchema,
  text: z.string(),
  slackError: z.string(),
  ref: z.string(),
});

/** The conversation goes on under another first message. */
const movedJobSchema = z.object({ kind: z.literal('moved'), thread: threadSchema, newTs: z.string() });

/** One write that waits, as the outbox keeps it. */
export const jobSchema = z.discriminatedUnion('kind', [
  postJobSchema,
  ephemeralJobSchema,
  editJobSchema,
  uploadJobSchema,
  reactionJobSchema,
  roomErrorJobSchema,
  movedJobSchema,
]);
export type Job = z.infer<typeof jobSchema>;
export type PostJob = z.infer<typeof postJobSchema>;
export type EphemeralJob = z.infer<typeof ephemeralJobSchema>;
export type EditJob = z.infer<typeof editJobSchema>;
export type UploadJob = z.infer<typeof uploadJobSchema>;
export type ReactionJob = z.infer<typeof reactionJobSchema>;

/**
 * The lane of a job. What shows up in a thread keeps its order there, and a post that is slow or refused holds up no
 * other thread; that a channel gets its posts in the order they were put is up to the pace of the channel, which
 * serves who asks first. Everything else keeps its order in its channel.
 */
export function laneOf({ kind, thread: { slug, team, channel, threadTs } }: Pick<Job, 'kind' | 'thread'>): string {
  const place = `${slug}:${team}:${channel}`;
  return kind === 'post' || kind === 'upload' ? `post:${place}:${threadTs}` : `${kind}:${place}`;
}

export const NOBODY: MentionRule = { users: 'none', groups: false, broadcast: false, channels: [] };

/** The same rule as a record holds it. */
export const copyRule = ({ users, groups, broadcast, channels }: MentionRule): PostJob['mentions'] => ({
  users: typeof users === 'string' ? users : [...users],
  groups,
  broadcast,
  channels: channels === 'any' ? channels : [...channels],
});

/** The rule as the converters ask it. */
export function mentionPolicy({ users, groups, broadcast, channels }: MentionRule): MentionPolicy {
  const userSet = typeof users === 'string' ? null : new Set(users);
  const channelSet = channels === 'any' ? null : new Set(channels);
  return {
    user: (id) => userSet?.has(id) ?? users === 'any',
    group: () => groups,
    channel: (id) => channelSet?.has(id) ?? true,
    broadcast,
  };
}

/** A short name for ids of any length, the same in every process. */
export function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22);
}

/** What a person can quote of something that went wrong. */
export const referenceOf = (id: string): string =>
  digest('ref', id)
    .replace(/[^A-Za-z0-9]/g, '0')
    .slice(0, 8)
    .toUpperCase();

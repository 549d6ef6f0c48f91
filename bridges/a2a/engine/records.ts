import { hash } from 'node:crypto';
import { z } from 'zod';
import { TASK_STATES, type TaskState } from '../wire.js';
import type { LogEvent } from './log.js';

/** What the store holds of this bridge, and under which keys. */

export const taskRowSchema = z.object({
  v: z.literal(1),
  id: z.string(),
  /** The principal whose task this is. */
  owner: z.string(),
  peerId: z.string(),
  contextId: z.string(),
  state: z.enum(TASK_STATES),
  /** Number of the next log record. */
  seq: z.number(),
  createdAt: z.number(),
  /** Grows with every task: the order of tasks that came in one millisecond. */
  order: z.number(),
  /** Milliseconds of the status timestamp; never goes back. */
  stateAt: z.number(),
  /** Of the last log record. */
  lastEventAt: z.number(),
  /** Last post, reply or remark: what the silence timer counts from. */
  lastActivityAt: z.number(),
  /** Ids of user messages that are accepted and not known to stand in the room, in order. */
  pending: z.array(z.string()),
  /** User messages that stand in the room. */
  posted: z.number(),
  lastPostId: z.string().nullable(),
  /** Replies that count as answers. */
  replies: z.number(),
  /** Messages in the room that the peer has not answered. */
  unanswered: z.number(),
  lastReplyAt: z.number().nullable(),
  /** The last reply said that more follows. */
  moreFollows: z.boolean(),
  /** Interrupted by silence, not by the peer. */
  parked: z.boolean(),
  /** Texts that wait for the final status message (`result_in` status and both). */
  resultTexts: z.array(z.string()),
  /** It failed before anything of it can have stood in a room, so a repeat of its message is a new try. */
  unposted: z.boolean().optional(),
});
export type TaskRow = z.infer<typeof taskRowSchema>;

export const contextRecordSchema = z.object({
  owner: z.string(),
  contextId: z.string(),
  roomId: z.string().nullable(),
  /** Peers known to be in the room. */
  peers: z.array(z.string()),
  /** Peers ever addressed in this context. */
  addressed: z.array(z.string()),
  /** Where reading the room's history forward begins. */
  cursor: z.string().nullable(),
  lastUsedAt: z.number(),
});
export type ContextRecord = z.infer<typeof contextRecordSchema>;

export const laneRecordSchema = z.object({
  /** Ids of replies already taken or dropped, newest last. */
  taken: z.array(z.string()),
  /** A message that ended without its answer: the answer may still come. `answered`: one came and was dropped. */
  debt: z.object({ messageId: z.string().nullable(), at: z.number(), answered: z.boolean().optional() }).nullable(),
});
export type LaneRecord = z.infer<typeof laneRecordSchema>;

export const idempotencyRecordSchema = z.object({ fingerprint: z.string(), taskId: z.string(), at: z.number() });

export const foundBindingSchema = z.object({ roomId: z.string(), peers: z.array(z.string()) });
export type FoundBinding = z.infer<typeof foundBindingSchema>;

export const slugRecordSchema = z.object({
  peerId: z.string(),
  slug: z.string(),
  /** The slug its name alone gives; another one means that the peer was renamed. */
  base: z.string(),
  /** Earlier slugs and until when they answer. */
  former: z.array(z.object({ slug: z.string(), until: z.number() })),
});
export type SlugRecord = z.infer<typeof slugRecordSchema>;

export const cardRecordSchema = z.object({ hash: z.string(), counter: z.number(), changedAt: z.number() });
export type CardRecord = z.infer<typeof cardRecordSchema>;

const artifactEvent = z.object({
  kind: z.literal('artifact'),
  artifact: z.looseObject({ artifactId: z.string(), parts: z.array(z.looseObject({})) }),
  append: z.boolean(),
  lastChunk: z.boolean(),
});
const statusEvent = z.object({
  kind: z.literal('status'),
  status: z.looseObject({ state: z.enum(TASK_STATES), timestamp: z.string() }),
});
const messageEvent = z.object({ kind: z.literal('message'), message: z.looseObject({ messageId: z.string() }) });
/** One commit's events; written by {@link LogEvent} values only, so the shape inside is trusted. */
export const logRecordSchema = z.array(
  z.discriminatedUnion('kind', [artifactEvent.loose(), statusEvent.loose(), messageEvent.loose()]),
) as unknown as z.ZodType<LogEvent[]>;

/** First 32 hex digits of SHA-256: ids of any alphabet and length as part of a key. */
export function digest(...parts: readonly string[]): string {
  return hash('sha256', parts.join('\0'), 'hex').slice(0, 32);
}

/** The owner as rooms show it: enough to recognise a principal, not enough to learn its name. */
export function ownerTag(principal: string): string {
  return hash('sha256', principal, 'hex').slice(0, 16);
}

/** The value of a record whose key says everything. */
export const MARK = '0';

const pad = (value: number, width: number): string => String(value).padStart(width, '0');
const TIME_DIGITS = 15;
const NEWEST = 10 ** TIME_DIGITS - 1;

/** Keys under one prefix, e.g. `a2a/front-door/`. */
export function recordKeys(prefix: string) {
  return {
    task: (id: string) => `${prefix}t/${id}`,
    allTasks: `${prefix}t/`,
    log: (id: string, seq: number) => `${prefix}e/${id}/${pad(seq, 8)}`,
    logOf: (id: string) => `${prefix}e/${id}/`,
    /** Open tasks, so that a start reads only those. */
    open: (id: string) => `${prefix}o/${id}`,
    allOpen: `${prefix}o/`,
    /** Newest first; ties by id. */
    listed: (listOf: string, at: number, id: string) => `${listOf}${pad(NEWEST - at, TIME_DIGITS)}/${id}`,
    listOf: (owner: string, peerId: string) => `${prefix}x/${digest(owner)}/${peerId}/`,
    /** The part of a list whose status is of this time or later. */
    listedSince: (listOf: string, at: number) => {
      const oldest = pad(NEWEST - Math.min(Math.max(0, Math.ceil(at)), NEWEST), TIME_DIGITS);
      // The next character after the one that ends a time.
      return { from: listOf, to: `${listOf}${oldest}0` };
    },
    ended: (at: number, id: string) => `${prefix}d/${pad(at, TIME_DIGITS)}/${id}`,
    endedBefore: (at: number) => ({ from: `${prefix}d/`, to: `${prefix}d/${pad(Math.max(0, at), TIME_DIGITS)}` }),
    context: (key: string) => `${prefix}c/${key}`,
    allContexts: `${prefix}c/`,
    room: (roomId: string) => `${prefix}r/${roomId}`,
    lane: (contextKey: string, peerId: string) => `${prefix}l/${contextKey}/${peerId}`,
    lanesOf: (contextKey: string) => `${prefix}l/${contextKey}/`,
    repeat: (owner: string, peerId: string, messageId: string) => `${prefix}i/${digest(owner, peerId, messageId)}`,
    repeatExpiry: (at: number, key: string) => `${prefix}j/${pad(at, TIME_DIGITS)}/${key.slice(prefix.length + 2)}`,
    repeatsBefore: (at: number) => ({ from: `${prefix}j/`, to: `${prefix}j/${pad(Math.max(0, at), TIME_DIGITS)}` }),
    repeatOf: (expiryKey: string) => `${prefix}i/${expiryKey.slice(expiryKey.lastIndexOf('/') + 1)}`,
    slug: (peerId: string) => `${prefix}s/${peerId}`,
    allSlugs: `${prefix}s/`,
    card: (peerId: string, variant: string) => `${prefix}v/${variant}/${peerId}`,
    /** Signs page tokens over restarts. */
    secret: `${prefix}k/secret`,
    /** The agent's rooms were searched for bindings once. */
    scanned: `${prefix}k/scanned`,
    /** A binding found in a room, for the context that asks for it. */
    found: (tag: string, contextId: string) => `${prefix}b/${tag}/${digest(contextId)}`,
  };
}
export type RecordKeys = ReturnType<typeof recordKeys>;

/** The pair (principal, context id) as a key. */
export function contextKeyOf(owner: string, contextId: string): string {
  return digest(owner, contextId);
}

/** The id at the end of a list key. */
export const listedId = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

/** What a list knows of a task without reading it. */
export const listedValue = (state: TaskState, contextId: string): string => JSON.stringify([state, contextId]);

/** Whether a {@link listedValue} is of this state and this context; null stands for any. Compared as text: lists are long. */
export function listedFilter(state: TaskState | null, contextId: string | null): (value: Uint8Array) => boolean {
  if (state === null && contextId === null) return () => true;
  const begin = state === null ? '' : `["${state}",`;
  const end = contextId === null ? '' : `,${JSON.stringify(contextId)}]`;
  return (value) => {
    const text = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8');
    return text.startsWith(begin) && text.endsWith(end);
  };
}

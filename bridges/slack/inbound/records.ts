import { z } from 'zod';
import type { LaneGroups } from '../../../src/store/durable-queue.js';
import { slackKey } from '../conversation.js';
import type { SlackDelivery } from '../parse.js';
import type { SlackEvent } from '../parse-event.js';

/** What the inbox keeps of one delivery: Slack's payload as it came, and how it came. */
export const slackRecordSchema = z.object({
  slug: z.string(),
  transport: z.enum(['http', 'socket', 'catch-up']),
  receivedAt: z.number(),
  retryNum: z.number().nullable(),
  retryReason: z.string().nullable(),
  payload: z.unknown(),
  /** Somebody asked for it once more: that it was seen before does not count. */
  again: z.boolean().default(false),
  /** More waited in its thread than may: its author is told so, and it has no turn. */
  tooMany: z.boolean().default(false),
});
export type SlackRecord = z.infer<typeof slackRecordSchema>;

/** How an inbox keeps them: a record that waits is known by the `ts` of its event. */
export const slackRecords = {
  bodySchema: slackRecordSchema,
  tagOf: ({ payload }: SlackRecord): string | null => {
    const { event } = isFields(payload) ? payload : {};
    return isFields(event) && typeof event['ts'] === 'string' ? event['ts'] : null;
  },
};

/**
 * The lane of a delivery. Messages of one thread share one, so that they are taken in order and one turn runs at a
 * time; what steers a turn (buttons, edits, deletes, Slack's own stop) has lanes of its own, since it must not wait
 * behind the turn it is about.
 */
export function laneOf(slug: string, delivery: SlackDelivery): string {
  switch (delivery.kind) {
    case 'event':
      return laneOfEvent(slug, delivery.teamId ?? '-', delivery.event);
    case 'action':
    case 'shortcut':
      return `control:${slug}:${delivery.channel ?? '-'}:${delivery.threadTs ?? delivery.messageTs ?? '-'}`;
    case 'command':
      return `control:${slug}:${delivery.channel}:${delivery.userId}`;
    case 'view':
      return `control:${slug}:view:${delivery.viewId}`;
    case 'rate_limited':
    case 'unknown':
    case 'url_verification':
      return `other:${slug}`;
  }
}

/** Deliveries other than messages that are handled at the same time. */
const MOST_OTHERS = 64;

/**
 * So many messages at a time; what steers a turn, or asks for something that Slack waits three seconds for, has places
 * of its own, since it must not wait for the end of the very turns it may be about.
 */
export const turnsAndOthers = (mostTurns: number): LaneGroups => ({
  of: (lane) => (lane.startsWith('thread:') ? 'turns' : 'others'),
  most: { turns: mostTurns, others: MOST_OTHERS },
});

/** A JSON object. */
export function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function laneOfEvent(slug: string, team: string, event: SlackEvent): string {
  switch (event.kind) {
    case 'message':
      return threadLane(slug, team, event.channel, event.message);
    case 'edited':
      return `change:${threadOf(slug, team, event.channel, event.message)}`;
    case 'deleted':
      return `change:${slug}:${team}:${event.channel}:${event.previous?.thread_ts ?? event.ts}`;
    case 'reaction':
      return `control:${slug}:${event.channel}:${event.ts}`;
    case 'session_stopped':
      return `control:${slug}:${event.channel}:${event.threadTs}`;
    case 'thread_opened':
    case 'joined':
    case 'channel':
      return `channel:${slug}:${event.channel}`;
    case 'context_changed':
      return `context:${slug}:${event.user ?? '-'}`;
    case 'user_changed':
    case 'uninstalled':
    case 'tokens_revoked':
    case 'other':
      return `other:${slug}`;
  }
}

interface Threaded {
  readonly ts: string;
  readonly thread_ts?: string | null | undefined;
}

/** The lane of the messages of one thread. */
export function threadLane(slug: string, team: string, channel: string, message: Threaded): string {
  return `thread:${threadOf(slug, team, channel, message)}`;
}

/** The conversation a message belongs to: its thread, or the one it may begin. */
function threadOf(slug: string, team: string, channel: string, message: Threaded): string {
  return slackKey({ slug, team, channel, threadTs: message.thread_ts ?? message.ts });
}

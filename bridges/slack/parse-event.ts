import { z } from 'zod';
import { slackMessageSchema, type SlackMessage } from './messages.js';

export type ChannelType = 'channel' | 'group' | 'im' | 'mpim' | 'app_home';

/** An event of the Events API, as far as the bridge acts on it. */
export type SlackEvent =
  | {
      readonly kind: 'message';
      /** `app_mention` and `message.*` of one message differ only here. */
      readonly mention: boolean;
      readonly channel: string;
      /** `app_mention` does not say. */
      readonly channelType: ChannelType | null;
      readonly message: SlackMessage;
    }
  | {
      readonly kind: 'edited';
      readonly channel: string;
      readonly channelType: ChannelType | null;
      readonly eventTs: string;
      readonly message: SlackMessage;
      readonly previous: SlackMessage | null;
    }
  | {
      readonly kind: 'deleted';
      readonly channel: string;
      readonly channelType: ChannelType | null;
      readonly ts: string;
      readonly previous: SlackMessage | null;
    }
  | {
      readonly kind: 'reaction';
      readonly added: boolean;
      readonly user: string;
      readonly name: string;
      readonly channel: string;
      readonly ts: string;
      readonly itemUser: string | null;
    }
  | {
      readonly kind: 'session_stopped';
      readonly channel: string;
      readonly threadTs: string;
      readonly user: string | null;
    }
  | {
      readonly kind: 'thread_opened';
      readonly type: 'app_home_opened' | 'assistant_thread_started' | 'assistant_thread_context_changed';
      readonly channel: string;
      readonly threadTs: string | null;
      readonly user: string | null;
      readonly tab: string | null;
      readonly context: Readonly<Record<string, unknown>> | null;
    }
  /** Somebody looks at something else in Slack. */
  | {
      readonly kind: 'context_changed';
      readonly user: string | null;
      /** Empty when they look at nothing that Slack names. */
      readonly context: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'joined'; readonly channel: string; readonly user: string }
  | {
      readonly kind: 'channel';
      readonly type: ChannelEventType;
      readonly channel: string;
      readonly name: string | null;
      readonly newId: string | null;
    }
  | { readonly kind: 'user_changed'; readonly user: string }
  | {
      readonly kind: 'uninstalled';
      readonly type: 'app_uninstalled' | 'team_access_revoked';
      readonly teamIds: readonly string[];
    }
  | { readonly kind: 'tokens_revoked'; readonly botUsers: readonly string[] }
  /** Of a type the bridge does not act on, or with parts missing. */
  | { readonly kind: 'other'; readonly type: string; readonly incomplete: boolean };

export type ChannelEventType =
  | 'channel_archive'
  | 'channel_unarchive'
  | 'channel_rename'
  | 'channel_id_changed'
  | 'channel_left'
  | 'channel_deleted';

/** The inner event of a callback. Never throws. */
export function parseEvent(event: Readonly<Record<string, unknown>> & { readonly type: string }): SlackEvent {
  const parser = PARSERS.get(event.type);
  return parser?.(event) ?? { kind: 'other', type: event.type, incomplete: parser !== undefined };
}

const id = z.string().nullish().catch(null);
const channelTypeSchema = z.enum(['channel', 'group', 'im', 'mpim', 'app_home']).nullish().catch(null);

const placedSchema = z.object({ channel: z.string().min(1), channel_type: channelTypeSchema, subtype: id });

function parseMessage(event: unknown): SlackEvent | null {
  const placed = placedSchema.safeParse(event);
  if (!placed.success) return null;
  const { channel, channel_type: channelType = null, subtype } = placed.data;
  if (subtype === 'message_changed') return parseEdited(event, channel, channelType);
  if (subtype === 'message_deleted') return parseDeleted(event, channel, channelType);
  const message = slackMessageSchema.safeParse(event);
  return message.success ? { kind: 'message', mention: false, channel, channelType, message: message.data } : null;
}

function parseMention(event: unknown): SlackEvent | null {
  const parsed = parseMessage(event);
  return parsed?.kind === 'message' ? { ...parsed, mention: true } : parsed;
}

const editedSchema = z.looseObject({
  event_ts: id,
  ts: id,
  message: slackMessageSchema,
  previous_message: slackMessageSchema.nullish().catch(null),
});

function parseEdited(event: unknown, channel: string, channelType: ChannelType | null): SlackEvent | null {
  const parsed = editedSchema.safeParse(event);
  if (!parsed.success) return null;
  const { message, previous_message: previous, event_ts: eventTs, ts } = parsed.data;
  return {
    kind: 'edited',
    channel,
    channelType,
    eventTs: eventTs ?? ts ?? message.ts,
    message,
    previous: previous ?? null,
  };
}

const deletedSchema = z.looseObject({
  deleted_ts: z.string(),
  previous_message: slackMessageSchema.nullish().catch(null),
});

function parseDeleted(event: unknown, channel: string, channelType: ChannelType | null): SlackEvent | null {
  const parsed = deletedSchema.safeParse(event);
  if (!parsed.success) return null;
  return {
    kind: 'deleted',
    channel,
    channelType,
    ts: parsed.data.deleted_ts,
    previous: parsed.data.previous_message ?? null,
  };
}

const reactionSchema = z.looseObject({
  type: z.string(),
  user: z.string(),
  reaction: z.string(),
  item_user: id,
  item: z.looseObject({ channel: z.string(), ts: z.string() }),
});

function parseReaction(event: unknown): SlackEvent | null {
  const parsed = reactionSchema.safeParse(event);
  if (!parsed.success) return null;
  const { type, user, reaction, item, item_user: itemUser } = parsed.data;
  return {
    kind: 'reaction',
    added: type === 'reaction_added',
    user,
    name: reaction,
    channel: item.channel,
    ts: item.ts,
    itemUser: itemUser ?? null,
  };
}

// Slack has named the thread of a session in more than one way; whichever is there counts.
const stoppedSchema = z.looseObject({
  channel: id,
  channel_id: id,
  thread_ts: id,
  user: id,
  user_id: id,
  session: z.looseObject({ channel_id: id, thread_ts: id }).nullish().catch(null),
});

function parseStopped(event: unknown): SlackEvent | null {
  const parsed = stoppedSchema.safeParse(event);
  if (!parsed.success) return null;
  const { data } = parsed;
  const channel = data.channel ?? data.channel_id ?? data.session?.channel_id;
  const threadTs = data.thread_ts ?? data.session?.thread_ts;
  if (!channel || !threadTs) return null;
  return { kind: 'session_stopped', channel, threadTs, user: data.user ?? data.user_id ?? null };
}

const contextSchema = z.record(z.string(), z.unknown());
const homeSchema = z.looseObject({
  channel: z.string(),
  user: id,
  tab: id,
  context: contextSchema.nullish().catch(null),
  app_context: contextSchema.nullish().catch(null),
});

function parseHome(event: unknown): SlackEvent | null {
  const parsed = homeSchema.safeParse(event);
  if (!parsed.success) return null;
  const { channel, user, tab, app_context: folded, context } = parsed.data;
  return {
    ...opened('app_home_opened'),
    channel,
    threadTs: null,
    user: user ?? null,
    tab: tab ?? null,
    context: folded ?? context ?? null,
  };
}

const contextChangedSchema = z.looseObject({ user: id, context: contextSchema });

function parseContextChanged(event: unknown): SlackEvent | null {
  const parsed = contextChangedSchema.safeParse(event);
  return parsed.success
    ? { kind: 'context_changed', user: parsed.data.user ?? null, context: parsed.data.context }
    : null;
}

const assistantSchema = z.looseObject({
  type: z.enum(['assistant_thread_started', 'assistant_thread_context_changed']),
  assistant_thread: z.looseObject({
    channel_id: z.string(),
    thread_ts: z.string(),
    user_id: id,
    context: z.record(z.string(), z.unknown()).nullish().catch(null),
  }),
});

function parseAssistant(event: unknown): SlackEvent | null {
  const parsed = assistantSchema.safeParse(event);
  if (!parsed.success) return null;
  const { type, assistant_thread: thread } = parsed.data;
  return {
    ...opened(type),
    channel: thread.channel_id,
    threadTs: thread.thread_ts,
    user: thread.user_id ?? null,
    tab: null,
    context: thread.context ?? null,
  };
}

type OpenedType = Extract<SlackEvent, { kind: 'thread_opened' }>['type'];
const opened = (type: OpenedType): { kind: 'thread_opened'; type: OpenedType } => ({ kind: 'thread_opened', type });

const joinedSchema = z.looseObject({ channel: z.string(), user: z.string() });

function parseJoined(event: unknown): SlackEvent | null {
  const parsed = joinedSchema.safeParse(event);
  return parsed.success ? { kind: 'joined', channel: parsed.data.channel, user: parsed.data.user } : null;
}

// channel_rename carries an object, the others an id.
const channelSchema = z.looseObject({
  channel: z.union([z.string(), z.looseObject({ id: z.string(), name: id })]).optional(),
  old_channel_id: id,
  new_channel_id: id,
});

function parseChannel(type: ChannelEventType): (event: unknown) => SlackEvent | null {
  return (event) => {
    const parsed = channelSchema.safeParse(event);
    if (!parsed.success) return null;
    const { channel, old_channel_id: oldId, new_channel_id: newId } = parsed.data;
    const named = typeof channel === 'object' ? channel : { id: channel ?? oldId ?? '', name: null };
    if (named.id === '') return null;
    return { kind: 'channel', type, channel: named.id, name: named.name ?? null, newId: newId ?? null };
  };
}

const userSchema = z.looseObject({ user: z.union([z.string(), z.looseObject({ id: z.string() })]) });

function parseUserChanged(event: unknown): SlackEvent | null {
  const parsed = userSchema.safeParse(event);
  if (!parsed.success) return null;
  const { user } = parsed.data;
  return { kind: 'user_changed', user: typeof user === 'string' ? user : user.id };
}

const tokensSchema = z.looseObject({ tokens: z.looseObject({ bot: z.array(z.string()).nullish().catch(null) }) });

function parseTokensRevoked(event: unknown): SlackEvent | null {
  const parsed = tokensSchema.safeParse(event);
  return parsed.success ? { kind: 'tokens_revoked', botUsers: parsed.data.tokens.bot ?? [] } : null;
}

const revokedSchema = z.looseObject({ team_ids: z.array(z.string()).nullish().catch(null) });

function parseUninstalled(type: 'app_uninstalled' | 'team_access_revoked'): (event: unknown) => SlackEvent | null {
  return (event) => {
    const parsed = revokedSchema.safeParse(event);
    return { kind: 'uninstalled', type, teamIds: parsed.success ? (parsed.data.team_ids ?? []) : [] };
  };
}

// A map, since an event may call itself `constructor`.
const PARSERS = new Map<string, (event: unknown) => SlackEvent | null>(
  Object.entries({
    message: parseMessage,
    app_mention: parseMention,
    reaction_added: parseReaction,
    reaction_removed: parseReaction,
    agent_session_stopped: parseStopped,
    app_home_opened: parseHome,
    app_context_changed: parseContextChanged,
    assistant_thread_started: parseAssistant,
    assistant_thread_context_changed: parseAssistant,
    member_joined_channel: parseJoined,
    channel_archive: parseChannel('channel_archive'),
    channel_unarchive: parseChannel('channel_unarchive'),
    channel_rename: parseChannel('channel_rename'),
    channel_id_changed: parseChannel('channel_id_changed'),
    channel_left: parseChannel('channel_left'),
    channel_deleted: parseChannel('channel_deleted'),
    group_archive: parseChannel('channel_archive'),
    group_unarchive: parseChannel('channel_unarchive'),
    group_rename: parseChannel('channel_rename'),
    group_left: parseChannel('channel_left'),
    group_deleted: parseChannel('channel_deleted'),
    user_change: parseUserChanged,
    user_profile_changed: parseUserChanged,
    tokens_revoked: parseTokensRevoked,
    app_uninstalled: parseUninstalled('app_uninstalled'),
    team_access_revoked: parseUninstalled('team_access_revoked'),
  }),
);

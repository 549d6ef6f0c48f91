import { z } from 'zod';
import { parseEvent, type SlackEvent } from './parse-event.js';

export type { SlackEvent } from './parse-event.js';

/**
 * What Slack sent, in the shape the bridge works with. Nothing that is JSON is refused: what is not understood is
 * `unknown`, journaled and acknowledged, because a repeat would not be understood either.
 */
export type SlackDelivery =
  | { readonly kind: 'url_verification'; readonly challenge: string }
  | SlackEventDelivery
  | SlackActionDelivery
  | SlackViewDelivery
  | SlackShortcutDelivery
  | SlackCommandDelivery
  /** Slack dropped events of this workspace for a minute. */
  | { readonly kind: 'rate_limited'; readonly teamId: string; readonly minute: number | null }
  | { readonly kind: 'unknown'; readonly why: string };

/** Where a delivery comes from. */
export interface DeliverySource {
  readonly appId: string | null;
  /** The workspace that installed the app, not the author's: in a shared channel the two differ. */
  readonly teamId: string | null;
  readonly enterpriseId: string | null;
}

export interface SlackEventDelivery extends DeliverySource {
  readonly kind: 'event';
  readonly eventId: string | null;
  /** Seconds since the epoch. */
  readonly eventTime: number | null;
  /** The workspace the author belongs to, as far as the envelope says. */
  readonly authorTeamId: string | null;
  readonly botUserId: string | null;
  readonly isExtShared: boolean;
  readonly event: SlackEvent;
}

export interface SlackActionDelivery extends DeliverySource {
  readonly kind: 'action';
  readonly triggerId: string | null;
  readonly responseUrl: string | null;
  readonly userId: string;
  readonly channel: string | null;
  readonly messageTs: string | null;
  readonly threadTs: string | null;
  readonly actionTs: string | null;
  readonly actionId: string;
  readonly value: string | null;
  /** The message it stands in is seen by the presser alone. */
  readonly isEphemeral: boolean;
}

export interface SlackViewDelivery extends DeliverySource {
  readonly kind: 'view';
  readonly closed: boolean;
  readonly triggerId: string | null;
  readonly userId: string;
  readonly viewId: string;
  readonly hash: string;
  readonly callbackId: string;
  readonly privateMetadata: string;
  readonly values: Readonly<Record<string, unknown>>;
}

export interface SlackShortcutDelivery extends DeliverySource {
  readonly kind: 'shortcut';
  readonly scope: 'message' | 'global';
  readonly callbackId: string;
  readonly triggerId: string;
  readonly userId: string;
  readonly responseUrl: string | null;
  readonly channel: string | null;
  readonly messageTs: string | null;
  readonly threadTs: string | null;
  /** What the message says, in mrkdwn. */
  readonly messageText: string;
}

export interface SlackCommandDelivery extends DeliverySource {
  readonly kind: 'command';
  readonly command: string;
  readonly text: string;
  readonly userId: string;
  readonly channel: string;
  readonly triggerId: string | null;
  readonly responseUrl: string | null;
}

/** A request body or socket payload, already JSON; see {@link parseForm} for forms. Never throws. */
export function parseDelivery(body: unknown): SlackDelivery {
  const top = topSchema.safeParse(body);
  if (!top.success) return unknown('not an object');
  const { type, challenge, command } = top.data;
  switch (type) {
    case 'url_verification':
      return typeof challenge === 'string'
        ? { kind: 'url_verification', challenge }
        : unknown('url_verification without a challenge');
    case 'event_callback':
      return parseCallback(body);
    case 'app_rate_limited':
      return parseRateLimited(body);
    case 'block_actions':
      return parseActions(body);
    case 'view_submission':
    case 'view_closed':
      return parseView(body, type === 'view_closed');
    case 'message_action':
    case 'shortcut':
      return parseShortcut(body, type === 'message_action' ? 'message' : 'global');
    default:
      if (typeof command === 'string') return parseCommand(body);
      return unknown(type ? 'type not handled' : 'no type');
  }
}

/** What a form body is: an interaction, a slash command, Slack's certificate check, or nothing we know. */
export type FormBody =
  { readonly kind: 'payload'; readonly body: unknown } | { readonly kind: 'ssl_check' } | { readonly kind: 'bad' };

/** `payload=` holds JSON, a slash command is the form itself, `ssl_check=1` wins over everything else. */
export function parseForm(body: string): FormBody {
  const form = new URLSearchParams(body);
  if (form.get('ssl_check') === '1') return { kind: 'ssl_check' };
  const payload = form.get('payload');
  if (payload !== null) {
    try {
      return { kind: 'payload', body: JSON.parse(payload) as unknown };
    } catch {
      return { kind: 'bad' };
    }
  }
  return form.has('command') ? { kind: 'payload', body: Object.fromEntries(form) } : { kind: 'bad' };
}

const id = z.string().nullish().catch(null);

const topSchema = z.object({ type: id, challenge: z.unknown().optional(), command: z.unknown().optional() });

type TypedEvent = Readonly<Record<string, unknown>> & { readonly type: string };
const isTyped = (event: unknown): event is TypedEvent =>
  typeof event === 'object' && event !== null && typeof (event as { type?: unknown }).type === 'string';

// Each delivery passes here before its acknowledgement: nothing is copied that is not read.
const callbackSchema = z.object({
  event: z.custom<TypedEvent>(isTyped),
  event_id: id,
  event_time: z.number().nullish().catch(null),
  api_app_id: id,
  team_id: id,
  enterprise_id: id,
  context_team_id: id,
  is_ext_shared_channel: z.boolean().nullish().catch(null),
  authorizations: z
    .array(z.object({ team_id: id, enterprise_id: id, user_id: id, is_bot: z.boolean().nullish().catch(null) }))
    .nullish()
    .catch(null),
});

function parseCallback(body: unknown): SlackDelivery {
  const parsed = callbackSchema.safeParse(body);
  if (!parsed.success) return unknown('event_callback without an event');
  const { data } = parsed;
  const authorization = data.authorizations?.find((candidate) => candidate.is_bot !== false) ?? null;
  return {
    kind: 'event',
    eventId: data.event_id ?? null,
    eventTime: data.event_time ?? null,
    appId: data.api_app_id ?? null,
    teamId: authorization?.team_id ?? data.context_team_id ?? data.team_id ?? null,
    enterpriseId: authorization?.enterprise_id ?? data.enterprise_id ?? null,
    authorTeamId: data.team_id ?? null,
    botUserId: authorization?.user_id ?? null,
    isExtShared: data.is_ext_shared_channel ?? false,
    event: parseEvent(data.event),
  };
}

const rateLimitedSchema = z.looseObject({ team_id: z.string(), minute_rate_limited: z.number().nullish().catch(null) });

function parseRateLimited(body: unknown): SlackDelivery {
  const parsed = rateLimitedSchema.safeParse(body);
  if (!parsed.success) return unknown('app_rate_limited without a team');
  return { kind: 'rate_limited', teamId: parsed.data.team_id, minute: parsed.data.minute_rate_limited ?? null };
}

const sourceSchema = {
  api_app_id: id,
  team: z.looseObject({ id: z.string(), enterprise_id: id }).nullish().catch(null),
  enterprise: z.looseObject({ id: z.string() }).nullish().catch(null),
  user: z.looseObject({ id: z.string(), team_id: id }),
  trigger_id: id,
  response_url: id,
};

const sourceOf = (data: {
  api_app_id?: string | null | undefined;
  team?: { id: string; enterprise_id?: string | null | undefined } | null | undefined;
  enterprise?: { id: string } | null | undefined;
  user: { team_id?: string | null | undefined };
}): DeliverySource => ({
  appId: data.api_app_id ?? null,
  teamId: data.team?.id ?? data.user.team_id ?? null,
  enterpriseId: data.enterprise?.id ?? data.team?.enterprise_id ?? null,
});

const messageRef = z.looseObject({ ts: id, thread_ts: id }).nullish().catch(null);
const channelRef = z.looseObject({ id: z.string() }).nullish().catch(null);

const actionsSchema = z.looseObject({
  ...sourceSchema,
  channel: channelRef,
  message: messageRef,
  container: z
    .looseObject({ message_ts: id, channel_id: id, thread_ts: id, is_ephemeral: z.boolean().nullish().catch(null) })
    .nullish()
    .catch(null),
  actions: z.array(
    z.looseObject({
      action_id: z.string(),
      action_ts: id,
      value: id,
      selected_option: z.looseObject({ value: id }).nullish().catch(null),
    }),
  ),
});

function parseActions(body: unknown): SlackDelivery {
  const parsed = actionsSchema.safeParse(body);
  if (!parsed.success) return unknown('block_actions without a user or an action');
  const { data } = parsed;
  const action = data.actions[0];
  if (!action) return unknown('block_actions without an action');
  return {
    kind: 'action',
    ...sourceOf(data),
    triggerId: data.trigger_id ?? null,
    responseUrl: data.response_url ?? null,
    userId: data.user.id,
    channel: data.channel?.id ?? data.container?.channel_id ?? null,
    messageTs: data.message?.ts ?? data.container?.message_ts ?? null,
    threadTs: data.message?.thread_ts ?? data.container?.thread_ts ?? null,
    actionTs: action.action_ts ?? null,
    actionId: action.action_id,
    value: action.value ?? action.selected_option?.value ?? null,
    isEphemeral: data.container?.is_ephemeral ?? false,
  };
}

const viewSchema = z.looseObject({
  ...sourceSchema,
  view: z.looseObject({
    id: z.string(),
    hash: z.string().catch(''),
    callback_id: z.string().catch(''),
    private_metadata: z.string().catch(''),
    state: z
      .looseObject({ values: z.record(z.string(), z.unknown()) })
      .nullish()
      .catch(null),
  }),
});

function parseView(body: unknown, closed: boolean): SlackDelivery {
  const parsed = viewSchema.safeParse(body);
  if (!parsed.success) return unknown('view without an id or a user');
  const { data } = parsed;
  return {
    kind: 'view',
    closed,
    ...sourceOf(data),
    triggerId: data.trigger_id ?? null,
    userId: data.user.id,
    viewId: data.view.id,
    hash: data.view.hash,
    callbackId: data.view.callback_id,
    privateMetadata: data.view.private_metadata,
    values: data.view.state?.values ?? {},
  };
}

const shortcutSchema = z.looseObject({
  ...sourceSchema,
  trigger_id: z.string(),
  callback_id: z.string(),
  channel: channelRef,
  message: z
    .looseObject({ ts: id, thread_ts: id, text: z.string().nullish().catch(null) })
    .nullish()
    .catch(null),
  message_ts: id,
});

function parseShortcut(body: unknown, scope: 'message' | 'global'): SlackDelivery {
  const parsed = shortcutSchema.safeParse(body);
  if (!parsed.success) return unknown('shortcut without a trigger, a user or a name');
  const { data } = parsed;
  return {
    kind: 'shortcut',
    scope,
    ...sourceOf(data),
    callbackId: data.callback_id,
    triggerId: data.trigger_id,
    userId: data.user.id,
    responseUrl: data.response_url ?? null,
    channel: data.channel?.id ?? null,
    messageTs: data.message?.ts ?? data.message_ts ?? null,
    threadTs: data.message?.thread_ts ?? null,
    messageText: data.message?.text ?? '',
  };
}

const commandSchema = z.looseObject({
  command: z.string(),
  text: z.string().catch(''),
  user_id: z.string(),
  channel_id: z.string(),
  team_id: id,
  enterprise_id: id,
  api_app_id: id,
  trigger_id: id,
  response_url: id,
});

function parseCommand(body: unknown): SlackDelivery {
  const parsed = commandSchema.safeParse(body);
  if (!parsed.success) return unknown('slash command without a user or a channel');
  const { data } = parsed;
  return {
    kind: 'command',
    appId: data.api_app_id ?? null,
    teamId: data.team_id ?? null,
    enterpriseId: data.enterprise_id ?? null,
    command: data.command,
    text: data.text,
    userId: data.user_id,
    channel: data.channel_id,
    triggerId: data.trigger_id ?? null,
    responseUrl: data.response_url ?? null,
  };
}

const unknown = (why: string): SlackDelivery => ({ kind: 'unknown', why });

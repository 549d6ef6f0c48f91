import { z } from 'zod';
import { GatewayError } from '../../src/base/errors.js';
import type { SlackArguments, SlackCallOptions, SlackClient } from './client.js';
import { slackMessageSchema, type SlackMessage } from './messages.js';

/** Who the bot of an installation is. */
export interface SlackIdentity {
  readonly teamId: string;
  readonly enterpriseId: string | null;
  readonly botUserId: string;
  readonly botId: string | null;
  readonly teamName: string;
  readonly teamUrl: string;
  /** Scopes the token has, from the answer's header; null when Slack did not say. */
  readonly scopes: readonly string[] | null;
}

const authTestSchema = z.looseObject({
  team_id: z.string(),
  enterprise_id: z.string().nullish(),
  user_id: z.string(),
  bot_id: z.string().nullish(),
  team: z.string().default(''),
  url: z.string().default(''),
});

export async function authTest(client: SlackClient, options?: SlackCallOptions): Promise<SlackIdentity> {
  const raw = await client.call('auth.test', {}, options);
  const answer = parse('auth.test', authTestSchema, raw);
  return {
    teamId: answer.team_id,
    enterpriseId: answer.enterprise_id ?? null,
    botUserId: answer.user_id,
    botId: answer.bot_id ?? null,
    teamName: answer.team,
    teamUrl: answer.url,
    scopes: raw.response_metadata?.scopes ?? null,
  };
}

const postedSchema = z.looseObject({ channel: z.string(), ts: z.string() });

/** `chat.postMessage`; arguments in Slack's spelling. */
export async function postMessage(
  client: SlackClient,
  args: SlackArguments,
  options?: SlackCallOptions,
): Promise<{ readonly channel: string; readonly ts: string }> {
  return parse('chat.postMessage', postedSchema, await client.call('chat.postMessage', args, options));
}

/** One page of a thread or a channel. */
export interface MessagePage {
  readonly messages: readonly SlackMessage[];
  readonly nextCursor: string | null;
}

const pageSchema = z.looseObject({ messages: z.array(slackMessageSchema).default([]) });

export interface PageArguments {
  readonly channel: string;
  /** The thread's root; left out, the channel's top level is read. */
  readonly ts?: string;
  readonly cursor?: string | null;
  readonly oldest?: string;
  readonly latest?: string;
  readonly inclusive?: boolean;
  readonly limit?: number;
  /** Needed to recognise own posts by their key. */
  readonly includeMetadata?: boolean;
}

/** `conversations.replies` when `ts` is given, else `conversations.history`. */
export async function readMessages(
  client: SlackClient,
  { includeMetadata = false, cursor, ...args }: PageArguments,
  options?: SlackCallOptions,
): Promise<MessagePage> {
  const method = args.ts === undefined ? 'conversations.history' : 'conversations.replies';
  const answer = await client.call(
    method,
    { ...args, ...(cursor ? { cursor } : {}), ...(includeMetadata ? { include_all_metadata: true } : {}) },
    options,
  );
  const next = filled(answer.response_metadata?.next_cursor);
  return { messages: parse(method, pageSchema, answer).messages, nextCursor: next };
}

const userSchema = z.looseObject({
  id: z.string(),
  team_id: z.string().nullish(),
  name: z.string().nullish(),
  real_name: z.string().nullish(),
  deleted: z.boolean().nullish(),
  is_bot: z.boolean().nullish(),
  is_admin: z.boolean().nullish(),
  is_owner: z.boolean().nullish(),
  is_restricted: z.boolean().nullish(),
  is_ultra_restricted: z.boolean().nullish(),
  is_stranger: z.boolean().nullish(),
  profile: z
    .looseObject({
      display_name: z.string().nullish(),
      real_name: z.string().nullish(),
      email: z.string().nullish(),
    })
    .nullish(),
});

export interface SlackUser {
  readonly id: string;
  readonly teamId: string | null;
  /** Display name, else real name, else null. */
  readonly name: string | null;
  readonly handle: string | null;
  readonly email: string | null;
  readonly isBot: boolean;
  readonly isAdmin: boolean;
  /** A single- or multi-channel guest. */
  readonly isGuest: boolean;
  /** From another workspace, by Slack Connect. */
  readonly isStranger: boolean;
}

export async function userInfo(client: SlackClient, user: string, options?: SlackCallOptions): Promise<SlackUser> {
  const answer = await client.call('users.info', { user }, options);
  const found = parse('users.info', z.looseObject({ user: userSchema }), answer).user;
  return {
    id: found.id,
    teamId: found.team_id ?? null,
    name: filled(found.profile?.display_name) ?? filled(found.profile?.real_name) ?? filled(found.real_name),
    handle: filled(found.name),
    email: found.profile?.email ?? null,
    isBot: found.is_bot ?? false,
    isAdmin: (found.is_admin ?? false) || (found.is_owner ?? false),
    isGuest: (found.is_restricted ?? false) || (found.is_ultra_restricted ?? false),
    isStranger: found.is_stranger ?? false,
  };
}

export interface SlackBot {
  readonly id: string;
  readonly appId: string | null;
  readonly userId: string | null;
  readonly name: string | null;
}

const botSchema = z.looseObject({
  bot: z.looseObject({
    id: z.string(),
    app_id: z.string().nullish(),
    user_id: z.string().nullish(),
    name: z.string().nullish(),
  }),
});

export async function botInfo(client: SlackClient, bot: string, options?: SlackCallOptions): Promise<SlackBot> {
  const found = parse('bots.info', botSchema, await client.call('bots.info', { bot }, options)).bot;
  return { id: found.id, appId: found.app_id ?? null, userId: found.user_id ?? null, name: found.name ?? null };
}

export interface SlackChannel {
  readonly id: string;
  readonly name: string | null;
  readonly kind: 'channel' | 'group' | 'im' | 'mpim';
  readonly isArchived: boolean;
  readonly isMember: boolean;
  readonly isShared: boolean;
}

const channelSchema = z.looseObject({
  channel: z.looseObject({
    id: z.string(),
    name: z.string().nullish(),
    is_im: z.boolean().nullish(),
    is_mpim: z.boolean().nullish(),
    is_private: z.boolean().nullish(),
    is_archived: z.boolean().nullish(),
    is_member: z.boolean().nullish(),
    is_ext_shared: z.boolean().nullish(),
  }),
});

export async function channelInfo(
  client: SlackClient,
  channel: string,
  options?: SlackCallOptions,
): Promise<SlackChannel> {
  const answer = await client.call('conversations.info', { channel }, options);
  const found = parse('conversations.info', channelSchema, answer).channel;
  return {
    id: found.id,
    name: filled(found.name),
    kind: found.is_im ? 'im' : found.is_mpim ? 'mpim' : found.is_private ? 'group' : 'channel',
    isArchived: found.is_archived ?? false,
    isMember: found.is_member ?? false,
    isShared: found.is_ext_shared ?? false,
  };
}

function parse<S extends z.ZodType>(method: string, schema: S, answer: unknown): z.infer<S> {
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw new GatewayError('SLACK_BAD_ANSWER', { details: { method }, cause: parsed.error });
}

/** Slack leaves what is not set empty as often as it leaves it out. */
const filled = (value: string | null | undefined): string | null => (value === '' ? null : (value ?? null));

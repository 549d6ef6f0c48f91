import { z } from 'zod';
import { secret, setting, settingsGroup, type OptionsInputOf, type OptionsOf } from '../../src/config/setting.js';

const MIB = 1024 * 1024;

const slug = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'Input should be 1 to 63 of a-z, 0-9 and -, not starting with -');
const botToken = z.string().regex(/^xoxb-./, 'Input should start with xoxb-');
const appToken = z.string().regex(/^xapp-./, 'Input should start with xapp-');
const signingSecret = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);
const idList = z.array(z.string().min(1));
const ids = idList.default([]);
const count = z.int().min(0);
const positive = z.int().min(1);

const app = z.strictObject({
  slug,
  bot_token: secret(botToken),
  signing_secret: secret(signingSecret).optional(),
  app_token: secret(appToken).optional(),
  transport: z.enum(['http', 'socket']).optional(),
  persona: z.strictObject({ name: z.string().min(1).max(80), icon: z.string().min(1).optional() }).optional(),
  surface: z.enum(['agent', 'assistant', 'none']).optional(),
  allow: idList.optional(),
  deny: idList.optional(),
});

const REACTION_MEANINGS = ['stop', 'resume', 'interrupt', 'retry', 'good', 'bad'] as const;
/** What an emoji on a message of a thread in progress means. */
export type ReactionMeaning = (typeof REACTION_MEANINGS)[number];
const emojiName = z.string().regex(/^[a-z0-9_+'-]+$/, 'Input should be an emoji name without colons');

/** Everything an operator can set about the Slack bridge. */
export const slackSettings = settingsGroup('slack', {
  slug: setting(slug.default('main'), { help: 'Name of the app in URLs and thread keys, when there is one app.' }),
  bot_token: setting(botToken.optional(), { help: 'Bot token (xoxb-) of the one app.', secret: true }),
  signing_secret: setting(signingSecret.optional(), {
    help: 'Signing secret of the one app, or several while it is being replaced.',
    secret: true,
  }),
  app_token: setting(appToken.optional(), {
    help: 'App-level token (xapp-) of the one app; with it and no signing secret the socket is used.',
    secret: true,
  }),
  apps: setting(z.array(app).optional(), { help: 'Several apps, each with its slug and its tokens.' }),
  transport: setting(z.string().optional(), {
    help: 'How events arrive: http or socket; socket where every app has an app token and none a signing secret.',
  }),
  mount_path: setting(
    z
      .string()
      .regex(/^(?:\/[^/\s]+)+$/, 'Input should begin with / and not end with it')
      .default('/slack'),
    { help: 'Path under which events, interactions and commands are received.' },
  ),
  port: setting(z.int().min(0).max(65_535).optional(), {
    help: 'Port on which the adapter listens by itself; without it the common HTTP server is used.',
  }),
  rescan: setting(z.boolean().default(false), {
    help: 'Looks for bound rooms at this start even with a filled store.',
  }),
  body_limit_bytes: setting(positive.default(4 * MIB), { help: 'Largest request body from Slack, in bytes.' }),
  ack_deadline_ms: setting(positive.max(2_900).default(2_500), {
    help: 'Longest wait for the store before Slack is asked to repeat, in milliseconds.',
  }),
  dedup_ttl_hours: setting(z.number().min(1).default(26), {
    help: 'How long ids of handled events are remembered, in hours; more than 24 where Delayed Events is on.',
  }),
  socket: {
    connections: setting(positive.max(10).default(2), { help: 'Connections held per app.' }),
    ping_timeout_ms: setting(positive.default(15_000), {
      help: 'Silence after which a connection counts as dead, in milliseconds.',
    }),
  },
  thread_follow_ups: setting(z.enum(['bound', 'mention', 'bound-unless-others']).default('bound'), {
    help: 'Which messages of a thread in progress are for the agent without a mention.',
  }),
  mpim: setting(z.enum(['mention', 'always']).default('mention'), {
    help: 'Whether group direct messages need a mention.',
  }),
  allow: setting(ids, {
    help: 'Only these channel, user or team ids, ext (Slack Connect strangers) or guests; empty: everyone.',
  }),
  deny: setting(ids, { help: 'Never these; wins over allow.' }),
  deny_reply: setting(z.enum(['ephemeral', 'reaction', 'none']).default('ephemeral'), {
    help: 'How somebody who is refused is told.',
  }),
  allow_bots: setting(z.union([z.enum(['none', 'mentions']), z.array(z.string().min(1))]).default('none'), {
    help: 'Other bots that may talk to the agent: none, mentions, or a list of bot, user or app ids.',
  }),
  bot_turn_cap: setting(positive.default(10), { help: 'Bot messages in a row that one thread may hold.' }),
  max_queued_per_thread: setting(positive.default(20), { help: 'Messages that may wait in one thread.' }),
  max_concurrent_turns: setting(positive.default(16), { help: 'Threads that are worked on at the same time.' }),
  turn_timeout_seconds: setting(z.number().positive().default(900), {
    help: 'Longest turn of a brain of your own, in seconds.',
  }),
  silent_turn: setting(z.enum(['notice', 'none']).default('notice'), {
    help: 'Whether a turn that showed nothing in Slack ends with a notice.',
  }),
  render: setting(z.enum(['markdown', 'mrkdwn']).default('markdown'), {
    help: 'markdown: Slack renders Markdown itself; mrkdwn: it is converted here.',
  }),
  max_parts: setting(positive.max(50).default(8), {
    help: 'Messages one reply may take; a longer one is posted as a preview and a file.',
  }),
  unfurl_links: setting(z.boolean().default(false), { help: 'Lets Slack expand links in replies.' }),
  unfurl_media: setting(z.boolean().default(false), { help: 'Lets Slack expand media links in replies.' }),
  mentions: {
    outbound: setting(z.enum(['none', 'thread', 'any']).default('thread'), {
      help: 'Whom a reply may mention: nobody, people who wrote in the thread, or anyone.',
    }),
    allow_broadcast: setting(z.boolean().default(false), { help: 'Lets replies page here, channel and everyone.' }),
    allow_user_groups: setting(z.boolean().default(false), { help: 'Lets replies page user groups.' }),
  },
  show_tool_progress: setting(z.boolean().default(true), { help: 'Shows the tools of a turn in one edited message.' }),
  write_tool_names: setting(z.array(z.string().min(1)).optional(), {
    help: 'Tools that the progress message shows as changing something.',
  }),
  mirror_slack_context: setting(z.boolean().default(true), {
    help: 'Copies what people write in Slack into the room as thoughts.',
  }),
  mirror_replies: setting(z.boolean().default(false), {
    help: 'Copies what the agent answers in Slack into the room as thoughts.',
  }),
  relay_room_messages: setting(z.enum(['none', 'mentions']).default('none'), {
    help: 'Shows in the thread what peers say to the agent in its room: mentions, or none; the relay does so by itself.',
  }),
  status: setting(z.enum(['auto', 'agent-session', 'assistant', 'off']).default('auto'), {
    help: 'How Slack shows that the agent is working.',
  }),
  status_text: setting(z.string().min(1).max(100).default('is thinking…'), { help: 'The status shown while working.' }),
  reactions: setting(
    z.record(emojiName, z.enum(REACTION_MEANINGS)).default({
      octagonal_sign: 'stop',
      arrow_forward: 'resume',
      arrows_counterclockwise: 'retry',
      '+1': 'good',
      '-1': 'bad',
    }),
    {
      help: 'What emojis put on messages of a thread mean: stop, resume, interrupt, retry, or good and bad for what an answer was worth; empty: nothing.',
    },
  ),
  suggested_prompts: setting(
    z
      .array(z.strictObject({ title: z.string().min(1).max(75), message: z.string().min(1).max(1_000) }))
      .max(4)
      .default([]),
    {
      help: 'Up to four prompts offered where somebody opens the conversation with the app, each with title and message.',
    },
  ),
  ack_reaction: setting(
    z
      .string()
      .regex(/^[a-z0-9_+'-]+$/, 'Input should be an emoji name without colons')
      .optional(),
    { help: 'Emoji put on a message while it waits and is worked on.' },
  ),
  edits: setting(z.enum(['history', 'rerun']).default('history'), {
    help: 'What an edit of a message in work does: shows in later history, or starts again.',
  }),
  deletes: setting(z.enum(['cancel', 'ignore']).default('cancel'), {
    help: 'What deleting a message in work does.',
  }),
  files: {
    max_count: setting(count.default(10), { help: 'Files taken from one message.' }),
    max_bytes: setting(positive.default(20 * MIB), { help: 'Largest file taken, in bytes.' }),
    max_total_bytes: setting(positive.default(50 * MIB), { help: 'All files of one message together, in bytes.' }),
    inline_bytes: setting(count.default(256 * 1024), { help: 'Text files up to this size are quoted, in bytes.' }),
  },
  controllers: setting(ids, {
    help: 'Users who may stop and resume turns besides the asker and workspace administrators.',
  }),
  identity: {
    email: setting(z.boolean().default(false), { help: 'Reads e-mail addresses (needs users:read.email).' }),
    map: setting(z.record(z.string(), z.string()).default({}), { help: 'Slack user id to Band handle.' }),
  },
  auto_join: setting(z.boolean().default(false), {
    help: 'Joins public channels when it is not a member (needs channels:join).',
  }),
  slash_command: setting(
    z
      .union([
        z.literal('off'),
        z.string().regex(/^\/[\w-]{1,31}$/, 'Input should be / and up to 31 of a-z, 0-9, _ and -'),
      ])
      .default('/band'),
    { help: 'Slash command of the app, as its manifest names it; off: none.' },
  ),
  message_shortcut: setting(z.boolean().default(true), {
    help: "Offers, in a message's menu, to ask the agent about it.",
  }),
  backfill: setting(z.enum(['auto', 'on', 'off']).default('auto'), {
    help: 'Looks for messages missed while no connection was open.',
  }),
  slack_api_url: setting(z.url({ protocol: /^https?$/ }).optional(), {
    help: "Slack's Web API address, for GovSlack and tests.",
  }),
  proxy: setting(z.url({ protocol: /^https?$/ }).optional(), { help: 'HTTP proxy for everything sent to Slack.' }),
});

/** Parsed settings, in camelCase. */
export type SlackOptions = OptionsOf<typeof slackSettings>;
/** What a library caller may pass. */
export type SlackOptionsInput = OptionsInputOf<typeof slackSettings>;

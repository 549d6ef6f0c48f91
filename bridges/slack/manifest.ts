import { stringify } from 'yaml';
import type { SlackAppConfig } from './apps.js';
import { ASK_CALLBACK } from './inbound/commands/form.js';
import { COMMAND_WORDS } from './inbound/commands/words.js';
import type { SlackOptions } from './settings.js';

const MAX_NAME_CHARS = 35;
const MAX_BOT_NAME_CHARS = 80;
const SCHEMA_VERSION = { major_version: 2, minor_version: 0 } as const;

/** What a scope is for, in words that finish "without it: …". */
interface Feature {
  readonly scopes: readonly string[];
  readonly events: readonly string[];
  readonly without: string;
}

const BASE: Feature = {
  scopes: [
    'app_mentions:read',
    'chat:write',
    'im:history',
    'im:read',
    'channels:history',
    'channels:read',
    'groups:history',
    'groups:read',
    'users:read',
    'reactions:write',
  ],
  events: [
    'app_mention',
    'message.im',
    'app_uninstalled',
    'tokens_revoked',
    'channel_archive',
    'channel_unarchive',
    'channel_rename',
    'member_joined_channel',
    'user_change',
  ],
  without: 'messages, threads, names and reactions',
};
const FOLLOW_UPS: Feature = {
  scopes: [],
  events: ['message.channels', 'message.groups'],
  without: 'follow-ups without a mention',
};
const GROUP_MESSAGES: Feature = {
  scopes: ['mpim:history', 'mpim:read'],
  events: ['message.mpim'],
  without: 'group direct messages',
};
const FILES: Feature = { scopes: ['files:read', 'files:write'], events: [], without: 'files in both directions' };
const REACTIONS: Feature = {
  scopes: ['reactions:read'],
  events: ['reaction_added'],
  without: 'stopping, resuming and retrying by a reaction, and its verdict on answers',
};
const PERSONA: Feature = {
  scopes: ['chat:write.customize'],
  events: [],
  without: 'answers under the name and icon of the peer who gave them',
};
const JOIN: Feature = {
  scopes: ['channels:join', 'chat:write.public'],
  events: [],
  without: 'joining public channels by itself',
};
const EMAIL: Feature = { scopes: ['users:read.email'], events: [], without: 'e-mail addresses of people' };
const COMMANDS: Feature = { scopes: ['commands'], events: [], without: 'the slash command and the message shortcut' };
const AGENT: Feature = {
  scopes: ['assistant:write'],
  events: ['agent_session_stopped', 'app_context_changed'],
  without: 'the working status and Slack’s own stop control',
};
const PROMPTS: Feature = { scopes: ['assistant:write'], events: ['app_home_opened'], without: 'suggested prompts' };
const ASSISTANT: Feature = {
  scopes: ['assistant:write'],
  events: ['assistant_thread_started', 'assistant_thread_context_changed'],
  without: 'the working status',
};

/** Every feature that the settings switch on for one app. */
function featuresOf(options: SlackOptions, app: Pick<SlackAppConfig, 'surface'>): readonly Feature[] {
  const surface = surfaceOf(options, app);
  return [
    BASE,
    ...(options.threadFollowUps === 'mention' ? [] : [FOLLOW_UPS]),
    GROUP_MESSAGES,
    FILES,
    ...(Object.keys(options.reactions).length > 0 ? [REACTIONS] : []),
    PERSONA,
    ...(options.slashCommand !== 'off' || options.messageShortcut ? [COMMANDS] : []),
    ...(options.autoJoin ? [JOIN] : []),
    ...(options.identity.email ? [EMAIL] : []),
    ...(surface === 'agent' && options.suggestedPrompts.length > 0 ? [PROMPTS] : []),
    ...(surface === 'agent' ? [AGENT] : surface === 'assistant' ? [ASSISTANT] : []),
  ];
}

/** New apps are agents: Slack takes the assistant view from existing apps only. */
function surfaceOf(options: SlackOptions, app: Pick<SlackAppConfig, 'surface'>): 'agent' | 'assistant' | 'none' {
  if (app.surface) return app.surface;
  if (options.status === 'off') return 'none';
  return options.status === 'assistant' ? 'assistant' : 'agent';
}

/** The bot scopes that the settings need, each with what does not work without it (S-215). */
export function neededScopes(options: SlackOptions, app: Pick<SlackAppConfig, 'surface'>): ReadonlyMap<string, string> {
  return new Map(
    featuresOf(options, app).flatMap(({ scopes, without }) => scopes.map((scope) => [scope, without] as const)),
  );
}

export interface ManifestInput {
  readonly options: SlackOptions;
  readonly app: Pick<SlackAppConfig, 'slug' | 'transport' | 'persona' | 'surface'>;
  /** Where Slack reaches this service; null: a placeholder is printed. */
  readonly publicUrl: string | null;
}

export interface SlackManifest {
  readonly manifest: Readonly<Record<string, unknown>>;
  /** What no field of a manifest can set. */
  readonly notes: readonly string[];
}

/** The app manifest that fits the settings: exactly their scopes, events and URLs. */
export function slackManifest({ options, app, publicUrl }: ManifestInput): SlackManifest {
  const features = featuresOf(options, app);
  const surface = surfaceOf(options, app);
  const name = app.persona?.name ?? (app.slug === 'main' ? 'Band gateway' : `Band ${app.slug}`);
  const base = `${publicUrl ?? 'https://gateway.example.com'}${options.mountPath}/${app.slug}`;
  const http = app.transport === 'http';
  const url = (kind: string) => (http ? { request_url: `${base}/${kind}` } : {});
  const commandUrl = http ? { url: `${base}/commands` } : {};
  const description = 'Talks to Band agents from Slack.';
  return {
    manifest: {
      _metadata: SCHEMA_VERSION,
      display_information: { name: name.slice(0, MAX_NAME_CHARS), description },
      features: {
        app_home: { home_tab_enabled: false, messages_tab_enabled: true, messages_tab_read_only_enabled: false },
        bot_user: { display_name: botName(name), always_online: true },
        ...(options.messageShortcut ? { shortcuts: [SHORTCUT] } : {}),
        ...(options.slashCommand === 'off' ? {} : { slash_commands: [slashCommand(options.slashCommand, commandUrl)] }),
        ...(surface === 'agent' ? { agent_view: { agent_description: description } } : {}),
        ...(surface === 'assistant' ? { assistant_view: { assistant_description: description } } : {}),
      },
      oauth_config: { scopes: { bot: unique(features.flatMap(({ scopes }) => scopes)) } },
      settings: {
        event_subscriptions: { ...url('events'), bot_events: unique(features.flatMap(({ events }) => events)) },
        interactivity: { is_enabled: true, ...url('interactions') },
        org_deploy_enabled: false,
        socket_mode_enabled: !http,
        token_rotation_enabled: false,
      },
    },
    notes: notesFor(http, publicUrl),
  };
}

const SHORTCUT = {
  name: 'Ask the agent',
  type: 'message',
  callback_id: ASK_CALLBACK,
  description: 'Asks the agent about a message, in its thread.',
} as const;

const slashCommand = (command: string, url: { url?: string }) => ({
  command,
  ...url,
  description: 'Asks the agent, and steers your conversations with it.',
  usage_hint: Object.keys(COMMAND_WORDS).join(' | '),
  // Without it a mention in a command is only its letters.
  should_escape: true,
});

function notesFor(http: boolean, publicUrl: string | null): readonly string[] {
  return [
    ...(http && publicUrl === null
      ? ['Put the address of this service in the place of https://gateway.example.com.']
      : []),
    ...(http
      ? ['Set the signing secret (Basic Information) as SLACK_SIGNING_SECRET.']
      : ['Make an app-level token with connections:write (Basic Information) and set it as SLACK_APP_TOKEN.']),
    'Install the app and set its bot token (OAuth & Permissions) as SLACK_BOT_TOKEN.',
    'Switch Delayed Events on (Event Subscriptions): Slack then repeats what was missed for a day.',
    'Invite the bot to the channels where it is to answer.',
  ];
}

/** The manifest as text, its notes as comments where the format has them. */
export function manifestText({ manifest, notes }: SlackManifest, format: 'yaml' | 'json'): string {
  if (format === 'json') return `${JSON.stringify(manifest, null, 2)}\n`;
  return `${notes.map((note) => `# ${note}`).join('\n')}\n${stringify(manifest)}`;
}

/** Slack takes lower-case letters, digits and `-_.` as a bot's name. */
function botName(name: string): string {
  const safe = name
    .toLowerCase()
    .replace(/[^a-z0-9-_.]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return (safe === '' ? 'band-gateway' : safe).slice(0, MAX_BOT_NAME_CHARS);
}

const unique = (values: readonly string[]): string[] => [...new Set(values)];

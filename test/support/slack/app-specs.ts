import type { App } from './world.js';

/** Scopes and events of an app made from the base manifest with follow-ups, group DMs, files and persona. */
export const USUAL_SCOPES = [
  'app_mentions:read',
  'chat:write',
  'im:history',
  'im:read',
  'channels:history',
  'channels:read',
  'groups:history',
  'groups:read',
  'mpim:history',
  'mpim:read',
  'users:read',
  'reactions:write',
  'reactions:read',
  'files:read',
  'files:write',
  'assistant:write',
  'chat:write.customize',
  'commands',
];
export const USUAL_EVENTS = [
  'app_mention',
  'message.im',
  'message.channels',
  'message.groups',
  'message.mpim',
  'app_uninstalled',
  'tokens_revoked',
  'channel_archive',
  'channel_unarchive',
  'channel_rename',
  'member_joined_channel',
  'user_change',
  'reaction_added',
  'reaction_removed',
  'app_home_opened',
  'agent_session_stopped',
];

export interface AppSpec {
  readonly id?: string;
  readonly name?: string;
  readonly signingSecret?: string;
  readonly appToken?: string;
  readonly surface?: App['surface'];
  readonly distributed?: boolean;
  readonly events?: readonly string[];
  readonly socketMode?: boolean;
  /** Slash commands, all with `should_escape`; default `/band`. */
  readonly commands?: readonly string[];
  /** Callback ids of message shortcuts; default `band_ask`. */
  readonly shortcuts?: readonly string[];
}

export interface InstallSpec {
  readonly botUserId?: string;
  readonly botId?: string;
  readonly botToken?: string;
  readonly scopes?: readonly string[];
  readonly orgWide?: boolean;
}

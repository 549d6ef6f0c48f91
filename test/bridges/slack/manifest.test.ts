import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseOptions } from '../../../src/config/setting.js';
import { resolveApps } from '../../../bridges/slack/apps.js';
import { manifestText, neededScopes, slackManifest } from '../../../bridges/slack/manifest.js';
import { slackSettings, type SlackOptionsInput } from '../../../bridges/slack/settings.js';
import { MANIFEST_SCHEMA } from '../../support/slack/manifest-schema.js';

const validate = new Ajv({ allErrors: true, strict: false }).compile(MANIFEST_SCHEMA);

interface Shape {
  features: Record<string, unknown> & { bot_user: { display_name: string } };
  oauth_config: { scopes: { bot: string[] } };
  settings: {
    event_subscriptions: { bot_events: string[]; request_url?: string };
    interactivity: { request_url?: string };
    socket_mode_enabled: boolean;
  };
}

function manifest(input: SlackOptionsInput, publicUrl: string | null = 'https://gw.example.test') {
  const options = parseOptions(slackSettings, input);
  const app = resolveApps(options)[0]!;
  const made = slackManifest({ options, app, publicUrl });
  expect(validate(made.manifest), JSON.stringify(validate.errors)).toBe(true);
  return { made, shape: made.manifest as unknown as Shape, needed: neededScopes(options, app) };
}

const socket = { botToken: 'xoxb-1', appToken: 'xapp-1' };
const http = { botToken: 'xoxb-1', signingSecret: 's' };

describe('the generated manifest', () => {
  it('S-214 for the socket has no URLs, for HTTP the app’s own', () => {
    const one = manifest(socket).shape.settings;
    expect(one.socket_mode_enabled).toBe(true);
    expect([one.event_subscriptions.request_url, one.interactivity.request_url]).toEqual([undefined, undefined]);
    const other = manifest({ ...http, slug: 'desk', mountPath: '/hooks' }).shape.settings;
    expect(other.socket_mode_enabled).toBe(false);
    expect(other.event_subscriptions.request_url).toBe('https://gw.example.test/hooks/desk/events');
    expect(other.interactivity.request_url).toBe('https://gw.example.test/hooks/desk/interactions');
  });

  it('S-214 holds exactly the scopes and events that the settings need', () => {
    const { shape } = manifest(socket);
    expect([...shape.oauth_config.scopes.bot].sort()).toEqual([
      'app_mentions:read',
      'assistant:write',
      'channels:history',
      'channels:read',
      'chat:write',
      'chat:write.customize',
      'commands',
      'files:read',
      'files:write',
      'groups:history',
      'groups:read',
      'im:history',
      'im:read',
      'mpim:history',
      'mpim:read',
      'reactions:read',
      'reactions:write',
      'users:read',
    ]);
    expect([...shape.settings.event_subscriptions.bot_events].sort()).toEqual([
      'agent_session_stopped',
      'app_context_changed',
      'app_mention',
      'app_uninstalled',
      'channel_archive',
      'channel_rename',
      'channel_unarchive',
      'member_joined_channel',
      'message.channels',
      'message.groups',
      'message.im',
      'message.mpim',
      'reaction_added',
      'tokens_revoked',
      'user_change',
    ]);
    expect(shape.features).toHaveProperty('agent_view');
  });

  it('S-214 follows the settings: follow-ups, joining, e-mail, the kind of app', () => {
    const lean = manifest({ ...socket, threadFollowUps: 'mention', status: 'off' }).shape;
    expect(lean.settings.event_subscriptions.bot_events).not.toContain('message.channels');
    expect(lean.oauth_config.scopes.bot).not.toContain('assistant:write');
    expect(lean.features).not.toHaveProperty('agent_view');
    const rich = manifest({ ...socket, autoJoin: true, identity: { email: true }, status: 'assistant' }).shape;
    expect(rich.oauth_config.scopes.bot).toEqual(
      expect.arrayContaining(['channels:join', 'chat:write.public', 'users:read.email', 'assistant:write']),
    );
    expect(rich.settings.event_subscriptions.bot_events).toContain('assistant_thread_started');
    expect(rich.settings.event_subscriptions.bot_events).not.toContain('agent_session_stopped');
    expect(rich.features).toHaveProperty('assistant_view');
  });

  it('S-214 S-169 S-170 asks for commands exactly where a command or a shortcut is offered', () => {
    const { shape, needed } = manifest({ ...http, slashCommand: '/ask-band' });
    expect(shape.features['slash_commands']).toEqual([
      expect.objectContaining({
        command: '/ask-band',
        url: 'https://gw.example.test/slack/main/commands',
        should_escape: true,
      }),
    ]);
    expect(shape.features['shortcuts']).toEqual([
      expect.objectContaining({ type: 'message', callback_id: 'band_ask' }),
    ]);
    expect(needed.get('commands')).toContain('slash command');
    const overSocket = manifest(socket).shape.features['slash_commands'] as Record<string, unknown>[];
    expect(overSocket[0]).not.toHaveProperty('url');
    const without = manifest({ ...http, slashCommand: 'off', messageShortcut: false });
    expect(without.shape.features).not.toHaveProperty('slash_commands');
    expect(without.shape.features).not.toHaveProperty('shortcuts');
    expect(without.shape.oauth_config.scopes.bot).not.toContain('commands');
    expect(without.needed.has('commands')).toBe(false);
    for (const one of [{ slashCommand: 'off' }, { messageShortcut: false }])
      expect(manifest({ ...http, ...one }).shape.oauth_config.scopes.bot).toContain('commands');
  });

  it('S-214 S-137 S-155 listens for an opened conversation and for reactions only where something comes of it', () => {
    const prompts = { suggestedPrompts: [{ title: 'Build', message: 'Is it green?' }] };
    expect(manifest(socket).shape.settings.event_subscriptions.bot_events).not.toContain('app_home_opened');
    expect(manifest({ ...socket, ...prompts }).shape.settings.event_subscriptions.bot_events).toContain(
      'app_home_opened',
    );
    const deaf = manifest({ ...socket, reactions: {} }).shape;
    expect(deaf.settings.event_subscriptions.bot_events).not.toContain('reaction_added');
    expect(deaf.oauth_config.scopes.bot).not.toContain('reactions:read');
  });

  it('S-214 keeps Slack’s rules for names', () => {
    const persona = { name: 'Überlanger Name für einen Bot, der nirgends passt' };
    const { shape } = manifest({ apps: [{ slug: 'a', ...socket, persona }] });
    expect(shape.features.bot_user.display_name).toMatch(/^[a-z0-9-_.]{1,80}$/);
    expect(
      manifest({ apps: [{ slug: 'a', ...socket, persona: { name: '机器人' } }] }).shape.features.bot_user.display_name,
    ).toBe('band-gateway');
  });

  it('prints as YAML with notes in front, and as JSON', () => {
    const { made } = manifest(http, null);
    const yaml = manifestText(made, 'yaml');
    expect(yaml).toMatch(/^# Put the address of this service/);
    expect(yaml).toContain('Delayed Events');
    expect(parse(yaml)).toEqual(made.manifest);
    expect(JSON.parse(manifestText(made, 'json'))).toEqual(made.manifest);
  });

  it('S-215 names for every scope what does not work without it', () => {
    const { needed, shape } = manifest(socket);
    expect([...needed.keys()]).toEqual(shape.oauth_config.scopes.bot);
    expect(needed.get('files:read')).toBe('files in both directions');
  });
});

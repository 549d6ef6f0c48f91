import type { Change, Core } from './core.js';
import { findInstallation, messageJson, type App, type Channel, type Installation, type Json } from './world.js';

/** An event on its way to an app. */
export interface Outgoing {
  readonly app: App;
  readonly kind: 'events_api' | 'interactive' | 'slash_commands';
  readonly eventId: string | null;
  readonly type: string;
  readonly body: Json;
}

const SUFFIX: Readonly<Record<Channel['kind'], string>> = {
  channel: 'channels',
  group: 'groups',
  im: 'im',
  mpim: 'mpim',
};

/** Turns what happens in the world into the events that each app has subscribed to and may see. */
export function watchWorld(core: Core, emit: (outgoing: Outgoing) => void): void {
  core.watchers.push((change) => {
    for (const installation of core.world.installations) {
      if (!installation.active) continue;
      for (const event of eventsFor(core, installation, change)) emit(wrap(core, installation, event));
    }
  });
}

function eventsFor(core: Core, installation: Installation, change: Change): Json[] {
  const { channel } = change;
  const { app } = installation;
  const sees = channel.members.has(installation.botUserId);
  const here =
    channel.teamId === installation.team.id || channel.sharedWith.has(installation.team.id) || installation.orgWide;
  if (!sees || !here) return [];
  const type = `message.${SUFFIX[channel.kind]}`;
  const events: Json[] = [];
  switch (change.kind) {
    case 'posted': {
      const message = messageJson(core.world, channel, change.message, true);
      if (app.subscriptions.has(type))
        events.push({ ...message, channel: channel.id, channel_type: channel.kind, event_ts: change.message.ts });
      const mentioned =
        change.message.text.includes(`<@${installation.botUserId}>`) ||
        change.message.text.includes(`<@${installation.botUserId}|`);
      if (
        mentioned &&
        change.message.botId !== installation.botId &&
        channel.kind !== 'im' &&
        app.subscriptions.has('app_mention')
      ) {
        const { subtype, ...rest } = message;
        events.push({
          ...rest,
          ...(subtype === 'file_share' ? {} : {}),
          type: 'app_mention',
          channel: channel.id,
          event_ts: change.message.ts,
        });
      }
      return events;
    }
    case 'changed':
      if (!app.subscriptions.has(type)) return [];
      return [
        {
          type: 'message',
          subtype: 'message_changed',
          message: messageJson(core.world, channel, change.message, true),
          previous_message: change.previous,
          channel: channel.id,
          channel_type: channel.kind,
          hidden: true,
          ts: core.world.nextTs(channel),
          event_ts: change.message.edited?.ts ?? change.message.ts,
        },
      ];
    case 'deleted':
      if (!app.subscriptions.has(type)) return [];
      return [
        {
          type: 'message',
          subtype: 'message_deleted',
          previous_message: change.previous,
          deleted_ts: change.message.ts,
          channel: channel.id,
          channel_type: channel.kind,
          hidden: true,
          ts: core.world.nextTs(channel),
          event_ts: change.message.ts,
        },
      ];
    case 'reaction': {
      const kind = change.added ? 'reaction_added' : 'reaction_removed';
      if (!app.subscriptions.has(kind)) return [];
      return [
        {
          type: kind,
          user: change.user,
          reaction: change.name,
          item: { type: 'message', channel: channel.id, ts: change.message.ts },
          item_user: change.message.user,
          event_ts: core.world.nextTs(channel),
        },
      ];
    }
    case 'joined':
      if (!app.subscriptions.has('member_joined_channel')) return [];
      return [
        {
          type: 'member_joined_channel',
          user: change.user,
          channel: channel.id,
          channel_type: 'C',
          team: channel.teamId,
          event_ts: core.world.nextTs(channel),
        },
      ];
    case 'stopped':
      if (!app.subscriptions.has('agent_session_stopped')) return [];
      return [
        {
          type: 'agent_session_stopped',
          channel: channel.id,
          thread_ts: change.threadTs,
          user: change.user,
          event_ts: core.world.nextTs(channel),
        },
      ];
  }
}

/** The envelope of the Events API around one inner event. */
export function wrap(core: Core, installation: Installation, event: Json): Outgoing {
  const { world } = core;
  const eventId = world.nextId('Ev');
  const author = typeof event['user'] === 'string' ? world.users.get(event['user']) : undefined;
  const channel = typeof event['channel'] === 'string' ? world.channels.get(event['channel']) : undefined;
  const shared = (channel?.sharedWith.size ?? 0) > 0;
  const team = installation.team;
  return {
    app: installation.app,
    kind: 'events_api',
    eventId,
    type: String(event['type']),
    body: {
      token: 'legacy-verification-token',
      team_id: shared ? (author?.teamId ?? team.id) : team.id,
      ...(shared ? { context_team_id: team.id } : {}),
      ...(team.enterpriseId ? { enterprise_id: team.enterpriseId } : {}),
      api_app_id: installation.app.id,
      event,
      type: 'event_callback',
      event_id: eventId,
      event_time: Math.floor(world.clock.now() / 1_000),
      authorizations: [
        {
          enterprise_id: team.enterpriseId,
          team_id: team.id,
          user_id: installation.botUserId,
          is_bot: true,
          is_enterprise_install: installation.orgWide,
        },
      ],
      is_ext_shared_channel: shared,
      event_context: `4-ctx-${eventId}`,
    },
  };
}

/** An event about the app or the workspace, to every installation that subscribed to it. */
export function emitLifecycle(core: Core, teamId: string, event: Json, emit: (outgoing: Outgoing) => void): void {
  for (const app of core.world.apps.values()) {
    const installation =
      findInstallation(core.world, app, teamId) ??
      core.world.installations.find((one) => one.app === app && one.team.id === teamId);
    if (installation && app.subscriptions.has(String(event['type']))) emit(wrap(core, installation, event));
  }
}

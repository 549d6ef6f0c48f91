import { USUAL_EVENTS, USUAL_SCOPES, type AppSpec, type InstallSpec } from './app-specs.js';
import type { App, Channel, Installation, Team, User, World } from './world.js';

export type ChannelSpec = { name: string; members: readonly string[] } & Partial<Omit<Channel, 'members' | 'name'>>;

export function addTeam(world: World, spec: Partial<Team>): Team {
  const team: Team = {
    id: spec.id ?? world.nextId('T'),
    name: spec.name ?? 'Acme',
    domain: spec.domain ?? 'acme',
    enterpriseId: spec.enterpriseId ?? null,
  };
  world.teams.set(team.id, team);
  return team;
}

export function addApp(world: World, spec: AppSpec): App {
  const app: App = {
    id: spec.id ?? world.nextId('A'),
    name: spec.name ?? 'gateway',
    signingSecret: spec.signingSecret ?? world.nextId('signing-secret-'),
    appToken: spec.appToken ?? `xapp-1-${world.nextId('A')}-secret`,
    clientId: world.nextId('client.'),
    clientSecret: world.nextId('client-secret-'),
    surface: spec.surface ?? 'none',
    distributed: spec.distributed ?? false,
    subscriptions: new Set(spec.events ?? USUAL_EVENTS),
    commands: new Map((spec.commands ?? ['/band']).map((name) => [name, { escape: true }])),
    shortcuts: new Set(spec.shortcuts ?? ['band_ask']),
    urls: null,
    socketMode: spec.socketMode ?? false,
    delayedEvents: false,
    subscriptionOff: false,
  };
  world.apps.set(app.id, app);
  return app;
}

export function installApp(world: World, app: App, team: Team, spec: InstallSpec): Installation {
  const botUserId = spec.botUserId ?? world.nextId('U');
  addUser(world, team, { id: botUserId, name: app.name, realName: app.name, displayName: app.name, kind: 'bot' });
  const installation: Installation = {
    app,
    team,
    orgWide: spec.orgWide ?? false,
    botUserId,
    botId: spec.botId ?? world.nextId('B'),
    scopes: new Set(spec.scopes ?? USUAL_SCOPES),
    tokens: [{ value: spec.botToken ?? `xoxb-${world.nextId('T')}-secret`, expiresAt: null, revoked: false }],
    refreshToken: null,
    active: true,
  };
  world.installations.push(installation);
  return installation;
}

export function addUser(world: World, team: Team, spec: Partial<User> & { name: string }): User {
  const user: User = {
    id: world.nextId('U'),
    teamId: team.id,
    realName: spec.name,
    displayName: '',
    email: `${spec.name}@example.test`,
    kind: 'human',
    admin: false,
    guest: false,
    stranger: false,
    deleted: false,
    ...spec,
  };
  world.users.set(user.id, user);
  return user;
}

export function addChannel(world: World, team: Team, spec: ChannelSpec): Channel {
  const { members, ...rest } = spec;
  const channel: Channel = {
    id: world.nextId('C'),
    teamId: team.id,
    kind: 'channel',
    archived: false,
    readOnly: false,
    threadOnly: false,
    nonThreadable: false,
    messagesTab: true,
    lockedThreads: new Set(),
    sharedWith: new Set(),
    messages: [],
    lastTs: 0,
    ...rest,
    members: new Set(members),
  };
  world.channels.set(channel.id, channel);
  return channel;
}

/** The direct-message channel of a person with an app's bot, made on first use. */
export function directChannel(world: World, user: User, installation: Installation): Channel {
  const found = [...world.channels.values()].find(
    (one) => one.kind === 'im' && one.members.has(user.id) && one.members.has(installation.botUserId),
  );
  return (
    found ??
    addChannel(
      world,
      { ...installation.team, id: user.teamId },
      { id: world.nextId('D'), name: '', kind: 'im', members: [user.id, installation.botUserId] },
    )
  );
}

/** @param place - `dm`, an id, or a name as the person sees it */
export function channelAt(world: World, place: string, user: User, app: App): Channel {
  if (place === 'dm') {
    const installation = world.installations.find((one) => one.app === app);
    if (!installation) throw new Error('no installation to write to');
    return directChannel(world, user, installation);
  }
  const name = place.replace(/^#/, '');
  const channel =
    world.channels.get(place) ??
    [...world.channels.values()].find((one) => one.name === name && one.members.has(user.id));
  if (!channel) throw new Error(`${user.name} sees no ${place}`);
  return channel;
}

import type { Clock } from '../../../src/base/clock.js';

export type Json = Record<string, unknown>;

/** A string argument or field; anything else counts as absent. */
export const str = (value: unknown): string => (typeof value === 'string' ? value : '');

export interface Team {
  id: string;
  name: string;
  domain: string;
  enterpriseId: string | null;
}

export interface User {
  id: string;
  teamId: string;
  /** The handle, without `@`. */
  name: string;
  realName: string;
  displayName: string;
  email: string;
  kind: 'human' | 'bot';
  admin: boolean;
  guest: boolean;
  /** From another workspace, by Slack Connect. */
  stranger: boolean;
  deleted: boolean;
}

export interface App {
  id: string;
  name: string;
  /** The ones Slack signs with now; tests may rotate them. */
  signingSecret: string;
  appToken: string;
  clientId: string;
  clientSecret: string;
  surface: 'none' | 'agent' | 'assistant';
  /** Distributed outside the Marketplace: strict limits on reading history. */
  distributed: boolean;
  /** Event types, `message.channels` and so on for messages. */
  subscriptions: Set<string>;
  /** Slash commands by name, each with whether Slack writes mentions, channels and links as tokens. */
  commands: Map<string, { escape: boolean }>;
  /** Callback ids of message shortcuts. */
  shortcuts: Set<string>;
  urls: { events: string; interactions: string; commands: string } | null;
  socketMode: boolean;
  /** Hourly retries for a day. */
  delayedEvents: boolean;
  /** Slack gave up on the request URL. */
  subscriptionOff: boolean;
}

export interface Token {
  value: string;
  /** Null: never. */
  expiresAt: number | null;
  revoked: boolean;
}

export interface Installation {
  app: App;
  team: Team;
  /** The whole organisation, `team` being the one it was made in. */
  orgWide: boolean;
  botUserId: string;
  botId: string;
  scopes: Set<string>;
  tokens: Token[];
  refreshToken: string | null;
  active: boolean;
}

export interface Reaction {
  name: string;
  users: string[];
}

export interface Message {
  ts: string;
  threadTs: string | null;
  user: string;
  botId: string | null;
  appId: string | null;
  subtype: string | null;
  username: string | null;
  icon: string | null;
  text: string;
  blocks: Json[] | null;
  attachments: Json[] | null;
  files: string[];
  metadata: { event_type: string; event_payload: Json } | null;
  edited: { user: string; ts: string } | null;
  deleted: boolean;
  reactions: Reaction[];
  /** Only this person sees it. */
  ephemeralTo: string | null;
  streaming: boolean;
  clientMsgId: string | null;
  /** When Slack took it, on the double's clock. */
  at: number;
  broadcast: boolean;
}

export interface Channel {
  id: string;
  teamId: string;
  name: string;
  kind: 'channel' | 'group' | 'im' | 'mpim';
  members: Set<string>;
  archived: boolean;
  readOnly: boolean;
  threadOnly: boolean;
  nonThreadable: boolean;
  messagesTab: boolean;
  lockedThreads: Set<string>;
  /** Other workspaces that share it. */
  sharedWith: Set<string>;
  messages: Message[];
  lastTs: number;
}

export interface SlackFileRecord {
  id: string;
  teamId: string;
  name: string;
  title: string;
  mimetype: string;
  bytes: Buffer;
  user: string;
  mode: 'hosted' | 'external' | 'tombstone' | 'hidden_by_limit';
  /** A file of a shared channel whose details must be asked for. */
  checkFileInfo: boolean;
  externalUrl: string | null;
  /** Declared size where it differs from the bytes. */
  declaredSize: number | null;
  uploaded: boolean;
  expectedLength: number;
  shares: { channel: string; ts: string }[];
  deleted: boolean;
}

/** A refusal in Slack's way: HTTP 200 with `ok: false`. */
export class SlackFailure extends Error {
  readonly error: string;
  readonly extra: Json;

  constructor(error: string, extra: Json = {}) {
    super(error);
    this.error = error;
    this.extra = extra;
  }
}

/** Everything the double knows: plain data, changed by methods and people. */
export interface World {
  readonly clock: Clock;
  /** The double's own origin, known once it listens. */
  baseUrl: string;
  readonly teams: Map<string, Team>;
  readonly users: Map<string, User>;
  readonly apps: Map<string, App>;
  readonly installations: Installation[];
  readonly channels: Map<string, Channel>;
  readonly files: Map<string, SlackFileRecord>;
  readonly groups: Map<string, { id: string; handle: string; users: string[] }>;
  readonly statuses: Map<string, { status: string; loading: string[]; at: number }>;
  readonly sessions: Map<string, { state: string; title: string | null; initiator: string | null }>;
  readonly prompts: Map<string, Json[]>;
  /** `open` until the person or the app closes it. */
  readonly views: Map<string, { id: string; hash: string; view: Json; user: string; open: boolean }>;
  readonly responseUrls: Map<
    string,
    { channel: string; user: string; threadTs: string | null; messageTs: string | null; uses: number; at: number }
  >;
  readonly triggers: Map<string, { user: string; at: number; used: boolean }>;
  readonly tickets: Map<string, string>;
  nextId(prefix: string): string;
  nextTs(channel: Channel): string;
}

export function createWorld(clock: Clock): World {
  let counter = 0;
  return {
    clock,
    baseUrl: '',
    teams: new Map(),
    users: new Map(),
    apps: new Map(),
    installations: [],
    channels: new Map(),
    files: new Map(),
    groups: new Map(),
    statuses: new Map(),
    sessions: new Map(),
    prompts: new Map(),
    views: new Map(),
    responseUrls: new Map(),
    triggers: new Map(),
    tickets: new Map(),
    nextId(prefix) {
      counter += 1;
      return `${prefix}${counter.toString(36).toUpperCase().padStart(10, '0')}`;
    },
    nextTs(channel) {
      // Microseconds, as Slack counts: unique and rising within a channel even while a manual clock stands still.
      const micros = Math.max(clock.now() * 1_000, channel.lastTs + 100);
      channel.lastTs = micros;
      return `${Math.floor(micros / 1_000_000)}.${String(micros % 1_000_000).padStart(6, '0')}`;
    },
  };
}

export function findInstallation(world: World, app: App, teamId: string): Installation | null {
  return (
    world.installations.find(
      (one) =>
        one.app === app &&
        one.active &&
        (one.team.id === teamId || (one.orgWide && world.teams.get(teamId)?.enterpriseId === one.team.enterpriseId)),
    ) ?? null
  );
}

export function channelOf(world: World, id: unknown): Channel {
  const channel = typeof id === 'string' ? world.channels.get(id) : undefined;
  if (!channel) throw new SlackFailure('channel_not_found');
  return channel;
}

export function messageOf(channel: Channel, ts: unknown): Message | null {
  return (
    channel.messages.find((message) => message.ts === ts && !message.deleted && message.ephemeralTo === null) ?? null
  );
}

/** A message the way the Web API and events show it. */
export function messageJson(world: World, channel: Channel, message: Message, withMetadata: boolean): Json {
  const replies = channel.messages.filter(
    (other) => other.threadTs === message.ts && other.ts !== message.ts && !other.deleted && other.ephemeralTo === null,
  );
  return {
    type: 'message',
    ...(message.subtype ? { subtype: message.subtype } : {}),
    user: message.user,
    ...(message.botId ? { bot_id: message.botId } : {}),
    ...(message.appId ? { app_id: message.appId, bot_profile: botProfile(world, message) } : {}),
    ...(message.username ? { username: message.username } : {}),
    text: message.text,
    ts: message.ts,
    team: world.users.get(message.user)?.teamId ?? channel.teamId,
    ...(message.clientMsgId ? { client_msg_id: message.clientMsgId } : {}),
    ...(message.threadTs ? { thread_ts: message.threadTs } : replies.length > 0 ? { thread_ts: message.ts } : {}),
    ...(message.threadTs && message.threadTs !== message.ts
      ? { parent_user_id: channel.messages.find((root) => root.ts === message.threadTs)?.user }
      : {}),
    ...(replies.length > 0 ? { reply_count: replies.length, latest_reply: replies.at(-1)?.ts } : {}),
    ...(message.blocks ? { blocks: message.blocks } : {}),
    ...(message.attachments ? { attachments: message.attachments } : {}),
    ...(message.files.length > 0 ? { files: message.files.map((id) => fileJson(world, id)), upload: false } : {}),
    ...(message.edited ? { edited: message.edited } : {}),
    ...(message.reactions.length > 0
      ? { reactions: message.reactions.map((one) => ({ ...one, count: one.users.length })) }
      : {}),
    ...(withMetadata && message.metadata ? { metadata: message.metadata } : {}),
  };
}

function botProfile(world: World, message: Message): Json {
  return {
    id: message.botId,
    app_id: message.appId,
    name: world.apps.get(message.appId ?? '')?.name,
    team_id: world.users.get(message.user)?.teamId,
  };
}

export function fileJson(world: World, id: string): Json {
  const file = world.files.get(id);
  if (!file || file.deleted) return { id, mode: 'tombstone' };
  if (file.checkFileInfo) return { id, file_access: 'check_file_info' };
  return fullFileJson(world, file);
}

export function fullFileJson(world: World, file: SlackFileRecord): Json {
  if (file.mode === 'tombstone' || file.mode === 'hidden_by_limit') return { id: file.id, mode: file.mode };
  return {
    id: file.id,
    name: file.name,
    title: file.title,
    mimetype: file.mimetype,
    filetype: file.name.split('.').at(-1) ?? 'binary',
    size: file.declaredSize ?? file.bytes.byteLength,
    mode: file.mode,
    user: file.user,
    is_external: file.mode === 'external',
    ...(file.externalUrl ? { external_url: file.externalUrl, url_private: file.externalUrl } : {}),
    ...(file.mode === 'hosted'
      ? {
          url_private: `${world.baseUrl}/files-pri/${file.teamId}-${file.id}/${encodeURIComponent(file.name)}`,
          url_private_download: `${world.baseUrl}/files-pri/${file.teamId}-${file.id}/download/${encodeURIComponent(file.name)}`,
        }
      : {}),
    permalink: `${world.baseUrl}/files/${file.user}/${file.id}/${encodeURIComponent(file.name)}`,
  };
}

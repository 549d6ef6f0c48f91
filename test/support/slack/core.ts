import { liveTokens } from './message-rules.js';
import type { Channel, Installation, Json, Message, World } from './world.js';

export interface Ping {
  kind: 'user' | 'group' | 'broadcast';
  id: string;
  by: string;
  channel: string;
  ts: string;
}

/** Something that a message did, for whoever turns it into events. */
export type Change =
  | { kind: 'posted'; channel: Channel; message: Message }
  | { kind: 'changed'; channel: Channel; message: Message; previous: Json }
  | { kind: 'deleted'; channel: Channel; message: Message; previous: Json }
  | { kind: 'reaction'; channel: Channel; message: Message; user: string; name: string; added: boolean }
  | { kind: 'joined'; channel: Channel; user: string }
  | { kind: 'stopped'; channel: Channel; threadTs: string; user: string };

/** What the methods and the people share: the world, who watches it, and the record of what went wrong. */
export interface Core {
  readonly world: World;
  readonly violations: string[];
  readonly leaks: string[];
  readonly pings: Ping[];
  /** Methods that were called although this double does not know them. */
  readonly unknownMethods: string[];
  readonly watchers: ((change: Change) => void)[];
  change(change: Change): void;
}

export function createCore(world: World): Core {
  const core: Core = {
    world,
    violations: [],
    leaks: [],
    pings: [],
    unknownMethods: [],
    watchers: [],
    change(change) {
      for (const watcher of core.watchers) watcher(change);
    },
  };
  return core;
}

export interface Call {
  readonly core: Core;
  readonly world: World;
  readonly method: string;
  readonly args: Json;
  /** Set for every method that takes a bot token. */
  readonly installation: Installation;
  readonly teamId: string;
}

export type Method = (call: Call) => Json;

export function emptyMessage(ts: string, at: number): Message {
  return {
    ts,
    threadTs: null,
    user: '',
    botId: null,
    appId: null,
    subtype: null,
    username: null,
    icon: null,
    text: '',
    blocks: null,
    attachments: null,
    files: [],
    metadata: null,
    edited: null,
    deleted: false,
    reactions: [],
    ephemeralTo: null,
    streaming: false,
    clientMsgId: null,
    at,
    broadcast: false,
  };
}

/** Puts a message into a channel, notes whom it notifies, and tells the watchers. */
export function addMessage(core: Core, channel: Channel, message: Message): void {
  channel.messages.push(message);
  channel.messages.sort((a, b) => Number(a.ts) - Number(b.ts));
  if (message.botId !== null) notePings(core, channel, message);
  clearStatus(core.world, channel.id, message);
  if (message.ephemeralTo === null) core.change({ kind: 'posted', channel, message });
}

export function notePings(core: Core, channel: Channel, message: Message): void {
  const tokens = liveTokens(message.text, message.blocks, message.attachments);
  const note = (kind: Ping['kind'], id: string) => {
    const same = core.pings.some(
      (ping) => ping.ts === message.ts && ping.channel === channel.id && ping.id === id && ping.kind === kind,
    );
    if (!same) core.pings.push({ kind, id, by: message.user, channel: channel.id, ts: message.ts });
  };
  for (const id of tokens.users) note('user', id);
  for (const id of tokens.groups) note('group', id);
  for (const id of tokens.broadcasts) note('broadcast', id);
}

/** Slack takes a status away when the app posts into its thread. */
function clearStatus(world: World, channelId: string, message: Message): void {
  if (message.botId !== null && message.threadTs !== null) world.statuses.delete(`${channelId}:${message.threadTs}`);
}

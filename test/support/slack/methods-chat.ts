import { addMessage, emptyMessage, notePings, type Call, type Method } from './core.js';
import { checkBlocks, TEXT_SPLIT_CHARS, TEXT_TRUNCATED_CHARS } from './message-rules.js';
import {
  channelOf,
  messageJson,
  messageOf,
  SlackFailure,
  str,
  type Channel,
  type Json,
  type Message,
} from './world.js';

const list = (value: unknown): Json[] | null => {
  if (value === undefined || value === null || value === '') return null;
  const parsed: unknown = typeof value === 'string' ? JSON.parse(value) : value;
  if (!Array.isArray(parsed)) throw new SlackFailure('invalid_blocks_format');
  return parsed as Json[];
};
const flag = (value: unknown): boolean => value === true || value === 'true' || value === '1';

/** A channel, or the direct message with a person whose id was given. */
export function target(call: Call): Channel {
  const id = str(call.args['channel']);
  if (/^[UW]/.test(id)) return directMessage(call, id);
  const channel = channelOf(call.world, id);
  const { teamId } = call;
  if (channel.teamId !== teamId && !channel.sharedWith.has(teamId)) throw new SlackFailure('channel_not_found');
  return channel;
}

export function directMessage(call: Call, user: string): Channel {
  const { world, installation } = call;
  const person = world.users.get(user);
  if (!person || person.deleted) throw new SlackFailure('channel_not_found');
  for (const channel of world.channels.values()) {
    if (channel.kind === 'im' && channel.members.has(user) && channel.members.has(installation.botUserId))
      return channel;
  }
  const id = world.nextId('D');
  const channel: Channel = {
    id,
    teamId: call.teamId,
    name: '',
    kind: 'im',
    members: new Set([user, installation.botUserId]),
    archived: false,
    readOnly: false,
    threadOnly: false,
    nonThreadable: false,
    messagesTab: true,
    lockedThreads: new Set(),
    sharedWith: new Set(),
    messages: [],
    lastTs: 0,
  };
  world.channels.set(id, channel);
  return channel;
}

/** The rules of a place: archived, membership, read-only, threads. */
function checkPlace(call: Call, channel: Channel, threadTs: string | null): void {
  const { installation } = call;
  if (channel.archived) throw new SlackFailure('is_archived');
  if (channel.kind === 'im' && !channel.messagesTab) throw new SlackFailure('messages_tab_disabled');
  const member = channel.members.has(installation.botUserId);
  if (!member && !(channel.kind === 'channel' && installation.scopes.has('chat:write.public'))) {
    throw new SlackFailure(channel.kind === 'channel' ? 'not_in_channel' : 'channel_not_found');
  }
  if (channel.readOnly) throw new SlackFailure('restricted_action_read_only_channel');
  if (threadTs === null && channel.threadOnly) throw new SlackFailure('restricted_action_thread_only_channel');
  if (threadTs !== null) {
    if (channel.nonThreadable) throw new SlackFailure('restricted_action_non_threadable_channel');
    if (!/^\d{9,12}\.\d{6}$/.test(threadTs)) throw new SlackFailure('invalid_thread_ts');
    if (channel.lockedThreads.has(threadTs)) throw new SlackFailure('restricted_action_thread_locked');
    const root = channel.messages.find((message) => message.ts === threadTs);
    const alive =
      root && (!root.deleted || channel.messages.some((message) => message.threadTs === threadTs && !message.deleted));
    if (!alive) throw new SlackFailure('thread_not_found');
  }
}

interface Body {
  text: string;
  blocks: Json[] | null;
  attachments: Json[] | null;
  metadata: Message['metadata'];
}

function readBody(call: Call): Body {
  const { args } = call;
  const markdownText = str(args['markdown_text']);
  if (markdownText !== '' && (str(args['text']) !== '' || args['blocks'] !== undefined))
    throw new SlackFailure('markdown_text_conflict');
  const blocks = markdownText === '' ? list(args['blocks']) : [{ type: 'markdown', text: markdownText }];
  const attachments = list(args['attachments']);
  const text = str(args['text']);
  if (flag(args['link_names']) || str(args['parse']) === 'full')
    call.core.violations.push(`${call.method}: link_names or parse=full is set`);
  if (text.trim() === '' && !blocks && !attachments) throw new SlackFailure('no_text');
  if (blocks) checkBlocks(blocks);
  return { text, blocks, attachments, metadata: readMetadata(args['metadata']) };
}

function readMetadata(value: unknown): Message['metadata'] {
  if (value === undefined || value === '') return null;
  const parsed = (typeof value === 'string' ? JSON.parse(value) : value) as Message['metadata'];
  if (typeof parsed?.event_type !== 'string' || typeof parsed.event_payload !== 'object')
    throw new SlackFailure('invalid_metadata_format');
  if (JSON.stringify(parsed).length > 8_000) throw new SlackFailure('metadata_too_large');
  return parsed;
}

const postMessage: Method = (call) => {
  const { core, world, args, installation } = call;
  const channel = target(call);
  const threadTs = str(args['thread_ts']) || null;
  const body = readBody(call);
  checkPlace(call, channel, threadTs);
  const customized = str(args['username']) !== '' || str(args['icon_url']) !== '' || str(args['icon_emoji']) !== '';
  if (customized && !installation.scopes.has('chat:write.customize')) {
    throw new SlackFailure('missing_scope', {
      needed: 'chat:write.customize',
      provided: [...installation.scopes].join(','),
    });
  }
  if (body.text.length > TEXT_TRUNCATED_CHARS) {
    core.violations.push(`chat.postMessage: text of ${body.text.length} characters is truncated by Slack`);
    body.text = body.text.slice(0, TEXT_TRUNCATED_CHARS);
  }
  if (body.text.length > TEXT_SPLIT_CHARS && !body.blocks)
    core.violations.push(`chat.postMessage: text of ${body.text.length} characters is split by Slack`);
  const pieces = body.blocks ? [body.text] : splitLikeSlack(body.text);
  const posted = pieces.map((text) => {
    const message: Message = {
      ...emptyMessage(world.nextTs(channel), world.clock.now()),
      ...body,
      text,
      // A plain post comes back with the rich_text that Slack makes of it.
      blocks: body.blocks ?? [
        {
          type: 'rich_text',
          block_id: 'auto',
          elements: [{ type: 'rich_text_section', elements: [{ type: 'text', text }] }],
        },
      ],
      threadTs,
      user: installation.botUserId,
      botId: installation.botId,
      appId: installation.app.id,
      username: str(args['username']) || null,
      icon: str(args['icon_url']) || str(args['icon_emoji']) || null,
      broadcast: flag(args['reply_broadcast']),
    };
    addMessage(core, channel, message);
    return message;
  });
  const first = posted[0]!;
  return { channel: channel.id, ts: first.ts, message: messageJson(world, channel, first, true) };
};

function splitLikeSlack(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += TEXT_SPLIT_CHARS) pieces.push(text.slice(at, at + TEXT_SPLIT_CHARS));
  return pieces.length > 0 ? pieces : [''];
}

const postEphemeral: Method = (call) => {
  const { core, world, args, installation } = call;
  const channel = target(call);
  const user = str(args['user']);
  const body = readBody(call);
  const threadTs = str(args['thread_ts']) || null;
  checkPlace(call, channel, threadTs);
  if (!channel.members.has(user)) throw new SlackFailure('user_not_in_channel');
  const message: Message = {
    ...emptyMessage(world.nextTs(channel), world.clock.now()),
    ...body,
    threadTs,
    user: installation.botUserId,
    botId: installation.botId,
    appId: installation.app.id,
    ephemeralTo: user,
  };
  addMessage(core, channel, message);
  return { message_ts: message.ts };
};

function ownMessage(call: Call, channel: Channel, missing: string, foreign: string): Message {
  const message = messageOf(channel, call.args['ts']);
  if (!message) throw new SlackFailure(missing);
  if (message.botId !== call.installation.botId) throw new SlackFailure(foreign);
  return message;
}

const update: Method = (call) => {
  const { core, world, args } = call;
  const channel = target(call);
  const body = readBody(call);
  if (channel.archived) throw new SlackFailure('is_archived');
  const message = ownMessage(call, channel, 'message_not_found', 'cant_update_message');
  if (message.streaming) throw new SlackFailure('streaming_state_conflict');
  if (body.text.length > TEXT_SPLIT_CHARS) throw new SlackFailure('msg_too_long');
  if (!body.blocks && message.blocks?.some((block) => block['block_id'] !== 'auto')) {
    core.violations.push('chat.update: only one of text and blocks was sent, so Slack removes the blocks');
  }
  if (body.blocks && str(args['text']) === '') core.violations.push('chat.update: blocks without a text');
  const previous = messageJson(world, channel, message, false);
  message.text = body.text;
  message.blocks = body.blocks;
  message.attachments = body.attachments;
  if (body.metadata) message.metadata = body.metadata;
  message.edited = { user: message.user, ts: world.nextTs(channel) };
  notePings(core, channel, message);
  core.change({ kind: 'changed', channel, message, previous });
  return {
    channel: channel.id,
    ts: message.ts,
    text: message.text,
    message: messageJson(world, channel, message, true),
  };
};

const remove: Method = (call) => {
  const { core, world } = call;
  const channel = target(call);
  const message = ownMessage(call, channel, 'message_not_found', 'cant_delete_message');
  const previous = messageJson(world, channel, message, false);
  message.deleted = true;
  core.change({ kind: 'deleted', channel, message, previous });
  return { channel: channel.id, ts: message.ts };
};

const getPermalink: Method = (call) => {
  const channel = target(call);
  const message = messageOf(channel, call.args['message_ts']);
  if (!message) throw new SlackFailure('message_not_found');
  return { channel: channel.id, permalink: permalink(call, channel, message) };
};

export function permalink(call: Pick<Call, 'world' | 'teamId'>, channel: Channel, message: Message): string {
  const domain = call.world.teams.get(call.teamId)?.domain ?? 'unknown';
  return `https://${domain}.slack.com/archives/${channel.id}/p${message.ts.replace('.', '')}`;
}

const startStream: Method = (call) => {
  const { core, world, args, installation } = call;
  const channel = target(call);
  const threadTs = str(args['thread_ts']);
  if (threadTs === '')
    throw new SlackFailure('invalid_arguments', { response_metadata: { messages: ['[ERROR] missing thread_ts'] } });
  if (channel.kind !== 'im') {
    if (str(args['recipient_team_id']) === '') throw new SlackFailure('missing_recipient_team_id');
    if (str(args['recipient_user_id']) === '') throw new SlackFailure('missing_recipient_user_id');
  }
  checkPlace(call, channel, threadTs);
  const message: Message = {
    ...emptyMessage(world.nextTs(channel), world.clock.now()),
    text: str(args['markdown_text']),
    threadTs,
    user: installation.botUserId,
    botId: installation.botId,
    appId: installation.app.id,
    streaming: true,
  };
  addMessage(core, channel, message);
  return { channel: channel.id, ts: message.ts };
};

const appendStream: Method = (call) => {
  const channel = target(call);
  const message = ownMessage(call, channel, 'message_not_found', 'message_not_owned_by_app');
  if (!message.streaming) throw new SlackFailure('message_not_in_streaming_state');
  const text = str(call.args['markdown_text']);
  if (text.length > 12_000) throw new SlackFailure('msg_too_long');
  message.text += text;
  return { channel: channel.id, ts: message.ts };
};

const stopStream: Method = (call) => {
  const channel = target(call);
  const message = ownMessage(call, channel, 'message_not_found', 'message_not_owned_by_app');
  if (!message.streaming) throw new SlackFailure('message_not_in_streaming_state');
  message.text += str(call.args['markdown_text']);
  message.streaming = false;
  return { channel: channel.id, ts: message.ts };
};

export const CHAT_METHODS: Readonly<Record<string, Method>> = {
  'chat.postMessage': postMessage,
  'chat.postEphemeral': postEphemeral,
  'chat.update': update,
  'chat.delete': remove,
  'chat.getPermalink': getPermalink,
  'chat.startStream': startStream,
  'chat.appendStream': appendStream,
  'chat.stopStream': stopStream,
};

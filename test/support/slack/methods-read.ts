import type { Call, Method } from './core.js';
import { directMessage } from './methods-chat.js';
import {
  channelOf,
  messageJson,
  messageOf,
  SlackFailure,
  str,
  type Channel,
  type Json,
  type Message,
  type User,
} from './world.js';

const flag = (value: unknown): boolean => value === true || value === 'true' || value === '1';

function readable(call: Call): Channel {
  const channel = channelOf(call.world, call.args['channel']);
  const { teamId, installation } = call;
  if (channel.teamId !== teamId && !channel.sharedWith.has(teamId)) throw new SlackFailure('channel_not_found');
  if (channel.kind !== 'channel' && !channel.members.has(installation.botUserId))
    throw new SlackFailure('channel_not_found');
  return channel;
}

function memberOnly(call: Call): Channel {
  const channel = readable(call);
  if (!channel.members.has(call.installation.botUserId)) throw new SlackFailure('not_in_channel');
  return channel;
}

const info: Method = (call) => {
  const channel = readable(call);
  return { channel: channelJson(call, channel) };
};

function channelJson(call: Call, channel: Channel): Json {
  const other = [...channel.members].find((id) => id !== call.installation.botUserId);
  return {
    id: channel.id,
    ...(channel.kind === 'im' ? { user: other } : { name: channel.name }),
    is_channel: channel.kind === 'channel',
    is_group: channel.kind === 'group',
    is_im: channel.kind === 'im',
    is_mpim: channel.kind === 'mpim',
    is_private: channel.kind !== 'channel',
    is_archived: channel.archived,
    is_member: channel.members.has(call.installation.botUserId),
    is_ext_shared: channel.sharedWith.size > 0,
    context_team_id: call.teamId,
  };
}

interface Cursor {
  after: string;
}

/** Pages through messages in the order given; the cursor names the last one shown. */
function page(call: Call, channel: Channel, messages: readonly Message[]): Json {
  const { args, world } = call;
  const strict = call.installation.app.distributed;
  const wanted = Number(args['limit'] ?? 100);
  const limit = Math.min(Number.isFinite(wanted) && wanted > 0 ? wanted : 100, strict ? 15 : 1_000);
  const inclusive = flag(args['inclusive']);
  const oldest = Number(str(args['oldest']) || 0);
  const latest = str(args['latest']) === '' ? Number.POSITIVE_INFINITY : Number(args['latest']);
  if (Number.isNaN(oldest)) throw new SlackFailure('invalid_ts_oldest');
  if (Number.isNaN(latest)) throw new SlackFailure('invalid_ts_latest');
  const inRange = messages.filter(({ ts }) => {
    const at = Number(ts);
    return inclusive ? at >= oldest && at <= latest : at > oldest && at < latest;
  });
  const rest = str(args['cursor']) === '' ? inRange : afterCursor(inRange, str(args['cursor']));
  const shown = rest.slice(0, limit);
  const more = rest.length > shown.length;
  const next = more
    ? Buffer.from(JSON.stringify({ after: shown.at(-1)!.ts } satisfies Cursor)).toString('base64url')
    : '';
  return {
    messages: shown.map((message) => messageJson(world, channel, message, flag(args['include_all_metadata']))),
    has_more: more,
    response_metadata: { next_cursor: next },
  };
}

function afterCursor(messages: readonly Message[], cursor: string): Message[] {
  try {
    const { after } = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Cursor;
    const index = messages.findIndex((message) => message.ts === after);
    if (index >= 0) return messages.slice(index + 1);
  } catch {
    // Answered below like any other cursor that Slack did not make.
  }
  throw new SlackFailure('invalid_cursor');
}

const visible = (message: Message): boolean => !message.deleted && message.ephemeralTo === null;

const history: Method = (call) => {
  const channel = memberOnly(call);
  const top = channel.messages.filter(
    (message) =>
      visible(message) && (message.threadTs === null || message.threadTs === message.ts || message.broadcast),
  );
  return page(call, channel, top.reverse());
};

const replies: Method = (call) => {
  const channel = memberOnly(call);
  const ts = str(call.args['ts']);
  const root = channel.messages.find((message) => message.ts === ts);
  // A reply's own `ts` gives that reply alone.
  if (root?.threadTs != null && root.threadTs !== ts && !root.deleted) return page(call, channel, [root]);
  const thread = channel.messages.filter(
    (message) => visible(message) && (message.ts === ts || message.threadTs === ts),
  );
  if (!root || thread.length === 0) throw new SlackFailure('thread_not_found');
  return page(call, channel, thread);
};

const listChannels: Method = (call) => ({
  channels: [...call.world.channels.values()]
    .filter((channel) => channel.teamId === call.teamId && channel.kind === 'channel')
    .map((channel) => channelJson(call, channel)),
  response_metadata: { next_cursor: '' },
});

const members: Method = (call) => ({ members: [...readable(call).members], response_metadata: { next_cursor: '' } });

const open: Method = (call) => {
  const users = str(call.args['users']).split(',').filter(Boolean);
  if (users.length !== 1) throw new SlackFailure('method_not_supported_for_channel_type');
  return { channel: { id: directMessage(call, users[0]!).id } };
};

const join: Method = (call) => {
  const channel = readable(call);
  if (channel.kind !== 'channel') throw new SlackFailure('method_not_supported_for_channel_type');
  if (channel.archived) throw new SlackFailure('is_archived');
  channel.members.add(call.installation.botUserId);
  call.core.change({ kind: 'joined', channel, user: call.installation.botUserId });
  return { channel: channelJson(call, channel) };
};

function userJson(call: Call, user: User): Json {
  const withMail = call.installation.scopes.has('users:read.email');
  return {
    id: user.id,
    team_id: user.teamId,
    name: user.name,
    real_name: user.realName,
    deleted: user.deleted,
    is_bot: user.kind === 'bot',
    is_admin: user.admin,
    is_owner: false,
    is_restricted: user.guest,
    is_ultra_restricted: false,
    ...(user.stranger ? { is_stranger: true } : {}),
    profile: { display_name: user.displayName, real_name: user.realName, ...(withMail ? { email: user.email } : {}) },
  };
}

const userInfo: Method = (call) => {
  const user = call.world.users.get(str(call.args['user']));
  if (!user) throw new SlackFailure('user_not_found');
  return { user: userJson(call, user) };
};

const listUsers: Method = (call) => ({
  members: [...call.world.users.values()]
    .filter((user) => user.teamId === call.teamId)
    .map((user) => userJson(call, user)),
  response_metadata: { next_cursor: '' },
});

const byEmail: Method = (call) => {
  const user = [...call.world.users.values()].find(
    (one) => one.email === call.args['email'] && one.teamId === call.teamId,
  );
  if (!user) throw new SlackFailure('users_not_found');
  return { user: userJson(call, user) };
};

const botInfo: Method = (call) => {
  const found = call.world.installations.find((one) => one.botId === call.args['bot']);
  if (!found) throw new SlackFailure('bot_not_found');
  return {
    bot: { id: found.botId, app_id: found.app.id, user_id: found.botUserId, name: found.app.name, deleted: false },
  };
};

const teamInfo: Method = (call) => {
  const team = call.world.teams.get(call.teamId);
  return { team: { id: team?.id, name: team?.name, domain: team?.domain, enterprise_id: team?.enterpriseId } };
};

const groups: Method = (call) => ({
  usergroups: [...call.world.groups.values()].map((one) => ({ id: one.id, handle: one.handle, users: one.users })),
});

const emoji: Method = () => ({ emoji: {} });

function reactionTarget(call: Call): { channel: Channel; message: Message } {
  const channel = memberOnly(call);
  if (channel.archived) throw new SlackFailure('is_archived');
  const message = messageOf(channel, call.args['timestamp']);
  if (!message) throw new SlackFailure('message_not_found');
  if (!/^[a-z0-9_+'-]+(?:::skin-tone-[2-6])?$/.test(str(call.args['name']))) throw new SlackFailure('invalid_name');
  return { channel, message };
}

const addReaction: Method = (call) => {
  const { channel, message } = reactionTarget(call);
  const name = str(call.args['name']);
  const user = call.installation.botUserId;
  const reaction = message.reactions.find((one) => one.name === name);
  if (reaction?.users.includes(user)) throw new SlackFailure('already_reacted');
  if (reaction) reaction.users.push(user);
  else message.reactions.push({ name, users: [user] });
  call.core.change({ kind: 'reaction', channel, message, user, name, added: true });
  return {};
};

const removeReaction: Method = (call) => {
  const { channel, message } = reactionTarget(call);
  const name = str(call.args['name']);
  const user = call.installation.botUserId;
  const reaction = message.reactions.find((one) => one.name === name);
  if (!reaction?.users.includes(user)) throw new SlackFailure('no_reaction');
  reaction.users.splice(reaction.users.indexOf(user), 1);
  message.reactions = message.reactions.filter((one) => one.users.length > 0);
  call.core.change({ kind: 'reaction', channel, message, user, name, added: false });
  return {};
};

const getReactions: Method = (call) => {
  const { channel, message } = reactionTarget({ ...call, args: { ...call.args, name: 'x' } });
  return { type: 'message', channel: channel.id, message: messageJson(call.world, channel, message, false) };
};

export const READ_METHODS: Readonly<Record<string, Method>> = {
  'conversations.info': info,
  'conversations.history': history,
  'conversations.replies': replies,
  'conversations.list': listChannels,
  'conversations.members': members,
  'conversations.open': open,
  'conversations.join': join,
  'users.info': userInfo,
  'users.list': listUsers,
  'users.lookupByEmail': byEmail,
  'bots.info': botInfo,
  'team.info': teamInfo,
  'usergroups.list': groups,
  'emoji.list': emoji,
  'reactions.add': addReaction,
  'reactions.remove': removeReaction,
  'reactions.get': getReactions,
};

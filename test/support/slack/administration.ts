import { emptyMessage, type Core } from './core.js';
import { emitLifecycle, type Outgoing } from './events.js';
import type { Channel, Installation, Message, User } from './world.js';

type Emit = (outgoing: Outgoing) => void;

export interface OtherBotFields {
  botId: string;
  userId: string;
  text: string;
  threadTs?: string;
  subtype?: string | null;
  appId?: string;
}

export function otherBotSays(core: Core, channel: Channel, fields: OtherBotFields): Message {
  const message: Message = {
    ...emptyMessage(core.world.nextTs(channel), core.world.clock.now()),
    user: fields.userId,
    botId: fields.botId,
    appId: fields.appId ?? 'A0OTHERBOT',
    text: fields.text,
    threadTs: fields.threadTs ?? null,
    subtype: fields.subtype ?? null,
  };
  // Other apps' pings are their own affair.
  channel.messages.push(message);
  core.change({ kind: 'posted', channel, message });
  return message;
}

export function archive(core: Core, channel: Channel, archived: boolean, emit: Emit): void {
  channel.archived = archived;
  const type = archived ? 'channel_archive' : 'channel_unarchive';
  emitLifecycle(core, channel.teamId, { type, channel: channel.id, user: 'U0ADMIN' }, emit);
}

export function changeUser(core: Core, user: User, change: Partial<User>, emit: Emit): void {
  Object.assign(user, change);
  const told = { id: user.id, team_id: user.teamId, name: user.name };
  emitLifecycle(core, user.teamId, { type: 'user_change', user: told }, emit);
}

export function uninstall(core: Core, installation: Installation, emit: Emit): void {
  const { team, botUserId } = installation;
  emitLifecycle(core, team.id, { type: 'app_uninstalled' }, emit);
  emitLifecycle(core, team.id, { type: 'tokens_revoked', tokens: { oauth: [], bot: [botUserId] } }, emit);
  installation.active = false;
}

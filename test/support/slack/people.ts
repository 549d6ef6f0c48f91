import { compose } from './composer.js';
import { addMessage, emptyMessage, type Core } from './core.js';
import type { Delivery } from './delivery.js';
import type { Outgoing } from './events.js';
import {
  findInstallation,
  messageJson,
  messageOf,
  str,
  type App,
  type Channel,
  type Installation,
  type Json,
  type Message,
  type User,
  type World,
} from './world.js';

/** A message that somebody wrote: what tests point at. */
export interface Said {
  readonly channel: string;
  readonly ts: string;
  /** The thread it stands in, or would open. */
  readonly threadTs: string;
}

export interface UploadSpec {
  readonly name: string;
  readonly bytes: Buffer | string;
  readonly mimetype?: string;
  readonly mode?: 'hosted' | 'external' | 'tombstone' | 'hidden_by_limit';
  readonly checkFileInfo?: boolean;
  readonly externalUrl?: string;
  readonly declaredSize?: number;
}

/** A person in the workspace: writes, presses and looks. */
export interface Person {
  readonly id: string;
  readonly user: User;
  /** @param place - `#general`, a channel id, or the name of a bot's app for its direct messages (`dm`) */
  says(place: string, typed: string): Said;
  replies(to: Said, typed: string): Said;
  /** With exact text and no blocks, as an old client or an import would. */
  saysRaw(place: string, fields: { text: string; threadTs?: string; subtype?: string; blocks?: Json[] | null }): Said;
  edits(said: Said, typed: string): void;
  deletes(said: Said): void;
  reacts(said: Said, name: string): void;
  unreacts(said: Said, name: string): void;
  uploads(place: string, files: UploadSpec[], options?: { typed?: string; threadTs?: string }): Said;
  /** Presses the newest visible button with this text in the place. */
  clicks(
    label: string,
    where: { channel: string; threadTs?: string },
  ): { delivery: Delivery | null; triggerId: string; responseUrl: string };
  /** A slash command of the composer of a channel; Slack offers none in threads. Mentions are typed as in `says`. */
  runs(command: string, place: string): { delivery: Delivery | null; triggerId: string; responseUrl: string };
  /** A message shortcut, from the menu of a message. */
  uses(callbackId: string, said: Said): { delivery: Delivery | null; triggerId: string; responseUrl: string };
  /** Fills in the newest modal and submits it; `typed` goes into its first text field. */
  submits(typed: string): Delivery | null;
  stopsAgent(said: Said): void;
  opensDm(): void;
}

export interface PeopleDeps {
  readonly core: Core;
  readonly app: () => App;
  readonly send: (outgoing: Outgoing) => Delivery | null;
  readonly placeOf: (place: string, user: User) => Channel;
}

export function createPerson(deps: PeopleDeps, user: User): Person {
  const { core, placeOf } = deps;
  const { world } = core;
  const write = (channel: Channel, fields: Partial<Message>): Said => {
    const message: Message = {
      ...emptyMessage(world.nextTs(channel), world.clock.now()),
      user: user.id,
      clientMsgId: world.nextId('client-'),
      ...fields,
    };
    addMessage(core, channel, message);
    return { channel: channel.id, ts: message.ts, threadTs: message.threadTs ?? message.ts };
  };
  const find = (said: Pick<Said, 'channel' | 'ts'>): { channel: Channel; message: Message } => {
    const channel = world.channels.get(said.channel)!;
    const message = messageOf(channel, said.ts);
    if (!message) throw new Error(`no message ${said.ts} in ${said.channel}`);
    return { channel, message };
  };
  const react = (said: Said, name: string, added: boolean) => {
    const { channel, message } = find(said);
    const reaction = message.reactions.find((one) => one.name === name);
    if (added && reaction) reaction.users.push(user.id);
    else if (added) message.reactions.push({ name, users: [user.id] });
    else if (reaction) reaction.users = reaction.users.filter((id) => id !== user.id);
    core.change({ kind: 'reaction', channel, message, user: user.id, name, added });
  };
  const trigger = () => {
    const triggerId = world.nextId('trigger.');
    world.triggers.set(triggerId, { user: user.id, at: world.clock.now(), used: false });
    return triggerId;
  };
  const responseUrl = (channel: string, threadTs: string | null, messageTs: string | null) => {
    const id = world.nextId('R');
    world.responseUrls.set(id, { channel, user: user.id, threadTs, messageTs, uses: 0, at: world.clock.now() });
    return `${world.baseUrl}/response/${id}`;
  };
  const installationIn = (channel: Channel): Installation => {
    const found = findInstallation(world, deps.app(), channel.teamId);
    if (!found) throw new Error('the app is not installed there');
    return found;
  };

  return {
    id: user.id,
    user,
    says: (place, typed) => write(placeOf(place, user), compose(world, user.teamId, typed)),
    replies: (to, typed) =>
      write(world.channels.get(to.channel)!, { ...compose(world, user.teamId, typed), threadTs: to.threadTs }),
    saysRaw: (place, { text, threadTs, subtype, blocks }) =>
      write(placeOf(place, user), {
        text,
        threadTs: threadTs ?? null,
        subtype: subtype ?? null,
        blocks: blocks ?? null,
      }),
    edits(said, typed) {
      const { channel, message } = find(said);
      const previous = messageJson(world, channel, message, false);
      Object.assign(message, compose(world, user.teamId, typed));
      message.edited = { user: user.id, ts: world.nextTs(channel) };
      core.change({ kind: 'changed', channel, message, previous });
    },
    deletes(said) {
      const { channel, message } = find(said);
      const previous = messageJson(world, channel, message, false);
      message.deleted = true;
      core.change({ kind: 'deleted', channel, message, previous });
    },
    reacts(said, name) {
      react(said, name, true);
    },
    unreacts(said, name) {
      react(said, name, false);
    },
    uploads(place, files, { typed = '', threadTs } = {}) {
      const channel = placeOf(place, user);
      const ids = files.map((spec) => {
        const id = world.nextId('F');
        world.files.set(id, {
          id,
          teamId: user.teamId,
          name: spec.name,
          title: spec.name,
          mimetype: spec.mimetype ?? 'text/plain',
          bytes: Buffer.from(spec.bytes),
          user: user.id,
          mode: spec.mode ?? 'hosted',
          checkFileInfo: spec.checkFileInfo ?? false,
          externalUrl: spec.externalUrl ?? null,
          declaredSize: spec.declaredSize ?? null,
          uploaded: true,
          expectedLength: 0,
          shares: [],
          deleted: false,
        });
        return id;
      });
      const words = typed === '' ? { text: '', blocks: null } : compose(world, user.teamId, typed);
      return write(channel, { ...words, subtype: 'file_share', files: ids, threadTs: threadTs ?? null });
    },
    clicks(label, where) {
      const channel = world.channels.get(where.channel)!;
      const found = findButton(channel, label, where.threadTs, user.id);
      if (!found) throw new Error(`no button "${label}" is to be seen`);
      const { message, button, blockId } = found;
      const installation = installationIn(channel);
      const triggerId = trigger();
      const url = responseUrl(channel.id, message.threadTs, message.ts);
      const body: Json = {
        type: 'block_actions',
        user: { id: user.id, username: user.name, name: user.name, team_id: user.teamId },
        api_app_id: installation.app.id,
        token: 'legacy-verification-token',
        container: {
          type: 'message',
          message_ts: message.ts,
          channel_id: channel.id,
          is_ephemeral: message.ephemeralTo !== null,
          ...(message.threadTs ? { thread_ts: message.threadTs } : {}),
        },
        trigger_id: triggerId,
        team: { id: channel.teamId, domain: world.teams.get(channel.teamId)?.domain },
        enterprise: null,
        is_enterprise_install: false,
        channel: { id: channel.id, name: channel.name },
        message: messageJson(world, channel, message, true),
        response_url: url,
        actions: [{ ...button, block_id: blockId, action_ts: world.nextTs(channel) }],
      };
      return {
        triggerId,
        responseUrl: url,
        delivery: deps.send({ app: installation.app, kind: 'interactive', eventId: null, type: 'block_actions', body }),
      };
    },
    runs(command, place) {
      const channel = placeOf(place, user);
      const installation = installationIn(channel);
      const [name = '', ...words] = command.split(' ');
      const registered = installation.app.commands.get(name);
      if (!registered || !installation.scopes.has('commands')) throw new Error(`${name} is not a command here`);
      const typed = words.join(' ');
      const triggerId = trigger();
      const url = responseUrl(channel.id, null, null);
      const body: Json = {
        token: 'legacy-verification-token',
        team_id: channel.teamId,
        team_domain: world.teams.get(channel.teamId)?.domain,
        channel_id: channel.id,
        channel_name: channel.kind === 'im' ? 'directmessage' : channel.name,
        user_id: user.id,
        user_name: user.name,
        command: name,
        text: registered.escape ? escapedAsCommand(world, compose(world, user.teamId, typed).text) : typed,
        api_app_id: installation.app.id,
        is_enterprise_install: 'false',
        response_url: url,
        trigger_id: triggerId,
      };
      return {
        triggerId,
        responseUrl: url,
        delivery: deps.send({ app: installation.app, kind: 'slash_commands', eventId: null, type: 'command', body }),
      };
    },
    uses(callbackId, said) {
      const { channel, message } = find(said);
      const installation = installationIn(channel);
      if (!installation.app.shortcuts.has(callbackId) || !installation.scopes.has('commands'))
        throw new Error(`${callbackId} is not a shortcut here`);
      const triggerId = trigger();
      const url = responseUrl(channel.id, message.threadTs, null);
      const body: Json = {
        type: 'message_action',
        token: 'legacy-verification-token',
        action_ts: world.nextTs(channel),
        team: { id: channel.teamId, domain: world.teams.get(channel.teamId)?.domain },
        user: { id: user.id, username: user.name, team_id: user.teamId, name: user.name },
        channel: { id: channel.id, name: channel.kind === 'im' ? 'directmessage' : channel.name },
        is_enterprise_install: false,
        enterprise: null,
        callback_id: callbackId,
        trigger_id: triggerId,
        response_url: url,
        message_ts: message.ts,
        message: messageJson(world, channel, message, false),
        api_app_id: installation.app.id,
      };
      return {
        triggerId,
        responseUrl: url,
        delivery: deps.send({ app: installation.app, kind: 'interactive', eventId: null, type: 'shortcut', body }),
      };
    },
    submits(typed) {
      const open = [...world.views.values()].filter((one) => one.user === user.id && one.open).at(-1);
      if (!open) throw new Error('no modal is open');
      const blocks = open.view['blocks'] as Json[];
      const inputs = blocks.filter((block) => block['type'] === 'input');
      const values: Record<string, Json> = {};
      for (const [index, block] of inputs.entries()) {
        const element = block['element'] as Json;
        const value = index === 0 ? typed : '';
        const limit = element['max_length'];
        if (value === '' && block['optional'] !== true) throw new Error('Slack asks for this field to be filled in');
        if (typeof limit === 'number' && value.length > limit) throw new Error('Slack takes no text of this length');
        const field = { type: element['type'], value: value === '' ? null : value };
        values[str(block['block_id'])] = { [str(element['action_id'])]: field };
      }
      const app = deps.app();
      const body: Json = {
        type: 'view_submission',
        team: { id: user.teamId, domain: world.teams.get(user.teamId)?.domain },
        user: { id: user.id, username: user.name, name: user.name, team_id: user.teamId },
        api_app_id: app.id,
        token: 'legacy-verification-token',
        trigger_id: trigger(),
        view: { ...open.view, id: open.id, hash: open.hash, team_id: user.teamId, state: { values } },
        response_urls: [],
        is_enterprise_install: false,
        enterprise: null,
      };
      return deps.send({ app, kind: 'interactive', eventId: null, type: 'view_submission', body });
    },
    stopsAgent(said) {
      core.change({
        kind: 'stopped',
        channel: world.channels.get(said.channel)!,
        threadTs: said.threadTs,
        user: user.id,
      });
    },
    opensDm() {
      const channel = placeOf('dm', user);
      const installation = installationIn(channel);
      const event = {
        type: 'app_home_opened',
        user: user.id,
        channel: channel.id,
        tab: 'messages',
        event_ts: world.nextTs(channel),
      };
      if (!installation.app.subscriptions.has('app_home_opened')) return;
      deps.send({
        app: installation.app,
        kind: 'events_api',
        eventId: world.nextId('Ev'),
        type: 'app_home_opened',
        body: {
          type: 'event_callback',
          team_id: channel.teamId,
          api_app_id: installation.app.id,
          event,
          event_id: world.nextId('Ev'),
          event_time: Math.floor(world.clock.now() / 1_000),
          authorizations: [
            {
              team_id: channel.teamId,
              user_id: installation.botUserId,
              is_bot: true,
              is_enterprise_install: false,
              enterprise_id: null,
            },
          ],
        },
      });
    },
  };
}

/** A command's text names people and channels beside their ids, which a message's does not. */
function escapedAsCommand(world: World, text: string): string {
  return text
    .replace(/<@([UW][A-Z0-9]+)>/g, (_all, id: string) => `<@${id}|${world.users.get(id)?.name ?? id}>`)
    .replace(/<#(C[A-Z0-9]+)>/g, (_all, id: string) => `<#${id}|${world.channels.get(id)?.name ?? id}>`);
}

interface FoundButton {
  message: Message;
  button: Json;
  blockId: string;
}

function findButton(channel: Channel, label: string, threadTs: string | undefined, viewer: string): FoundButton | null {
  const visible = channel.messages.filter(
    (message) =>
      !message.deleted &&
      (message.ephemeralTo === null || message.ephemeralTo === viewer) &&
      (threadTs === undefined || message.threadTs === threadTs || message.ts === threadTs),
  );
  for (const message of visible.reverse()) {
    for (const { button, blockId } of buttonsOf(message)) {
      if ((button['text'] as { text?: string } | undefined)?.text === label) return { message, button, blockId };
    }
  }
  return null;
}

/** Every button of a message, from actions blocks and section accessories. */
export function buttonsOf(message: Message): { button: Json; blockId: string }[] {
  const found: { button: Json; blockId: string }[] = [];
  for (const block of message.blocks ?? []) {
    const blockId = typeof block['block_id'] === 'string' ? block['block_id'] : 'b';
    for (const element of block['type'] === 'actions' ? (block['elements'] as Json[]) : [])
      if (element['type'] === 'button') found.push({ button: element, blockId });
    const accessory = block['accessory'] as Json | undefined;
    if (accessory?.['type'] === 'button') found.push({ button: accessory, blockId });
  }
  return found;
}

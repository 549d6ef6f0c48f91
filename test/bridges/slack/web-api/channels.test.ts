import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/base/log.js';
import { say, startBridge, type BridgeLab } from '../../../support/slack/bridge-lab.js';
import { openOut, type OutLab } from '../outbound/lab.js';
import {
  callsInGeneral,
  deadCodes,
  error,
  isThere,
  ownMessage,
  told,
  toldDirectly,
  WRITES,
  type WriteMethod,
} from './writes.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const POSTS = ['chat.postMessage', 'files.completeUploadExternal'] as const;
const each = (methods: readonly WriteMethod[], words: readonly string[]): [string, WriteMethod][] =>
  methods.flatMap((method) => words.map((word): [string, WriteMethod] => [word, method]));
async function refused(method: WriteMethod, word: string, times = 1, more: Parameters<typeof openOut>[0] = {}) {
  const lab = await openOut(more);
  if (method === 'chat.update') await ownMessage(lab);
  lab.slack.fault({ method, channel: lab.general.id, times, effect: error(word) });
  return lab;
}
const place = (lab: OutLab) => ({ slug: 'main', team: lab.team.id, channel: lab.general.id });

/** A whole bridge whose brain answers only after something has happened to the channel, and does not wait for it. */
async function leaving(happens: (lab: BridgeLab) => unknown): Promise<BridgeLab> {
  const lab: BridgeLab = await startBridge({
    settings: { silentTurn: 'none', status: 'off' },
    onTurn: (turn) => {
      if (turn.message.content === 'leave') happens(lab);
      void say(turn, 'late');
      return Promise.resolve();
    },
  });
  return lab;
}
const directTo = ({ slack, alice, bot }: BridgeLab) =>
  slack.messages(slack.directChannel(alice.user, bot)).map(({ text }) => text);

describe('a channel that Slack does not show us', () => {
  it.each(POSTS)(
    'S-105 channel_not_found of %s: looked up once, as the workspace sees it; then the binding is lost and the asker hears so',
    async (method) => {
      const lab = await refused(method, 'channel_not_found', 10);
      lab.slack.fault({ method: 'conversations.info', effect: error('channel_not_found') });
      await WRITES[method](lab);
      await lab.pass(3_000);
      expect(lab.slack.calls('conversations.info').map(({ args }) => args)).toEqual([
        { channel: lab.general.id, team_id: lab.team.id },
      ]);
      expect(callsInGeneral(lab, method)).toHaveLength(1);
      expect(await deadCodes(lab)).toEqual(['channel_not_found']);
      expect(lab.unreachable).toMatchObject([{ channel: lab.general.id }]);
      expect(toldDirectly(lab)).toEqual([expect.stringMatching(/^I can no longer see the channel/)]);
      expect(lab.slack.calls('chat.postEphemeral')).toEqual([]);
    },
  );

  it('S-105 channel_not_found of a channel that is there after all: sent once more, with its workspace', async () => {
    const lab = await refused('chat.postMessage', 'channel_not_found');
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['hello']);
    expect(callsInGeneral(lab, 'chat.postMessage').map(({ args }) => args['team_id'])).toEqual([
      undefined,
      lab.team.id,
    ]);
    expect(lab.unreachable).toEqual([]);
  });

  it('S-105 channel_not_found twice, although the channel can be seen: lost', async () => {
    const lab = await refused('chat.postMessage', 'channel_not_found', 2);
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(lab.slack.calls('conversations.info')).toHaveLength(1);
    expect(lab.unreachable).toHaveLength(1);
  });

  it('S-105 no binding is given up for an outage: the channel is looked up when Slack can be asked again', async () => {
    const lab = await refused('chat.postMessage', 'channel_not_found', 2);
    lab.slack.fault({ method: 'conversations.info', effect: { kind: 'status', status: 503 } });
    await lab.reply('hello');
    await lab.pass(3_000);
    expect(lab.shown()).toEqual(['hello']);
    expect(lab.unreachable).toEqual([]);
  });

  it('S-105 in the whole bridge the binding of a private channel we were taken out of is marked, and reached again when we are back', async () => {
    const lab = await leaving(({ rooms, bot }) => rooms.members.delete(bot.botUserId));
    const said = lab.alice.says('#rooms', '@gateway leave');
    await lab.slack.until(() => directTo(lab).length === 1, 'a word to the asker');
    expect(directTo(lab)[0]).toMatch(/^I can no longer see the channel/);
    const lost = () => lab.adapter.report().lastErrors.filter(({ code }) => code === 'channel_not_found');
    expect(lost()).toMatchObject([{ text: expect.stringContaining(lab.rooms.id) as string }]);
    lab.slack.invite(lab.rooms, lab.bot.botUserId);
    lab.alice.replies(said, '@gateway again');
    await lab.answered(said);
    expect(lost()).toEqual([]);
    expect(await lab.rooms_()).toHaveLength(1);
  });
});

describe('a channel that we are not in', () => {
  const words = ['not_in_channel', 'no_permission', 'user_not_in_channel'];

  it.each(each(POSTS, words))(
    'S-105 S-107 %s of %s: the channel waits, the asker is asked for an invitation, and all goes on with it',
    async (word, method) => {
      const lab = await refused(method, word);
      await WRITES[method](lab);
      await lab.reply('and more');
      await lab.pass(60 * MINUTE_MS, 5 * MINUTE_MS);
      expect(callsInGeneral(lab, 'chat.postMessage').length + callsInGeneral(lab, method).length).toBeLessThanOrEqual(
        2,
      );
      expect(lab.out.parks()).toMatchObject([{ channel: lab.general.id, cause: word }]);
      expect(toldDirectly(lab)).toEqual([expect.stringMatching(/^I am not in that channel\. Invite me/)]);
      expect(told(lab)).toEqual([]);
      await lab.out.resume({ kind: 'joined', ...place(lab) });
      await lab.pass(3_000);
      expect(isThere(lab, method)).toBe(true);
      expect(lab.slack.botMessages(lab.general, lab.thread.threadTs).at(-1)!.shown).toBe('and more');
      expect(lab.out.parks()).toEqual([]);
    },
  );

  it.each(words)('S-105 %s of what one person sees: by direct message, and nothing waits', async (word) => {
    const lab = await refused('chat.postEphemeral', word);
    await WRITES['chat.postEphemeral'](lab);
    await lab.pass(1_000);
    expect(toldDirectly(lab)).toEqual(['only you']);
    expect(lab.out.parks()).toEqual([]);
  });

  const joining = (more: Parameters<typeof openOut>[0] = {}) =>
    openOut({ settings: { autoJoin: true }, scopes: [...SCOPES, 'channels:join'], ...JOINER, ...more });
  const SCOPES = ['chat:write', 'channels:history', 'channels:read', 'files:write', 'files:read'];
  const JOINER = { install: { scopes: [...SCOPES, 'channels:join'] } };
  const outside = (lab: OutLab) => {
    const said = lab.alice.says('#outside', 'hello');
    return { ...lab.thread, channel: lab.outside.id, threadTs: said.ts };
  };

  it('S-105 is joined once and written to, where the settings allow it', async () => {
    const lab = await joining();
    const thread = outside(lab);
    await lab.out.reply(thread, { id: 'joined', markdown: 'here I am', kind: 'reply' });
    await lab.out.upload(thread, { id: 'file', filename: 'a.txt', bytes: Buffer.from('x') });
    await lab.pass(3_000);
    expect(lab.slack.botMessages(lab.outside, thread.threadTs).map(({ text, files }) => [text, files])).toEqual([
      ['here I am', []],
      ['', ['a.txt']],
    ]);
    expect(lab.slack.calls('conversations.join')).toHaveLength(1);
  });

  it.each([
    ['the settings do not allow it', { settings: { autoJoin: false } }, 0],
    ['the scope is missing', { scopes: SCOPES }, 0],
  ])('S-105 is not joined where %s', async (_name, more, joins) => {
    const lab = await joining(more);
    await lab.out.reply(outside(lab), { id: 'r', markdown: 'hello', kind: 'reply' });
    await lab.pass(2_000);
    expect(lab.slack.calls('conversations.join')).toHaveLength(joins);
    expect(lab.out.parks()).toMatchObject([{ channel: lab.outside.id, cause: 'not_in_channel' }]);
  });

  it('S-105 a private channel cannot be joined: it waits', async () => {
    const lab = await joining();
    lab.slack.fault({ method: 'chat.postMessage', channel: lab.rooms.id, effect: error('not_in_channel') });
    const said = lab.alice.says('#rooms', 'hello');
    const thread = { ...lab.thread, channel: lab.rooms.id, threadTs: said.ts };
    await lab.out.reply(thread, { id: 'r', markdown: 'hello', kind: 'reply' });
    await lab.pass(2_000);
    expect(lab.slack.calls('conversations.join').map(({ outcome }) => outcome)).toEqual([
      'method_not_supported_for_channel_type',
    ]);
    expect(lab.out.parks()).toMatchObject([{ channel: lab.rooms.id }]);
  });

  it('S-105 joined in vain, it waits; and no outage keeps it from being joined', async () => {
    const lab = await joining();
    const thread = outside(lab);
    lab.slack.fault({ method: 'conversations.join', effect: { kind: 'status', status: 503 } });
    lab.slack.fault({ method: 'chat.postMessage', channel: lab.outside.id, times: 3, effect: error('no_permission') });
    await lab.out.reply(thread, { id: 'r', markdown: 'hello', kind: 'reply' });
    await lab.pass(3_000);
    expect(lab.slack.calls('conversations.join').map(({ outcome }) => outcome)).toEqual(['status', 'ok']);
    expect(lab.out.parks()).toMatchObject([{ channel: lab.outside.id, cause: 'no_permission' }]);
  });

  it('S-105 S-107 in the whole bridge an invitation lets the answer go out', async () => {
    const lab = await leaving(({ general, bot }) => general.members.delete(bot.botUserId));
    const said = lab.alice.says('#general', '@gateway leave');
    await lab.slack.until(() => directTo(lab).length === 1, 'a word to the asker');
    expect(directTo(lab)[0]).toMatch(/^I am not in that channel\. Invite me/);
    expect(lab.adapter.report().lastErrors).toMatchObject([
      { code: 'not_in_channel', action: 'Invite the bot to the channel.' },
    ]);
    lab.slack.invite(lab.general, lab.bot.botUserId);
    expect(await lab.answered(said)).toEqual(['late']);
    expect(lab.adapter.report().lastErrors).toEqual([]);
  });
});

describe('a channel that is archived', () => {
  const words = ['is_archived', 'is_inactive', 'channel_is_limited_access'];
  const methods = ['chat.postMessage', 'chat.update', 'files.completeUploadExternal'] as const;

  it.each(each(methods, words))(
    'S-105 S-107 %s of %s: it waits, the asker hears by direct message, and it goes on when the channel is opened again',
    async (word, method) => {
      const lab = await refused(method, word);
      await WRITES[method](lab);
      await lab.pass(60 * MINUTE_MS, 10 * MINUTE_MS);
      expect(callsInGeneral(lab, method)).toHaveLength(1);
      expect(lab.out.parks()).toMatchObject([{ channel: lab.general.id, cause: word }]);
      expect(toldDirectly(lab)).toEqual(['The channel of our conversation is archived, so I could not answer there.']);
      await lab.out.resume({ kind: 'unarchived', ...place(lab) });
      await lab.pass(2_000);
      expect(isThere(lab, method)).toBe(true);
    },
  );

  it.each(words)(
    'S-105 %s: given up after seven days with all that waits there, and the asker hears so',
    async (word) => {
      const lab = await refused('chat.postMessage', word, 100);
      const started = lab.clock.now();
      await lab.reply('one');
      await lab.reply('two');
      await lab.pass(7 * DAY_MS - 60 * MINUTE_MS - (lab.clock.now() - started), 60 * MINUTE_MS);
      expect(await deadCodes(lab)).toEqual([]);
      await lab.pass(61 * MINUTE_MS, MINUTE_MS);
      expect(await deadCodes(lab)).toEqual([word, word]);
      expect(toldDirectly(lab)).toHaveLength(2);
      expect(toldDirectly(lab)[1]).toMatch(/stayed closed/);
    },
  );

  it('S-105 S-107 in the whole bridge the channel’s own event lets the answer go out', async () => {
    const lab = await leaving(({ slack, general }) => {
      slack.archive(general, true);
    });
    const said = lab.alice.says('#general', '@gateway leave');
    await lab.slack.until(() => directTo(lab).length === 1, 'a word to the asker');
    expect(directTo(lab)).toEqual(['The channel of our conversation is archived, so I could not answer there.']);
    lab.slack.archive(lab.general, false);
    expect(await lab.answered(said)).toEqual(['late']);
  });
});

describe('a place where we may not post', () => {
  const words = ['restricted_action', 'restricted_action_read_only_channel', 'posting_to_channel_denied'];

  it.each(each(['chat.postMessage', 'files.getUploadURLExternal', 'files.completeUploadExternal'], words))(
    'S-105 %s of %s: given up at once, and the asker hears why by direct message',
    async (word, method) => {
      const lab = await openOut();
      lab.slack.fault({ method, effect: error(word), when: ({ channel }) => channel !== lab.alice.id });
      await WRITES[method](lab);
      await lab.pass(60 * MINUTE_MS, 10 * MINUTE_MS);
      expect(lab.slack.calls(method).filter(({ outcome }) => outcome === word)).toHaveLength(1);
      expect(await deadCodes(lab)).toEqual([word]);
      expect(toldDirectly(lab)).toEqual([
        expect.stringMatching(
          new RegExp(`^I am not allowed to post in that channel\\. \\(${word}, reference \\w{8}\\)$`),
        ),
      ]);
      expect(told(lab)).toEqual([]);
      expect(lab.roomErrors).toMatchObject([{ slackError: word }]);
    },
  );

  it('S-105 by the channel’s own rule', async () => {
    const lab = await openOut();
    lab.general.readOnly = true;
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(await deadCodes(lab)).toEqual(['restricted_action_read_only_channel']);
    expect(toldDirectly(lab)).toHaveLength(1);
  });

  it('S-105 a direct message that Slack does not take goes to the channel instead', async () => {
    const lab = await refused('chat.postMessage', 'restricted_action');
    lab.slack.fault({ method: 'chat.postMessage', channel: lab.alice.id, effect: error('messages_tab_disabled') });
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(told(lab)).toEqual([expect.stringMatching(/^I am not allowed/)]);
    expect(await deadCodes(lab)).toEqual(['restricted_action']);
    expect(lab.out.parks()).toMatchObject([{ cause: 'messages_tab_disabled' }]);
  });
});

describe('rules of the workspace, or of the other side of a shared channel', () => {
  const words = [
    'ekm_access_denied',
    'slack_connect_file_upload_sharing_blocked',
    'slack_connect_canvas_sharing_blocked',
  ];

  it.each(words)('S-105 %s of a post: given up, and the asker hears it in the channel', async (word) => {
    const lab = await refused('chat.postMessage', word);
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(await deadCodes(lab)).toEqual([word]);
    expect(told(lab)).toEqual([expect.stringMatching(/^The (?:security rules|rules of the shared channel)/)]);
  });

  it.each(each(['files.getUploadURLExternal', 'files.completeUploadExternal'], words))(
    'S-105 %s of %s: the file is given up and told, what was said with it is posted, its content is not',
    async (word, method) => {
      const lab = await openOut();
      lab.slack.fault({ method, effect: error(word) });
      await lab.out.upload(lab.thread, {
        id: 'f',
        filename: 'a.txt',
        bytes: Buffer.from('content'),
        comment: '**see**',
      });
      await lab.pass(2_000);
      expect(await deadCodes(lab)).toEqual([word]);
      expect(lab.shown()).toEqual(['**see**']);
      expect(told(lab)).toHaveLength(1);
    },
  );
});

describe('direct messages that the app does not take', () => {
  it('S-105 messages_tab_disabled: direct messages wait, channels do not, and the log names the manifest’s field', async () => {
    const lines: string[] = [];
    const log = createLogger({ destination: { write: (line) => void lines.push(line) } });
    const lab = await openOut({ log });
    const said = lab.alice.says('dm', 'hello');
    const dm = { ...lab.thread, channel: said.channel, threadTs: said.ts };
    const tab = lab.slack.world.channels.get(said.channel)!;
    tab.messagesTab = false;
    await lab.out.reply(dm, { id: 'dm', markdown: 'psst', kind: 'reply' });
    await lab.pass(1_000);
    await lab.reply('hello');
    await lab.pass(60 * MINUTE_MS, 10 * MINUTE_MS);
    expect(lab.shown()).toEqual(['hello']);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(2);
    expect(lab.out.parks()).toMatchObject([{ cause: 'messages_tab_disabled' }]);
    expect(lines.filter((line) => line.includes('features.app_home.messages_tab_enabled'))).toHaveLength(1);
    tab.messagesTab = true;
    await lab.out.resume({ kind: 'settings', slug: 'main', team: lab.team.id });
    await lab.pass(2_000);
    expect(lab.slack.botMessages(said.channel, said.ts).map(({ text }) => text)).toEqual(['psst']);
  });
});

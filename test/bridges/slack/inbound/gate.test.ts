import { describe, expect, it } from 'vitest';
import { judge, type GateFacts, type GateSettings } from '../../../../bridges/slack/inbound/gate.js';
import { slackMessageSchema } from '../../../../bridges/slack/messages.js';

const settings: GateSettings = {
  threadFollowUps: 'bound',
  mpim: 'mention',
  allow: [],
  deny: [],
  allowBots: 'none',
  botTurnCap: 3,
};
const facts = (message: object, more: Partial<GateFacts> = {}): GateFacts => ({
  message: slackMessageSchema.parse({ ts: '1.1', user: 'U1', text: 'hi', ...message }),
  channel: 'C1',
  channelType: 'channel',
  mention: false,
  own: { teamId: 'T1', enterpriseId: null, botUserId: 'UBOT', botId: 'BBOT', teamName: '', teamUrl: '', scopes: null },
  ownAppId: 'A1',
  authorTeam: 'T1',
  isGuest: false,
  isStranger: false,
  isBound: false,
  isMuted: false,
  hasOthers: false,
  botRun: 0,
  ...more,
});
const verdict = (message: object, more: Partial<GateFacts> = {}, other: Partial<GateSettings> = {}) => {
  const result = judge(facts(message, more), { ...settings, ...other });
  return result.kind === 'turn' ? 'turn' : result.reason;
};
const told = (message: object, more: Partial<GateFacts> = {}, other: Partial<GateSettings> = {}) => {
  const result = judge(facts(message, more), { ...settings, ...other });
  return result.kind === 'dropped' && result.told;
};

describe('the gate', () => {
  it('S-060 takes direct messages, mentions anywhere, and group messages by setting', () => {
    expect(verdict({}, { channelType: 'im' })).toBe('turn');
    expect(verdict({}, { mention: true })).toBe('turn');
    expect(verdict({}, { mention: true, channelType: 'group' })).toBe('turn');
    expect(verdict({ text: 'hey <@UBOT|gateway> you' })).toBe('turn');
    expect(verdict({})).toBe('not_addressed');
    expect(verdict({}, { channelType: 'mpim' })).toBe('not_addressed');
    expect(verdict({}, { channelType: 'mpim' }, { mpim: 'always' })).toBe('turn');
    expect(verdict({}, { channelType: 'mpim', mention: true })).toBe('turn');
  });

  it.each(['file_share', 'thread_broadcast', 'me_message', 'brand_new_kind'])(
    'S-062 takes a message of subtype %s, with or without text',
    (subtype) => {
      expect(verdict({ subtype }, { channelType: 'im' })).toBe('turn');
      expect(verdict({ subtype, text: '', files: [{ id: 'F1' }] }, { channelType: 'im' })).toBe('turn');
    },
  );

  it.each([
    ['its user', { user: 'UBOT' }],
    ['its bot id', { user: null, bot_id: 'BBOT', subtype: 'bot_message' }],
    ['its app', { user: 'U9', app_id: 'A1', bot_id: 'B9' }],
    ['its metadata', { metadata: { event_type: 'band_gateway_message', event_payload: {} } }],
  ])('S-063 never takes what it wrote itself, marked by %s', (_mark, message) => {
    expect(verdict(message, { channelType: 'im', mention: true })).toBe('own');
  });

  it.each(['channel_join', 'group_topic', 'tombstone', 'bot_add', 'reply_broadcast', 'channel_unarchive'])(
    'S-064 leaves Slack’s own %s message alone',
    (subtype) => {
      expect(verdict({ subtype }, { channelType: 'im', mention: true })).toBe('system');
    },
  );

  it('S-064 takes other bots as set, up to the cap, which is told once', () => {
    const bot = { user: 'U9', bot_id: 'B9' };
    const bound = { isBound: true };
    expect(verdict(bot, bound)).toBe('bot');
    expect(verdict({ ...bot, text: '<@UBOT> hi' }, bound)).toBe('bot');
    expect(verdict({ ...bot, text: '<@UBOT> hi' }, bound, { allowBots: 'mentions' })).toBe('turn');
    expect(verdict(bot, bound, { allowBots: 'mentions' })).toBe('bot');
    expect(verdict(bot, bound, { allowBots: ['B9'] })).toBe('turn');
    expect(verdict(bot, { ...bound, botRun: 2 }, { allowBots: ['U9'] })).toBe('turn');
    expect(verdict(bot, { ...bound, botRun: 3 }, { allowBots: ['B9'] })).toBe('bot_cap');
    expect(told(bot, { ...bound, botRun: 3 }, { allowBots: ['B9'] })).toBe(true);
    expect(told(bot, { ...bound, botRun: 4 }, { allowBots: ['B9'] })).toBe(false);
  });

  it('S-065 takes a follow-up without a mention in a bound thread only', () => {
    expect(verdict({ thread_ts: '1.0' }, { isBound: true })).toBe('turn');
    expect(verdict({ thread_ts: '1.0' })).toBe('not_addressed');
  });

  it('S-066 leaves alone what opens with somebody else’s mention, unless it mentions the bot as well', () => {
    expect(verdict({ text: '<@U2> look' }, { isBound: true })).toBe('for_somebody_else');
    expect(verdict({ text: '<@U2> and <@UBOT> look' }, { isBound: true })).toBe('turn');
    expect(verdict({ text: 'ask <@U2>' }, { isBound: true })).toBe('turn');
  });

  it('S-067 wants a mention where that is set, where others joined in, and while muted', () => {
    const bound = { isBound: true };
    expect(verdict({}, bound, { threadFollowUps: 'mention' })).toBe('not_addressed');
    expect(verdict({}, bound, { threadFollowUps: 'bound-unless-others' })).toBe('turn');
    const others = { ...bound, hasOthers: true };
    expect(verdict({}, others, { threadFollowUps: 'bound-unless-others' })).toBe('not_addressed');
    expect(verdict({}, { ...others, mention: true }, { threadFollowUps: 'bound-unless-others' })).toBe('turn');
    expect(verdict({}, { ...bound, isMuted: true })).toBe('muted');
    expect(verdict({}, { ...bound, isMuted: true, mention: true })).toBe('turn');
  });

  it('S-068 lets deny win over allow, and wants the person told', () => {
    const dm = { channelType: 'im' } as const;
    expect(verdict({}, dm, { allow: ['U1'] })).toBe('turn');
    expect(verdict({}, dm, { allow: ['U2'] })).toBe('denied');
    expect(verdict({}, dm, { allow: ['C1'] })).toBe('turn');
    expect(verdict({}, dm, { allow: ['U1'], deny: ['C1'] })).toBe('denied');
    expect(verdict({}, dm, { deny: ['T1'] })).toBe('denied');
    expect(told({}, dm, { deny: ['T1'] })).toBe(true);
  });

  it('S-069 knows guests and strangers of Slack Connect', () => {
    const dm = { channelType: 'im' } as const;
    expect(verdict({}, { ...dm, isGuest: true }, { deny: ['guests'] })).toBe('denied');
    expect(verdict({}, { ...dm, isStranger: true }, { deny: ['ext'] })).toBe('denied');
    expect(verdict({}, { ...dm, isStranger: true }, { allow: ['ext'] })).toBe('turn');
    expect(verdict({}, dm, { allow: ['ext'] })).toBe('denied');
  });

  it('leaves a message without anything in it alone', () => {
    expect(verdict({ text: ' ' }, { channelType: 'im' })).toBe('empty');
    expect(verdict({ text: null }, { channelType: 'im', mention: true })).toBe('empty');
  });
});

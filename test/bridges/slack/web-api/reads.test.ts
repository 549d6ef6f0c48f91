import { describe, expect, it, onTestFinished } from 'vitest';
import { createSlackClient } from '../../../../bridges/slack/client.js';
import { SlackDirectory } from '../../../../bridges/slack/directory.js';
import { createLogger, silentLogger } from '../../../../src/base/log.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import { startAcme } from '../../../support/slack/acme.js';
import { say, startBridge } from '../../../support/slack/bridge-lab.js';
import { error } from './writes.js';

const recorded = () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ destination: { write: (line) => void lines.push(JSON.parse(line) as never) } });
  return { lines, log };
};

describe('a name that Slack does not give', () => {
  it.each([
    ['user_not_found', 'users.info'],
    ['user_not_visible', 'users.info'],
    ['bot_not_found', 'bots.info'],
  ])('S-105 S-160 %s: unknown for a minute, and asked for again then', async (word, method) => {
    const clock = createManualClock();
    const { slack, alice, bot, botToken } = await startAcme({ clock, rates: false });
    onTestFinished(() => slack.stop());
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    const directory = new SlackDirectory(client, clock, silentLogger);
    const look = async () =>
      method === 'users.info' ? await directory.user(alice.id) : await directory.bot(bot.botId);
    slack.fault({ method, effect: error(word) });
    expect([await look(), await look()]).toEqual([null, null]);
    await clock.advance(59_999);
    expect(await look()).toBeNull();
    expect(slack.calls(method)).toHaveLength(1);
    await clock.advance(2);
    expect((await look())?.name).toBe(method === 'users.info' ? 'Alice' : 'gateway');
    slack.check();
  });

  it.each(['user_not_found', 'user_not_visible', 'missing_scope'])(
    'S-105 %s in the whole bridge: the person is called by the id',
    async (word) => {
      const lab = await startBridge();
      lab.slack.fault({ method: 'users.info', times: 5, effect: error(word) });
      const said = lab.alice.says('#general', '@gateway hello');
      await lab.answered(said);
      expect(lab.turns[0]!.message.senderName).toBe(lab.alice.id);
      expect(lab.turns[0]!.message.metadata).toMatchObject({ slack_user_id: lab.alice.id, slack_user_name: null });
    },
  );
});

describe('the past of a thread that Slack does not show', () => {
  const TWICE = ['invalid_cursor', 'invalid_ts_oldest', 'invalid_ts_latest'];
  const ONCE = [
    'method_not_supported_for_channel_type',
    'thread_not_found',
    'message_not_found',
    'invalid_thread_ts',
    'missing_scope',
    'channel_not_found',
    'internal_error',
    'brand_new_word',
  ];

  it.each([...TWICE.map((word) => [word, 2] as const), ...ONCE.map((word) => [word, 1] as const)])(
    'S-105 S-078 %s: the turn runs without it, after %d tries, and the brain is told that it is missing',
    async (word, calls) => {
      const lab = await startBridge();
      const said = lab.alice.says('#general', '@gateway first');
      await lab.answered(said);
      const fault = lab.slack.fault({ method: 'conversations.replies', times: 10, effect: error(word) });
      lab.alice.replies(said, 'second');
      await lab.answered(said, 2);
      expect(fault.hits()).toBe(calls);
      const [before, turn] = lab.turns;
      expect(turn!.history.raw).toEqual([]);
      expect(turn!.participantsMsg).toContain('Slack did not show what was said in this thread before');
      expect(before!.participantsMsg).not.toContain('Slack did not show');
    },
  );

  it.each(TWICE)('S-105 %s once: the walk begins anew, and the past is whole', async (word) => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway first');
    await lab.answered(said);
    lab.slack.fault({ method: 'conversations.replies', effect: error(word) });
    lab.alice.replies(said, 'second');
    await lab.answered(said, 2);
    expect(lab.turns[1]!.history.raw.map(({ content }) => content)).toEqual(['first', 'echo: first']);
    expect(lab.turns[1]!.participantsMsg).not.toContain('Slack did not show');
  });
});

describe('a reaction that Slack does not take', () => {
  const PERMANENT = ['too_many_emoji', 'too_many_reactions', 'invalid_name', 'not_reactable', 'bad_timestamp'];

  it.each(PERMANENT)(
    'S-105 %s in the whole bridge: the waiting reaction is off in that thread, and nothing else is',
    async (word) => {
      const lab = await startBridge({ settings: { ackReaction: 'eyes' } });
      const fault = lab.slack.fault({ method: 'reactions.add', effect: error(word) });
      const said = lab.alice.says('#general', '@gateway one');
      await lab.answered(said);
      lab.alice.replies(said, 'two');
      await lab.answered(said, 2);
      await expect.poll(() => lab.adapter.report().queues.every(({ depth }) => depth === 0)).toBe(true);
      expect([fault.hits(), lab.slack.calls('reactions.add').length]).toEqual([1, 1]);
      const other = lab.alice.says('#general', '@gateway three');
      await lab.answered(other);
      await lab.slack.until(() => lab.slack.calls('reactions.remove').length === 1, 'the reaction is taken away');
      expect(lab.slack.calls('reactions.add').map(({ outcome }) => outcome)).toEqual([word, 'ok']);
      expect(await lab.adapter.deadLetters.list()).toEqual([]);
    },
  );

  it.each([
    ['already_reacted', 'reactions.add'],
    ['no_reaction', 'reactions.remove'],
  ])('S-105 %s of %s in the whole bridge: it is as it should be', async (word, method) => {
    const { lines, log } = recorded();
    const lab = await startBridge({ settings: { ackReaction: 'eyes' }, log });
    const fault = lab.slack.fault({ method, effect: error(word) });
    for (const text of ['@gateway one', '@gateway two']) await lab.answered(lab.alice.says('#general', text));
    await lab.slack.until(() => lab.slack.calls('reactions.remove').length === 2, 'both are taken away');
    expect(fault.hits()).toBe(1);
    expect(lab.slack.calls('reactions.add')).toHaveLength(2);
    expect(lines.filter(({ level }) => Number(level) >= 40)).toEqual([]);
    expect(await lab.adapter.deadLetters.list()).toEqual([]);
  });
});

describe('a warning in a successful answer', () => {
  it.each([
    ['missing_charset', false],
    ['missing_charset', true],
    ['missing_agent_session_stopped_event_subscription', false],
    ['superfluous_charset', false],
  ])('S-105 %s, in one word: %s: logged once for the app, whatever methods it comes with', async (warning, old) => {
    const { lines, log } = recorded();
    const lab = await startBridge({ log });
    for (const method of ['users.info', 'chat.postMessage']) {
      lab.slack.fault({ method, times: 2, effect: { kind: 'warn', warnings: [warning], old } });
    }
    lab.slack.fault({ method: 'conversations.info', effect: { kind: 'warn', warnings: ['another_one'], old } });
    for (const text of ['@gateway one', '@gateway two']) await lab.answered(lab.alice.says('#general', text));
    const warned = lines.filter(({ msg }) => msg === 'Slack answered with a warning');
    expect(warned.map((line) => [line['app'], line['warning']]).sort()).toEqual(
      [
        ['main', warning],
        ['main', 'another_one'],
      ].sort(),
    );
  });

  it('S-105 another app has warnings of its own', async () => {
    const { lines, log } = recorded();
    const first = await startBridge({ log });
    first.slack.fault({ method: 'users.info', effect: { kind: 'warn', warnings: ['missing_charset'] } });
    await first.answered(first.alice.says('#general', '@gateway one'));
    const second = await startBridge({ log, onTurn: (turn) => say(turn, 'hello').then(() => undefined) });
    second.slack.fault({ method: 'users.info', effect: { kind: 'warn', warnings: ['missing_charset'] } });
    await second.answered(second.alice.says('#general', '@gateway one'));
    expect(lines.filter(({ warning }) => warning === 'missing_charset')).toHaveLength(2);
  });
});

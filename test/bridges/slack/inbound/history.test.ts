import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock, type Clock } from '../../../../src/base/clock.js';
import { silentLogger, type Logger } from '../../../../src/base/log.js';
import { noMetrics } from '../../../../src/base/metrics.js';
import { parseOptions } from '../../../../src/config/setting.js';
import { resolveApps } from '../../../../bridges/slack/apps.js';
import { readThread } from '../../../../bridges/slack/inbound/history.js';
import { ThreadPast } from '../../../../bridges/slack/inbound/thread-past.js';
import { slackMessageSchema } from '../../../../bridges/slack/messages.js';
import { Installation } from '../../../../bridges/slack/installations.js';
import { slackSettings } from '../../../../bridges/slack/settings.js';
import { authTest } from '../../../../bridges/slack/web-methods.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import { startAcme } from '../../../support/slack/acme.js';
import type { Said } from '../../../support/slack/people.js';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function setUp(clock: Clock = systemClock, options: Parameters<typeof startAcme>[0] = {}) {
  const acme = await startAcme({ rates: false, ...options });
  cleanups.push(() => acme.slack.stop());
  const settings = parseOptions(slackSettings, { botToken: acme.botToken, appToken: 'xapp-1' });
  const installation = new Installation(resolveApps(settings)[0]!, {
    slackApiUrl: acme.slack.apiUrl,
    dispatcher: undefined,
    clock,
    log: silentLogger,
    metrics: noMetrics,
    neededScopes: () => new Map(),
    random: Math.random,
    onKnown: () => undefined,
  });
  cleanups.push(() => installation.stop());
  const identity = await authTest(installation.client);
  const past = new ThreadPast();
  const read = (said: Said, log: Logger = silentLogger) =>
    readThread(
      installation,
      identity,
      'Helper',
      {
        key: said.threadTs,
        channel: said.channel,
        threadTs: said.threadTs,
        trigger: slackMessageSchema.parse(acme.slack.raw(acme.slack.world.channels.get(said.channel)!, said.ts)),
      },
      past,
      { clock, log },
      new AbortController().signal,
    );
  const post = (said: Said, text: string, kind?: string) =>
    installation.client.call('chat.postMessage', {
      channel: said.channel,
      thread_ts: said.threadTs,
      text,
      ...(kind ? { metadata: { event_type: 'band_gateway_message', event_payload: { k: 'x', t: kind } } } : {}),
    });
  return { ...acme, read, post };
}

describe('the past of a thread', () => {
  it('S-077 people are users, own replies are the assistant, other bots are users; the trigger and own remarks are left out', async () => {
    const { slack, general, alice, bob, read, post } = await setUp();
    const root = alice.says('#general', '*first* question');
    await post(root, 'an answer', 'reply');
    await post(root, 'Working on it…', 'progress');
    await post(root, 'I could not', 'notice');
    await post(root, 'Stopped', 'control');
    await post(root, 'Failed', 'error');
    slack.otherBotSays(general, { botId: 'B0CI', userId: 'U0CI', text: 'build failed', threadTs: root.ts });
    bob.saysRaw('#general', { text: '', threadTs: root.ts });
    const trigger = bob.replies(root, 'and now?');
    bob.replies(root, 'later');
    const { messages: entries, isMissing } = await read(trigger);
    expect(isMissing).toBe(false);
    expect(entries.map(({ role, senderType, senderName, content }) => [role, senderType, senderName, content])).toEqual(
      [
        ['user', 'user', `slack:${alice.id}`, '**first** question'],
        ['assistant', 'Agent', 'Helper', 'an answer'],
        ['user', 'user', 'slack-bot:B0CI', 'build failed'],
      ],
    );
    expect(entries[0]?.metadata).toEqual({ slack_channel_id: general.id, slack_thread_ts: root.ts, slack_ts: root.ts });
  });

  it('S-077 own replies are known by their author too, with blocks or without, and files are named', async () => {
    const { alice, read, post } = await setUp();
    const root = alice.uploads('#general', [{ name: 'report.pdf', bytes: 'x', mimetype: 'application/pdf' }], {
      typed: 'look',
    });
    await post(root, 'posted by an older version');
    const trigger = alice.replies(root, 'again');
    expect((await read(trigger)).messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'look\n[file: report.pdf, application/pdf, 1 bytes]'],
      ['assistant', 'posted by an older version'],
    ]);
  });

  it('S-077 all pages are read, the newest 200 messages kept, and of those 60,000 characters', async () => {
    const { slack, alice, bob, read } = await setUp();
    const root = alice.says('#general', 'root');
    for (let index = 0; index < 430; index += 1) bob.replies(root, `m${index}`);
    const { messages: entries } = await read(bob.replies(root, 'trigger'));
    expect([entries.length, entries[0]?.content, entries.at(-1)?.content]).toEqual([200, 'm230', 'm429']);
    expect(slack.calls('conversations.replies').length).toBeGreaterThan(1);

    const long = alice.says('#general', 'x'.repeat(1_000));
    for (let index = 0; index < 80; index += 1) bob.replies(long, String(index % 10).repeat(1_000));
    const { messages: kept } = await read(bob.replies(long, 'trigger'));
    expect(kept).toHaveLength(60);
  });

  it('S-077 what was passed on for somebody is not what the brain said', async () => {
    const { alice, read, post } = await setUp();
    const root = alice.says('#general', 'root');
    await post(root, 'Bob asks: how?', 'relay');
    const { messages } = await read(alice.replies(root, 'trigger'));
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'root'],
      ['user', 'Bob asks: how?'],
    ]);
  });

  it.each(['invalid_cursor', 'invalid_ts_oldest', 'invalid_ts_latest'])(
    'S-105 S-078 %s begins the walk anew, once, and then there is no past',
    async (error) => {
      const { slack, alice, bob, read } = await setUp();
      const root = alice.says('#general', 'root');
      for (let index = 0; index < 250; index += 1) bob.replies(root, `m${index}`);
      const trigger = bob.replies(root, 'trigger');
      slack.fault({ method: 'conversations.replies', after: 1, times: 1, effect: { kind: 'error', error } });
      const { messages, isMissing } = await read(trigger);
      expect([messages.length, messages.at(-1)?.content, isMissing]).toEqual([200, 'm249', false]);
      slack.fault({ method: 'conversations.replies', times: 2, effect: { kind: 'error', error } });
      const other = alice.says('#general', 'other');
      expect(await read(alice.replies(other, 'trigger'))).toEqual({ messages: [], isMissing: true });
    },
  );

  it('S-105 S-078 method_not_supported_for_channel_type gives no past', async () => {
    const { slack, alice, read } = await setUp();
    const error = 'method_not_supported_for_channel_type';
    slack.fault({ method: 'conversations.replies', times: 1, effect: { kind: 'error', error } });
    const root = alice.says('#general', 'root');
    expect(await read(alice.replies(root, 'trigger'))).toEqual({ messages: [], isMissing: true });
  });

  it('S-078 a Slack that puts the thread off holds nobody up for longer than ten seconds', async () => {
    const clock = createManualClock(Date.now());
    const { slack, alice, read } = await setUp(clock);
    const root = alice.says('#general', 'root');
    const trigger = alice.replies(root, 'trigger');
    const put = slack.fault({
      method: 'conversations.replies',
      times: 1,
      effect: { kind: 'status', status: 429, headers: { 'retry-after': '120' } },
    });
    const reading = read(trigger);
    await slack.until(() => put.hits() === 1 && slack.web.inFlight === 0);
    let done = false;
    void reading.then(() => (done = true));
    await expect
      .poll(async () => {
        if (!done) await clock.advance(1_000);
        return done;
      })
      .toBe(true);
    expect(await reading).toEqual({ messages: [], isMissing: true });
  });

  it('S-078 a call that fails gives no past, and the log says what was needed and what was there', async () => {
    const { slack, alice, read } = await setUp();
    const root = alice.says('#general', 'root');
    const trigger = alice.replies(root, 'trigger');
    slack.fault({
      method: 'conversations.replies',
      effect: { kind: 'error', error: 'missing_scope', extra: { needed: 'channels:history', provided: 'chat:write' } },
    });
    const lines: Record<string, unknown>[] = [];
    const log = pino(
      { level: 'warn' },
      { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) },
    );
    expect(await read(trigger, log)).toEqual({ messages: [], isMissing: true });
    expect(lines).toMatchObject([{ needed: 'channels:history', provided: 'chat:write' }]);
    expect(String(lines[0]?.['hint'])).toMatch(
      /channels:history.*groups:history.*im:history.*mpim:history.*membership/,
    );
  });
});

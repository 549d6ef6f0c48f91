import { describe, expect, it } from 'vitest';
import { createSlackClient } from '../../../../bridges/slack/client.js';
import type { ThreadRef } from '../../../../bridges/slack/outbound/port.js';
import { createSlackOut } from '../../../../bridges/slack/outbound/slack-out.js';
import { createThrottledClient } from '../../../../bridges/slack/outbound/throttled-client.js';
import { slackSettings } from '../../../../bridges/slack/settings.js';
import { silentLogger } from '../../../../src/base/log.js';
import { noMetrics } from '../../../../src/base/metrics.js';
import { parseOptions } from '../../../../src/config/setting.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import { startAcme } from '../../../support/slack/acme.js';
import { openOut, recordedMetrics } from './lab.js';

/** A fixed sequence of numbers in [0, 1). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

describe('the lanes of the outbox', () => {
  it('S-090 posts of one channel keep their order under 429, 5xx and resets', async () => {
    const lab = await openOut();
    const random = seeded(7);
    const effects = [
      { kind: 'status', status: 429, headers: { 'retry-after': '2' } },
      { kind: 'status', status: 503 },
      { kind: 'drop', applied: true },
      { kind: 'drop', applied: false },
      { kind: 'error', error: 'internal_error' },
    ] as const;
    for (let index = 0; index < 12; index += 1) {
      const effect = effects[Math.floor(random() * effects.length)]!;
      lab.slack.fault({ method: 'chat.postMessage', after: Math.floor(random() * 3), effect });
    }
    for (let index = 0; index < 15; index += 1) await lab.reply(`message ${index}`);
    await lab.pass(180_000, 1_000);
    await lab.out.idle();
    expect(lab.shown()).toEqual(Array.from({ length: 15 }, (_, index) => `message ${index}`));
  });

  it('S-090 posts of several threads of one channel are put in order while nothing fails', async () => {
    const lab = await openOut();
    const threads = Array.from({ length: 4 }, (_, index) => lab.alice.says('#general', `question ${index}`).ts);
    for (let index = 0; index < 12; index += 1) {
      const thread: ThreadRef = { ...lab.thread, threadTs: threads[index % 4]! };
      await lab.out.reply(thread, { id: `in-order-${index}`, markdown: `message ${index}`, kind: 'reply' });
    }
    await lab.pass(15_000, 500);
    expect(lab.slack.calls('chat.postMessage').map(({ args }) => args['text'])).toEqual(
      Array.from({ length: 12 }, (_, index) => `message ${index}`),
    );
  });

  it('S-096 a slow or refused post of one thread holds up no other thread of its channel', async () => {
    const lab = await openOut();
    const other: ThreadRef = { ...lab.thread, threadTs: lab.bob.says('#general', 'something else').ts };
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'hold', until: held, apply: 'after' } });
    lab.slack.fault({
      method: 'chat.postMessage',
      when: (args) => args['text'] === 'step 2 of 4',
      effect: { kind: 'status', status: 500 },
    });
    for (let step = 1; step <= 4; step += 1) await lab.reply(`step ${step} of 4`);
    await lab.slack.until(() => lab.slack.calls('chat.postMessage').length === 1);
    await lab.out.reply(other, { id: 'other', markdown: 'other thread', kind: 'reply' });
    await lab.slack.until(() => lab.slack.botMessages(lab.general, other.threadTs).length === 1);
    expect(lab.shown()).toEqual([]);
    release();
    await lab.pass(8_000);
    expect(lab.shown()).toEqual([1, 2, 3, 4].map((step) => `step ${step} of 4`));
  });

  it('S-091 a flood of posts and edits stays within the documented rates', async () => {
    const lab = await openOut();
    for (let index = 0; index < 40; index += 1) {
      await lab.reply(`flood ${index}`);
      await lab.out
        .edit(lab.thread, lab.thread.threadTs, { id: `edit-${index}`, markdown: 'x' })
        .catch(() => undefined);
      await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', index % 2 === 0);
    }
    lab.slack.fault({ method: 'chat.update', times: 40, effect: { kind: 'error', error: 'cant_delete_message' } });
    await lab.pass(180_000, 500);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(40);
    expect(lab.slack.calls().filter((call) => call.outcome === '429')).toEqual([]);
    const minute = (from: number) =>
      lab.slack.calls('chat.postMessage').filter((call) => call.at >= from && call.at < from + 60_000).length;
    expect(minute(lab.slack.calls('chat.postMessage')[0]!.at)).toBeLessThanOrEqual(63);
  });

  it('S-092 Retry-After holds up exactly its own lane, for as long as it says', async () => {
    const lab = await openOut();
    lab.slack.fault({
      method: 'chat.postMessage',
      channel: lab.general.id,
      effect: { kind: 'status', status: 429, headers: { 'retry-after': '7' } },
    });
    const begun = lab.clock.now();
    const elsewhere: ThreadRef = { ...lab.thread, channel: lab.rooms.id, threadTs: lab.bob.says('#rooms', 'hi').ts };
    await lab.reply('here');
    await lab.out.reply(elsewhere, { id: 'elsewhere', markdown: 'there', kind: 'reply' });
    await lab.pass(10_000, 50);
    const posts = lab.slack
      .calls('chat.postMessage')
      .map(({ args, at, outcome }) => [args['channel'], at - begun, outcome]);
    const here = posts.filter(([channel]) => channel === lab.general.id);
    expect(here.map(([, , outcome]) => outcome)).toEqual(['status', 'ok']);
    expect(here[1]![1]).toBeGreaterThanOrEqual(7_000);
    expect(here[1]![1]).toBeLessThanOrEqual(8_000);
    expect(posts.find(([channel]) => channel === lab.rooms.id)![1]).toBeLessThanOrEqual(50);
  });

  it('S-093 a 429 without a header holds the lane up for 30 seconds', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'status', status: 429 } });
    await lab.reply('late');
    await lab.pass(29_000, 1_000);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(1);
    await lab.pass(2_000);
    expect(lab.shown()).toEqual(['late']);
  });

  it('S-094 an answer of 200 that says rate_limited holds the lane up in the same way', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'error', error: 'rate_limited' } });
    await lab.reply('late');
    await lab.pass(29_000, 1_000);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(1);
    await lab.pass(2_000);
    expect(lab.shown()).toEqual(['late']);
  });

  it('S-096 one channel that is held up delays no post of another channel, nor another workspace', async () => {
    const lab = await openOut();
    lab.slack.fault({
      method: 'chat.postMessage',
      channel: lab.general.id,
      effect: { kind: 'status', status: 429, headers: { 'retry-after': '600' } },
    });
    await lab.reply('held');
    const other: ThreadRef = { ...lab.thread, channel: lab.rooms.id, threadTs: lab.bob.says('#rooms', 'hi').ts };
    for (let index = 0; index < 3; index += 1) {
      await lab.out.reply(other, { id: `free-${index}`, markdown: `free ${index}`, kind: 'reply' });
    }
    await lab.pass(1_000);
    expect(lab.slack.botMessages(lab.rooms, other.threadTs).map((one) => one.text)).toEqual([
      'free 0',
      'free 1',
      'free 2',
    ]);
    expect(lab.shown()).toEqual([]);
  });

  it('S-098 two workspaces under load never use each other’s token, channel or thread', async () => {
    const clock = createManualClock();
    const { slack, app, team, alice, general, botToken } = await startAcme({ clock });
    const other = slack.team({ id: 'T07OTHER002', name: 'Other' });
    const install = slack.install(app, other, { botToken: 'xoxb-test-team-two', botUserId: 'U07GATEBOT2' });
    const dave = slack.user(other, { name: 'dave' });
    const lobby = slack.channel(other, { name: 'lobby', members: [dave.id, install.botUserId] });
    const said = slack.person(dave, app).says(lobby.id, 'hello');
    const root = alice.says('#general', 'hello');
    const settings = parseOptions(slackSettings, { botToken, appToken: 'xapp-1' }, 'test');
    const appConfig = {
      slug: 'main',
      botToken,
      signingSecrets: [],
      appToken: 'xapp-1',
      transport: 'socket',
      persona: null,
      surface: 'none',
      allow: [],
      deny: [],
    } as const;
    const client = (token: string) =>
      createThrottledClient(createSlackClient({ token, slackApiUrl: slack.apiUrl }), { clock, metrics: noMetrics });
    const shared = { app: appConfig, teamUrl: '', botUserId: '', scopes: null };
    const installations = new Map([
      [team.id, { ...shared, client: client(botToken) }],
      [other.id, { ...shared, client: client('xoxb-test-team-two') }],
    ]);
    const out = await createSlackOut({
      store: createMemoryStore(clock),
      prefix: 'slack/test',
      clock,
      log: silentLogger,
      metrics: noMetrics,
      options: settings,
      installation: (_slug, id) => installations.get(id) ?? null,
      roomError: () => Promise.resolve(),
      threadMoved: () => Promise.resolve(),
      unreachable: () => Promise.resolve(),
    });
    await out.start();
    for (let index = 0; index < 100; index += 1) {
      await out.reply(
        { slug: 'main', team: team.id, channel: general.id, threadTs: root.ts, askerId: null },
        { id: `one-${index}`, markdown: `one ${index}`, kind: 'reply' },
      );
      await out.reply(
        { slug: 'main', team: other.id, channel: lobby.id, threadTs: said.ts, askerId: null },
        { id: `two-${index}`, markdown: `two ${index}`, kind: 'reply' },
      );
    }
    for (let step = 0; step < 130; step += 1) {
      await clock.advance(1_000);
      await slack.settled();
    }
    await out.idle();
    const calls = slack.calls('chat.postMessage');
    expect(calls).toHaveLength(200);
    const one = { channel: general.id, thread: root.ts, token: botToken, team: team.id };
    const two = { channel: lobby.id, thread: said.ts, token: 'xoxb-test-team-two', team: other.id };
    for (const { args, token, team: calledTeam } of calls) {
      const at = { channel: args['channel'], thread: args['thread_ts'], token, team: calledTeam };
      expect(at).toEqual(String(args['text']).startsWith('one') ? one : two);
    }
    expect(new Set(calls.map(({ args }) => args['text'])).size).toBe(200);
    await out.stop(0);
    await slack.stop();
    slack.check();
  });

  it('S-212 the wait of a call for its turn is a figure', async () => {
    const figures = recordedMetrics();
    const lab = await openOut({ metrics: figures.metrics });
    for (let index = 0; index < 5; index += 1) await lab.reply(`message ${index}`);
    await lab.pass(3_000);
    const waits = figures.of('slack_lane_wait_seconds').map(({ value }) => value);
    expect(waits).toHaveLength(5);
    expect(waits[4]).toBeGreaterThanOrEqual(1);
    expect(
      figures.of('slack_outbox_records').some(({ labels, value }) => labels['state'] === 'waiting' && value > 0),
    ).toBe(true);
  });
});

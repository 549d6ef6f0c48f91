import { describe, expect, it, onTestFinished } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { RelayAdapter } from '../../src/adapters/relay.js';
import type { Clock } from '../../src/base/clock.js';
import type { FrameworkAdapter } from '../../src/core/framework-adapter.js';
import { createPromMetrics } from '../../src/gateway/metrics.js';
import { DEMO, startSandbox } from '../../src/sandbox/index.js';
import { createMemoryStore } from '../../src/store/memory.js';
import type { StateStore } from '../../src/store/port.js';
import { createManualClock, type ManualClock } from '../../src/testing/manual-clock.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { startAcme } from '../support/slack/acme.js';
import { startBridge, type BridgeLab, type BridgeLabOptions } from '../support/slack/bridge-lab.js';
import type { FaultEffect } from '../support/slack/double.js';
import { echoBack } from '../support/slack/house.js';
import type { Said } from '../support/slack/people.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Longest wait that any trouble of the day may cost, in steps of half a minute. */
const MAX_STEPS = 400;

/** The bridge's machine: the same time, with a clock that somebody sets. */
function clockOfTheBridge(time: ManualClock): Clock & { offBy: number } {
  const clock = { ...time, offBy: 0, now: () => time.now() + clock.offBy };
  return clock;
}

/** A workspace and a bridge whose hours pass when the test says so. */
async function startDay(
  transport: 'http' | 'socket',
  brain?: (ports: { readonly clock: Clock; readonly store: StateStore }) => FrameworkAdapter,
) {
  const time = createManualClock(Date.now());
  const bridgeClock = clockOfTheBridge(time);
  const acme = await startAcme({ clock: time, rates: false, app: { socketMode: transport === 'socket' } });
  acme.app.delayedEvents = true;
  const sandbox = await startSandbox({ port: 0, clock: time });
  onTestFinished(async () => {
    await acme.slack.stop();
    await sandbox.close();
  });
  const store = createMemoryStore();
  const metrics = createPromMetrics({ processFigures: false });
  const open = (settings: BridgeLabOptions['settings'] = {}) =>
    startBridge({
      world: acme,
      sandbox,
      store,
      clock: bridgeClock,
      metrics,
      transport,
      settings: { mirrorSlackContext: false, ...settings },
      ...(brain ? { inner: brain({ clock: bridgeClock, store }) } : {}),
    });
  const { slack, alice } = acme;
  const asked = new Map<string, Said>();
  const hello = () => slack.sockets.open(acme.app).some(({ saidHello }) => saidHello);
  /** The first connections wait a moment of the day's own time. */
  const openSoon = async (settings?: BridgeLabOptions['settings']): Promise<BridgeLab> => {
    const opening = open(settings);
    if (transport === 'http') return await opening;
    await slack.until(() => slack.calls('auth.test').length > 0, 'the start');
    for (let step = 0; step < MAX_STEPS && !hello(); step += 1) {
      await time.advance(1_000);
      await slack.settled();
    }
    return await opening;
  };
  let lab = await openSoon();
  return {
    ...acme,
    time,
    bridgeClock,
    metrics,
    sandbox,
    get lab() {
      return lab;
    },
    async restart(settings: BridgeLabOptions['settings']) {
      await lab.stop();
      lab = await openSoon(settings);
    },
    asks(text: string): Said {
      const said = alice.says('#general', `@gateway ${text}`);
      asked.set(text, said);
      return said;
    },
    /** Half a minute at a time, until it holds. */
    async passes(holds: () => boolean, what: string) {
      for (let step = 0; step < MAX_STEPS && !holds(); step += 1) {
        await time.advance(MINUTE / 2);
        await slack.settled();
      }
      expect(holds(), what).toBe(true);
    },
    answered: (said: Said) => slack.botMessages(said.channel, said.threadTs).length > 0,
    /** Each question has its one answer, nobody was paged, and nothing waits. */
    async ends() {
      await this.passes(() => [...asked.values()].every((said) => this.answered(said)), 'every answer');
      for (let step = 0; step < 4; step += 1) {
        await time.advance(10 * MINUTE);
        await slack.settled();
      }
      for (const [text, said] of asked) {
        const shown = slack.botMessages(said.channel, said.threadTs).map((one) => one.shown);
        expect(shown.filter((line) => line.startsWith('echo: '))).toEqual([`echo: ${text}`]);
      }
      await expect.poll(() => lab.adapter.report().queues.map(({ depth, dead }) => depth + dead)).toEqual([0, 0]);
      slack.check();
    },
  };
}

/** The value of a figure, summed over what its labels leave open. */
async function figure(metrics: { text(): Promise<string> }, name: string, ...labels: string[]): Promise<number> {
  const lines = (await metrics.text()).split('\n');
  const wanted = lines.filter((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)));
  return wanted.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

describe('a day of bad luck, hour by hour', () => {
  it('S-090 S-100 S-107 whatever Slack answers, each question has one answer, and the figures tell what happened', async () => {
    const day = await startDay('http');
    const { slack, app, bot, general, metrics } = day;
    const post = (effect: FaultEffect, times = 1) => slack.fault({ method: 'chat.postMessage', times, effect });

    const answers: [string, FaultEffect, number][] = [
      ['429 with a time', { kind: 'status', status: 429, headers: { 'retry-after': '7' } }, 1],
      ['429 without one', { kind: 'status', status: 429 }, 1],
      ['429 in words', { kind: 'error', error: 'ratelimited' }, 1],
      ['500', { kind: 'status', status: 500 }, 3],
      ['503 with a page', { kind: 'status', status: 503, body: '<html>later</html>' }, 2],
      ['an answer lost after it was taken', { kind: 'drop', applied: true }, 1],
      ['an answer lost before it was taken', { kind: 'drop', applied: false }, 1],
      ['half an answer', { kind: 'truncate' }, 1],
      ['internal_error', { kind: 'error', error: 'internal_error' }, 2],
    ];
    for (const [name, effect, times] of answers) {
      post(effect, times);
      const said = day.asks(name);
      await day.passes(() => day.answered(said), name);
    }

    const twice = day.asks('delivered four times');
    const { body } = slack.deliveries().at(-1)!;
    for (let again = 0; again < 3; again += 1) slack.deliverRaw(app, body);
    await day.passes(() => day.answered(twice), 'the answer');

    slack.events.hold = [];
    const late = day.asks('delivered two hours late');
    const held = slack.events.hold;
    slack.events.hold = null;
    await day.time.advance(2 * HOUR);
    for (const outgoing of held) slack.events.send(outgoing);
    await day.passes(() => day.answered(late), 'the late answer');

    // The agent works while somebody archives the channel.
    slack.fault({ method: 'chat.postMessage', effect: { kind: 'error', error: 'is_archived' } });
    const archived = day.asks('in a channel that is archived');
    await slack.until(() => slack.calls('chat.postMessage').some(({ outcome }) => outcome === 'is_archived'));
    slack.archive(general, true);
    await day.time.advance(3 * HOUR);
    await slack.settled();
    expect(day.answered(archived)).toBe(false);
    expect(await figure(metrics, 'slack_outbox_records', 'parked')).toBeGreaterThan(0);
    slack.archive(general, false);
    await day.passes(() => day.answered(archived), 'the answer after the channel is back');

    // Six minutes fast: Slack's signatures look too old. Slack repeats, also after the clock is right again.
    day.bridgeClock.offBy = 6 * MINUTE;
    const skewed = day.asks('while the clock is six minutes fast');
    await day.time.advance(20 * MINUTE);
    await slack.settled();
    expect(day.answered(skewed)).toBe(false);
    day.bridgeClock.offBy = 0;
    await day.passes(() => day.answered(skewed), 'the answer after the clock is right');

    for (const token of bot.tokens) token.revoked = true;
    const revoked = day.asks('while the token is revoked');
    await day.time.advance(2 * HOUR);
    await slack.settled();
    expect(day.answered(revoked)).toBe(false);
    expect(day.lab.adapter.report().lastErrors.map(({ code }) => code)).toContain('token_revoked');
    bot.tokens.push({ value: 'xoxb-test-team-new', expiresAt: null, revoked: false });
    await day.restart({ botToken: 'xoxb-test-team-new' });
    await day.passes(() => day.answered(revoked), 'the answer with the new token');

    await day.ends();
    expect(await figure(metrics, 'slack_ratelimited_total', 'chat.postMessage')).toBe(3);
    expect(await figure(metrics, 'slack_outbox_ambiguous_total', 'found')).toBeGreaterThanOrEqual(2);
    expect(await figure(metrics, 'slack_events_duplicate_total')).toBeGreaterThanOrEqual(3);
    expect(await figure(metrics, 'slack_signature_failures_total', 'stale')).toBeGreaterThanOrEqual(3);
    expect(await figure(metrics, 'slack_api_requests_total', 'chat.postMessage', 'token_revoked')).toBeGreaterThan(0);
  }, 60_000);

  it('S-050 S-103 sockets come and go, the clock is minutes and hours fast, answers are lost: nothing is lost or said twice', async () => {
    const day = await startDay('socket');
    const { slack, app, metrics } = day;
    const rotations = ['refresh_requested', 'warning', 'refresh_requested'] as const;
    for (const [round, reason] of rotations.entries()) {
      day.bridgeClock.offBy = round < 2 ? 6 * MINUTE : 5 * HOUR;
      for (const socket of slack.sockets.open(app)) slack.sockets.disconnect(socket, reason);
      slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: round !== 1 } });
      const said = day.asks(`rotation ${round}`);
      await day.passes(() => day.answered(said), `the answer of rotation ${round}`);
    }

    for (const socket of slack.sockets.open(app)) slack.sockets.sever(socket);
    const severed = day.asks('no connection is open');
    await day.passes(() => day.answered(severed), 'the answer after all connections broke');

    await day.ends();
    expect(await figure(metrics, 'slack_outbox_ambiguous_total', 'found')).toBe(2);
    expect(await figure(metrics, 'slack_outbox_ambiguous_total', 'resent')).toBe(1);
    expect(await figure(metrics, 'slack_socket_disconnects_total')).toBeGreaterThanOrEqual(6);
    expect(await figure(metrics, 'slack_socket_connections')).toBeGreaterThanOrEqual(1);
  }, 60_000);

  it('S-073 a request whose answer Band lost stands in the room once, also where the clock is six minutes fast', async () => {
    const day = await startDay('socket', (ports) => new RelayAdapter({ peer: 'demo/echo' }, ports));
    const { sandbox, slack } = day;
    const echo = sandboxAgent(sandbox, { adapter: new GenericAdapter(echoBack) });
    await echo.start();
    onTestFinished(async () => {
      await echo.stop();
    });
    day.bridgeClock.offBy = 6 * MINUTE;
    sandbox.dev.faultRest({ method: 'POST', path: '*/messages', callerId: DEMO.helpdesk.id, drop: 'after', times: 1 });
    const said = day.asks('once');
    await day.passes(() => day.answered(said), 'the answer');
    await day.passes(() => day.lab.adapter.report().queues.every(({ depth }) => depth === 0), 'the end of all work');
    expect(slack.botMessages(said.channel, said.threadTs)).toHaveLength(1);
    const rows = sandbox.dev.state().rooms.flatMap(({ messages }) => messages);
    expect(
      rows.filter(({ senderId, messageType }) => senderId === DEMO.helpdesk.id && messageType === 'text'),
    ).toHaveLength(1);
  });
});

import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../../src/store/memory.js';
import { startBridge, type BridgeLab, type BridgeLabOptions } from '../../support/slack/bridge-lab.js';
import { createSkippingClock } from '../../support/skipping-clock.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The bridge on a clock that hours can be left out of, Slack's limits counted. */
async function start(options: BridgeLabOptions = {}) {
  const clock = createSkippingClock();
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const lab = await startBridge({ clock, log, rates: true, acme: { clock }, ...options });
  /** Time goes on in small steps until something holds. */
  const passing = async (holds: () => boolean, stepMs = 1_000) => {
    await expect
      .poll(
        async () => {
          if (holds()) return true;
          clock.advance(stepMs);
          await lab.slack.settled();
          return holds();
        },
        { timeout: 12_000, interval: 10 },
      )
      .toBe(true);
  };
  return { clock, lines, lab, passing };
}

/** No connection of the app comes to be until `over` is called. */
function outage(lab: BridgeLab) {
  const down = lab.slack.fault({
    method: 'apps.connections.open',
    times: 100_000,
    effect: { kind: 'status', status: 503 },
  });
  for (const socket of lab.slack.sockets.open(lab.app)) lab.slack.sockets.sever(socket);
  return {
    over: () => {
      down.disarm();
    },
  };
}

const reads = (lab: BridgeLab) =>
  lab.slack.calls().filter(({ method }) => method === 'conversations.replies' || method === 'conversations.history');

describe('after an outage of hours', () => {
  it('S-195 what was written in bound threads and direct messages is found once, also when Slack repeats it later', async () => {
    const { lab, passing, clock } = await start({ transport: 'socket', settings: { socket: { connections: 1 } } });
    lab.app.delayedEvents = true;
    const inChannel = lab.alice.says('#general', '@gateway first');
    const inDm = lab.bob.says('dm', 'hello');
    await lab.answered(inChannel);
    await lab.answered(inDm);
    await lab.idle();

    const { over } = outage(lab);
    await passing(() => lab.slack.sockets.open(lab.app).length === 0);
    // Their first deliveries and Slack's early repeats find nobody.
    lab.alice.replies(inChannel, 'missed in the thread');
    lab.bob.replies(inDm, 'missed below the direct message');
    const anew = lab.bob.says('dm', 'missed beside it');
    const newInDm = lab.carol.says('dm', 'nobody knows this conversation');
    const unbound = lab.carol.says('#general', 'not for us');
    for (let minutes = 0; minutes < 150; minutes += 10) {
      clock.advance(10 * MINUTE_MS);
      await lab.slack.settled();
    }
    over();
    await passing(() => lab.slack.sockets.open(lab.app).some((one) => one.saidHello), 5_000);
    // What comes at once is newer than what is missing.
    lab.alice.replies(inChannel, 'after the outage');
    await passing(() => lab.heard.length >= 6);
    await passing(() => lab.answers(anew).length === 1);
    expect(lab.heard.toSorted()).toEqual(
      [
        'first',
        'hello',
        'missed in the thread',
        'missed below the direct message',
        'missed beside it',
        'after the outage',
      ].toSorted(),
    );

    // An hour later Slack repeats all of it; what nobody could have found by then comes by that.
    await passing(() => lab.answers(newInDm).length === 1, 10 * MINUTE_MS);
    await passing(() => lab.slack.deliveries().every(({ state }) => state === 'acked'), 10 * MINUTE_MS);
    expect(lab.heard).toHaveLength(7);
    expect(lab.answers(unbound)).toEqual([]);
    lab.slack.check();
  });

  it('S-195 an outage of seconds makes nobody look', async () => {
    const { lab, passing } = await start({ transport: 'socket', settings: { socket: { connections: 1 } } });
    await lab.answered(lab.alice.says('#general', '@gateway first'));
    const before = reads(lab).length;
    const { over } = outage(lab);
    await passing(() => lab.slack.sockets.open(lab.app).length === 0);
    for (let second = 0; second < 20; second += 1) await passing(() => true);
    over();
    await passing(() => lab.slack.sockets.open(lab.app).some((one) => one.saidHello));
    await lab.slack.settled();
    expect(reads(lab)).toHaveLength(before);
  });

  it('S-195 a process that was down for days looks where something happened before it went', async () => {
    const clock = createSkippingClock();
    const acme = { clock };
    const store = createMemoryStore();
    const lab = await startBridge({ clock, acme, store });
    const old = lab.alice.says('#rooms', '@gateway long ago');
    await lab.answered(old);
    await lab.idle();
    clock.advance(30 * HOUR_MS);
    const said = lab.alice.says('#general', '@gateway first');
    await lab.answered(said);
    await lab.stop();
    lab.app.urls = null;
    lab.alice.replies(said, 'while it was down');
    clock.advance(60 * HOUR_MS);
    const next = await startBridge({ clock, store, world: lab, sandbox: lab.sandbox });
    expect(await next.answered(said, 2)).toEqual(['echo: first', 'echo: while it was down']);
    const asked = reads(next).map(({ args }) => args['ts']);
    expect(asked).toContain(said.ts);
    expect(asked).not.toContain(old.ts);
  });
});

describe('when Slack dropped events for a minute', () => {
  it('S-195 it is said loudly, and that minute is looked through when it is over, although newer messages came', async () => {
    const { lab, lines, passing, clock } = await start();
    const said = lab.alice.says('#general', '@gateway first');
    await lab.answered(said);
    await lab.idle();
    clock.advance(5 * MINUTE_MS);
    lab.slack.events.hold = [];
    lab.alice.replies(said, 'dropped by Slack');
    lab.slack.events.hold = null;
    lab.alice.replies(said, 'came');
    await lab.answered(said, 2);
    await lab.idle();
    const minute = Math.floor(clock.now() / MINUTE_MS) * 60;
    const told = lab.slack.deliverRaw(lab.app, {
      type: 'app_rate_limited',
      token: 'x',
      team_id: lab.team.id,
      api_app_id: lab.app.id,
      minute_rate_limited: minute,
    });
    await lab.slack.until(() => told?.state === 'acked');
    // More is dropped while the minute lasts.
    lab.slack.events.hold = [];
    lab.alice.replies(said, 'dropped as well');
    lab.slack.events.hold = null;
    await passing(() => lab.answers(said).length === 4);
    expect(clock.now()).toBeGreaterThan((minute + 60) * 1_000);
    expect(lab.heard).toEqual(['first', 'came', 'dropped by Slack', 'dropped as well']);
    const alarms = lines.filter((line) => line.includes('"level":50'));
    expect(alarms).toEqual([expect.stringContaining('Slack dropped events of this workspace')]);
    lab.slack.check();
  });

  it('S-195 what is owed when the process ends is looked for by the next one', async () => {
    const clock = createSkippingClock();
    const store = createMemoryStore();
    const lab = await startBridge({ clock, acme: { clock }, store });
    const said = lab.alice.says('#general', '@gateway first');
    await lab.answered(said);
    lab.slack.events.hold = [];
    lab.alice.replies(said, 'dropped by Slack');
    lab.slack.events.hold = null;
    lab.alice.replies(said, 'came');
    await lab.answered(said, 2);
    const told = lab.slack.deliverRaw(lab.app, {
      type: 'app_rate_limited',
      team_id: lab.team.id,
      minute_rate_limited: Math.floor(clock.now() / 1_000) - 5,
    });
    await lab.slack.until(() => told?.state === 'acked');
    await lab.idle();
    await lab.stop();
    const next = await startBridge({ clock, store, world: lab, sandbox: lab.sandbox });
    await next.answered(said, 3);
    expect(next.heard).toEqual(['dropped by Slack']);
  });
});

describe('under Slack’s strict limit', () => {
  it('S-196 catch-up turns itself off where Slack lets the app read too little, says so once, and stays off', async () => {
    const { lab, lines, passing, clock } = await start({
      transport: 'socket',
      settings: { socket: { connections: 1 } },
      acme: { app: { distributed: true } },
    });
    lab.slack.allow(/strict|a minute/);
    const first = lab.alice.says('#general', '@gateway first');
    const second = lab.bob.says('#rooms', '@gateway second');
    await lab.answered(first);
    await lab.answered(second);
    await lab.idle();
    const off = () => lines.filter((line) => line.includes('catch-up is off'));
    for (const round of [1, 2]) {
      const { over } = outage(lab);
      await passing(() => lab.slack.sockets.open(lab.app).length === 0);
      clock.advance(round * 10 * MINUTE_MS);
      over();
      await passing(() => lab.slack.sockets.open(lab.app).some((one) => one.saidHello));
      await passing(() => off().length === 1);
      await lab.slack.settled();
    }
    expect(off()).toHaveLength(1);
    expect(reads(lab).filter(({ outcome }) => outcome !== 'ok')).toHaveLength(1);
  });
});

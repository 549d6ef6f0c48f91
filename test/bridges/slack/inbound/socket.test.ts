import { describe, expect, it, onTestFinished } from 'vitest';
import { SocketLink, type SocketState } from '../../../../bridges/slack/inbound/socket-link.js';
import { systemClock, type Clock } from '../../../../src/base/clock.js';
import { silentLogger } from '../../../../src/base/log.js';
import { noMetrics } from '../../../../src/base/metrics.js';
import { createManualClock, type ManualClock } from '../../../../src/testing/manual-clock.js';
import { startAcme } from '../../../support/slack/acme.js';
import { openDoor } from './doors.js';

const setUp = async (
  connections = 2,
  pingTimeoutMs = 15_000,
  { clock = systemClock, begin = true }: { clock?: Clock; begin?: boolean } = {},
) => {
  const world = await startAcme({ app: { socketMode: true, events: ['message.channels', 'app_mention'] } });
  const door = await openDoor();
  const states: SocketState[] = [];
  const link = new SocketLink({
    slug: 'main',
    appToken: world.app.appToken,
    slackApiUrl: world.slack.apiUrl,
    dispatcher: undefined,
    pingTimeoutMs,
    connections,
    accept: door.accept,
    clock,
    log: silentLogger,
    metrics: noMetrics,
    random: () => 0,
    onChange: (state) => states.push(state),
  });
  onTestFinished(async () => {
    await link.stop();
    await world.slack.stop();
  });
  if (begin) link.start();
  const open = (count: number) =>
    expect.poll(() => world.slack.sockets.open().filter((one) => one.saidHello).length, { timeout: 5_000 }).toBe(count);
  return { ...world, door, link, states, open };
};

/** Lets time pass in steps until something holds. */
const passing = async (clock: ManualClock, stepMs: number, holds: () => boolean) => {
  await expect
    .poll(
      async () => {
        if (!holds()) await clock.advance(stepMs);
        return holds();
      },
      { timeout: 8_000 },
    )
    .toBe(true);
};
const MINUTE_MS = 60_000;

describe('Socket Mode that Slack takes away', () => {
  it('S-048 link_disabled is asked again every five minutes, and not sooner', async () => {
    const clock = createManualClock();
    const { slack, link, open } = await setUp(1, 15_000, { clock });
    await passing(clock, 0, () => slack.sockets.open().some((one) => one.saidHello));
    slack.sockets.disconnect(slack.sockets.open()[0]!, 'link_disabled');
    await expect.poll(() => slack.sockets.open().length).toBe(0);
    await expect.poll(() => link.state.open).toBe(0);
    const before = slack.calls('apps.connections.open').length;
    for (let minute = 0; minute < 4; minute += 1) await clock.advance(MINUTE_MS);
    expect(slack.calls('apps.connections.open')).toHaveLength(before);
    await passing(clock, MINUTE_MS, () => slack.calls('apps.connections.open').length > before);
    await open(1);
  });

  it('S-047 too_many_websockets leaves one connection for a minute, then tries for all again', async () => {
    const clock = createManualClock();
    const { slack, open } = await setUp(2, 15_000, { clock });
    await passing(clock, 500, () => slack.sockets.open().filter((one) => one.saidHello).length === 2);
    slack.sockets.disconnect(slack.sockets.open()[1]!, 'too_many_websockets');
    await open(1);
    await clock.advance(MINUTE_MS / 2);
    await open(1);
    await passing(clock, 10_000, () => slack.sockets.open().filter((one) => one.saidHello).length === 2);
  });

  it('S-050 a connection without a hello is given up after ten seconds, and another is tried', async () => {
    const clock = createManualClock();
    const { slack, link, open } = await setUp(1, 15_000, { clock, begin: false });
    slack.sockets.mute = true;
    link.start();
    await passing(clock, 0, () => slack.sockets.open().length === 1);
    await clock.advance(9_000);
    expect(slack.sockets.open()).toHaveLength(1);
    slack.sockets.mute = false;
    await passing(clock, 1_000, () => slack.sockets.open().some((one) => one.saidHello));
    await open(1);
    expect(slack.sockets.sockets.length).toBeGreaterThanOrEqual(2);
  });
});

describe('Socket Mode', () => {
  it('S-046 acknowledges events, and hands each on once', async () => {
    const { slack, alice, door, open } = await setUp();
    await open(2);
    alice.says('#general', '@gateway hi');
    await slack.settled();
    door.start();
    await door.inbox.queue.drained();
    // The mention arrives as app_mention and as message: two deliveries, told apart later.
    expect(door.handled.map(({ transport }) => transport)).toEqual(['socket', 'socket']);
    expect(slack.deliveries().every(({ state }) => state === 'acked')).toBe(true);
  });

  it('S-047 loses nothing when one of its connections is killed, and fills its place again', async () => {
    const { slack, alice, door, open } = await setUp();
    await open(2);
    slack.sockets.sever(slack.sockets.open()[0]!);
    for (let i = 0; i < 5; i += 1) alice.says('#general', `line ${i}`);
    await slack.settled();
    await open(2);
    door.start();
    await door.inbox.queue.drained();
    expect(new Set(door.handled.map(({ payload }) => (payload as { event: { text: string } }).event.text)).size).toBe(
      5,
    );
  });

  it('S-048 has the next connection up before the one that Slack wants back goes', async () => {
    const { slack, open } = await setUp(2);
    await open(2);
    let fewest = Infinity;
    slack.sockets.onClose = () => {
      fewest = Math.min(fewest, slack.sockets.open().filter((one) => one.saidHello).length);
    };
    for (const socket of slack.sockets.open()) slack.sockets.disconnect(socket, 'refresh_requested');
    await expect.poll(() => slack.sockets.sockets.filter((one) => one.closedAt !== null).length).toBe(2);
    await open(2);
    expect(fewest).toBeGreaterThanOrEqual(2);
  });

  it('S-049 survives envelopes without an event, broken JSON, binary frames and unknown types', async () => {
    const { slack, alice, door, open } = await setUp(1);
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    await open(1);
    const [socket] = slack.sockets.open();
    for (const frame of [
      '{"type":"events_api","envelope_id":"e1","payload":{"type":"app_rate_limited","team_id":"T1","minute_rate_limited":1}}',
      '{"type":"events_api","envelope_id":"e2"}',
      '{"type":"close","envelope_id":"e3","payload":{}}',
      '{broken',
      '[]',
      '"text"',
      '{"type":"events_api","payload":{"type":"event_callback","event":{"type":"close"}}}',
      Buffer.from([0, 1, 2]),
    ]) {
      slack.sockets.sendRaw(socket!, frame);
    }
    alice.says('#general', 'still there?');
    await slack.settled();
    await expect
      .poll(() => slack.sockets.ackedEnvelopes.concat(slack.sockets.strayFrames.map(String)).join())
      .toMatch(/e1[\s\S]*e2[\s\S]*e3/);
    door.start();
    await door.inbox.queue.drained();
    expect(door.handled.some(({ payload }) => JSON.stringify(payload).includes('still there?'))).toBe(true);
    expect(unhandled).toEqual([]);
  });

  it('S-050 comes back after failed openings of every kind', async () => {
    const { slack, link, open } = await setUp(1);
    await open(1);
    slack.fault({ method: 'apps.connections.open', times: 1, effect: { kind: 'status', status: 500 } });
    slack.fault({
      method: 'apps.connections.open',
      times: 1,
      after: 1,
      effect: { kind: 'error', error: 'internal_error' },
    });
    slack.sockets.sever(slack.sockets.open()[0]!);
    await expect.poll(() => slack.sockets.open().length, { timeout: 10_000 }).toBe(1);
    expect(link.state.parked).toBeNull();
  });

  it('S-051 parks an app whose token Slack refuses, and says so', async () => {
    const { slack, link, open, states } = await setUp(1);
    await open(1);
    slack.fault({ method: 'apps.connections.open', times: 100, effect: { kind: 'error', error: 'invalid_auth' } });
    slack.sockets.sever(slack.sockets.open()[0]!);
    await expect.poll(() => link.state.parked?.details['slackError'], { timeout: 5_000 }).toBe('invalid_auth');
    expect(states.at(-1)?.parked?.code).toBe('SLACK_UNAUTHORIZED');
  });

  it('S-052 replaces a connection whose far end stopped answering', async () => {
    const { slack, open } = await setUp(1, 300);
    await open(1);
    const [frozen] = slack.sockets.open();
    slack.sockets.freeze(frozen!);
    await expect
      .poll(() => slack.sockets.open().filter((one) => !one.half && one.saidHello).length, { timeout: 15_000 })
      .toBe(1);
  });

  it('S-055 closes everything, may be closed twice, and while it is still connecting', async () => {
    const { slack, link, open } = await setUp(2);
    await open(2);
    await Promise.all([link.stop(), link.stop()]);
    await expect.poll(() => slack.sockets.open().length).toBe(0);
    const early = await setUp(1);
    await early.link.stop();
    await expect.poll(() => early.slack.sockets.open().length).toBe(0);
  });
});

import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { SocketLink, type SocketState } from '../../../../bridges/slack/inbound/socket-link.js';
import { deferred } from '../../../../src/base/async.js';
import { systemClock, type Clock } from '../../../../src/base/clock.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { noMetrics } from '../../../../src/base/metrics.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import type { StateStore } from '../../../../src/store/port.js';
import { createManualClock, type ManualClock } from '../../../../src/testing/manual-clock.js';
import { startAcme } from '../../../support/slack/acme.js';
import { openDoor } from './doors.js';

const setUp = async (
  connections = 2,
  pingTimeoutMs = 15_000,
  { clock = systemClock, begin = true, store }: { clock?: Clock; begin?: boolean; store?: StateStore } = {},
) => {
  const world = await startAcme({ app: { socketMode: true, events: ['message.channels', 'app_mention'] } });
  const door = await openDoor(store ? { store } : {});
  const states: SocketState[] = [];
  const alarms: string[] = [];
  const link = new SocketLink({
    slug: 'main',
    appToken: world.app.appToken,
    slackApiUrl: world.slack.apiUrl,
    dispatcher: undefined,
    proxy: undefined,
    pingTimeoutMs,
    connections,
    accept: door.accept,
    clock,
    log: pino({ level: 'error' }, { write: (line: string) => void alarms.push(line) }),
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
  return { ...world, door, link, states, alarms, open };
};

/** Lets time pass in steps until something holds. */
const passing = async (clock: ManualClock, stepMs: number, holds: () => boolean, timeout = 8_000) => {
  await expect
    .poll(
      async () => {
        if (!holds()) await clock.advance(stepMs);
        return holds();
      },
      { timeout, interval: 5 },
    )
    .toBe(true);
};
const MINUTE_MS = 60_000;

describe('Socket Mode that Slack takes away', () => {
  it('S-048 link_disabled is said once, and asked again every five minutes and not sooner', async () => {
    const clock = createManualClock();
    const { slack, link, alarms, open } = await setUp(2, 15_000, { clock });
    await passing(clock, 500, () => slack.sockets.open().filter((one) => one.saidHello).length === 2);
    for (const socket of slack.sockets.open()) slack.sockets.disconnect(socket, 'link_disabled');
    await expect.poll(() => slack.sockets.open().length).toBe(0);
    await expect.poll(() => link.state.open).toBe(0);
    const before = slack.calls('apps.connections.open').length;
    for (let minute = 0; minute < 4; minute += 1) await clock.advance(MINUTE_MS);
    expect(slack.calls('apps.connections.open')).toHaveLength(before);
    expect(alarms).toEqual([expect.stringContaining('Socket Mode is switched off')]);
    await passing(clock, MINUTE_MS, () => slack.calls('apps.connections.open').length > before);
    await open(2);
  });

  it.each([0, 1])(
    'S-047 too_many_websockets on connection %d leaves one for a minute and says so, then all are tried again',
    async (told) => {
      const clock = createManualClock();
      const { slack, alarms, open } = await setUp(3, 15_000, { clock });
      const greeted = () => slack.sockets.open().filter((one) => one.saidHello);
      await passing(clock, 500, () => greeted().length === 3);
      const kept = greeted().find((_socket, index) => index !== told);
      slack.sockets.disconnect(greeted()[told]!, 'too_many_websockets');
      await open(1);
      const asked = slack.calls('apps.connections.open').length;
      await clock.advance(MINUTE_MS - 1_000);
      await open(1);
      expect(greeted()).toEqual([kept]);
      expect(slack.calls('apps.connections.open')).toHaveLength(asked);
      expect(alarms).toEqual([expect.stringContaining('too many connections')]);
      await passing(clock, 1_000, () => greeted().length === 3);
    },
  );

  it('S-047 a place that Slack refuses with too_many_websockets in place of a hello is asked for once a minute', async () => {
    const clock = createManualClock();
    const { slack, app, link, alarms } = await setUp(2, 15_000, { clock, begin: false });
    const others = Array.from({ length: 10 }, () => new WebSocket(slack.sockets.ticket(app)));
    await expect.poll(() => slack.sockets.open().length).toBe(10);
    link.start();
    const asked = () => slack.calls('apps.connections.open').length;
    await passing(clock, 500, () => asked() === 2);
    await expect.poll(() => alarms.length).toBe(1);
    for (let second = 0; second < 58; second += 1) await clock.advance(1_000);
    expect(asked()).toBe(2);
    expect(alarms).toEqual([expect.stringContaining('too many connections')]);
    for (const other of others) other.terminate();
    await expect.poll(() => slack.sockets.open().length).toBe(0);
    await passing(clock, 1_000, () => link.state.open === 2);
  });

  it('S-050 a connection that lived is replaced at once, one that is lost as soon as it is there more and more slowly', async () => {
    const clock = createManualClock();
    const { slack, link } = await setUp(1, 15_000, { clock });
    await passing(clock, 0, () => link.state.open === 1);
    await clock.advance(20_000);
    const begun = clock.now();
    slack.sockets.sever(slack.sockets.open()[0]!);
    await expect.poll(() => slack.calls('apps.connections.open').length).toBe(2);
    expect(clock.now()).toBe(begun);

    const times: number[] = [];
    slack.sockets.onOpen = () => times.push(clock.now());
    const dropped = new Set<unknown>();
    const drop = () => {
      for (const socket of slack.sockets.open()) {
        if (!socket.saidHello || dropped.has(socket) || link.state.open === 0) continue;
        dropped.add(socket);
        slack.sockets.sever(socket);
      }
      return times.length >= 10;
    };
    await passing(clock, 250, drop);
    const gaps = times.slice(1).map((at, index) => at - times[index]!);
    expect(gaps.at(-1)).toBeGreaterThanOrEqual(14_000);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(31_000);
  });

  it('S-050 hours without an answer are waited out with half a minute between two tries at most', async () => {
    const clock = createManualClock();
    const { slack, link, alarms, open } = await setUp(1, 15_000, { clock });
    await passing(clock, 0, () => link.state.open === 1);
    const tries: number[] = [];
    const kinds = [
      { kind: 'status', status: 503 },
      { kind: 'drop', applied: false },
      { kind: 'garbage' },
      { kind: 'error', error: 'fatal_error' },
    ] as const;
    const down = kinds.map((effect, index) =>
      slack.fault({
        method: 'apps.connections.open',
        times: 10_000,
        when: () => tries.length % kinds.length === index && tries.push(clock.now()) > 0,
        effect,
      }),
    );
    slack.sockets.sever(slack.sockets.open()[0]!);
    const until = clock.now() + 2 * 3_600_000;
    await passing(clock, 10_000, () => clock.now() >= until, 60_000);
    const gaps = tries.slice(1).map((at, index) => at - tries[index]!);
    expect(tries.length).toBeGreaterThan(200);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(40_000);
    expect(link.state).toMatchObject({ open: 0, parked: null });
    expect(alarms).toEqual([]);
    for (const fault of down) fault.disarm();
    await passing(clock, 5_000, () => link.state.open === 1);
    await open(1);
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

  it('S-031 acknowledges nothing that could not be stored, and takes the repeat', async () => {
    const store = createMemoryStore();
    const { slack, alice, door, open } = await setUp(2, 15_000, { store });
    await open(2);
    const batch = store.batch.bind(store);
    let refused = 0;
    store.batch = () => {
      refused += 1;
      return Promise.reject(new GatewayError('STORE_TRIPPED'));
    };
    alice.says('#general', 'while the disk is full');
    await expect.poll(() => refused).toBe(1);
    store.batch = batch;
    await slack.until(() => slack.deliveries()[0]?.state === 'acked', 'the repeat', 8_000);
    expect(slack.deliveries()[0]?.attempts.map(({ outcome }) => outcome)).toEqual(['timeout', 'acked']);
    door.start();
    await door.inbox.queue.drained();
    expect(door.handled).toMatchObject([{ retryNum: 1, retryReason: 'timeout' }]);
  });

  it('S-033 keeps what it could not acknowledge any more, and knows the repeat', async () => {
    const store = createMemoryStore();
    const { slack, alice, door, open } = await setUp(1, 15_000, { store });
    await open(1);
    const batch = store.batch.bind(store);
    store.batch = async (changes) => {
      // The connection goes between the commit and the acknowledgement.
      store.batch = batch;
      const version = await batch(changes);
      slack.sockets.sever(slack.sockets.open()[0]!);
      await expect.poll(() => slack.sockets.open().length).toBe(0);
      return version;
    };
    alice.says('#general', 'no answer came');
    const [delivery] = slack.deliveries();
    await slack.until(() => delivery?.attempts[0]?.outcome === 'closed', 'the lost acknowledgement');
    await open(1);
    await slack.sockets.deliver(
      { app: slack.sockets.open()[0]!.app, kind: 'events_api', eventId: null, type: 'message', body: delivery!.body },
      { retryNum: 1, reason: 'timeout', limitMs: 3_000 },
    );
    door.start();
    await door.inbox.queue.drained();
    expect(door.handled).toHaveLength(1);
    expect(door.handled[0]?.retryNum).toBeNull();
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
    const journaled = door.handled.map(({ payload }) => JSON.stringify(payload));
    expect(journaled.some((payload) => payload.includes('still there?'))).toBe(true);
    // Of the envelopes without an id, and of those that mean nothing here, there is a record all the same.
    expect(journaled).toEqual(
      expect.arrayContaining([
        expect.stringContaining('app_rate_limited'),
        '{"type":"socket:events_api"}',
        '{}',
        '{"type":"event_callback","event":{"type":"close"}}',
      ]),
    );
    expect(slack.sockets.ackedEnvelopes).toEqual(expect.arrayContaining(['e1', 'e2', 'e3']));
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
    const frozenAt = Date.now();
    await expect
      .poll(() => slack.sockets.open().filter((one) => !one.half && one.saidHello).length, { timeout: 15_000 })
      .toBe(1);
    // Twice the limit, and what a busy machine takes to connect.
    expect(Date.now() - frozenAt).toBeLessThan(2 * 300 + 3_000);
  });

  it('S-216 acknowledges what it is storing before it closes', async () => {
    const store = createMemoryStore();
    const { slack, alice, link, open } = await setUp(1, 15_000, { store });
    await open(1);
    const batch = store.batch.bind(store);
    const begun = deferred();
    const disk = deferred();
    store.batch = async (changes) => {
      begun.resolve();
      await disk.promise;
      return await batch(changes);
    };
    alice.says('#general', 'just before the stop');
    await begun.promise;
    const stopped = link.stop();
    disk.resolve();
    await stopped;
    await slack.settled();
    expect(slack.deliveries()[0]?.attempts.map(({ outcome }) => outcome)).toEqual(['acked']);
  });

  it('S-055 closes everything, may be closed twice, and while it is still connecting', async () => {
    const { slack, link, open } = await setUp(2);
    await open(2);
    await Promise.all([link.stop(), link.stop()]);
    await expect.poll(() => slack.sockets.open().length).toBe(0);
    const early = await setUp(1);
    early.slack.sockets.mute = true;
    for (const socket of early.slack.sockets.open()) early.slack.sockets.sever(socket);
    // Connected, and Slack has not said hello.
    await expect.poll(() => early.slack.sockets.open().some((one) => !one.saidHello)).toBe(true);
    await early.link.stop();
    await expect.poll(() => early.slack.sockets.open().length).toBe(0);
    expect(early.link.state.open).toBe(0);
  });
});

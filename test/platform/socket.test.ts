import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBandLink, type BandLinkOptions } from '../../src/platform/link.js';
import type { LinkEvent, LinkState } from '../../src/platform/link-port.js';
import { createOpenWebSocket } from '../../src/platform/socket/open-web-socket.js';
import { topics } from '../../src/platform/topics.js';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { AGENT_ID, API_KEY, countingMetrics, failure, messageCreated } from '../support/link-lab.js';
import { startPhoenixServer } from '../support/phoenix-server.js';

/** The real transport against a real server: what only a socket can show. */

const ROOM = 'b7d4e810-52aa-4f0e-8c21-000000000101';
const CHAT = topics.chatRoom(ROOM);

/** Real time, but what is waited for between two tries passes a hundred times faster. */
const impatient: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 100, signal) };

/** Everything thirty times faster, deadlines included. */
const hasty: Clock = {
  ...impatient,
  now: () => systemClock.now() * 30,
  after: (ms, fn) => systemClock.after(ms / 30, fn),
  every: (ms, fn) => systemClock.every(ms / 30, fn),
};

let server: Awaited<ReturnType<typeof startPhoenixServer>>;
let stops: (() => Promise<void>)[];

beforeEach(async () => {
  server = await startPhoenixServer();
  stops = [];
});
afterEach(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await server.stop();
});

function open(options: Partial<BandLinkOptions> = {}) {
  const counts = countingMetrics();
  const link = createBandLink({
    wsUrl: server.url,
    agentId: AGENT_ID,
    apiKey: API_KEY,
    onConflict: 'supersede',
    random: () => 0,
    clock: impatient,
    metrics: counts.metrics,
    ...options,
  });
  stops.push(() => link.close());
  const states: LinkState[] = [];
  link.onState((state) => states.push(state));
  const iterator = link.events[Symbol.asyncIterator]();
  const next = async (): Promise<LinkEvent> => (await iterator.next()).value as LinkEvent;
  return { link, states, next, counts };
}

describe('over a real socket', () => {
  it('connects, joins, receives, comes back and closes with 1000', async () => {
    const { link, next } = open();
    await link.connect();
    await link.join(CHAT);
    const first = await server.peer(1);
    expect(first.headers['x-api-key']).toBe(API_KEY);
    first.push(CHAT, 'message_created', messageCreated('m1', ROOM, 'héllo ✓'));
    expect(await next()).toMatchObject({ kind: 'message_created', message: { content: 'héllo ✓' } });
    first.drop();
    expect((await next()).kind).toBe('disconnected');
    expect((await next()).kind).toBe('reconnected');
    const second = await server.peer(2);
    second.push(CHAT, 'message_created', messageCreated('m2', ROOM));
    expect(await next()).toMatchObject({ kind: 'message_created', message: { id: 'm2' } });
    await link.close();
    await second.ended.promise;
    expect(second.closedByClient?.code).toBe(1000);
  });

  it.each([
    [403, '', {}],
    [429, JSON.stringify({ error: { code: 'too_many_requests', message: 'm', retry_after: 1 } }), {}],
    [429, '', { 'retry-after': '1' }],
    [503, JSON.stringify({ error: { code: 'tracking_failed', message: 'm' } }), {}],
    [502, '<html>Bad Gateway</html>', {}],
    [302, '', { location: 'http://127.0.0.1:9/' }],
    [200, 'hello', {}],
  ])('tries again after an upgrade refused with %i %s', async (status, body, headers) => {
    const { link, states } = open();
    server.refusals.push({ status, body, headers });
    await link.connect();
    expect(states.map(({ kind }) => kind)).toEqual(['connecting', 'waiting', 'connecting', 'connected']);
    expect(states[1]?.why).toBe(`refused with HTTP ${status}`);
    expect(server.peers).toHaveLength(1);
  });

  it('reads the status of a 409 and its code', async () => {
    const { link } = open({ onConflict: 'reject' });
    server.refusals.push({
      status: 409,
      body: JSON.stringify({ error: { code: 'connection_conflict', message: 'taken', request_id: 'F9' } }),
    });
    const error = await failure(link.connect());
    expect(error.code).toBe('BAND_ALREADY_CONNECTED');
    expect(error.details).toMatchObject({ status: 409, bandCode: 'connection_conflict' });
  });

  it('survives a refusal whose body never ends, an upgrade nobody answers, and one that is cut off', async () => {
    const { link, states } = open({ clock: hasty });
    server.refusals.push(
      (socket) => socket.write('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 999\r\n\r\npartial'),
      'hang',
      'hang up',
    );
    await link.connect();
    expect(states.filter(({ kind }) => kind === 'waiting')).toHaveLength(3);
    expect(server.peers).toHaveLength(1);
  });

  it('keeps the key out of every state and error', async () => {
    const { link, states } = open({ wsUrl: 'ws://127.0.0.1:1/socket', initialTries: 2 });
    const error = await failure(link.connect());
    expect(error.code).toBe('BAND_UNREACHABLE');
    expect((error.cause as Error).message).toContain('ECONNREFUSED');
    expect(JSON.stringify([states, error, String(error.cause), error.stack])).not.toContain(API_KEY);
  });

  it('says why even where every address of a name was tried', async () => {
    const { link } = open({ wsUrl: 'ws://localhost:1/socket', initialTries: 1 });
    expect((await failure(link.connect())).details['why']).toMatch(/ECONNREFUSED|EADDRNOTAVAIL/);
  });

  it('a key that no header can carry fails like an address that nobody answers', async () => {
    const { link } = open({ apiKey: 'bad\nkey\u0001', initialTries: 1 });
    const error = await failure(link.connect());
    expect(error.code).toBe('BAND_UNREACHABLE');
    expect(JSON.stringify([error, String(error.cause)])).not.toContain('bad');
  });

  it('an oversized frame ends the connection with 1009 and the link comes back', async () => {
    const { link, next } = open({ openWebSocket: createOpenWebSocket({ maxFrameBytes: 2_000 }) });
    await link.connect();
    await link.join(CHAT);
    (await server.peer(1)).push(CHAT, 'message_created', messageCreated('big', ROOM, 'x'.repeat(4_000)));
    const down = await next();
    expect(down.kind).toBe('disconnected');
    expect((await next()).kind).toBe('reconnected');
    expect((await server.peer(1)).closedByClient?.code).toBe(1009);
  });

  it('binary frames, text that is no frame and a burst of joins are survived', async () => {
    const { link, next, counts } = open({ maxJoinsInFlight: 16 });
    await link.connect();
    const peer = await server.peer(1);
    peer.sendBinary();
    peer.sendText('{"not":"a frame"}');
    const many = Array.from({ length: 500 }, (_, i) => topics.chatRoom(`room-${i}`));
    await Promise.all(many.map((topic) => link.join(topic)));
    expect(link.state.topicsJoined).toBe(500);
    expect(counts.count('band_link_frames_dropped_total', 'garbage')).toBe(2);
    peer.push(many[499]!, 'message_created', messageCreated('m', 'room-499'));
    expect(await next()).toMatchObject({ kind: 'message_created', roomId: 'room-499' });
  });

  it('a half-open connection is replaced once a heartbeat stays unanswered', async () => {
    const { link, next } = open({ clock: hasty });
    await link.connect();
    await link.join(CHAT);
    server.script.heartbeats = 'unanswered';
    expect(await next()).toEqual({ kind: 'disconnected', why: 'heartbeat unanswered' });
    server.script.heartbeats = 'answered';
    expect((await next()).kind).toBe('reconnected');
    const first = await server.peer(1);
    await first.ended.promise;
    expect(first.closedByClient?.code).toBe(4000);
  });

  it('leaves no socket behind when it is closed while connecting', async () => {
    const { link } = open();
    server.refusals.push('hang');
    const connecting = failure(link.connect());
    await link.close();
    expect((await connecting).code).toBe('BAND_LINK_CLOSED');
    expect(link.state.kind).toBe('closed');
  });
});

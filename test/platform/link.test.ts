import { describe, expect, it } from 'vitest';
import { topics } from '../../src/platform/topics.js';
import { AGENT_ID, API_KEY, failure, linkLab, messageCreated } from '../support/link-lab.js';

const ROOM = 'b7d4e810-52aa-4f0e-8c21-000000000101';
const CHAT = topics.chatRoom(ROOM);
const CONTROL = topics.control(AGENT_ID);

describe('connecting', () => {
  it('sends the key as header and query, the agent id, the protocol version and the conflict policy', async () => {
    const { platform, up, link } = linkLab({ onConflict: 'reject' });
    await up();
    expect(platform.peer.headers).toMatchObject({ 'x-api-key': API_KEY });
    expect(Object.fromEntries(platform.peer.url.searchParams)).toEqual({
      api_key: API_KEY,
      agent_id: AGENT_ID,
      vsn: '2.0.0',
      on_conflict: 'reject',
    });
    await link.close();
  });

  it('R-016 passes a key on as it is, whatever it looks like', async () => {
    const { platform, up, link } = linkLab({ apiKey: 'proxy-managed & co=?' });
    await up();
    expect(platform.peer.url.searchParams.get('api_key')).toBe('proxy-managed & co=?');
    expect(platform.peer.headers['x-api-key']).toBe('proxy-managed & co=?');
    await link.close();
  });

  it.each([
    ['wss://band.test/api/v1/socket/websocket', 'wss://band.test/api/v1/socket/websocket'],
    ['wss://band.test/api/v1/socket', 'wss://band.test/api/v1/socket/websocket'],
    ['wss://band.test/api/v1/socket/', 'wss://band.test/api/v1/socket/websocket'],
    ['wss://band.test/api/v1/socket/websocket/', 'wss://band.test/api/v1/socket/websocket'],
    ['http://band.test/api/v1/socket', 'ws://band.test/api/v1/socket/websocket'],
  ])('reads the address %s as %s', async (wsUrl, expected) => {
    const { platform, up, link } = linkLab({ wsUrl });
    await up();
    const { origin, protocol, pathname } = platform.peer.url;
    expect(`${protocol}//${platform.peer.url.host}${pathname}`, origin).toBe(expected);
    await link.close();
  });

  it('R-101 a reconnect carries no conflict policy', async () => {
    const { platform, clock, up, link } = linkLab({ onConflict: 'reject' });
    await up();
    platform.peer.drop();
    await clock.advance(5_000);
    expect(platform.attempts).toHaveLength(2);
    expect(platform.peer.url.searchParams.has('on_conflict')).toBe(false);
    await link.close();
  });

  it('tries the first connection again with the same policy after a refused upgrade', async () => {
    const { platform, clock, link } = linkLab();
    platform.answers.push({ status: 403 }, { failure: 'connect ECONNREFUSED 127.0.0.1:9' }, { status: 503 });
    const connecting = link.connect();
    await clock.advance(10_000);
    await connecting;
    expect(platform.attempts.map((url) => url.searchParams.get('on_conflict'))).toEqual(Array(4).fill('supersede'));
    expect(link.state).toMatchObject({ kind: 'connected', why: null, nextTryAtMs: null });
    await link.close();
  });

  it.each([
    [400, { error: { code: 'invalid_on_conflict', message: 'no', request_id: 'r' } }, 'BAND_INVALID'],
    [409, { error: { code: 'connection_conflict', message: 'taken', request_id: 'r' } }, 'BAND_ALREADY_CONNECTED'],
  ])('ends for good when the first upgrade is refused with %i', async (status, body, code) => {
    const { platform, clock, link, states } = linkLab({ onConflict: 'reject' });
    platform.answers.push({ status, body: JSON.stringify(body) });
    expect((await failure(link.connect())).code).toBe(code);
    expect((await link.closed)?.code).toBe(code);
    await clock.advance(600_000);
    expect(platform.attempts).toHaveLength(1);
    expect(states.at(-1)?.kind).toBe('closed');
    expect(clock.pending).toBe(0);
  });

  it('waits as long as a 429 asks, in the body first, then in the header', async () => {
    const { platform, clock, link } = linkLab({ random: () => 0 });
    platform.answers.push(
      { status: 429, body: JSON.stringify({ error: { code: 'too_many_requests', message: 'm', retry_after: 27 } }) },
      { status: 429, headers: { 'retry-after': '40' } },
    );
    const connecting = link.connect();
    await clock.advance(26_900);
    expect(platform.attempts).toHaveLength(1);
    await clock.advance(200);
    expect(platform.attempts).toHaveLength(2);
    await clock.advance(39_800);
    expect(platform.attempts).toHaveLength(2);
    await clock.advance(200);
    await connecting;
    await link.close();
  });

  it('gives up after the configured number of first tries and says why', async () => {
    const { platform, clock, link } = linkLab({ initialTries: 3 });
    platform.answers.push(...Array.from({ length: 9 }, () => ({ failure: 'connect ECONNREFUSED 127.0.0.1:9' })));
    const failed = failure(link.connect());
    await clock.advance(60_000);
    const error = await failed;
    expect(error.code).toBe('BAND_UNREACHABLE');
    expect((error.cause as Error).message).toContain('ECONNREFUSED');
    expect(platform.attempts).toHaveLength(3);
    expect(clock.pending).toBe(0);
  });

  it('replaces an upgrade that is not answered within 10 s', async () => {
    const { platform, clock, link } = linkLab();
    platform.answers.push('silent');
    const connecting = link.connect();
    await clock.advance(12_000);
    await connecting;
    expect(platform.attempts).toHaveLength(2);
    expect(platform.open).toBe(1);
    await link.close();
  });

  it('leaves nothing behind when the caller loses interest', async () => {
    const { platform, clock, link } = linkLab();
    platform.answers.push('silent');
    const controller = new AbortController();
    const connecting = link.connect(controller.signal);
    await clock.advance(1_000);
    controller.abort(new Error('enough'));
    await expect(connecting).rejects.toThrow('enough');
    await clock.advance(0);
    expect(await link.closed).toBeNull();
    expect(platform.open).toBe(0);
    expect(clock.pending).toBe(0);
  });
});

describe('closing', () => {
  it('leaves its topics, closes with 1000 and stays away', async () => {
    const { platform, clock, link, up, consuming } = linkLab();
    await up(CONTROL, CHAT);
    const { peer } = platform;
    await link.close();
    expect(peer.received.filter(([, , , event]) => event === 'phx_leave').map(([, , topic]) => topic)).toEqual([
      CONTROL,
      CHAT,
    ]);
    expect(peer.closedByClient?.code).toBe(1000);
    await clock.advance(600_000);
    expect(platform.attempts).toHaveLength(1);
    expect(await link.closed).toBeNull();
    await consuming;
    expect(link.state.kind).toBe('closed');
    expect(clock.pending).toBe(0);
  });

  it('does not wait for a platform that answers nothing', async () => {
    const { platform, clock, link, up } = linkLab();
    await up(CHAT);
    platform.script.onLeave = 'silent';
    platform.script.closes = 'ignored';
    const closing = link.close();
    await clock.advance(6_000);
    await closing;
    await clock.advance(0);
    expect(platform.open).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('is quick while the link waits for its next try, and twice is as good as once', async () => {
    const { platform, clock, link, up } = linkLab();
    await up(CHAT);
    platform.peer.close(1013);
    await clock.advance(1_000);
    expect(link.state.kind).toBe('waiting');
    await Promise.all([link.close(), link.close()]);
    expect(clock.pending).toBe(0);
  });

  it('works on a link that was never connected', async () => {
    const { link } = linkLab();
    await link.close();
    expect(await link.closed).toBeNull();
    expect((await failure(link.connect())).code).toBe('BAND_LINK_CLOSED');
    expect((await failure(link.join(CHAT))).code).toBe('BAND_LINK_CLOSED');
  });
});

describe('PHX-02', () => {
  it('an unanswered heartbeat leads to a new connection with all topics, although the peer confirms the close', async () => {
    const { platform, clock, link, up, states } = linkLab();
    await up(CONTROL, CHAT);
    const first = platform.peer;
    platform.script.heartbeats = 'unanswered';
    await clock.advance(30_000);
    expect(first.heartbeats).toHaveLength(1);
    expect(first.heartbeats[0]?.slice(2)).toEqual(['phoenix', 'heartbeat', {}]);
    await clock.advance(30_000);
    expect(first.closedByClient?.code).toBe(4000);
    expect(link.state.kind).not.toBe('connected');
    platform.script.heartbeats = 'answered';
    await clock.advance(1_000);
    expect(platform.peers).toHaveLength(2);
    expect([...platform.peer.joined.keys()]).toEqual([CONTROL, CHAT]);
    const second = platform.peer;
    await clock.advance(89_000);
    expect(platform.peer).toBe(second);
    expect(second.heartbeats).toHaveLength(3 - 1);
    expect(link.state.kind).toBe('connected');
    expect(states.map(({ kind }) => kind)).toEqual(['connecting', 'connected', 'waiting', 'connecting', 'connected']);
    await link.close();
  });

  it('the heartbeat of a dead connection can not harm the next one', async () => {
    const { platform, clock, link, up } = linkLab();
    await up(CHAT);
    platform.script.heartbeats = 'unanswered';
    await clock.advance(30_000);
    platform.peer.drop();
    platform.script.heartbeats = 'answered';
    await clock.advance(150_000);
    expect(platform.peers).toHaveLength(2);
    await link.close();
  });

  it('health tells that the link is down between the unanswered heartbeat and the rejoin', async () => {
    const { platform, clock, link, up } = linkLab();
    await up(CHAT);
    platform.script.heartbeats = 'unanswered';
    platform.answers.push({ status: 503 }, { status: 503 });
    await clock.advance(60_000);
    expect(link.state).toMatchObject({ kind: 'waiting', why: 'heartbeat unanswered', topicsJoined: 0, topicsKnown: 1 });
    expect(link.state.nextTryAtMs).toBeGreaterThan(clock.now());
    const downSince = link.state.sinceMs;
    expect(downSince).toBe(clock.now());
    platform.script.heartbeats = 'answered';
    await clock.advance(400);
    expect(link.state).toMatchObject({ kind: 'waiting', why: 'refused with HTTP 503', sinceMs: downSince });
    await clock.advance(10_000);
    expect(link.state).toMatchObject({ kind: 'connected', why: null, topicsJoined: 1 });
    expect(link.state.sinceMs).toBeGreaterThan(downSince);
    await clock.advance(60_000);
    expect(link.state.failures).toBe(0);
    await link.close();
  });

  it('a host that slept replaces its dead socket within one heartbeat interval after waking', async () => {
    const { platform, clock, link, up } = linkLab();
    await up(CHAT);
    await clock.advance(31_000);
    platform.script.closes = 'ignored';
    clock.jump(600_000);
    await clock.advance(10_000);
    expect(platform.peers).toHaveLength(2);
    expect(platform.peer.joined.has(CHAT)).toBe(true);
    expect(platform.open).toBe(1);
    platform.script.closes = 'confirmed';
    await link.close();
  });

  it('a clock that is set back does not stop the heartbeats', async () => {
    const { platform, clock, link, up } = linkLab();
    await up();
    clock.jump(-3_600_000);
    await clock.advance(3_600_000 + 90_000);
    expect(platform.peers).toHaveLength(1);
    expect(platform.peer.heartbeats.length).toBeGreaterThanOrEqual(3);
    await link.close();
  });
});

describe('PHX-04', () => {
  it('tells of the reconnect only after the joins are answered, so that a catch-up can start on it', async () => {
    const { platform, clock, link, up, kinds, events, settle } = linkLab();
    await up(CHAT);
    platform.peer.push(CHAT, 'message_created', messageCreated('641', ROOM, 'before'));
    await settle();
    platform.peer.drop();
    platform.script.onJoin = () => 'silent';
    await clock.advance(3_000);
    const { peer } = platform;
    const [joinRef, ref] = await peer.seen(([, , , event]) => event === 'phx_join');
    expect(kinds()).toEqual(['message_created', 'disconnected']);
    peer.joined.set(CHAT, ref!);
    peer.reply(joinRef, ref, CHAT);
    peer.push(CHAT, 'message_created', messageCreated('645', ROOM, 'live'));
    peer.push(CHAT, 'message_created', messageCreated('643', ROOM, 'gap two'));
    await settle();
    expect(kinds()).toEqual(['message_created', 'disconnected', 'reconnected', 'message_created', 'message_created']);
    expect(events.flatMap((event) => (event.kind === 'message_created' ? [event.message.content] : []))).toEqual([
      'before',
      'live',
      'gap two',
    ]);
    await link.close();
  });

  it('a full buffer never drops without a word: the room, and only it, is to be caught up', async () => {
    const { platform, link, up, settle, read, events, counts } = linkLab({ maxMessagesPerRoom: 3, consume: false });
    const other = topics.chatRoom('b7d4e810-52aa-4f0e-8c21-000000000102');
    await up(CHAT, other);
    const { peer } = platform;
    for (let i = 1; i <= 10; i += 1) peer.push(CHAT, 'message_created', messageCreated(`m${i}`, ROOM));
    peer.push(other, 'message_created', messageCreated('o1', 'x'));
    await settle();
    const reading = read();
    await settle();
    peer.push(CHAT, 'message_created', messageCreated('m11', ROOM));
    await settle();
    expect(
      events.map((event) => {
        if (event.kind === 'message_created') return event.message.id;
        return event.kind === 'resync' ? `${event.why} of ${event.roomId}` : event.kind;
      }),
    ).toEqual(['m1', 'm2', 'm3', `overflow of ${ROOM}`, 'o1', 'm11']);
    expect(counts.count('band_link_events_dropped_total')).toBe(7);
    await link.close();
    await reading;
  });
});

describe('coming back', () => {
  it.each([
    [1012, 1_000, 5_000],
    [1013, 30_000, 60_000],
    [1006, 250, 500],
    [1011, 250, 500],
    [1009, 250, 500],
    [4999, 250, 500],
  ])('after a stable connection closed with %i waits between %i and %i ms', async (code, fromMs, toMs) => {
    for (const random of [0, 0.999]) {
      const { platform, clock, link, up } = linkLab({ random: () => random });
      await up();
      await clock.advance(70_000);
      if (code === 1006) platform.peer.drop();
      else platform.peer.close(code);
      await clock.advance(0);
      const waitMs = link.state.nextTryAtMs! - clock.now();
      expect(waitMs).toBeGreaterThanOrEqual(fromMs);
      expect(waitMs).toBeLessThanOrEqual(toMs);
      await link.close();
    }
  });

  it.each([1000, 1001])('a bare %i is met politely: after 30–60 s, with on_conflict=reject', async (code) => {
    const { platform, clock, link, up } = linkLab({ random: () => 0 });
    await up(CHAT);
    await clock.advance(70_000);
    platform.peer.close(code);
    await clock.advance(29_900);
    expect(platform.attempts).toHaveLength(1);
    platform.answers.push({ failure: 'connect ECONNREFUSED' });
    await clock.advance(200);
    expect(platform.attempts.at(-1)?.searchParams.get('on_conflict')).toBe('reject');
    await clock.advance(2_000);
    expect(platform.attempts.at(-1)?.searchParams.get('on_conflict')).toBe('reject');
    expect(platform.peer.joined.has(CHAT)).toBe(true);
    platform.peer.drop();
    await clock.advance(5_000);
    expect(platform.attempts.at(-1)?.searchParams.has('on_conflict')).toBe(false);
    await link.close();
  });

  it('a 409 after a bare close means that somebody else has the identity, and is final', async () => {
    const { platform, clock, link, up, kinds, consuming } = linkLab();
    await up(CHAT);
    platform.peer.close(1000);
    platform.answers.push({ status: 409 });
    await clock.advance(120_000);
    expect((await link.closed)?.code).toBe('BAND_ALREADY_CONNECTED');
    await consuming;
    expect(kinds()).toEqual(['disconnected']);
    expect(platform.attempts).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  it('a 409 on an ordinary reconnect is one more failed try', async () => {
    const { platform, clock, link, up } = linkLab();
    await up(CHAT);
    platform.answers.push({ status: 409 });
    platform.peer.drop();
    await clock.advance(10_000);
    expect(link.state.kind).toBe('connected');
    await link.close();
  });

  it('1008 is final', async () => {
    const { platform, clock, link, up } = linkLab();
    await up(CHAT);
    platform.peer.close(1008, 'policy');
    await clock.advance(600_000);
    expect((await link.closed)?.code).toBe('BAND_FORBIDDEN');
    expect((await link.closed)?.details).toMatchObject({ closeCode: 1008 });
    expect(platform.attempts).toHaveLength(1);
  });

  it('short-lived connections wait longer and longer, and the tenth does not end the tries', async () => {
    const { platform, clock, link, up } = linkLab({ random: () => 0.999 });
    await up();
    const waitsMs: number[] = [];
    for (let n = 1; n <= 14; n += 1) {
      platform.peer.drop();
      await clock.advance(0);
      waitsMs.push(Math.round((link.state.nextTryAtMs! - clock.now()) / 1_000));
      // Timers keep whole milliseconds, the wait may be a fraction shorter.
      await clock.advance(Math.ceil(link.state.nextTryAtMs! - clock.now()));
      expect(link.state.kind).toBe('connected');
    }
    expect(waitsMs).toEqual([2, 10, 60, 90, 120, 150, 180, 210, 240, 600, 600, 600, 600, 600]);
    await clock.advance(60_000);
    platform.peer.drop();
    await clock.advance(0);
    expect(link.state.nextTryAtMs! - clock.now()).toBeLessThan(1_000);
    await link.close();
  });

  it('R-081 a supersede notice is final, is told with its reason, and nothing comes after it', async () => {
    const { platform, clock, link, up, consuming } = linkLab();
    await up(CONTROL, CHAT);
    const { peer } = platform;
    peer.push(CONTROL, 'supersede', {
      reason: 'session.already_connected',
      message: 'This connection was replaced by a newer one for the same agent',
      retryable: false,
      retry_after: 'soon',
      correlation_id: '7a0f',
    });
    peer.close(1000);
    const error = await link.closed;
    expect(error?.code).toBe('BAND_SUPERSEDED');
    expect(error?.message).toContain('session.already_connected');
    expect(error?.details).toMatchObject({ correlationId: '7a0f' });
    await consuming;
    await clock.advance(600_000);
    expect(platform.attempts).toHaveLength(1);
    expect(clock.pending).toBe(0);
    expect((await failure(link.join(CHAT))).code).toBe('BAND_LINK_CLOSED');
  });
});

describe('events', () => {
  it('hands every kind of event on with its room', async () => {
    const agent = { rooms: topics.rooms(AGENT_ID), contacts: topics.contacts(AGENT_ID) };
    const people = topics.participants(ROOM);
    const { platform, link, up, events, settle } = linkLab();
    await up(agent.rooms, agent.contacts, CHAT, people);
    const { peer } = platform;
    const times = { inserted_at: 't', updated_at: 't' };
    peer.push(agent.rooms, 'room_added', { id: ROOM, title: null, ...times });
    peer.push(agent.rooms, 'room_removed', { id: ROOM, title: 'x', ...times });
    peer.push(people, 'participant_added', { id: 'p', name: 'P', type: 'Agent' });
    peer.push(people, 'participant_removed', { id: 'p' });
    peer.push(people, 'room_deleted', { id: ROOM });
    peer.push(agent.contacts, 'contact_request_received', { id: 'c', status: 'pending', inserted_at: 't' });
    peer.push(agent.contacts, 'contact_request_updated', { id: 'c', status: 'approved' });
    peer.push(agent.contacts, 'contact_added', { id: 'c', type: 'User', inserted_at: 't', handle: null, name: null });
    peer.push(agent.contacts, 'contact_removed', { id: 'c' });
    await settle();
    expect(events.map((event) => [event.kind, 'roomId' in event ? event.roomId : null])).toEqual([
      ['room_added', ROOM],
      ['room_removed', ROOM],
      ['participant_added', ROOM],
      ['participant_removed', ROOM],
      ['room_deleted', ROOM],
      ['contact_request_received', null],
      ['contact_request_updated', null],
      ['contact_added', null],
      ['contact_removed', null],
    ]);
    await link.close();
  });

  it('control signals arrive at once, ahead of what is queued, and a handler that throws stops nothing', async () => {
    const { platform, link, up, settle, events } = linkLab();
    const order: string[] = [];
    link.onControl((control) => {
      order.push(`${control.mode} with ${events.length} read`);
      throw new Error('the handler is broken');
    });
    await up(CONTROL, CHAT);
    const { peer } = platform;
    const signal = { scope: 'room', agent_id: AGENT_ID, execution_id: null, room_id: ROOM, correlation_id: 'c' };
    peer.push(CHAT, 'message_created', messageCreated('m1', ROOM));
    peer.push(CONTROL, 'agent.control', { mode: 'stop', ...signal });
    peer.push(CHAT, 'message_created', messageCreated('m2', ROOM));
    peer.push(CONTROL, 'agent.control', { mode: 'play', ...signal });
    await settle();
    expect(order.map((line) => line.split(' ')[0])).toEqual(['stop', 'play']);
    expect(events).toHaveLength(2);
    await link.close();
  });

  it('garbage, wrong shapes and unknown events are counted and left out, and the link lives on', async () => {
    const { platform, link, up, settle, events, counts } = linkLab();
    await up(CONTROL, CHAT);
    const { peer } = platform;
    for (const text of ['', 'null', '{}', '[]', '[1,2,3]', '["1","2","t","e"]', '[null,null,"","x",{}]', 'ÿ']) {
      peer.sendText(text);
    }
    peer.sendText('[null,null,"t","e",{},1]');
    peer.sendText('[null,null,"t","",{}]');
    peer.sendText('[1,null,"t","e",{}]');
    peer.sendText('[null,null,"t","e",[]]');
    peer.sendText('[null,null,"t","e",null]');
    peer.sendBinary();
    expect(counts.count('band_link_frames_dropped_total', 'garbage')).toBe(0);
    await settle();
    expect(counts.count('band_link_frames_dropped_total', 'garbage')).toBe(14);
    peer.push(CHAT, 'message_created', { id: 'm', content: 7 });
    peer.push(CHAT, 'message_created', { ...messageCreated('m', ROOM), metadata: { mentions: [{ name: 'no id' }] } });
    peer.push(CONTROL, 'agent.control', { mode: 'explode', scope: 'room', agent_id: AGENT_ID });
    peer.push(CONTROL, 'supersede', { reason: 5 });
    await settle();
    expect(counts.count('band_link_frames_dropped_total', 'invalid_payload')).toBe(4);
    peer.push(CHAT, 'message_updated', messageCreated('m', ROOM));
    peer.push(CHAT, 'constructor', {});
    peer.push(CHAT, '__proto__', {});
    await settle();
    expect(counts.count('band_link_frames_dropped_total', 'unknown_event')).toBe(3);
    peer.push(CHAT, 'message_created', messageCreated('good', ROOM));
    await settle();
    expect(events).toHaveLength(1);
    expect(link.state.kind).toBe('connected');
    await link.close();
  });

  it('takes the room from the topic, not from the payload', async () => {
    const { platform, link, up, settle, events } = linkLab();
    await up(CHAT);
    platform.peer.push(CHAT, 'message_created', messageCreated('m', 'another-room'));
    await settle();
    expect(events[0]).toMatchObject({ roomId: ROOM });
    await link.close();
  });
});

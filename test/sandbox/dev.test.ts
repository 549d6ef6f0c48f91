import { describe, expect, it } from 'vitest';
import { DEMO } from '../../src/sandbox/index.js';
import { createManualClock } from '../../src/testing/manual-clock.js';
import { openRawSocket, refusedUpgrade } from '../support/raw-socket.js';
import { callRest } from '../support/rest-call.js';
import { dataOf, rowsOf, sandboxLab, verdictOf } from '../support/sandbox-lab.js';

const { echo: ECHO, dice: DICE } = DEMO;

/** A sandbox and its development surface over HTTP. */
async function devLab(options: Parameters<typeof sandboxLab>[0] = {}) {
  const lab = await sandboxLab(options);
  const dev = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    callRest(lab.sandbox.restUrl, method, `/dev/v1${path}`, null, body, headers);
  return { ...lab, dev };
}

describe('the development surface', () => {
  it('makes people and agents with handles by the rules', async () => {
    const { dev, agent, person } = await devLab();
    const bob = dataOf(await dev('POST', '/users', { handle: 'bob.b', name: 'Bob', email: 'bob@example.com' }));
    expect(String(bob['api_key'])).toMatch(/^band_u_\w{40}$/);
    expect((await person(String(bob['api_key'])).get('/profile')).body).toMatchObject({
      data: { handle: 'bob.b', email: 'bob@example.com' },
    });
    const handles: unknown[] = [];
    for (const name of ['Tom: the 1st!', 'Tom (the 1st)', 'tom-the-1st', '💥']) {
      const made = dataOf(await dev('POST', '/agents', { owner_handle: 'bob.b', name, description: 'x' }));
      handles.push(made['handle']);
    }
    expect(handles).toEqual(['bob.b/tom-the-1st', 'bob.b/tom-the-1st-2', 'bob.b/tom-the-1st-3', 'bob.b/agent']);
    const id = '12345678-1234-4234-8234-123456789abc';
    const fixed = { owner_handle: 'bob.b', name: 'Fixed', description: 'x', id, api_key: 'band_a_fixed', global: true };
    expect(dataOf(await dev('POST', '/agents', fixed))).toMatchObject({ id, api_key: 'band_a_fixed' });
    expect((await agent('band_a_fixed').get('/me')).body).toMatchObject({ data: { id, listed_in_directory: true } });
  });

  it.each([
    ['/users', { handle: 'Bob', name: 'x' }, '422 validation_error'],
    ['/users', { handle: 'a b', name: 'x' }, '422 validation_error'],
    ['/users', { handle: 'demo', name: 'x' }, '409 conflict'],
    ['/users', { handle: 'bob', name: ' ' }, '422 validation_error'],
    ['/users', { handle: 'bob', name: 'x', id: 'nope' }, '422 validation_error'],
    ['/users', { handle: 'bob', name: 'x', id: ECHO.id }, '409 conflict'],
    ['/users', { handle: 'bob', name: 'x', api_key: ECHO.apiKey }, '409 conflict'],
    ['/users', { handle: 'bob', name: 'x', api_key: 'a b' }, '422 validation_error'],
    ['/agents', { owner_handle: 'nobody', name: 'x', description: 'x' }, '404 not_found'],
    ['/agents', { owner_handle: 'demo/echo', name: 'x', description: 'x' }, '404 not_found'],
    ['/agents', { owner_handle: 'demo', name: 'x', description: '' }, '422 validation_error'],
    ['/sockets/close', { principal_id: ECHO.id, code: 1005 }, '422 validation_error'],
    ['/faults/rest', { times: 0 }, '422 validation_error'],
    ['/nothing', {}, '404 not_found'],
  ])('answers %s %j with %s', async (path, body, verdict) => {
    const { dev } = await devLab();
    expect(verdictOf(await dev('POST', path, body))).toBe(verdict);
  });

  it('shows rooms, messages with delivery states, and sockets with their topics', async () => {
    const { dev, echo, room, say } = await devLab();
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    await socket.join(`chat_room:${roomId}`);
    const messageId = await say(roomId, 'hello', ECHO.id);
    expect(dataOf(await dev('GET', '/state'))).toMatchObject({
      users: [{ handle: 'demo' }],
      rooms: [
        {
          id: roomId,
          stopped: [],
          messages: [{ id: messageId, message_type: 'text', deliveries: { [ECHO.id]: { status: 'delivered' } } }],
        },
      ],
      sockets: [{ principal_id: ECHO.id, kind: 'Agent', topics: [`chat_room:${roomId}`] }],
    });
  });

  it('starts over with a reset, and closes every socket', async () => {
    const { dev, user, echo, room } = await devLab();
    await room(ECHO.id);
    const socket = await echo.socket();
    expect((await dev('POST', '/reset')).status).toBe(204);
    expect(await socket.closed).toBe(1006);
    expect(rowsOf(await user.get('/chats'))).toEqual([]);
    expect((await dev('POST', '/reset', { seed: 'empty' })).status).toBe(204);
    expect((await user.get('/profile')).status).toBe(401);
  });

  it('answers loopback callers, but no page of another origin and no other host name', async () => {
    const { sandbox, dev } = await devLab();
    const own = { origin: `http://127.0.0.1:${sandbox.port}` };
    expect((await dev('GET', '/state', undefined, own)).status).toBe(200);
    expect(verdictOf(await dev('GET', '/state', undefined, { origin: 'https://evil.example' }))).toBe('403 forbidden');
    expect(verdictOf(await dev('GET', '/state', undefined, { host: 'evil.example' }))).toBe('403 forbidden');
    expect((await dev('GET', '/state', undefined, { host: `localhost:${sandbox.port}` })).status).toBe(200);
  });

  it('wants its token when it has one', async () => {
    const { dev } = await devLab({ devToken: 'open sesame'.replace(' ', '-') });
    expect(verdictOf(await dev('GET', '/state'))).toBe('401 unauthorized');
    expect(verdictOf(await dev('GET', '/state', undefined, { authorization: 'Bearer wrong' }))).toBe(
      '401 unauthorized',
    );
    expect((await dev('GET', '/state', undefined, { authorization: 'Bearer open-sesame' })).status).toBe(200);
  });
});

describe('faults of REST calls', () => {
  it('answer the next matching calls with a status, a body, headers, and then no more', async () => {
    const { dev, echo, dice } = await devLab();
    await dev('POST', '/faults/rest', {
      method: 'get',
      path: '/api/v1/agent/*',
      caller_id: ECHO.id,
      times: 2,
      skip: 1,
      status: 429,
      headers: { 'Retry-After': '7' },
    });
    expect((await echo.get('/me')).status).toBe(200);
    expect((await dice.get('/me')).status).toBe(200);
    expect((await echo.post('/chats', {})).status).toBe(201);
    const refused = await echo.get('/me');
    expect([verdictOf(refused), refused.headers['retry-after']]).toEqual(['429 too_many_requests', '7']);
    expect((await echo.get('/peers')).status).toBe(429);
    expect((await echo.get('/me')).status).toBe(200);
  });

  it('may have any body: flat JSON, plain text, none', async () => {
    const { sandbox, echo } = await devLab();
    const answers: [unknown, string, string | undefined][] = [
      [
        { error: 'unauthorized', message: 'no' },
        '{"error":"unauthorized","message":"no"}',
        'application/json; charset=utf-8',
      ],
      ['upstream failed', 'upstream failed', 'text/plain; charset=utf-8'],
      [null, '', undefined],
    ];
    for (const [body, text, type] of answers) {
      sandbox.dev.faultRest({ status: 502, body });
      const answer = await echo.get('/me');
      expect([answer.status, answer.text, answer.headers['content-type']]).toEqual([502, text, type]);
    }
    sandbox.dev.faultRest({ status: 200, body: null });
    expect(await echo.post('/chats', {})).toMatchObject({ status: 200, text: '' });
    expect(rowsOf(await echo.get('/chats'))).toEqual([]);
  });

  it('delay a call on the sandbox’s clock, then carry it out', async () => {
    const clock = createManualClock();
    const { sandbox, echo } = await devLab({ clock });
    sandbox.dev.faultRest({ path: '/api/v1/agent/chats', delayMs: 2_000 });
    let answered = false;
    const call = echo.post('/chats', {}).finally(() => (answered = true));
    await expect.poll(() => clock.nextInMs).toBe(2_000);
    await echo.get('/me');
    expect(answered).toBe(false);
    await clock.advance(2_000);
    expect((await call).status).toBe(201);
  });

  it('break the connection before anything is done, or after, when it is done but not answered', async () => {
    const { sandbox, echo } = await devLab();
    sandbox.dev.faultRest({ drop: 'before' });
    await expect(echo.post('/chats', {})).rejects.toThrow();
    expect(rowsOf(await echo.get('/chats'))).toHaveLength(0);
    sandbox.dev.faultRest({ drop: 'after' });
    await expect(echo.post('/chats', {})).rejects.toThrow();
    expect(rowsOf(await echo.get('/chats'))).toHaveLength(1);
  });
});

describe('faults of sockets', () => {
  it('close a principal’s sockets with any code', async () => {
    const { dev, echo } = await devLab();
    for (const code of [1006, 1011, 1012, 1013, 1008, 4000]) {
      const socket = await echo.socket();
      expect(dataOf(await dev('POST', '/sockets/close', { principal_id: ECHO.id, code }))).toEqual({ closed: 1 });
      expect(await socket.closed).toBe(code);
    }
  });

  it('refuse upgrades with a status, for one agent or all', async () => {
    const { dev, sandbox, echo, dice } = await devLab();
    const url = `${sandbox.wsUrl}?api_key=${ECHO.apiKey}&vsn=2.0.0`;
    await dev('POST', '/faults/upgrades', { mode: 'refuse', principal_id: ECHO.id, times: 1 });
    const unavailable = await refusedUpgrade(url);
    expect([unavailable.status, JSON.parse(unavailable.body)]).toMatchObject([
      503,
      { error: { code: 'tracking_failed' } },
    ]);
    await (await echo.socket()).close();

    await dev('POST', '/faults/upgrades', { mode: 'refuse', principal_id: ECHO.id, status: 429, retry_after: 3 });
    expect(JSON.parse((await refusedUpgrade(url)).body)).toMatchObject({ error: { retry_after: 3 } });
    await (await dice.socket()).close();
    await dev('DELETE', '/faults');
    await (await echo.socket()).close();

    await dev('POST', '/faults/upgrades', { mode: 'refuse', status: 403 });
    const forbidden = await refusedUpgrade(url);
    expect([forbidden.status, forbidden.body]).toEqual([403, '']);
  });

  it('hold upgrades until they are cleared', async () => {
    const { dev, sandbox } = await devLab();
    await dev('POST', '/faults/upgrades', { mode: 'hold' });
    let open = false;
    const held = openRawSocket(`${sandbox.wsUrl}?api_key=${ECHO.apiKey}&vsn=2.0.0`).then((socket) => {
      open = true;
      return socket;
    });
    await dev('GET', '/state');
    expect(open).toBe(false);
    await dev('DELETE', '/faults');
    await (await held).close();
  });

  it('duplicate, withhold or lose pushes', async () => {
    const { dev, echo, room, say } = await devLab();
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    await socket.join(`chat_room:${roomId}`);
    const contents = async () => {
      await socket.settled();
      return socket.received
        .filter(([, , , event]) => event === 'message_created')
        .map(([, , , , { content }]) => String(content).split(' ')[1]);
    };
    await dev('POST', '/faults/pushes', { mode: 'duplicate', principal_id: ECHO.id });
    await say(roomId, 'one', ECHO.id);
    await say(roomId, 'two', ECHO.id);
    expect(await contents()).toEqual(['one', 'one', 'two']);
    await dev('POST', '/faults/pushes', { mode: 'withhold', event: 'message_created', times: 2 });
    await say(roomId, 'three', ECHO.id);
    await say(roomId, 'four', ECHO.id);
    await say(roomId, 'five', ECHO.id);
    expect(await contents()).toEqual(['one', 'one', 'two', 'five']);
    expect(dataOf(await dev('POST', '/pushes/release'))).toEqual({ sent: 2 });
    expect(await contents()).toEqual(['one', 'one', 'two', 'five', 'three', 'four']);
    await dev('POST', '/faults/pushes', { mode: 'drop' });
    await say(roomId, 'six', ECHO.id);
    expect(await contents()).not.toContain('six');
  });

  it('crash a channel, and change the switches', async () => {
    const { dev, echo, dice, room, say } = await devLab();
    const roomId = await room(ECHO.id, DICE.id);
    const socket = await echo.socket();
    await socket.join(`chat_room:${roomId}`);
    const crash = { principal_id: ECHO.id, topic: `chat_room:${roomId}` };
    expect(dataOf(await dev('POST', '/channels/crash', crash))).toEqual({ crashed: 1 });
    await socket.frame((frame) => frame[3] === 'phx_error');
    expect(dataOf(await dev('POST', '/channels/crash', crash))).toEqual({ crashed: 0 });
    const body = {
      delivery_status_on_own_rows: false,
      takeover_cooldown_ms: 0,
      repeated_processing_keeps_attempt: true,
    };
    expect((await dev('POST', '/switches', body)).status).toBe(204);
    const messageId = await say(roomId, 'hello', DICE.id);
    for (let n = 0; n < 2; n += 1) {
      const marked = await dice.post(`/chats/${roomId}/messages/${messageId}/processing`);
      expect(dataOf(marked)).toMatchObject({ attempt_number: 1 });
    }
  });
});

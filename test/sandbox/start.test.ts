import { describe, expect, it } from 'vitest';
import { DEMO, startSandbox } from '../../src/sandbox/index.js';
import { openRawSocket } from '../support/raw-socket.js';
import { callRest } from '../support/rest-call.js';
import { accepted, idOf, sandboxLab, verdictOf } from '../support/sandbox-lab.js';

describe('starting a sandbox', () => {
  it('gives the addresses of REST and socket on one free port of the loopback, and its health', async () => {
    const { sandbox } = await sandboxLab();
    expect(sandbox.restUrl).toBe(`http://127.0.0.1:${sandbox.port}`);
    expect(sandbox.wsUrl).toBe(`ws://127.0.0.1:${sandbox.port}/api/v1/socket/websocket`);
    expect(await callRest(sandbox.restUrl, 'GET', '/health', null)).toMatchObject({
      status: 200,
      body: { status: 'ok' },
    });
  });

  it('knows the demo person and five agents by fixed ids and keys', async () => {
    const { sandbox, agent } = await sandboxLab();
    for (const [name, { id, apiKey, handle }] of Object.entries(DEMO)) {
      if (name === 'user') continue;
      expect((await agent(apiKey).get('/me')).body).toMatchObject({
        data: { id, handle, owner_uuid: DEMO.user.id },
      });
    }
    expect(sandbox.dev.state()).toMatchObject({ users: [{ id: DEMO.user.id, handle: 'demo' }] });
    expect(sandbox.dev.state().agents).toHaveLength(5);
  });

  it('says when the port is taken, and leaves nothing behind', async () => {
    const { sandbox } = await sandboxLab();
    await expect(startSandbox({ port: sandbox.port })).rejects.toMatchObject({ code: 'PORT_IN_USE' });
  });

  it('refuses a seed that names somebody twice', async () => {
    const user = { handle: 'ada', name: 'Ada' };
    await expect(startSandbox({ port: 0, seed: { users: [user, user], agents: [] } })).rejects.toMatchObject({
      code: 'SANDBOX_REFUSED',
    });
  });

  it('hands paths that are not the platform’s to whoever wants them, and only those', async () => {
    const seen: string[] = [];
    const { sandbox } = await sandboxLab({
      extraRoutes: (request, response) => {
        seen.push(request.url ?? '');
        if (request.url !== '/') return false;
        response.end('console');
        return true;
      },
    });
    expect((await callRest(sandbox.restUrl, 'GET', '/', null)).text).toBe('console');
    expect(verdictOf(await callRest(sandbox.restUrl, 'GET', '/more', null))).toBe('404 not_found');
    expect(verdictOf(await callRest(sandbox.restUrl, 'GET', '/api/v1/more', null))).toBe('404 not_found');
    expect(seen).toEqual(['/', '/more']);
  });

  it('can be closed twice, with calls under way', async () => {
    const { sandbox, echo } = await sandboxLab();
    sandbox.dev.faultRest({ delayMs: 60_000 });
    const call = echo.get('/me');
    await expect.poll(async () => (await echo.get('/peers')).status).toBe(200);
    await Promise.all([sandbox.close(), sandbox.close()]);
    await expect(call).rejects.toThrow();
  });
});

describe('a crowded sandbox', () => {
  it('lets one socket join 5,000 rooms, and pushes to one of them without looking at the others', async () => {
    const { sandbox, user, echo, say } = await sandboxLab();
    const rooms: string[] = [];
    for (let n = 0; n < 5_000; n += 50) {
      const made = await Promise.all(Array.from({ length: 50 }, () => echo.post('/chats', {})));
      rooms.push(...made.map(idOf));
    }
    const socket = await openRawSocket(`${sandbox.wsUrl}?api_key=${echo.apiKey}&vsn=2.0.0`);
    for (const [n, roomId] of rooms.entries()) {
      socket.send(`a${n}`, `a${n}`, `chat_room:${roomId}`, 'phx_join', {});
      socket.send(`b${n}`, `b${n}`, `room_participants:${roomId}`, 'phx_join', {});
    }
    await socket.settled();
    expect(sandbox.dev.state().sockets[0]?.topics).toHaveLength(10_000);

    const last = String(rooms.at(-1));
    accepted(await echo.post(`/chats/${last}/participants`, { participant: { participant_id: DEMO.user.id } }));
    const start = performance.now();
    for (let n = 0; n < 200; n += 1) await say(last, `message ${n}`, DEMO.echo.id);
    await socket.settled();
    // A few milliseconds a message would do; walking all rooms or all messages would take far longer.
    expect(performance.now() - start).toBeLessThan(4_000);
    expect(socket.received.filter(([, , , event]) => event === 'message_created')).toHaveLength(200);
    expect((await user.get(`/chats/${last}`)).status).toBe(200);
    await socket.close();
  });
});

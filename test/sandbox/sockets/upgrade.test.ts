import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { exchange } from '../../support/raw-http.js';
import { callRest } from '../../support/rest-call.js';
import { openRawSocket, refusedUpgrade } from '../../support/raw-socket.js';
import { sandboxLab } from '../../support/sandbox-lab.js';
import { supersedeShape } from '../../support/wire-shapes.js';

const { echo: ECHO, user: DEMO_USER } = DEMO;
const VSN = 'vsn=2.0.0';

describe('the credentials of an upgrade', () => {
  it.each([
    ['an agent key', `api_key=${ECHO.apiKey}`, {}, ECHO.id],
    ['an agent key with its own id', `api_key=${ECHO.apiKey}&agent_id=${ECHO.id}`, {}, ECHO.id],
    ['an agent key in a header', '', { 'x-api-key': ECHO.apiKey }, ECHO.id],
    ['a user key', `api_key=${DEMO_USER.apiKey}`, {}, DEMO_USER.id],
    ['a user key as token', `token=${DEMO_USER.apiKey}`, {}, DEMO_USER.id],
    ['a user key for an own agent', `api_key=${DEMO_USER.apiKey}&agent_id=${ECHO.id}`, {}, ECHO.id],
    ['a right header beside a wrong query', 'api_key=nobody', { 'x-api-key': ECHO.apiKey }, ECHO.id],
  ])('%s acts as its owner', async (_name, query, headers, id) => {
    const { sandbox } = await sandboxLab();
    const socket = await openRawSocket(`${sandbox.wsUrl}?${query}&${VSN}`, headers);
    expect(sandbox.dev.state().sockets.map(({ principalId }) => principalId)).toEqual([id]);
    await socket.close();
  });

  it.each([
    ['none', '', {}],
    ['an unknown key', 'api_key=nobody', {}],
    ['a wrong header beside a right query', `api_key=${ECHO.apiKey}`, { 'x-api-key': 'nobody' }],
    ['an agent key with another id', `api_key=${ECHO.apiKey}&agent_id=${DEMO.dice.id}`, {}],
    ['a user key for an unknown agent', `api_key=${DEMO_USER.apiKey}&agent_id=${DEMO_USER.id.replace(/^0/, '1')}`, {}],
  ])('%s is refused with 403 and an empty body', async (_name, query, headers) => {
    const { sandbox } = await sandboxLab();
    const refused = await refusedUpgrade(`${sandbox.wsUrl}?${query}&${VSN}`, headers);
    expect([refused.status, refused.body]).toEqual([403, '']);
  });

  it('count for nothing when a page of another origin sends them', async () => {
    const { sandbox } = await sandboxLab();
    const url = `${sandbox.wsUrl}?api_key=${DEMO_USER.apiKey}&${VSN}`;
    expect((await refusedUpgrade(url, { origin: 'https://evil.example' })).status).toBe(403);
    await (await openRawSocket(url, { origin: sandbox.restUrl })).close();
  });

  it('of a user do not act as somebody else’s agent', async () => {
    const { sandbox } = await sandboxLab();
    const bob = sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const refused = await refusedUpgrade(`${sandbox.wsUrl}?api_key=${bob.apiKey}&agent_id=${ECHO.id}&${VSN}`);
    expect(refused.status).toBe(403);
  });
});

describe('an upgrade', () => {
  it.each([[''], ['&vsn=1.0.0'], ['&vsn=']])(
    'without version 2.0.0 (%j) is accepted and closed with 1011',
    async (vsn) => {
      const { sandbox } = await sandboxLab();
      const socket = await openRawSocket(`${sandbox.wsUrl}?api_key=${ECHO.apiKey}${vsn}`);
      expect(await socket.closed).toBe(1011);
      expect(sandbox.dev.state().sockets).toEqual([]);
    },
  );

  it('of another path is 404, and of no WebSocket 400, both in the envelope', async () => {
    const { sandbox } = await sandboxLab();
    const elsewhere = await refusedUpgrade(`${sandbox.wsUrl}/more?api_key=${ECHO.apiKey}&${VSN}`);
    expect([elsewhere.status, JSON.parse(elsewhere.body)]).toMatchObject([404, { error: { code: 'not_found' } }]);
    const path = `/api/v1/socket/websocket?api_key=${ECHO.apiKey}&${VSN}`;
    const plain = await callRest(sandbox.restUrl, 'GET', path, null);
    expect([plain.status, plain.body]).toMatchObject([404, { error: { code: 'not_found' } }]);
    const handshake = [
      `GET ${path} HTTP/1.1`,
      'Host: sandbox',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: short',
      'Sec-WebSocket-Version: 13',
    ];
    const bad = await exchange(sandbox.port, `${handshake.join('\r\n')}\r\n\r\n`);
    expect(bad).toMatch(/^HTTP\/1.1 400 /);
    expect(bad).toContain('"code":"bad_request"');
  });

  it('with an unknown conflict policy is refused with 400', async () => {
    const { sandbox } = await sandboxLab();
    const url = `${sandbox.wsUrl}?api_key=${ECHO.apiKey}&${VSN}&on_conflict=fight`;
    const refused = await refusedUpgrade(url);
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([400, { error: { code: 'invalid_on_conflict' } }]);
  });
});

describe('a second connection of an agent', () => {
  it.each([[''], ['&on_conflict=supersede']])(
    'takes over (%j): the first is told, closed with 1000, and gets no more',
    async (policy) => {
      const { sandbox, echo, room, say } = await sandboxLab();
      const roomId = await room(ECHO.id);
      const first = await echo.socket();
      await first.join(`agent_control:${ECHO.id}`);
      await first.join(`chat_room:${roomId}`);
      const second = await echo.socket(policy);
      const notice = supersedeShape.parse(await first.push('supersede'));
      expect(notice.target_socket_id).toBe(`agent_socket:${ECHO.id}`);
      expect(await first.closed).toBe(1000);
      await second.join(`chat_room:${roomId}`);
      await say(roomId, 'hello', ECHO.id);
      await second.push('message_created');
      expect(first.received.some(([, , , event]) => event === 'message_created')).toBe(false);
      expect(sandbox.dev.state().sockets).toHaveLength(1);
    },
  );

  it('under reject is refused with 409, and the first goes on undisturbed', async () => {
    const { sandbox, echo, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const first = await echo.socket();
    await first.join(`chat_room:${roomId}`);
    const refused = await refusedUpgrade(`${sandbox.wsUrl}?api_key=${ECHO.apiKey}&${VSN}&on_conflict=reject`);
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([409, { error: { code: 'connection_conflict' } }]);
    await say(roomId, 'hello', ECHO.id);
    await first.push('message_created');
  });

  it('under reject is accepted as soon as the first has been dropped', async () => {
    const { echo, sandbox } = await sandboxLab();
    const first = await echo.socket();
    first.drop();
    await expect.poll(() => sandbox.dev.state().sockets.length).toBe(0);
    const second = await echo.socket('&on_conflict=reject');
    await second.settled();
  });

  it('is as good as the first for people, who have any number', async () => {
    const { sandbox, user } = await sandboxLab();
    const sockets = [await user.socket(), await user.socket(), await user.socket('&on_conflict=reject')];
    await Promise.all(sockets.map((socket) => socket.settled()));
    expect(sandbox.dev.state().sockets).toHaveLength(3);
  });

  it('waits after a take-over while the cooldown is switched on', async () => {
    const clock = createManualClock();
    const { sandbox, echo } = await sandboxLab({ clock });
    sandbox.dev.set({ takeoverCooldownMs: 30_000 });
    await echo.socket();
    await echo.socket();
    await clock.advance(3_500);
    const refused = await refusedUpgrade(`${sandbox.wsUrl}?api_key=${ECHO.apiKey}&${VSN}&on_conflict=supersede`);
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body)).toMatchObject({ error: { code: 'too_many_requests', retry_after: 27 } });
    expect(refused.headers['retry-after']).toBe('27');
    await clock.advance(26_500);
    await (await echo.socket()).settled();
  });
});

import { createHash, createHmac, generateKeyPairSync, timingSafeEqual, type KeyObject } from 'node:crypto';
import { SignJWT, exportJWK, exportSPKI, type JWK } from 'jose';
import { MockAgent, type Dispatcher } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { createKeyRing } from '../../../bridges/a2a/auth/api-keys.js';
import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { message, type Answer } from '../../support/a2a/client.js';
import { a2aLab, KEY, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';

const NOW = { returnImmediately: true };
let lab: A2ALab;
afterEach(() => lab.close());

const open = async (auth: A2AOptionsInput['auth'], more: A2AOptionsInput = {}, dispatcher?: Dispatcher) => {
  lab = await a2aLab({
    options: { ...more, ...(auth && { auth }) },
    client: { headers: {} },
    ports: { ...(dispatcher && { dispatcher }) },
  });
};
const call = (headers: Record<string, string>) => lab.client.rpc('helper', 'ListTasks', {}, { headers });

describe('API keys', () => {
  it('A-080 are taken from the header or as bearer; several of one name are one principal', async () => {
    await open({
      apiKeys: [
        { name: 'alpha', key: KEY },
        { name: 'alpha', sha256: createHash('sha256').update('second-key').digest('hex') },
        { name: 'old', key: 'expired-key', expires: '2025-12-31T23:59:59Z' },
      ],
    });
    for (const headers of [{ 'x-api-key': KEY }, { authorization: `Bearer ${KEY}` }, { 'x-api-key': 'second-key' }]) {
      expect((await call(headers)).status).toBe(200);
    }
    const sent = await lab.client.rpc('helper', 'SendMessage', message('x', {}, NOW), {
      headers: { 'x-api-key': KEY },
    });
    const { id } = sent.body.result.task;
    const other = await lab.client.rpc('helper', 'GetTask', { id }, { headers: { 'x-api-key': 'second-key' } });
    expect(other.body.result.id).toBe(id);
    const refusals = [
      await call({}),
      await call({ 'x-api-key': 'wrong' }),
      await call({ 'x-api-key': '' }),
      await call({ 'x-api-key': 'expired-key' }),
      await call({ authorization: 'Basic abc' }),
      await call({ authorization: 'Bearer wrong' }),
    ];
    for (const answer of refusals) {
      expect([answer.status, answer.body.error.data[0]?.reason]).toEqual([401, 'UNAUTHENTICATED']);
      expect(answer.headers.get('www-authenticate')).toContain('Bearer realm="a2a"');
    }
    expect(new Set(refusals.slice(1).map(({ text }) => text)).size).toBe(1);
  });

  it('A-080 a header that comes twice is refused', async () => {
    await open({ apiKeys: [{ name: 'alpha', key: KEY }] });
    const { default: http } = await import('node:http');
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const request = http.request(`${lab.client.base}/agents/helper`, { method: 'POST' }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.setHeader('x-api-key', [KEY, KEY]);
      request.on('error', reject);
      request.end('{}');
    });
    expect(status).toBe(401);
  });

  it('A-081 are compared as digests, every one of them for every key that is presented', () => {
    const compared: [number, number][] = [];
    const ring = createKeyRing(
      [
        { name: 'a', key: 'one' },
        { name: 'b', key: 'two', expires: '2025-01-01T00:00:00Z' },
        { name: 'c', sha256: createHash('sha256').update('a far longer key than the others').digest('hex') },
      ],
      createManualClock(),
      (a, b) => {
        compared.push([a.length, b.length]);
        return timingSafeEqual(a, b);
      },
    );
    const presented = ['one', 'two', 'three', 'on', '', 'x'.repeat(10_000), 'a far longer key than the others'];
    for (const key of presented) {
      compared.length = 0;
      const found = { one: 'key:a', 'a far longer key than the others': 'key:c' }[key];
      expect([key, ring.find(key)?.id]).toEqual([key, found]);
      expect([key, compared]).toEqual([key, Array.from({ length: 3 }, () => [32, 32])]);
    }
    expect(ring.names).toEqual(new Set(['a', 'b', 'c']));
  });
});

describe('bearer tokens', () => {
  const ISSUER = 'https://id.example.test';
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const jwk = async (key: KeyObject, kid: string): Promise<JWK> => ({ ...(await exportJWK(key)), kid, alg: 'ES256' });
  const NOW_S = Date.UTC(2026, 0, 1) / 1_000;
  const token = (claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}, key = pair.privateKey) =>
    new SignJWT({ sub: 'amy', iss: ISSUER, aud: 'gateway', exp: NOW_S + 600, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1', ...header })
      .sign(key);

  interface Served {
    keys: JWK[];
    status: number;
    fetches: number;
  }
  const openJwt = async (served: Partial<Served> = {}) => {
    const state: Served = { keys: [await jwk(pair.publicKey, 'k1')], status: 200, fetches: 0, ...served };
    const agent = new MockAgent();
    agent.disableNetConnect();
    agent
      .get(ISSUER)
      .intercept({ path: '/jwks' })
      .reply(() => {
        state.fetches += 1;
        return { statusCode: state.status, data: JSON.stringify({ keys: state.keys }) };
      })
      .persist();
    await open(
      {
        jwt: [
          {
            issuer: ISSUER,
            audience: 'gateway',
            jwksUrl: `${ISSUER}/jwks`,
            algorithms: ['ES256', 'RS256'],
            peersClaim: 'peers',
          },
        ],
      },
      {},
      agent,
    );
    return state;
  };
  const status = async (bearer: string) => (await call({ authorization: `Bearer ${bearer}` })).status;

  it('A-082 a right token names a principal; anything else is refused alike', async () => {
    await openJwt();
    expect(await status(await token({ peers: '*' }))).toBe(200);
    const spki = await exportSPKI(pair.publicKey);
    const b64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = { sub: 'amy', iss: ISSUER, aud: 'gateway', exp: NOW_S + 600 };
    const forged = `${b64({ alg: 'HS256', kid: 'k1' })}.${b64(claims)}`;
    const wrong = [
      await token({}, {}, other.privateKey),
      `${b64({ alg: 'none' })}.${b64(claims)}.`,
      `${forged}.${createHmac('sha256', spki).update(forged).digest('base64url')}`,
      await token({ iss: 'https://evil.example.test' }),
      await token({ aud: 'somebody-else' }),
      await token({ exp: NOW_S - 60 }),
      await token({ exp: undefined }),
      await token({ nbf: NOW_S + 120 }),
      await token({ sub: undefined }),
      await token({ pad: 'x'.repeat(9_000) }),
      'not-a-token',
    ];
    for (const bearer of wrong) {
      const answer = await call({ authorization: `Bearer ${bearer}` });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        401,
        'Bearer realm="a2a", error="invalid_token"',
      ]);
    }
    expect(await status(await token({ exp: NOW_S - 20, peers: '*' }))).toBe(200);
  });

  it('A-082 a token without a key id is refused where there are several keys', async () => {
    await openJwt({
      keys: [await jwk(pair.publicKey, 'k1'), { ...(await exportJWK(rsa.publicKey)), kid: 'k2', alg: 'RS256' }],
    });
    expect(await status(await token({ peers: '*' }, { kid: undefined }))).toBe(401);
  });

  it('A-083 the key set is cached, fetched anew at most once a minute for an unknown key, and kept when its server fails', async () => {
    const served = await openJwt();
    expect(await status(await token({ peers: '*' }))).toBe(200);
    expect(await status(await token({ peers: '*' }))).toBe(200);
    expect(served.fetches).toBe(1);
    const fresh = () => token({ peers: '*' }, { kid: 'k9' }, other.privateKey);
    expect(await status(await fresh())).toBe(401);
    expect(served.fetches).toBe(1);
    served.keys.push(await jwk(other.publicKey, 'k9'));
    await lab.clock.advance(60_000);
    expect(await status(await fresh())).toBe(200);
    expect(served.fetches).toBe(2);
    served.status = 500;
    await lab.clock.advance(700_000);
    expect(await status(await token({ peers: '*', exp: NOW_S + 9_999 }))).toBe(200);
    expect(served.fetches).toBe(3);
  });

  it('A-083 an http key set is refused off loopback', async () => {
    lab = await a2aLab();
    await expect(
      a2aLab({
        options: { auth: { jwt: [{ issuer: ISSUER, audience: 'x', jwksUrl: 'http://id.example.test/jwks' }] } },
      }),
    ).rejects.toThrow('jwks_url must be https');
  });
});

describe('what a principal may do', () => {
  const operations: Record<string, { scope: string; method: string; params: object }> = {
    send: { scope: 'a2a.send', method: 'SendMessage', params: message('x', {}, NOW) },
    stream: { scope: 'a2a.send', method: 'SendStreamingMessage', params: message(' ') },
    get: { scope: 'a2a.read', method: 'GetTask', params: { id: 'x' } },
    list: { scope: 'a2a.read', method: 'ListTasks', params: {} },
    subscribe: { scope: 'a2a.read', method: 'SubscribeToTask', params: { id: 'x' } },
    cancel: { scope: 'a2a.cancel', method: 'CancelTask', params: { id: 'x' } },
    push: { scope: 'a2a.push', method: 'ListTaskPushNotificationConfigs', params: { taskId: 'x' } },
    card: { scope: 'a2a.card', method: 'GetExtendedAgentCard', params: {} },
  };

  it('A-084 each operation wants its scope, and a refusal names it', async () => {
    const scopes = ['a2a.read', 'a2a.send', 'a2a.cancel', 'a2a.push', 'a2a.card'] as const;
    await open({
      apiKeys: scopes.flatMap((scope) => [
        { name: `only ${scope}`, key: `only-${scope}`, scopes: [scope] },
        { name: `all but ${scope}`, key: `but-${scope}`, scopes: scopes.filter((one) => one !== scope) },
      ]),
    });
    for (const { scope, method, params } of Object.values(operations)) {
      const without = await lab.client.rpc('helper', method, params, { headers: { 'x-api-key': `but-${scope}` } });
      expect([method, without.status, without.body.error.data[0]]).toMatchObject([
        method,
        403,
        { reason: 'PERMISSION_DENIED', metadata: { scope } },
      ]);
      const withScope = await lab.client.rpc('helper', method, params, { headers: { 'x-api-key': `only-${scope}` } });
      expect([method, withScope.status]).toEqual([method, 200]);
    }
  });

  it('A-085 a peer it may not use answers exactly like one that does not exist', async () => {
    await open({ apiKeys: [{ name: 'a', key: KEY, peers: ['weather*'] }] });
    const headers = { 'x-api-key': KEY };
    const hidden = await lab.client.rpc('helper', 'ListTasks', {}, { headers });
    const unknown = await lab.client.rpc('nobody', 'ListTasks', {}, { headers });
    expect(hidden.status).toBe(404);
    expect(hidden.text.replaceAll('helper', 'nobody')).toBe(unknown.text);
    const peers = await lab.client.request('GET', '/peers', undefined, { headers });
    expect(
      (peers.body as unknown as { count: number; peers: { slug: string }[] }).peers.map(({ slug }) => slug),
    ).toEqual(['weather-bot']);
  });

  it('A-086 A-088 tasks of somebody else, or asked for at another peer, do not exist', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('x', { contextId: 'ctx-a1' });
    await lab.posted(1);
    const beta = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    const ask = async (id: string): Promise<Answer[]> => [
      await beta.rpc('helper', 'GetTask', { id }),
      await beta.rpc('helper', 'CancelTask', { id }),
      await beta.rpc('helper', 'SubscribeToTask', { id }),
      await beta.rpc('helper', 'SendMessage', message('more', { taskId: id, contextId: 'ctx-a1' })),
      await beta.request('GET', `/agents/helper/tasks/${id}`),
      await beta.request('POST', `/agents/helper/tasks/${id}:cancel`),
    ];
    const shape = ({ status, text, headers }: Answer, id: string) => [
      status,
      text.replaceAll(id, 'ID'),
      [...headers.keys()].sort(),
    ];
    const [foreign, unknown] = [await ask(taskId), await ask('00000000-0000-4000-8000-000000000000')];
    for (const [at, answer] of foreign.entries()) {
      expect(shape(answer, taskId)).toEqual(shape(unknown[at]!, '00000000-0000-4000-8000-000000000000'));
    }
    expect(foreign[0]?.body.error.code).toBe(-32001);
    expect((await beta.rpc('helper', 'ListTasks', { contextId: 'ctx-a1' })).body.result.totalSize).toBe(0);
    expect((await lab.client.rpc('weather-bot', 'GetTask', { id: taskId })).body.error.code).toBe(-32001);
    expect((await lab.get(taskId)).status.state).toBe('TASK_STATE_WORKING');
  });

  it('A-087 the same context id of two principals is two rooms, and nothing of one reaches the other', async () => {
    lab = await a2aLab();
    await lab.submit('alpha secret', { contextId: 'shared' });
    await lab.posted(1);
    const beta = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    await beta.rpc('helper', 'SendMessage', message('beta secret', { contextId: 'shared' }, NOW));
    await lab.posted(2);
    const rooms = [...lab.rooms.rooms.values()].map(({ rows }) => JSON.stringify(rows));
    expect(rooms).toHaveLength(2);
    expect(rooms.map((rows) => [rows.includes('alpha secret'), rows.includes('beta secret')])).toEqual([
      [true, false],
      [false, true],
    ]);
  });

  it('A-090 no credential of a caller reaches a room or a log line', async () => {
    lab = await a2aLab();
    await lab.submit('x');
    await lab.posted(1);
    await call({ 'x-api-key': 'canary-wrong-key' });
    const everything = JSON.stringify([lab.rooms.calls, lab.lines]);
    expect(everything).not.toContain(KEY);
    expect(everything).not.toContain('canary');
  });

  it.each(['x-forwarded-for', 'forwarded'])(
    'A-006 a caller for whom a proxy on this machine speaks (%s) is not one of this machine',
    async (name) => {
      await open({ anonymous: 'loopback' });
      const nobody = lab.client.as({ headers: {} });
      expect((await nobody.rpc('helper', 'ListTasks', {})).status).toBe(200);
      const through = lab.client.as({ headers: { [name]: 'for=203.0.113.9' } });
      expect((await through.rpc('helper', 'ListTasks', {})).status).toBe(401);
    },
  );

  it('A-092 tasks of the anonymous time are not a key holder’s, nor the other way', async () => {
    await open({ anonymous: 'always' });
    const sent = await lab.client.rpc('helper', 'SendMessage', message('x', {}, NOW));
    const { id } = sent.body.result.task;
    const keyed = await lab.restarted({
      options: { auth: { anonymous: 'always', apiKeys: [{ name: 'a', key: KEY }] } },
    });
    const mine = { headers: { 'x-api-key': KEY } };
    expect((await keyed.client.rpc('helper', 'GetTask', { id }, mine)).body.error.code).toBe(-32001);
    expect((await keyed.client.rpc('helper', 'GetTask', { id })).body.result.id).toBe(id);
    const own = await keyed.client.rpc('helper', 'SendMessage', message('x', {}, NOW), mine);
    expect((await keyed.client.rpc('helper', 'GetTask', { id: own.body.result.task.id })).body.error.code).toBe(-32001);
    await keyed.close();
  });
});

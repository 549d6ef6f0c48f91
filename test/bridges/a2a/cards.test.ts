import { AgentCard } from '@a2a-js/sdk';
import { afterEach, describe, expect, it } from 'vitest';
import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { FakeRooms, GATEWAY, HELPER } from '../../support/a2a/fake-rooms.js';
import { a2aLab, KEY, type A2ALab } from '../../support/a2a/lab.js';

interface Card {
  readonly [field: string]: unknown;
  readonly version: string;
  readonly supportedInterfaces: readonly { url: string; protocolBinding: string; protocolVersion: string }[];
  readonly capabilities: Record<string, unknown>;
}

const PATH = '/agents/helper/.well-known/agent-card.json';

describe('agent cards', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const open = async (options: A2AOptionsInput = {}) => {
    lab = await a2aLab({ options });
  };
  const card = async (path = PATH, version: string | null = null, headers: Record<string, string> = {}) => {
    const answer = await lab.client.request('GET', path, undefined, { version, headers });
    return { ...answer, card: answer.body as unknown as Card };
  };

  it('A-040 has every required field of 1.0 and goes through the codec without loss', async () => {
    await open();
    const { card: json } = await card();
    expect(Object.keys(json)).toEqual(
      expect.arrayContaining([
        'name',
        'description',
        'version',
        'supportedInterfaces',
        'capabilities',
        'defaultInputModes',
        'defaultOutputModes',
        'skills',
      ]),
    );
    expect(AgentCard.toJSON(AgentCard.fromJSON(json))).toEqual(json);
  });

  it('A-041 shows no internal form, host, Band id or handle', async () => {
    await open({ publicUrl: 'https://gw.example.test/a2a/' });
    for (const path of [PATH, '/agents/helper/.well-known/agent.json']) {
      const { text } = await card(path);
      for (const secret of ['$case', '127.0.0.1', 'localhost', HELPER.id, GATEWAY.id, 'jane/helper']) {
        expect(text).not.toContain(secret);
      }
      expect(text).toContain('https://gw.example.test/a2a/agents/helper');
    }
  });

  it('A-042 lists exactly what is served, with the version that answers there', async () => {
    await open();
    const { card: json } = await card();
    expect(json.supportedInterfaces.map((one) => [one.protocolBinding, one.protocolVersion])).toEqual([
      ['JSONRPC', '1.0'],
      ['HTTP+JSON', '1.0'],
      ['JSONRPC', '0.3'],
    ]);
    for (const { url, protocolBinding, protocolVersion } of json.supportedInterfaces) {
      const { pathname } = new URL(url);
      const answer =
        protocolBinding === 'JSONRPC'
          ? await lab.client.request(
              'POST',
              pathname,
              {
                jsonrpc: '2.0',
                id: 1,
                method: protocolVersion === '1.0' ? 'GetTask' : 'tasks/get',
                params: { id: 'x' },
              },
              { version: protocolVersion },
            )
          : await lab.client.request('GET', `${pathname}/tasks/x`, undefined, { version: protocolVersion });
      expect(answer.text).toContain('TASK_NOT_FOUND');
    }
  });

  it('A-043 takes its address from a trusted proxy, and from nobody else', async () => {
    const forwarded = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'gw.example.test',
      'x-forwarded-prefix': '/band',
    };
    await open({ trustProxy: ['127.0.0.0/8'] });
    expect((await card(PATH, null, forwarded)).card.supportedInterfaces[0]?.url).toBe(
      'https://gw.example.test/band/agents/helper',
    );
    await lab.close();
    await open({ trustProxy: ['10.0.0.1'] });
    expect((await card(PATH, null, forwarded)).card.supportedInterfaces[0]?.url).toBe(
      `${lab.adapter.url}/agents/helper`,
    );
    await lab.close();
    await open({ trustProxy: ['127.0.0.1'], publicUrl: 'https://fixed.example.test' });
    expect((await card(PATH, null, forwarded)).card.supportedInterfaces[0]?.url).toBe(
      'https://fixed.example.test/agents/helper',
    );
  });

  it('A-044 each version has its card, none means 1.0, and the agent’s address shows it too', async () => {
    await open();
    const plain = await card();
    expect((await card(PATH, '1.0')).text).toBe(plain.text);
    expect((await card('/agents/helper')).text).toBe(plain.text);
    expect((await card(`/agents/${HELPER.id}`)).text).toBe(plain.text);
    expect(plain.headers.get('vary')).toBe('A2A-Version, Accept');
    const older = await card(PATH, '0.3');
    expect(older.card).toMatchObject({
      protocolVersion: '0.3.0',
      preferredTransport: 'JSONRPC',
      supportsAuthenticatedExtendedCard: true,
      url: `${lab.adapter.url}/agents/helper`,
    });
    expect((await card('/agents/helper/.well-known/agent.json')).text).toBe(older.text);
    expect((await card(PATH, '7.0')).status).toBe(400);
  });

  it('A-045 caches can ask whether it changed, also after a restart', async () => {
    await open();
    const first = await card();
    const etag = first.headers.get('etag')!;
    const modified = first.headers.get('last-modified')!;
    expect(first.headers.get('cache-control')).toBe('public, max-age=300');
    await lab.clock.advance(3_600_000);
    const again = await lab.restarted({ options: { publicUrl: lab.adapter.url! } });
    const second = await again.client.request('GET', PATH, undefined, { version: null });
    expect([second.headers.get('etag'), second.headers.get('last-modified')]).toEqual([etag, modified]);
    await again.close();
    for (const headers of [
      { 'if-none-match': etag },
      { 'if-none-match': `"other", W/${etag}` },
      { 'if-modified-since': modified },
    ]) {
      const unchanged = await lab.client.request('GET', PATH, undefined, { version: null, headers });
      expect([unchanged.status, unchanged.text]).toEqual([304, '']);
    }
    expect((await card(PATH, null, { 'if-none-match': '"other"', 'if-modified-since': modified })).status).toBe(200);
    const head = await lab.client.request('HEAD', PATH, undefined, { version: null });
    expect([head.status, head.text, head.headers.get('etag')]).toEqual([200, '', etag]);
  });

  it('A-046 another description makes another tag and a higher version', async () => {
    const rooms = new FakeRooms([HELPER]);
    lab = await a2aLab({ rooms });
    const before = await card();
    rooms.peers = [{ ...HELPER, description: 'Answers better questions' }];
    await lab.clock.advance(60_000);
    await lab.until(async () => (await card()).headers.get('etag') !== before.headers.get('etag'));
    const after = await card();
    expect([before.card.version, after.card.version]).toEqual(['1.0.0', '1.0.1']);
  });

  it('A-047 names the configured credentials in each dialect’s own shape, and none when anonymous', async () => {
    await open({
      auth: {
        apiKeys: [{ name: 'a', key: KEY }],
        apiKeyHeader: 'X-Gateway-Key',
        jwt: [{ issuer: 'https://id.example.test', audience: 'x', jwksUrl: 'https://id.example.test/jwks' }],
      },
    });
    const { card: newer } = await card();
    expect(newer['securitySchemes']).toEqual({
      apiKey: { apiKeySecurityScheme: { location: 'header', name: 'X-Gateway-Key' } },
      bearerKey: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
      jwt: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } },
    });
    expect(newer['securityRequirements']).toEqual([
      { schemes: { apiKey: {} } },
      { schemes: { bearerKey: {} } },
      { schemes: { jwt: {} } },
    ]);
    const { card: older } = await card(PATH, '0.3');
    expect(older['securitySchemes']).toEqual({
      apiKey: { type: 'apiKey', in: 'header', name: 'X-Gateway-Key' },
      bearerKey: { type: 'http', scheme: 'bearer' },
      jwt: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    });
    expect(older['security']).toEqual([{ apiKey: [] }, { bearerKey: [] }, { jwt: [] }]);
    await lab.close();
    await open({ auth: { anonymous: 'loopback' } });
    const { card: anonymous } = await card();
    expect([anonymous['securitySchemes'], anonymous['securityRequirements']]).toEqual([undefined, undefined]);
  });

  it('A-048 says of push and the extended card what the operations do', async () => {
    await open();
    const { card: json } = await card();
    expect(json.capabilities).toEqual({ streaming: true, pushNotifications: false, extendedAgentCard: true });
    const push = await lab.client.rpc('helper', 'CreateTaskPushNotificationConfig', {
      taskId: 'x',
      url: 'https://a.example',
    });
    expect(push.body.error.code).toBe(-32003);
    await lab.close();
    await open({ extendedCard: 'off' });
    expect((await card()).card.capabilities['extendedAgentCard']).toBe(false);
    expect((await lab.client.rpc('helper', 'GetExtendedAgentCard', {})).body.error.code).toBe(-32007);
  });

  it('A-049 the extended card needs a principal, agrees in all forms and is not stored', async () => {
    await open({ limits: { ratePerMin: 77 } });
    const rpc = await lab.client.rpc('helper', 'GetExtendedAgentCard', undefined);
    const rest = await lab.client.request('GET', '/agents/helper/extendedAgentCard');
    const older = await lab.client.rpc('helper', 'agent/getAuthenticatedExtendedCard', undefined, { version: null });
    expect(rest.body).toEqual(rpc.body.result);
    for (const answer of [rpc, rest, older]) {
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.text).toContain('@jane/helper');
    }
    const { capabilities } = rpc.body.result as unknown as { capabilities: { extensions: object[] } };
    expect(capabilities.extensions).toMatchObject([
      { params: { requestsPerMinute: 77, bodyBytes: 1_048_576, openTasks: 200, streams: 100 } },
    ]);
    expect((older.body.result as unknown as { protocolVersion: string }).protocolVersion).toMatch(/^0\.3/);
    await lab.close();
    await open({ auth: { apiKeys: [{ name: 'a', key: KEY }], anonymous: 'always' } });
    const nobody = lab.client.as({ headers: {} });
    expect((await nobody.request('GET', '/agents/helper/extendedAgentCard', undefined, { headers: {} })).status).toBe(
      401,
    );
  });

  it('A-054 cards may be for known callers only', async () => {
    await open({ cardsPublic: false });
    const nobody = await lab.client.as({ headers: {} }).request('GET', PATH, undefined, { headers: {} });
    expect(nobody.status).toBe(401);
    const known = await card();
    expect([known.status, known.headers.get('cache-control')]).toEqual([200, 'private, max-age=300']);
  });

  it('a peer’s card may be worded by the operator, and is never without a description', async () => {
    const rooms = new FakeRooms([{ ...HELPER, description: null }]);
    lab = await a2aLab({ rooms });
    expect((await card()).card['description']).toBe('Helper answers requests through this gateway.');
    await lab.close();
    lab = await a2aLab({
      rooms,
      options: { peers: { overrides: { helper: { name: 'Desk', description: 'Helps', inputModes: ['text/*'] } } } },
    });
    expect((await card()).card).toMatchObject({ name: 'Desk', description: 'Helps', defaultInputModes: ['text/*'] });
  });
});

import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { A2AGatewayAdapter, a2aBridge, a2aSettings, type A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { RuntimeError, ValidationError } from '../../../src/base/band-errors.js';
import type { HttpListener } from '../../../src/base/http-mount.js';
import { silentLogger } from '../../../src/base/log.js';
import { noMetrics } from '../../../src/base/metrics.js';
import { createRedactor } from '../../../src/base/redact.js';
import { createPlatformConnection } from '../../../src/core/platform-connection.js';
import { optionsFromSnake } from '../../../src/config/setting.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { GATEWAY } from '../../support/a2a/fake-rooms.js';
import { a2aLab, KEY, type A2ALab } from '../../support/a2a/lab.js';

let lab: A2ALab | null = null;
afterEach(async () => {
  await lab?.close();
  lab = null;
});

describe('the adapter’s construction', () => {
  it('A-001 takes no credential of Band, and is not there before the connection is', async () => {
    for (const name of ['apiKey', 'restUrl', 'wsUrl']) {
      expect(() => new A2AGatewayAdapter({ [name]: 'x' })).toThrow(TypeError);
    }
    const adapter = new A2AGatewayAdapter();
    const early = 'platform connection not available yet; the runtime injects it when the Agent starts';
    expect(() => adapter.buildRestClient()).toThrow(early);
    await expect(adapter.onStarted('Gateway', 'x')).rejects.toThrow(early);
    expect(() => adapter.gateway).toThrow(RuntimeError);
    expect(adapter.url).toBeNull();
  });

  it('A-001 calls the address it was given with the key it was given', async () => {
    const asked: (string | undefined)[][] = [];
    const platform = createHttpServer((request, response) => {
      asked.push([request.url, request.headers['x-api-key']?.toString()]);
      response.writeHead(503).end();
    }).listen(0, '127.0.0.1');
    await once(platform, 'listening');
    const { port } = platform.address() as AddressInfo;
    const adapter = new A2AGatewayAdapter(
      { port: 0, store: 'memory', auth: { anonymous: 'loopback' } },
      { clock: createManualClock() },
    );
    adapter.platform = createPlatformConnection({
      agentId: GATEWAY.id,
      apiKey: 'band_a_injected',
      restUrl: `http://127.0.0.1:${port}`,
      wsUrl: `ws://127.0.0.1:${port}`,
    });
    await adapter
      .buildRestClient({})
      .getMe()
      .catch(() => undefined);
    platform.closeAllConnections();
    platform.close();
    expect(asked[0]).toEqual(['/api/v1/agent/me', 'band_a_injected']);
  });

  it('A-002 has the documented defaults', () => {
    const { options } = new A2AGatewayAdapter();
    expect(options).toMatchObject({
      host: '127.0.0.1',
      responseTimeoutMs: 300_000,
      completion: 'auto',
      settleMs: 300,
      holdMaxMs: 60_000,
      others: 'update',
      cancelNotice: 'event',
      followup: 'append',
      laneQueue: 8,
      directives: true,
      resultIn: 'artifact',
      maxMessageChars: 200_000,
      versions: ['1.0', '0.3'],
      missingVersion: '0.3',
      peers: { include: ['*'], exclude: [], types: ['Agent'], refreshSeconds: 60 },
      auth: { anonymous: 'never', apiKeyHeader: 'X-API-Key' },
      limits: { bodyBytes: 1_048_576, ratePerMin: 120, burst: 60, ipRatePerMin: 600, openTasks: 1_000 },
      tasks: { ttlSeconds: 86_400, retentionSeconds: 604_800 },
      stream: { keepaliveMs: 15_000, bufferBytes: 1_048_576, maxAgeSeconds: 3_600 },
      idempotency: { windowSeconds: 86_400 },
      dispatchDeadlineMs: 30_000,
      shutdownMs: 10_000,
    });
  });

  it.each([0, -1])('A-002 a response timeout of %d is refused', (responseTimeoutMs) => {
    expect(() => new A2AGatewayAdapter({ responseTimeoutMs })).toThrow(/positive or null/);
  });

  it('A-002 null waits without end, unknown options and fields are refused by their names', () => {
    expect(new A2AGatewayAdapter({ responseTimeoutMs: null }).options.responseTimeoutMs).toBeNull();
    expect(() => new A2AGatewayAdapter({ colour: 'red' } as A2AOptionsInput)).toThrow(
      "got an unexpected keyword argument 'colour'",
    );
    const nested = { limits: { colours: 5 } } as unknown as A2AOptionsInput;
    expect(() => new A2AGatewayAdapter(nested)).toThrow(ValidationError);
    expect(() => new A2AGatewayAdapter(nested)).toThrow(/Extra inputs are not permitted/);
  });

  it('A-010 judges no turns and supports no emit kinds and no capabilities', () => {
    class Seen extends A2AGatewayAdapter {
      get judges(): boolean {
        return this.judgesTurns;
      }
    }
    expect(new Seen().judges).toBe(false);
    expect([A2AGatewayAdapter.SUPPORTED_EMIT.size, A2AGatewayAdapter.SUPPORTED_CAPABILITIES.size]).toEqual([0, 0]);
    expect(() => new A2AGatewayAdapter({ emit: 'thoughts' } as A2AOptionsInput)).toThrow(/emit kind/);
  });

  it('A-011 shows no secret, however it is printed, logged or thrown', async () => {
    lab = await a2aLab();
    await lab.client.rpc('helper', 'ListTasks', {}, { headers: { 'x-api-key': KEY } });
    const shown = [
      Object.prototype.toString.call(lab.adapter),
      JSON.stringify(lab.adapter.platform),
      inspect(lab.adapter, { depth: 6 }),
      JSON.stringify(lab.lines),
    ];
    for (const text of shown) expect(text).not.toContain('band_a_canary');
    expect([shown[0], shown[3]].join()).not.toContain(KEY);
  });

  it('A-004 the reference’s names are aliases of ours', () => {
    const { tree } = a2aSettings;
    expect([tree.port.aliases, tree.public_url.aliases]).toEqual([['GATEWAY_PORT'], ['GATEWAY_URL']]);
    expect(optionsFromSnake(a2aSettings, { port: '9000' }).port).toBe(9_000);
  });
});

describe('the start', () => {
  it('A-003 public_url loses trailing slashes; unset it names the real port', async () => {
    lab = await a2aLab({ options: { publicUrl: 'https://gw.example.test/x//' } });
    expect(lab.adapter.url).toBe('https://gw.example.test/x');
    await lab.close();
    lab = await a2aLab();
    expect(lab.adapter.url).toBe(`http://localhost:${lab.adapter.gateway.port}`);
  });

  it.each<[string, A2AOptionsInput, RegExp]>([
    ['no way in', { auth: {} }, /a2a\.auth/],
    ['anonymous loopback off loopback', { host: '0.0.0.0', auth: { anonymous: 'loopback' } }, /a2a\.auth\.anonymous/],
    ['a public address without TLS', { publicUrl: 'http://gw.example.test' }, /a2a\.public_url/],
    ['a proxy that is no address', { trustProxy: ['proxy.example'] }, /a2a\.trust_proxy/],
    ['one slug for two', { peers: { slugs: { a: 'x', b: 'x' } } }, /a2a\.peers\.slugs/],
  ])('A-005 A-006 is refused for %s, in one sentence that names the setting', async (_name, options, sentence) => {
    // Were the port opened first, it would be the port that is complained of.
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const refused = await a2aLab({ options: { port, ...options } }).catch((error: unknown) => error as Error);
    taken.close();
    expect(refused).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringMatching(sentence) as string });
    expect((refused as Error).message).toMatch(/^[^\n]+\.$/);
  });

  it('A-006 anonymous callers are let in on loopback, or everywhere with a warning', async () => {
    lab = await a2aLab({ options: { auth: { anonymous: 'loopback' } }, client: { headers: {} } });
    expect((await lab.client.rpc('helper', 'ListTasks', {})).status).toBe(200);
    const proxied = { headers: { 'x-forwarded-for': '203.0.113.9' } };
    expect((await lab.client.rpc('helper', 'ListTasks', {}, proxied)).status).toBe(401);
    await lab.close();
    lab = await a2aLab({ options: { auth: { anonymous: 'always' } } });
    expect(lab.lines.some(({ level, msg }) => level === 40 && String(msg).includes('anonymous is always'))).toBe(true);
  });

  it('A-008 a port in use fails with its address, and a second start without a stop is refused', async () => {
    lab = await a2aLab();
    const port = lab.adapter.gateway.port!;
    await expect(a2aLab({ options: { port } })).rejects.toThrow(`127.0.0.1:${port} is already in use`);
    await expect(lab.adapter.onStarted('Gateway', 'x')).rejects.toThrow('already started');
  });

  it('A-009 on the common server the same routes are mounted and no port is opened', async () => {
    const mounted = new Map<string, HttpListener>();
    const http = {
      publicUrl: 'https://gw.example.test',
      mount: (prefix: string, listener: HttpListener) => {
        mounted.set(prefix, listener);
        return () => mounted.delete(prefix);
      },
    };
    lab = await a2aLab({ options: { port: 'shared' }, ports: { http } });
    expect([...mounted.keys()]).toEqual(['/agents', '/peers']);
    expect([lab.adapter.gateway.port, lab.adapter.url]).toEqual([null, 'https://gw.example.test']);
    await lab.close();
    expect(mounted.size).toBe(0);
  });

  it('the service hears what keeps an entry from being ready, and what its settings are worth', async () => {
    const clock = createManualClock();
    const entry = { name: 'front', options: optionsFromSnake(a2aSettings, { auth: { anonymous: 'always' } }) };
    const bridge = await a2aBridge.open(entry, {
      clock,
      log: silentLogger,
      metrics: noMetrics,
      redactor: createRedactor(),
      http: { publicUrl: null, mount: () => () => undefined },
      store: createMemoryStore(clock),
    });
    expect([bridge.blockers(), bridge.report().queues]).toEqual([[], [{ name: 'open tasks', depth: 0, dead: 0 }]]);
    const { signal } = new AbortController();
    expect(await a2aBridge.check(entry, { clock }, signal)).toMatchObject([{ level: 'warning' }]);
    const closed = { name: 'front', options: optionsFromSnake(a2aSettings, {}) };
    expect(await a2aBridge.check(closed, { clock }, signal)).toMatchObject([{ level: 'error' }]);
    await expect(a2aBridge.open(closed, {} as never)).rejects.toThrow('a2a.auth');
  });
});

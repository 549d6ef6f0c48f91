import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { MockAgent } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.js';
import { settingsGroup } from '../../src/config/setting.js';
import type { Finding } from '../../src/core/bridge.js';
import type { BridgeTable } from '../../src/gateway/bridge-table.js';
import { checkConfig } from '../../src/gateway/check.js';
import { DEMO_GATEWAY } from '../../src/gateway/demo-gateway.js';
import { createManualClock } from '../../src/testing/manual-clock.js';
import { tempFolder } from '../support/temp-folder.js';

const clock = createManualClock();
const unused = () => Promise.reject(new Error('not used here'));

function bridges(findings: readonly Finding[] | Error = []): BridgeTable {
  const check = async () => {
    if (findings instanceof Error) throw findings;
    return findings;
  };
  return { a2a: { settings: async () => [settingsGroup('a2a', {})], open: unused, check } };
}

interface World {
  readonly env?: Record<string, string>;
  /** What the platform says to who-am-I. */
  readonly me?: { status: number; body?: object; date?: number };
  readonly table?: BridgeTable;
  readonly dataDir?: string;
  readonly sandbox?: boolean;
  readonly cwd?: string;
}

/** Findings by subject; connections other than the mocked ones fail the test. */
async function check({ env = {}, me, table = bridges(), dataDir, sandbox = false, cwd = '/nowhere' }: World = {}) {
  const dispatcher = new MockAgent();
  dispatcher.disableNetConnect();
  const band = dispatcher.get('https://band.test');
  if (me) {
    const headers = { 'content-type': 'application/json', date: new Date(me.date ?? clock.now()).toUTCString() };
    band.intercept({ path: '/api/v1/agent/me' }).reply(me.status, me.body ?? {}, { headers });
  }
  band.intercept({ path: '/api/v1/socket/websocket' }).reply(426, '');
  const agent = { BAND_AGENT_ID: 'a-1', BAND_API_KEY: 'band_a_key', BAND_BRIDGE: 'a2a' };
  const platform = { BAND_REST_URL: 'https://band.test', BAND_WS_URL: 'wss://band.test/api/v1/socket/websocket' };
  const config = await loadConfig({
    env: {
      PORT: '0',
      SANDBOX_PORT: '0',
      ...(sandbox ? {} : { ...agent, ...platform }),
      ...env,
      DATA_DIR: dataDir ?? (await tempFolder()),
    },
    cwd: '/nowhere',
    file: false,
    bridgeNames: ['a2a'],
    bridgeGroups: async () => [settingsGroup('a2a', {})],
    defaultAgent: { ...DEMO_GATEWAY, groups: {} },
  });
  const findings = await checkConfig(config, table, { clock, dispatcher, cwd }, new AbortController().signal);
  await dispatcher.close();
  return (subject: string) => findings.filter((finding) => finding.subject === subject);
}

const me = { status: 200, body: { data: { name: 'Helper', description: 'Helps' } } };

describe('the platform', () => {
  it('knows the agent', async () => {
    const found = await check({ me });
    expect(found('agent: platform')).toEqual([
      { level: 'ok', subject: 'agent: platform', message: 'knows the agent as Helper' },
    ]);
    expect(found('platform socket')[0]?.level).toBe('ok');
    expect(found('clock')).toEqual([]);
  });

  it.each([
    ['refuses the key', { status: 401 }, 'error', /refuses the credentials \(401\)/],
    [
      'knows no description',
      { status: 200, body: { data: { name: 'Helper', description: null } } },
      'error',
      /no description/,
    ],
    ['is something else', { status: 200, body: { hello: 1 } }, 'error', /answers 200 to who am I/],
    ['is ill', { status: 503 }, 'error', /answers 503/],
  ])('%s', async (_, answer, level, message) => {
    const [finding] = (await check({ me: answer }))('agent: platform');
    expect(finding?.level).toBe(level);
    expect(finding?.message).toMatch(message);
    expect(finding?.mend).toBeTruthy();
  });

  it('cannot be reached', async () => {
    const [finding] = (await check())('agent: platform');
    expect(finding).toMatchObject({ level: 'error' });
    expect(finding?.message).toContain('https://band.test cannot be reached');
  });

  it.each([
    [10_000, []],
    [60_000, ['warning']],
    [600_000, ['error']],
  ])('a clock that is %i ms off', async (off, levels) => {
    const found = await check({ me: { ...me, date: clock.now() - off } });
    expect(found('clock').map(({ level }) => level)).toEqual(levels);
  });

  it('one address of two is a warning', async () => {
    const found = await check({ me, env: { BAND_WS_URL: '' } });
    expect(found('platform addresses')[0]).toMatchObject({ level: 'warning' });
  });
});

describe('this machine', () => {
  it('a taken port is an error', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const found = await check({ me, env: { PORT: String(port) } });
    expect(found('port')[0]).toMatchObject({ level: 'error', message: `${port} on 127.0.0.1: EADDRINUSE` });
  });

  it('a data directory that everybody may read is a warning', async () => {
    const dataDir = path.join(await tempFolder(), 'data');
    mkdirSync(dataDir);
    chmodSync(dataDir, 0o755);
    expect((await check({ me, dataDir }))('data directory')[0]).toMatchObject({ level: 'warning' });
    chmodSync(dataDir, 0o700);
    expect((await check({ me, dataDir }))('data directory')[0]).toMatchObject({ level: 'ok' });
  });

  it('a data directory that cannot be is an error', async () => {
    expect((await check({ me, dataDir: '/dev/null/data' }))('data directory')[0]).toMatchObject({ level: 'error' });
  });

  it('credentials that everybody may read are a warning', async () => {
    const cwd = await tempFolder();
    for (const [name, mode] of [
      ['.env', 0o644],
      ['agent_config.yaml', 0o600],
    ] as const) {
      writeFileSync(path.join(cwd, name), '');
      chmodSync(path.join(cwd, name), mode);
    }
    expect((await check({ me, cwd }))('secrets').map(({ message }) => message)).toEqual([
      `${cwd}/.env may be read by every user of this machine`,
    ]);
  });

  it('secret files that are named, and a settings file with a secret in it, are warned of when others may read them', async () => {
    const cwd = await tempFolder();
    const write = (name: string, text: string, mode: number) => {
      writeFileSync(path.join(cwd, name), text);
      chmodSync(path.join(cwd, name), mode);
      return path.join(cwd, name);
    };
    write('world.key', 'band_a_world', 0o604);
    write('group.key', 'band_a_group', 0o640);
    write('mine.key', 'band_a_mine', 0o600);
    const entry = (name: string, key: string) =>
      `  ${name}: { agent_id: ${name}, api_key: ${key}, bridge: a2a, single_instance: false }\n`;
    const file = (names: readonly string[]) =>
      `agents:\n${names.map((name) => entry(name, `{ file: ${name}.key }`)).join('')}`;
    const secretsOf = async (text: string) => {
      write('gateway.yaml', text, 0o644);
      const config = await loadConfig({
        env: { PORT: '0', DATA_DIR: path.join(cwd, 'data'), BAND_REST_URL: 'http://127.0.0.1:1' },
        cwd,
        bridgeNames: ['a2a'],
        bridgeGroups: async () => [settingsGroup('a2a', {})],
      });
      const dispatcher = new MockAgent();
      dispatcher.disableNetConnect();
      const found = await checkConfig(config, bridges(), { clock, dispatcher, cwd }, new AbortController().signal);
      await dispatcher.close();
      return found.filter(({ subject }) => subject === 'secrets').map(({ level, message }) => [level, message]);
    };
    expect(await secretsOf(file(['world', 'group', 'mine']))).toEqual([
      ['warning', `${cwd}/world.key may be read by every user of this machine`],
      ['warning', `${cwd}/group.key may be read by the group of its owner`],
    ]);
    expect(await secretsOf(file(['mine']))).toEqual([]);
    expect(
      (await check({ me, cwd, env: { BAND_API_KEY: '', BAND_API_KEY_FILE: `${cwd}/group.key` } }))('secrets'),
    ).toEqual([
      expect.objectContaining({ message: `${cwd}/group.key may be read by the group of its owner` }) as Finding,
    ]);
    expect(await secretsOf(`agents:\n${entry('here', 'band_a_literal')}`)).toEqual([
      ['warning', `${cwd}/gateway.yaml may be read by every user of this machine`],
    ]);
  });

  it('being bound to all addresses without a public one is a warning', async () => {
    expect((await check({ me, env: { HOST: '0.0.0.0' } }))('public address')[0]).toMatchObject({ level: 'warning' });
  });
});

describe('bridges', () => {
  it('add their own findings', async () => {
    const finding: Finding = { level: 'warning', subject: 'a2a', message: 'careful', mend: 'Mend.' };
    expect((await check({ me, table: bridges([finding]) }))('a2a')).toEqual([finding]);
  });

  it('that cannot look are an error, not the end of the check', async () => {
    const found = await check({ me, table: bridges(new Error('no such peer')) });
    expect(found('agent: a2a')[0]).toMatchObject({ level: 'error', message: 'no such peer' });
    expect(found('agent: platform')[0]?.level).toBe('ok');
  });
});

it('in sandbox mode nothing outside is asked', async () => {
  const found = await check({ sandbox: true });
  expect(found('platform socket')).toEqual([]);
  expect(found('sandbox port')[0]?.level).toBe('ok');
});

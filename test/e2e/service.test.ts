import { statSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo, type Demo } from '../../src/gateway/demo.js';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { killPrograms, startProgram, type RunningProgram } from '../support/program.js';
import { tempFolder } from '../support/temp-folder.js';

const PARTNER_KEY = 'partner-key-0123456789';

let demo: Demo;
beforeAll(async () => {
  demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
});
afterAll(() => demo.stop());
afterEach(() => {
  killPrograms();
  demo.sandbox.dev.clearFaults();
});

interface ServiceOptions {
  readonly cwd: string;
  /** Lines under `agents.front-door`. */
  readonly agent?: string;
  /** Whole further entries. */
  readonly more?: string;
  readonly top?: string;
  readonly env?: Record<string, string>;
}

function writeConfig({ cwd, agent = '', more = '', top = 'http: { port: 0 }' }: ServiceOptions): void {
  writeFileSync(path.join(cwd, 'front-door.key'), `${DEMO.gateway.apiKey}\n`);
  writeFileSync(
    path.join(cwd, 'gateway.yaml'),
    `platform: { rest_url: ${demo.sandbox.restUrl}, ws_url: ${demo.sandbox.wsUrl} }
data_dir: data
${top}
agents:
  front-door:
    agent_id: ${DEMO.gateway.id}
    api_key: { file: front-door.key }
    bridge: a2a
    single_instance: false
    a2a: { auth: { api_keys: [{ name: partner, key: { env: PARTNER_KEY } }] } }
${agent}
${more}
`,
  );
}

async function startService(options: ServiceOptions): Promise<{ program: RunningProgram; url: string }> {
  writeConfig(options);
  const env = { PARTNER_KEY, ...options.env };
  const program = startProgram(['start'], { cwd: options.cwd, env });
  const [, url = ''] = await program.until(/^Gateway at (\S+) for /);
  return { program, url };
}

interface Readiness {
  readonly status: string;
  readonly blockers: readonly { readonly name: string; readonly message: string; readonly action: string }[];
}

/** Asks until the answer is as wanted. */
async function readiness(url: string, fits: (answer: Readiness) => boolean): Promise<Readiness> {
  for (;;) {
    const answer = (await (await fetch(`${url}/readyz`)).json()) as Readiness;
    if (fits(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
const isReady = ({ status }: Readiness) => status === 'ready';

describe('a service from a settings file', () => {
  it('becomes ready, answers its clients, and ends in order', async () => {
    const cwd = await tempFolder();
    const { program, url } = await startService({ cwd });
    await readiness(url, isReady);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await a2aSend(url, 'echo', 'hello')).status).toBe(401);
    const { status, text } = await a2aSend(url, 'echo', 'hello', PARTNER_KEY);
    expect({ status, text }).toEqual({ status: 200, text: 'echo: hello' });
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('band_ready 1');
    expect(statSync(path.join(cwd, 'data')).mode & 0o077).toBe(0);
    program.kill();
    expect(await program.ended).toBe(0);
  });

  it('keeps the other agents going when one has bad credentials, and says what to do', async () => {
    const more = `
  broken:
    agent_id: ${DEMO.editor.id}
    api_key: band_a_not_the_right_one
    bridge: acp
    single_instance: false
`;
    const { url } = await startService({ cwd: await tempFolder(), more });
    const { blockers } = await readiness(
      url,
      (answer) =>
        answer.blockers.length === 1 &&
        answer.blockers[0]?.name === 'agent.broken' &&
        answer.blockers[0].message.includes('401'),
    );
    expect(blockers[0]?.action).toContain('api_key');
    expect((await a2aSend(url, 'echo', 'still here', PARTNER_KEY)).text).toBe('echo: still here');
  });

  it('shows a lost platform as what it is, and comes back by itself', async () => {
    const { url } = await startService({ cwd: await tempFolder() });
    await readiness(url, isReady);
    demo.sandbox.dev.faultUpgrades({ mode: 'refuse', status: 503, principalId: DEMO.gateway.id });
    demo.sandbox.dev.closeSockets(DEMO.gateway.id, 1006);
    const { blockers } = await readiness(url, (answer) => !isReady(answer));
    expect(blockers[0]?.action).not.toBe('');
    demo.sandbox.dev.clearFaults();
    await readiness(url, isReady);
    expect((await a2aSend(url, 'echo', 'back', PARTNER_KEY)).text).toBe('echo: back');
  });

  it('stays down after another connection took its agent over, and does not fight for it', async () => {
    const { program, url } = await startService({ cwd: await tempFolder() });
    await readiness(url, isReady);
    const second = await startService({ cwd: await tempFolder() });
    await readiness(second.url, isReady);
    const { blockers } = await readiness(url, (answer) => !isReady(answer));
    expect(blockers[0]).toMatchObject({ name: 'agent.front-door' });
    expect(blockers[0]?.action).toContain('standby');
    expect((await a2aSend(second.url, 'echo', 'mine now', PARTNER_KEY)).text).toBe('echo: mine now');
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    program.kill();
    expect(await program.ended).toBe(0);
  });

  it('stops at once while the platform does not answer at all', async () => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const cwd = await tempFolder();
    const program = startProgram(['start', '--bridge', 'a2a', '--agent-id', 'x', '--a2a-auth-anonymous', 'loopback'], {
      cwd,
      env: {
        PORT: '0',
        BAND_API_KEY: 'band_a_some_key',
        BAND_REST_URL: `http://127.0.0.1:${port}`,
        BAND_WS_URL: `ws://127.0.0.1:${port}/websocket`,
      },
    });
    const [, url = ''] = await program.until(/^Gateway at (\S+) for /);
    await readiness(url, ({ blockers }) => blockers[0]?.name === 'agent.agent');
    const told = performance.now();
    program.kill();
    expect(await program.ended).toBe(0);
    expect(performance.now() - told).toBeLessThan(8_000);
  });

  it('refuses a second process on its data directory', async () => {
    const cwd = await tempFolder();
    const { url } = await startService({ cwd });
    await readiness(url, isReady);
    const second = startProgram(['start'], { cwd, env: { PARTNER_KEY } });
    expect(await second.ended).toBe(1);
    expect(second.said.err).toContain('Another process owns this data directory');
  });

  it.each([
    [
      'two bridges that want one path',
      '',
      `  second: { agent_id: x, api_key: kkkkkkkk, bridge: a2a, a2a: { auth: { anonymous: loopback } } }`,
      /second/,
    ],
    [
      'a value that only the bridge can judge',
      '',
      `  second: { agent_id: x, api_key: kkkkkkkk, bridge: a2a, a2a: { port: 0 } }`,
      /second/,
    ],
  ])('ends with 2 for %s', async (_, agent, more, message) => {
    const cwd = await tempFolder();
    writeConfig({ cwd, agent, more });
    const program = startProgram(['start'], { cwd, env: { PARTNER_KEY } });
    expect(await program.ended).toBe(2);
    expect(program.said.err).toMatch(message);
  });
});

describe('check', () => {
  const check = async (cwd: string, ...args: string[]) => {
    const program = startProgram(['check', ...args], { cwd, env: { PARTNER_KEY } });
    const code = await program.ended;
    return { code, ...program.said };
  };

  it('finds everything in order, without starting and without a secret on the screen', async () => {
    const cwd = await tempFolder();
    writeConfig({ cwd });
    const { code, out } = await check(cwd);
    expect(out).toContain('front-door: platform: knows the agent as Gateway');
    expect(out).not.toMatch(/^error/m);
    expect(code).toBe(0);
    expect(out).not.toContain(PARTNER_KEY);
    expect(out).not.toContain(DEMO.gateway.apiKey);
  });

  it('names each thing that is wrong with its mend, and ends with 1', async () => {
    const cwd = await tempFolder();
    writeConfig({ cwd, more: `  broken: { agent_id: ${DEMO.editor.id}, api_key: band_a_wrong_key, bridge: acp }` });
    const { code, out } = await check(cwd, '--json', '--ws-url', 'ws://127.0.0.1:1/websocket');
    expect(code).toBe(1);
    const findings = JSON.parse(out) as { level: string; subject: string; mend?: string }[];
    const errors = findings.filter(({ level }) => level === 'error');
    expect(errors.map(({ subject }) => subject).sort()).toEqual(['broken: platform', 'platform socket']);
    expect(errors.every(({ mend }) => mend !== undefined && mend !== '')).toBe(true);
  });

  it('knows a gateway that is running', async () => {
    const cwd = await tempFolder();
    const { url } = await startService({ cwd });
    await readiness(url, isReady);
    expect((await check(cwd)).out).toContain('in use by a running gateway');
  });
});

describe('operator verbs', () => {
  it('go through the running process', async () => {
    const cwd = await tempFolder();
    const { url } = await startService({ cwd });
    await readiness(url, isReady);
    const list = startProgram(['dead', 'list'], { cwd, env: { PARTNER_KEY } });
    expect(await list.ended).toBe(0);
    expect(list.said.out).toBe('Nothing is given up on.\n');
    const retry = startProgram(['dead', 'retry', 'front-door', 'none'], { cwd, env: { PARTNER_KEY } });
    expect(await retry.ended).toBe(1);
  });
});

it('logs no secret at trace level, whatever happens', async () => {
  const more = `
  broken: { agent_id: ${DEMO.editor.id}, api_key: band_a_wrong_but_secret, bridge: acp, single_instance: false }
`;
  const { program, url } = await startService({
    cwd: await tempFolder(),
    more,
    top: 'http: { port: 0, status_token: very-secret-status-token }\nlog_level: trace',
  });
  await readiness(url, ({ blockers }) => blockers.length === 1 && blockers[0]?.name === 'agent.broken');
  await a2aSend(url, 'echo', 'hello', PARTNER_KEY);
  await a2aSend(url, 'echo', 'hello', 'a-wrong-key-that-is-secret');
  await fetch(`${url}/?token=very-secret-status-token`);
  demo.sandbox.dev.closeSockets(DEMO.gateway.id, 1006);
  await readiness(url, ({ blockers }) => blockers.length === 1 && blockers[0]?.name === 'agent.broken');
  program.kill();
  await program.ended;
  expect(program.said.err.length).toBeGreaterThan(1_000);
  for (const secret of [
    PARTNER_KEY,
    DEMO.gateway.apiKey,
    'band_a_wrong_but_secret',
    'very-secret-status-token',
    'a-wrong-key-that-is-secret',
  ]) {
    expect(program.said.err).not.toContain(secret);
    expect(program.said.out).not.toContain(secret);
  }
});

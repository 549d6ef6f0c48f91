import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo, type Demo } from '../../src/gateway/demo.js';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aClient, message } from '../support/a2a/client.js';
import { a2aSend } from '../support/a2a-send.js';
import { killPrograms, startProgram } from '../support/program.js';
import { tempFolder } from '../support/temp-folder.js';
import { until, type LogLine } from '../support/whole-service.js';

const OLD_KEY = 'the-old-partner-key';
const NEW_KEY = 'the-new-partner-key';
/** An answer is complete this long after the peer's last word, so that a stream is open for a while. */
const SETTLE_MS = 1_500;

let demo: Demo;
beforeAll(async () => {
  demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
});
afterAll(() => demo.stop());
afterEach(killPrograms);

function write(cwd: string, { key = OLD_KEY, http = '', peers = '' } = {}): void {
  writeFileSync(path.join(cwd, 'partner.key'), key);
  writeFileSync(
    path.join(cwd, 'gateway.yaml'),
    `platform: { rest_url: ${demo.sandbox.restUrl}, ws_url: ${demo.sandbox.wsUrl} }
http: { port: 0${http} }
data_dir: data
agents:
  front-door:
    agent_id: ${DEMO.gateway.id}
    api_key: ${DEMO.gateway.apiKey}
    bridge: a2a
    single_instance: false
    a2a:
      completion: settle
      settle_ms: ${SETTLE_MS}
      auth: { api_keys: [{ name: partner, key: { file: partner.key } }] }
${peers}
`,
  );
}

async function start(cwd: string) {
  const program = startProgram(['start'], { cwd });
  const [, url = ''] = await program.until(/^Gateway at (\S+) for /);
  await until('readiness', async () => (await fetch(`${url}/readyz`)).ok);
  const lines = () =>
    program.said.err
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as LogLine);
  return { program, url, lines };
}

describe('SIGHUP', () => {
  it('A-012 brings new keys and overrides into force while a stream goes on, and names what wants a restart', async () => {
    const cwd = await tempFolder();
    write(cwd);
    const { program, url, lines } = await start(cwd);
    const stream = await a2aClient(url, { headers: { 'x-api-key': OLD_KEY } }).stream(
      'echo',
      'SendStreamingMessage',
      message('before'),
    );
    expect(await stream.next()).not.toBeNull();

    write(cwd, {
      key: NEW_KEY,
      http: ', keep_alive_ms: 1000',
      peers: '      peers: { overrides: { echo: { name: The Echo } } }',
    });
    program.kill('SIGHUP');
    await until('the reload', () => lines().some(({ msg }) => msg === 'the settings were read again'));

    expect(await a2aSend(url, 'echo', 'old', OLD_KEY)).toMatchObject({ status: 401 });
    expect(await a2aSend(url, 'echo', 'new', NEW_KEY)).toMatchObject({ text: 'echo: new' });
    const card = (await (await fetch(`${url}/agents/echo/.well-known/agent-card.json`)).json()) as { name: string };
    expect(card.name).toBe('The Echo');
    const events = await stream.rest();
    expect(JSON.stringify(events.at(-1))).toContain('TASK_STATE_COMPLETED');

    const warning = lines().find(({ msg }) => msg === 'some changed settings want a restart');
    expect(warning?.['restart']).toEqual(['http.keep_alive_ms']);
    expect(lines().find(({ msg }) => msg === 'the settings were read again')?.['taken']).toEqual([
      'agents.front-door.a2a.peers.overrides',
      'agents.front-door.a2a.auth.api_keys',
    ]);
    for (const key of [OLD_KEY, NEW_KEY]) expect(program.said.err).not.toContain(key);
    program.kill();
    expect(await program.ended).toBe(0);
  }, 40_000);

  it('A-012 with settings that are wrong, or gone, changes nothing and says what is wrong with them', async () => {
    const cwd = await tempFolder();
    write(cwd);
    const { program, url, lines } = await start(cwd);
    const refusals = () => lines().filter(({ msg }) => msg?.startsWith('the settings could not be read again'));
    writeFileSync(path.join(cwd, 'partner.key'), '');
    program.kill('SIGHUP');
    await until('the refusal', () => refusals().length === 1);
    expect(JSON.stringify(refusals()[0])).toContain('gateway.yaml:');
    expect(JSON.stringify(refusals()[0])).toContain('partner.key is empty');
    expect(await a2aSend(url, 'echo', 'still', OLD_KEY)).toMatchObject({ text: 'echo: still' });

    write(cwd, { peers: '      port: 0' });
    program.kill('SIGHUP');
    await until('the warning', () => lines().some(({ msg }) => msg === 'some changed settings want a restart'));
    expect(lines().at(-1)?.['restart']).toEqual(['agents.front-door.a2a.port']);
    expect(await a2aSend(url, 'echo', 'and still', OLD_KEY)).toMatchObject({ text: 'echo: and still' });
    program.kill();
    expect(await program.ended).toBe(0);
  }, 40_000);
});

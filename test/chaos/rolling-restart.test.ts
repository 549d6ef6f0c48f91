import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo, type Demo } from '../../src/gateway/demo.js';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { killPrograms, startProgram, type RunningProgram } from '../support/program.js';
import { tempFolder } from '../support/temp-folder.js';

/** Restarts per test, and messages per restart; raise them for a longer run. */
const ROUNDS = Number(process.env['RESTART_ROUNDS'] ?? 2);
const PER_ROUND = Number(process.env['RESTART_MESSAGES'] ?? 8);
const KEY = 'partner-key-0123456789';

let demo: Demo;
beforeAll(async () => {
  demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
});
afterAll(() => demo.stop());
afterEach(killPrograms);

function writeConfig(cwd: string, port: number): void {
  writeFileSync(
    path.join(cwd, 'gateway.yaml'),
    `platform: { rest_url: ${demo.sandbox.restUrl}, ws_url: ${demo.sandbox.wsUrl} }
http: { port: ${port} }
data_dir: data
agents:
  front-door:
    agent_id: ${DEMO.gateway.id}
    api_key: ${DEMO.gateway.apiKey}
    bridge: a2a
    single_instance: false
    a2a: { auth: { api_keys: [{ name: partner, key: ${KEY} }] }, limits: { rate_per_min: 0, ip_rate_per_min: 0 } }
`,
  );
}

async function startService(cwd: string, port: number): Promise<{ program: RunningProgram; url: string }> {
  writeConfig(cwd, port);
  const program = startProgram(['start'], { cwd });
  const [, url = ''] = await program.until(/^Gateway at (\S+) for /);
  return { program, url };
}

/** A client that does not give up: what it did not get an answer to, it asks again under the same id. */
async function insist(
  url: string,
  text: string,
  deadline: number,
): Promise<{ state: string | null; text: string | null }> {
  for (;;) {
    const answer = await a2aSend(url, 'echo', text, KEY, `m-${text}`).catch(() => null);
    if (answer?.status === 200 && answer.state === 'TASK_STATE_COMPLETED') return answer;
    if (Date.now() > deadline) return answer ?? { state: null, text: null };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe.each([
  ['SIGTERM', 0],
  ['SIGKILL', 'SIGKILL'],
] as const)('restarts by %s under load', (signal, ending) => {
  it(`A-327 lose no message that was accepted and carry none into a room twice (${ROUNDS} rounds)`, async () => {
    const cwd = await tempFolder();
    let { program, url } = await startService(cwd, 0);
    const port = Number(new URL(url).port);
    const deadline = Date.now() + 50_000;
    const answers: Promise<{ text: string; answer: { state: string | null; text: string | null } }>[] = [];

    for (let round = 0; round < ROUNDS; round += 1) {
      const begun = Array.from({ length: PER_ROUND }, (_, i) => {
        const text = `${signal}-${round}-${i}`;
        return insist(url, text, deadline).then((answer) => ({ text, answer }));
      });
      answers.push(...begun);
      // In the middle of it: some are answered, some are under way, some have not arrived.
      await Promise.race(begun);
      program.kill(signal);
      expect(await program.ended).toBe(ending);
      ({ program, url } = await startService(cwd, port));
    }
    for (const { text, answer } of await Promise.all(answers)) {
      expect(answer, text).toMatchObject({ state: 'TASK_STATE_COMPLETED', text: `echo: ${text}` });
    }

    const posted = demo.sandbox.dev
      .state()
      .rooms.flatMap(({ messages }) => messages)
      .filter(({ senderId, messageType }) => senderId === DEMO.gateway.id && messageType === 'text')
      .map(({ content }) => content.split(' ').at(-1) ?? '')
      .filter((text) => text.startsWith(signal));
    expect(posted.sort()).toEqual(
      Array.from({ length: ROUNDS }, (_, round) =>
        Array.from({ length: PER_ROUND }, (_unused, i) => `${signal}-${round}-${i}`),
      )
        .flat()
        .sort(),
    );
    program.kill();
    await program.ended;
  }, 90_000);
});

import { execFile } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { killPrograms, startProgram, type RunningProgram } from '../support/program.js';
import { tempFolder } from '../support/temp-folder.js';

const run = promisify(execFile);

afterEach(killPrograms);

/** `start` with nothing configured, on free ports. */
async function startSandboxMode(cwd: string, env: Record<string, string> = {}) {
  const program = startProgram(['start'], { cwd, env: { PORT: '0', SANDBOX_PORT: '0', ...env } });
  const [, sandbox = '', gateway = ''] = await program.until(/sandbox at (\S+) with .* gateway at (\S+) in front/);
  await program.until(/Ctrl\+C/);
  return { program, sandbox, gateway };
}

const ask = (gateway: string, peer: string, text: string) =>
  fetch(`${gateway}/agents/${peer}`, {
    method: 'POST',
    headers: { 'A2A-Version': '1.0', 'Content-Type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message: { messageId: `m-${text}`, role: 'ROLE_USER', parts: [{ text }] } },
    }),
  });

/** Milliseconds that something takes. */
async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

async function endsWell(program: RunningProgram): Promise<void> {
  program.kill('SIGTERM');
  expect(await program.ended).toBe(0);
}

describe('start with nothing configured', () => {
  it('says first what runs where, and answers a message through a room', async () => {
    const { program, sandbox, gateway } = await startSandboxMode(await tempFolder());
    expect(program.said.out.split('\n')[0]).toMatch(/^Sandbox mode: sandbox at .* gateway at .*/);
    expect((await fetch(`${gateway}/readyz`)).status).toBe(200);
    expect((await fetch(`${gateway}/agents/echo/.well-known/agent-card.json`)).status).toBe(200);

    const answer = (await (await ask(gateway, 'echo', 'hello there')).json()) as {
      result: { task: { status: { state: string }; artifacts: { parts: { text: string }[] }[] } };
    };
    expect(answer.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(answer.result.task.artifacts[0]?.parts[0]?.text).toBe('echo: hello there');

    const rooms = (await (
      await fetch(`${sandbox}/api/v1/me/chats`, { headers: { 'x-api-key': 'band_u_demo' } })
    ).json()) as { data: unknown[] };
    expect(rooms.data).toHaveLength(1);
    expect(await (await fetch(`${sandbox}/`)).text()).toContain('/console/main.js');
    expect(await (await fetch(`${gateway}/`)).text()).toContain('demo');
    await endsWell(program);
    expect(program.said.err).toBe('');
  });

  it.skipIf(!existsSync('/usr/bin/curl'))('prints a line for curl that works as it stands', async () => {
    const { program } = await startSandboxMode(await tempFolder());
    const line = /^ +(curl .*)$/m.exec(program.said.out)?.[1] ?? '';
    const { stdout } = await run('sh', ['-c', line]);
    expect(stdout).toContain('echo: hello');
    await endsWell(program);
  });

  it('is ready within a second and gone within three tenths, on a machine that does nothing else', async () => {
    const cwd = await tempFolder();
    // Twenty starts of a bare Node are a second on such a machine; on a busy one both take longer.
    const bare = await timed(() => run(process.execPath, ['-e', '0']));
    const allowed = { start: Math.max(1_000, 20 * bare), stop: Math.max(300, 6 * bare) };
    const best = { start: Infinity, stop: Infinity };
    for (let i = 0; i < 5 && (best.start >= allowed.start || best.stop >= allowed.stop); i += 1) {
      const begun = performance.now();
      const { program } = await startSandboxMode(cwd);
      best.start = Math.min(best.start, performance.now() - begun);
      best.stop = Math.min(best.stop, await timed(() => endsWell(program)));
    }
    expect(best.start).toBeLessThan(allowed.start);
    expect(best.stop).toBeLessThan(allowed.stop);
  });

  it('names a port that is taken and what moves it, and ends with 1', async () => {
    const cwd = await tempFolder();
    const { program, gateway, sandbox } = await startSandboxMode(cwd);
    for (const [name, url] of [
      ['PORT', gateway],
      ['SANDBOX_PORT', sandbox],
    ] as const) {
      const { port } = new URL(url);
      const second = startProgram(['start'], { cwd, env: { PORT: '0', SANDBOX_PORT: '0', [name]: port } });
      expect(await second.ended).toBe(1);
      expect(second.said.err).toMatch(new RegExp(`Port ${port} .*already in use.* ${name} `));
    }
    await endsWell(program);
  });

  it('writes nothing into the working folder but its data directory', async () => {
    const cwd = await tempFolder();
    const { program } = await startSandboxMode(cwd);
    await endsWell(program);
    expect(readdirSync(cwd).filter((name) => name !== '.band-gateway')).toEqual([]);
  });
});

describe('the sandbox alone', () => {
  it('prints what an agent needs to connect, serves, and ends with 0', async () => {
    const program = startProgram(['sandbox', '--port', '0'], { cwd: await tempFolder() });
    const [, url = ''] = await program.until(/BAND_REST_URL=(\S+)/);
    await program.until(/demo\/helpdesk/);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    await endsWell(program);
  });

  it('begins with the users and agents of a seed file, and prints a key for each agent', async () => {
    const cwd = await tempFolder();
    const agents = `agents:
  - { owner_handle: ada, name: Night Watch, description: Looks after things }
  - { owner_handle: ada, name: Keyed, description: Has a key, api_key: band_a_given }
`;
    writeFileSync(path.join(cwd, 'seed.yaml'), `users: [{ handle: ada, name: Ada L }]\n${agents}`);
    const start = (seed: string) => startProgram(['sandbox', '--port', '0', '--data', 'data', '--seed', seed], { cwd });
    const program = start('seed.yaml');
    const [, url = ''] = await program.until(/BAND_REST_URL=(\S+)/);
    const [, id = '', key = ''] = await program.until(/ada\/night-watch {2}BAND_AGENT_ID=(\S+) BAND_API_KEY=(\S+)/);
    await program.until(/ada\/keyed {2}BAND_AGENT_ID=\S+ BAND_API_KEY=band_a_given/);
    const me = await fetch(`${url}/api/v1/agent/me`, { headers: { 'x-api-key': key } });
    expect(await me.json()).toMatchObject({ data: { id, name: 'Night Watch' } });
    expect(program.said.out).not.toContain('demo/');
    await endsWell(program);

    writeFileSync(path.join(cwd, 'other.yaml'), 'users: [{ handle: bob, name: Bob }]');
    const again = start('other.yaml');
    await again.until(/The folder has its own users and agents: .*other\.yaml was not used/);
    await endsWell(again);
  });

  it.each([
    ['is not there', null, /seed\.yaml cannot be read\. ENOENT/],
    ['is no YAML', 'users: [', /seed\.yaml cannot be read\. .*at line 1, column \d+/],
    ['has wrong fields', 'users: [{ handle: ada }]\nagent: []\n', /is not valid:[\s\S]*agent[\s\S]*users\[0\]\.name/],
    ['has a handle twice', 'users: [{ handle: a, name: A }, { handle: a, name: B }]', /Handle is taken/],
  ])('refuses a seed file that %s, with what is wrong, and ends with 2', async (_, content, problem) => {
    const cwd = await tempFolder();
    if (content !== null) writeFileSync(path.join(cwd, 'seed.yaml'), content);
    const program = startProgram(['sandbox', '--port', '0', '--seed', 'seed.yaml'], { cwd });
    expect(await program.ended).toBe(2);
    expect(program.said.err).toMatch(problem);
    expect(program.said.out).toBe('');
  });
});

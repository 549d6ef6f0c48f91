import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AcpCommand, BIN } from '../support/acp/command.js';
import { echoes, ponders, startWorld, type World } from '../support/acp/world.js';

const require = createRequire(import.meta.url);
const acpxFolder = dirname(require.resolve('acpx/package.json'));
const { bin } = JSON.parse(readFileSync(join(acpxFolder, 'package.json'), 'utf8')) as { bin: Record<string, string> };
// Another line of acpx, under the Node that it needs, goes through the same tests.
const ACPX = process.env['ACPX_BIN'] ?? join(acpxFolder, bin['acpx'] ?? '');
const NODE = process.env['ACPX_NODE'] ?? process.execPath;

let world: World;
let home: string;
beforeAll(async () => {
  world = await startWorld();
  await world.peer('Echo', echoes);
  await world.peer('Twin', echoes);
  await world.peer('Mute', ponders);
});
afterAll(() => world.stop());
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'acpx-'));
});
afterEach(async () => {
  await acpx(['sessions', 'close']).catch(() => undefined);
  await rm(home, { recursive: true, force: true, maxRetries: 5 });
});

const AGENT = `${NODE} ${BIN} acp --peer echo --context never`;
const env = () => ({ PATH: process.env['PATH'], HOME: home, TMPDIR: home, ...world.env });

interface Result {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}
function start(args: readonly string[], agent = AGENT) {
  const child = spawn(NODE, [ACPX, '--cwd', home, '--ttl', '2', '--agent', agent, ...args], {
    cwd: home,
    env: env(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const ended = new Promise<Result>((resolve) => {
    child.on('close', (code) => {
      resolve({ code, out, err });
    });
  });
  return { child, ended };
}
const acpx = (args: readonly string[], agent?: string) => start(args, agent).ended;
const texts = () =>
  world.rooms.flatMap(({ messages }) =>
    messages.filter(({ messageType }) => messageType === 'text').map(({ content }) => content),
  );

describe(process.env['ACPX_BIN'] ?? 'acpx 0.1.15', { timeout: 60_000 }, () => {
  it('P-170 exec asks and prints the final answer', async () => {
    const result = await acpx(['--format', 'quiet', 'exec', 'hello']);
    expect(result.out.trim()).toBe('echo: hello');
    expect(result.code).toBe(0);
  });

  it('P-170 exec in JSON shows raw frames both ways', async () => {
    const result = await acpx(['--format', 'json', 'exec', 'hello']);
    expect(result.code).toBe(0);
    const lines = result.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.length).toBeGreaterThan(2);
    expect(result.out).toContain('echo: hello');
  });

  it('P-170 slash routing and two peers reach whom they name', async () => {
    expect((await acpx(['--format', 'quiet', 'exec', '/twin only you'])).out.trim()).toContain('echo: only you');
    const both = await acpx(['--format', 'quiet', 'exec', '@echo and @twin: both']);
    expect(both.out).toContain('**@ana/echo:**');
    expect(both.out).toContain('**@ana/twin:**');
  });

  it('P-170 a session goes on in a new process and in the same room: no second room is made', async () => {
    const before = world.rooms.length;
    const made = await acpx(['--format', 'quiet', 'sessions', 'new']);
    expect(made.code).toBe(0);
    const [session] = /[0-9a-f-]{36}/.exec(made.out) ?? [];
    expect(session).toBeDefined();
    for (const [i, text] of ['remember 42', 'what was it?'].entries()) {
      const result = await acpx(['prompt', text]);
      expect(result.out).toContain(`echo: ${text}`);
      expect(result.out).toContain('[done] end_turn');
      expect(result.code, `prompt ${i}`).toBe(0);
    }
    expect(world.rooms).toHaveLength(before + 1);
    const room = world.room(session ?? '');
    expect(room.messages.filter(({ messageType }) => messageType === 'text')).toHaveLength(4);
    expect((await acpx(['status'])).out).toContain(session);
    expect((await acpx(['set-mode', 'default'])).code).toBe(0);
    expect((await acpx(['set', 'target', 'all'])).code).toBe(0);
    expect((await acpx(['sessions', 'close'])).code).toBe(0);
  });

  it('P-097 an interrupt prints that the prompt was cancelled', async () => {
    await acpx(['sessions', 'new']);
    const running = start(['prompt', '@mute wait for me']);
    while (!texts().some((content) => content.includes('wait for me')))
      await new Promise((resolve) => setTimeout(resolve, 50));
    const cancelled = await acpx(['cancel']);
    expect(cancelled.code).toBe(0);
    const result = await running.ended;
    expect(result.out).toContain('[done] cancelled');
  });

  it('P-155 three at once on one agent: the first owns it, the others attach', async () => {
    const owner = new AcpCommand({ cwd: home, env: world.env, args: ['--peer', 'echo'] });
    await owner.initialize();
    await owner.until(() => owner.stderr.includes('editors may attach'), 'the owner');
    const results = await Promise.all(['one', 'two', 'three'].map((text) => acpx(['--format', 'quiet', 'exec', text])));
    expect(results.map(({ code, out }) => [code, out.trim()])).toEqual([
      [0, 'echo: one'],
      [0, 'echo: two'],
      [0, 'echo: three'],
    ]);
    expect(owner.stderr.match(/editor connected/g)).toHaveLength(4);
    await owner.kill();
  });
});

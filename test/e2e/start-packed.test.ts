import { execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { a2aSend } from '../support/a2a-send.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
}

/** A folder with the package as users get it, and nothing else in it. */
let folder: string;

/** Packs, and puts in place what `npm install` would: the package, what it declares to need, and its commands. */
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'band-gateway-packed-'));
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: ROOT,
  });
  const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }];
  const home = path.join(folder, 'node_modules', 'band-gateway');
  mkdirSync(home, { recursive: true });
  await run('tar', ['-xzf', path.join(folder, filename), '--strip-components=1', '-C', home]);
  await rm(path.join(folder, filename));
  const { dependencies, bin } = JSON.parse(readFileSync(path.join(home, 'package.json'), 'utf8')) as Manifest;
  for (const name of Object.keys(dependencies)) {
    const link = path.join(folder, 'node_modules', name);
    mkdirSync(path.dirname(link), { recursive: true });
    symlinkSync(path.join(ROOT, 'node_modules', name), link);
  }
  mkdirSync(path.join(folder, 'node_modules', '.bin'));
  for (const [name, file] of Object.entries(bin)) {
    chmodSync(path.join(home, file), 0o755);
    symlinkSync(path.join('..', 'band-gateway', file), path.join(folder, 'node_modules', '.bin', name));
  }
}, 60_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const env = () => ({
  PATH: process.env['PATH'] ?? '',
  HOME: folder,
  TMPDIR: folder,
  PORT: '0',
  SANDBOX_PORT: '0',
  // npx itself asks nobody and says nothing.
  npm_config_offline: 'true',
  npm_config_update_notifier: 'false',
});

/** `npx band-gateway …`, without asking any registry. */
async function npx(...words: readonly string[]) {
  return await run('npx', ['--no-install', 'band-gateway', ...words], { cwd: folder, env: env() }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: unknown) => error as { code: number; stdout: string; stderr: string },
  );
}

describe('the packed package in a folder of its own', () => {
  it('knows its version and all its commands', async () => {
    const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(await npx('--version')).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
    expect((await npx('config', 'example')).stdout).toContain('bridge: slack');
    expect((await npx('manifest', 'slack')).stdout).toContain('bot_user');
  }, 30_000);

  it('check finds each of three mistakes in a settings file, by line and column, and ends with 2', async () => {
    writeFileSync(
      path.join(folder, 'gateway.yaml'),
      `http: { host: 127.0.0.1, prot: 8080 }
agents:
  helpdesk:
    agent_id: 00000000-0000-4000-8000-00000000a001
    api_key: { env: HELPDESK_KEY }
    bridge: slack
  front-door:
    agent_id: 00000000-0000-4000-8000-00000000a002
    api_key: a-key
    bridge: a2a
    a2a: { auth: { anonymous: loopback }, settle_ms: soon }
`,
    );
    onTestFinished(() => rm(path.join(folder, 'gateway.yaml')));
    const { code, stdout, stderr } = await npx('check');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.split('\n').slice(0, 4)).toEqual([
      '3 problems with the settings:',
      expect.stringMatching(/^ {2}gateway\.yaml:1:26: http\.prot: .*mean port\?$/) as string,
      expect.stringMatching(/^ {2}gateway\.yaml:5:5: agents\.helpdesk\.api_key: HELPDESK_KEY /) as string,
      expect.stringMatching(/^ {2}gateway\.yaml:11:43: agents\.front-door\.a2a\.settle_ms: /) as string,
    ]);
  }, 30_000);

  it('start serves the demo, answers, and ends in order', async () => {
    const child = spawn('npx', ['--no-install', 'band-gateway', 'start'], {
      cwd: folder,
      env: env(),
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: a terminal signals npx and what it runs alike.
      detached: true,
    });
    const { pid = 0 } = child;
    const ended = new Promise<void>((resolve) => child.once('close', resolve));
    onTestFinished(() => {
      if (child.exitCode === null && child.signalCode === null) process.kill(-pid, 'SIGKILL');
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        const found = /gateway at (\S+) in front/.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
      void ended.then(() => {
        reject(new Error(said));
      });
    });
    expect(await a2aSend(url, 'echo', 'from the package')).toMatchObject({ text: 'echo: from the package' });
    process.kill(-pid, 'SIGTERM');
    await ended;
    await expect(fetch(url)).rejects.toThrow();
  }, 30_000);
});

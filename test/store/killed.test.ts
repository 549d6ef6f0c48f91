import { spawn } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { tempFolder } from '../support/temp-folder.js';

const PROGRAM = fileURLToPath(new URL('../support/programs/store-relay.ts', import.meta.url));
const MESSAGES = 4;

const run = (folder: string, killAt?: number) =>
  new Promise<{ signal: string | null; code: number | null; output: string }>((resolve) => {
    const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, folder, String(MESSAGES)], {
      env: { ...process.env, ...(killAt === undefined ? {} : { KILL_AT: String(killAt) }) },
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 20_000,
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.on('close', (code, signal) => {
      resolve({ signal, code, output });
    });
  });
const sent = async (folder: string) => (await readFile(join(folder, 'sent'), 'utf8')).split('\n').filter(Boolean);

describe('inbox and outbox', () => {
  it('lose nothing and send nothing twice, whichever step the process is killed at', async () => {
    const parent = await tempFolder();
    const whole = join(parent, 'whole');
    await mkdir(whole);
    const steps = Number((await run(whole)).output);
    expect(steps).toBeGreaterThan(20);

    const killedAt = async (step: number) => {
      const folder = join(parent, `step-${step}`);
      await mkdir(folder);
      const killed = await run(folder, step);
      // Batches that share a write make the number of steps vary by a few: past the last one nothing is killed.
      expect(killed.signal ?? 'ended').toBe(killed.code === 0 ? 'ended' : 'SIGKILL');
      expect((await run(folder)).code).toBe(0);
      const ids = await sent(folder);
      expect([...ids].sort(), `killed at step ${step}`).toEqual(['m0', 'm1', 'm2', 'm3']);
      for (const lane of [
        ['m0', 'm2'],
        ['m1', 'm3'],
      ]) {
        expect(
          ids.filter((id) => lane.includes(id)),
          `order, killed at step ${step}`,
        ).toEqual(lane);
      }
    };
    for (let step = 1; step <= steps; step += 2) await Promise.all([killedAt(step), killedAt(step + 1)]);
  }, 180_000);
});

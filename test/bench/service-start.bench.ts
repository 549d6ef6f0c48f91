import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { a2aSend } from '../support/a2a-send.js';
import { startProgram } from '../support/program.js';
import { median, type Figure } from './figure.js';

const RUNS = 7;

/** How long the program takes to be ready in sandbox mode, to answer its first message, and to end when idle. */
export async function run(): Promise<Figure> {
  const cwd = mkdtempSync(path.join(tmpdir(), 'gateway-bench-'));
  const start: number[] = [];
  const first: number[] = [];
  const stop: number[] = [];
  for (let i = 0; i < RUNS; i += 1) {
    const begun = performance.now();
    const program = startProgram(['start'], { cwd, env: { PORT: '0', SANDBOX_PORT: '0' } });
    const [, gateway = ''] = await program.until(/gateway at (\S+) in front/);
    const ready = await fetch(`${gateway}/readyz`);
    if (!ready.ok) throw new Error(`not ready: ${await ready.text()}`);
    start.push(performance.now() - begun);

    const asked = performance.now();
    const { text } = await a2aSend(gateway, 'echo', 'hello');
    if (text !== 'echo: hello') throw new Error(`answered ${String(text)}`);
    first.push(performance.now() - asked);

    const told = performance.now();
    program.kill('SIGTERM');
    await program.ended;
    stop.push(performance.now() - told);
  }
  rmSync(cwd, { recursive: true, force: true });
  return {
    figure: `Service: sandbox mode, medians of ${RUNS} starts`,
    rows: [
      { name: 'start to ready', value: median(start), unit: 'ms', aim: '< 1000' },
      { name: 'first answer through a room', value: median(first), unit: 'ms' },
      { name: 'idle stop', value: median(stop), unit: 'ms', aim: '< 300' },
    ],
  };
}

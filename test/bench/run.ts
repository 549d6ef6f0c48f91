/**
 * `npm run bench [-- NAME…]`: runs the bench modules of this folder whose file names contain one of the names, each in
 * a process of its own, and prints what they measured.
 */
import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Figure } from './figure.js';

const RUN_LIMIT_MS = 20 * 60_000;
const folder = fileURLToPath(new URL('.', import.meta.url));
const asked = process.argv.slice(2).filter((word) => word !== '--one');

if (process.argv[2] === '--one') {
  const { run } = (await import(`./${String(process.argv[3])}`)) as { run: () => Promise<Figure> };
  const result = await run();
  process.send?.(result);
  process.disconnect();
} else {
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`);
  const files = (await readdir(folder)).filter((name) => name.endsWith('.bench.ts')).sort();
  for (const file of files.filter((name) => asked.length === 0 || asked.some((word) => name.includes(word)))) {
    print(file, await measure(file));
  }
}

function measure(file: string): Promise<Figure | null> {
  return new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      ['--expose-gc', '--import', 'tsx', fileURLToPath(import.meta.url), '--one', file],
      // What could not be measured is NaN, which the usual JSON would lose.
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced', timeout: RUN_LIMIT_MS },
    );
    let figure: Figure | null = null;
    child.on('message', (message) => (figure = message as Figure));
    child.on('close', () => {
      resolve(figure);
    });
  });
}

function print(file: string, figure: Figure | null): void {
  console.log(`\n${figure?.figure ?? `${file}: no result`}`);
  for (const { name, value, unit, aim } of figure?.rows ?? []) {
    const shown = Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
    console.log(`  ${name.padEnd(66)} ${shown.padStart(10)} ${unit.padEnd(8)} ${aim ? `aim ${aim}` : ''}`);
  }
}

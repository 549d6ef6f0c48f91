import { execFile, spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const BUILD_TIMEOUT_MS = 180_000;
const START_TIMEOUT_MS = 60_000;
const COMPLAINT_CHARS = 4_000;
const CLOCK_TICKS_PER_SECOND = 100;
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A program that a bench measures from outside. */
export interface BenchProcess {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** What it said first, when it began to work. */
  readonly said: string;
}

/**
 * Brings `dist` up to date, so that programs run as an installed package does: without a loader.
 * @throws {Error} with what the compiler says
 */
export async function buildPackage(): Promise<void> {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
  try {
    await promisify(execFile)(process.execPath, [tsc, '-b'], { cwd: ROOT, timeout: BUILD_TIMEOUT_MS });
  } catch (error) {
    throw new Error(`the package does not build: ${(error as { stdout?: string }).stdout ?? ''}`, { cause: error });
  }
}

/** A program of `support/programs` that imports the built package. */
export const builtProgram = (name: string): string => fileURLToPath(new URL(`./programs/${name}.js`, import.meta.url));

/** Starts a program and waits for its first line. @throws {Error} when it ends, or says nothing in a minute */
export async function startBenchProcess(
  command: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<BenchProcess> {
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaints = (complaints + chunk.toString()).slice(-COMPLAINT_CHARS);
  });
  const said = await new Promise<string>((resolve, reject) => {
    let text = '';
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`${args.join(' ')} ${why}: ${complaints}`));
    };
    const timer = setTimeout(fail, START_TIMEOUT_MS, `said nothing in ${START_TIMEOUT_MS} ms`);
    const ended = (code: number | null) => {
      clearTimeout(timer);
      fail(`ended with ${code ?? 'a signal'}`);
    };
    const read = (chunk: Buffer) => {
      text += chunk.toString();
      if (!text.includes('\n')) return;
      clearTimeout(timer);
      child.off('exit', ended);
      child.stdout.off('data', read);
      // What comes later is read even where nobody listens, so that the program never waits for it.
      child.stdout.resume();
      resolve(text.slice(0, text.indexOf('\n')));
    };
    child.once('exit', ended);
    child.stdout.on('data', read);
  });
  return { child, said };
}

/** What only this process holds (`RssAnon`), and all that is resident, code and shared files included (`VmRSS`). */
export async function memoryMegabytes({ child }: BenchProcess): Promise<{ anonymous: number; resident: number }> {
  const status = await readFile(`/proc/${String(child.pid)}/status`, 'utf8');
  const kilobytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]);
  return { anonymous: kilobytes('RssAnon') / 1_024, resident: kilobytes('VmRSS') / 1_024 };
}

/** User and system time so far. */
export async function cpuSeconds({ child }: { readonly child: ChildProcess }): Promise<number> {
  const stat = await readFile(`/proc/${String(child.pid)}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

export async function stopBenchProcess({ child }: BenchProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exited;
}

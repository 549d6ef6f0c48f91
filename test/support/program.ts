import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

/** The compiled program; `npm test` builds it first. */
const BIN = fileURLToPath(new URL('../../dist/src/cli/bin.js', import.meta.url));

/** The program as a process of its own, with what it said so far. */
export interface RunningProgram {
  readonly pid: number;
  readonly said: { out: string; err: string };
  /** Resolves once standard output matches, with the match; rejects when the program ends first. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  kill(signal?: NodeJS.Signals): void;
  /** Resolves with the exit code, or the signal's name. */
  readonly ended: Promise<number | string>;
}

const programs = new Set<ChildProcessByStdio<null, Readable, Readable>>();

/** @param env - nothing of the test's own environment but PATH is handed on */
export function startProgram(
  args: readonly string[],
  { env = {}, cwd }: { env?: Record<string, string>; cwd: string },
): RunningProgram {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  programs.add(child);
  const said = { out: '', err: '' };
  const hearers = new Set<() => void>();
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => {
      programs.delete(child);
      resolve(code ?? signal ?? 'unknown');
    });
  });
  for (const [name, stream] of [
    ['out', child.stdout],
    ['err', child.stderr],
  ] as const) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      said[name] += chunk;
      for (const hearer of hearers) hearer();
    });
  }
  return {
    pid: child.pid ?? -1,
    said,
    ended,
    until(pattern) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = pattern.exec(said.out);
          if (!found) return;
          hearers.delete(look);
          resolve(found);
        };
        hearers.add(look);
        look();
        void ended.then((code) => {
          reject(new Error(`The program ended with ${code} before it said ${String(pattern)}: ${said.err}`));
        });
      });
    },
    kill(signal = 'SIGTERM') {
      child.kill(signal);
    },
  };
}

/** Ends whatever a test left running. */
export function killPrograms(): void {
  for (const child of programs) child.kill('SIGKILL');
}

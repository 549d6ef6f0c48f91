import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PATIENCE_MS = 20_000;

export interface SdkEvent {
  readonly event: string;
  readonly [detail: string]: unknown;
}

/** A Python program of test/interop, and the lines of JSON that it prints. */
export interface SdkProcess {
  readonly events: readonly SdkEvent[];
  /** The first event, printed already or to come, that fits. */
  readonly event: (name: string, fits?: (event: SdkEvent) => boolean) => Promise<SdkEvent>;
  readonly say: (line: string) => void;
  /** Nothing more will be said. */
  readonly end: () => void;
  readonly exited: Promise<number | null>;
  readonly kill: (signal: NodeJS.Signals) => void;
}

export function startSdkProgram(python: string, program: string, env: Record<string, string>): SdkProcess {
  const path = fileURLToPath(new URL(`../interop/${program}`, import.meta.url));
  const child: ChildProcessWithoutNullStreams = spawn(python, [path], {
    env: { PATH: process.env['PATH'] ?? '', PYTHONUNBUFFERED: '1', LANG: 'C.UTF-8', ...env },
  });
  const events: SdkEvent[] = [];
  const waiting = new Set<() => void>();
  const look = () => {
    for (const one of [...waiting]) one();
  };
  let stderr = '';
  let code: number | null | undefined;
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-20_000);
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    events.push(JSON.parse(line) as SdkEvent);
    look();
  });
  const exited = new Promise<number | null>((resolve) => {
    child.on('close', (exitCode) => {
      code = exitCode;
      resolve(exitCode);
      look();
    });
  });

  return {
    events,
    exited,
    event: (name, fits = () => true) =>
      new Promise((resolve, reject) => {
        const end = () => {
          clearTimeout(timer);
          waiting.delete(check);
        };
        const fail = (why: string) => {
          end();
          reject(new Error(`${why} before "${name}"; events: ${JSON.stringify(events)}; stderr: ${stderr}`));
        };
        const check = () => {
          const found = events.find((event) => event.event === name && fits(event));
          if (found) {
            end();
            resolve(found);
          } else if (code !== undefined) fail(`exit with ${String(code)}`);
        };
        const timer = setTimeout(() => {
          fail(`nothing for ${PATIENCE_MS} ms`);
        }, PATIENCE_MS);
        waiting.add(check);
        check();
      }),
    say: (line) => {
      child.stdin.write(`${line}\n`);
    },
    end: () => {
      child.stdin.end();
    },
    kill: (signal) => {
      child.kill(signal);
    },
  };
}

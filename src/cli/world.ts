/** The process as a command sees it. */
export interface CliWorld {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** A person's terminal is behind one of the streams; its end is told by SIGHUP. */
  readonly isTerminal: boolean;
  /** Results; one call per chunk of text. */
  readonly out: (text: string) => void;
  /** Words for a person beside the result: problems, hints. */
  readonly err: (text: string) => void;
  /** Calls `handler` for each SIGTERM, SIGINT and SIGHUP; returns what takes it off again. */
  onSignal(handler: (signal: NodeJS.Signals) => void): () => void;
  /**
   * Takes what nobody caught instead of Node, which would print it as it is, secrets and all. `rejection`: a promise that
   * nobody waited for, after which the rest is sound; `exception`: anything may be broken.
   */
  onCrash(handler: (kind: 'rejection' | 'exception', error: unknown) => void): void;
  /** Ends the process without waiting for anything. */
  exit(code: number): void;
}

/** 0: done; 1: failed while running; 2: wrong use or wrong settings. */
export type ExitCode = 0 | 1 | 2;

const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

// Whoever read our output may be gone (`| head`); that is no reason to end, and the write's own failure is all there is.
let ignoresBrokenPipe = false;
function write(stream: NodeJS.WriteStream, text: string): void {
  if (!ignoresBrokenPipe) {
    ignoresBrokenPipe = true;
    for (const one of [process.stdout, process.stderr]) one.on('error', () => undefined);
  }
  stream.write(text);
}

export const processWorld: CliWorld = {
  env: process.env,
  cwd: process.cwd(),
  // Read when asked for: `acp` gives its streams other uses first.
  get isTerminal() {
    return [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
  },
  out: (text) => {
    write(process.stdout, text);
  },
  err: (text) => {
    write(process.stderr, text);
  },
  onSignal(handler) {
    for (const signal of SIGNALS) process.on(signal, handler);
    return () => {
      for (const signal of SIGNALS) process.off(signal, handler);
    };
  },
  onCrash(handler) {
    process.on('unhandledRejection', (error) => {
      handler('rejection', error);
    });
    process.on('uncaughtException', (error) => {
      handler('exception', error);
    });
  },
  exit(code) {
    process.exit(code);
  },
};

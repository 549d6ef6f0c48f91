import { Writable } from 'node:stream';

/** The process's standard streams, as far as they are taken over. */
export interface StandardStreams {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** The way to a standard output that is guarded already. */
const guarded = new WeakMap<NodeJS.WriteStream, NodeJS.WriteStream['write']>();

/**
 * Sends to standard error what anybody writes to standard output from now on. Call it before anything is loaded that
 * might print; {@link claimStdout} finds the way back.
 */
export function guardStdout({ stdout, stderr }: StandardStreams): void {
  if (guarded.has(stdout)) return;
  guarded.set(stdout, stdout.write.bind(stdout));
  stdout.write = stderr.write.bind(stderr);
}

/**
 * Takes standard output for the protocol: what anybody else writes there from now on, by `console` or directly, goes
 * to standard error.
 *
 * @returns the only way to standard output that is left; it emits `error` when nobody reads any more
 */
export function claimStdout({ stdout, stderr }: StandardStreams): Writable {
  guardStdout({ stdout, stderr });
  const write = guarded.get(stdout) ?? stdout.write.bind(stdout);
  const protocol = new Writable({
    decodeStrings: true,
    write(chunk: Buffer, _encoding, done) {
      write(chunk, done);
    },
  });
  stdout.on('error', (error: Error) => {
    protocol.destroy(error);
  });
  // A reader of the log that went away is no reason to end.
  stderr.on('error', () => undefined);
  return protocol;
}

/** Waits until everything written has left the process, at most `ms`. */
export async function drained(protocol: Writable, ms: number): Promise<void> {
  if (protocol.destroyed) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    protocol.end(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

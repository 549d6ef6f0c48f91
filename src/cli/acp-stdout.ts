import { Writable } from 'node:stream';

/** The process's standard streams, as far as they are taken over. */
export interface StandardStreams {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/**
 * Takes standard output for the protocol: what anybody else writes there from now on, by `console` or directly, goes
 * to standard error.
 *
 * @returns the only way to standard output that is left; it emits `error` when nobody reads any more
 */
export function claimStdout({ stdout, stderr }: StandardStreams): Writable {
  const write = stdout.write.bind(stdout);
  const protocol = new Writable({
    decodeStrings: true,
    write(chunk: Buffer, _encoding, done) {
      write(chunk, done);
    },
  });
  stdout.write = stderr.write.bind(stderr);
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

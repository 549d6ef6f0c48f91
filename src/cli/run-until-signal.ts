import { toError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { CliWorld, ExitCode } from './world.js';

export interface RunUntilSignalOptions {
  readonly world: CliWorld;
  readonly log: Logger;
  /** Ends everything in order. */
  readonly stop: () => Promise<void>;
  /** Longest time that may take; past it the process ends anyway. */
  readonly deadlineMs: number;
}

/**
 * Waits for a signal to stop, then stops. A second signal ends the process at once; everything accepted is on disk by
 * then, so nothing is lost by it.
 *
 * @returns 0 after an orderly end, 1 when it failed or took longer than the deadline
 */
export async function runUntilSignal({ world, log, stop, deadlineMs }: RunUntilSignalOptions): Promise<ExitCode> {
  return await new Promise<ExitCode>((resolve) => {
    let signals = 0;
    const stopListening = world.onSignal((signal) => {
      signals += 1;
      if (signals > 1) {
        log.warn({ signal }, 'second signal: ending at once');
        world.exit(1);
        return;
      }
      log.info({ signal }, 'stopping');
      const finish = (code: ExitCode): void => {
        clearTimeout(deadline);
        stopListening();
        resolve(code);
      };
      const deadline = setTimeout(() => {
        log.error({ deadlineMs }, 'stopping took too long: ending anyway');
        finish(1);
      }, deadlineMs);
      stop().then(
        () => {
          finish(0);
        },
        (error: unknown) => {
          log.error({ err: toError(error) }, 'did not stop cleanly');
          finish(1);
        },
      );
    });
  });
}

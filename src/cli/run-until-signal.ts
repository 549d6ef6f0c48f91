import { toError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { CliWorld, ExitCode } from './world.js';

export interface RunUntilSignalOptions {
  readonly world: CliWorld;
  readonly log: Logger;
  /** Ends everything in order. */
  readonly stop: () => Promise<void>;
  /** What SIGHUP asks for instead of an end. One at a time; its failure is logged and changes nothing. */
  readonly reload?: () => Promise<void>;
  /** Longest time that stopping may take; past it the process ends anyway. */
  readonly deadlineMs: number;
}

/**
 * Waits for a signal to stop, then stops. A second signal ends the process at once; everything accepted is on disk by
 * then, so nothing is lost by it.
 *
 * @returns 0 after an orderly end, 1 when it failed or took longer than the deadline
 */
export async function runUntilSignal(options: RunUntilSignalOptions): Promise<ExitCode> {
  const { world, log, stop, reload, deadlineMs } = options;
  return await new Promise<ExitCode>((resolve) => {
    let signals = 0;
    let reloading = Promise.resolve();
    const stopListening = world.onSignal((signal) => {
      if (signal === 'SIGHUP' && reload) {
        if (signals > 0) return;
        reloading = reloading.then(reload).catch((error: unknown) => {
          log.error({ err: toError(error) }, 'the settings could not be read again; everything stays as it was');
        });
        return;
      }
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

import { toError } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';

export type StopStep = () => Promise<void> | void;

/**
 * Takes every step after the one before it, also after one that failed.
 *
 * @throws {AggregateError} what failed, once all steps are taken
 */
export async function stopInOrder(steps: readonly StopStep[], log: Logger): Promise<void> {
  const failures: Error[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(toError(error));
      log.error({ err: error }, 'a part of the Slack bridge did not stop');
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'The Slack bridge did not stop in order');
}

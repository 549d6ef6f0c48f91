import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';

const SAY_AGAIN_AFTER_MS = 60_000;

/**
 * Says why deliveries are not taken in. Each cause is told once a minute, with how many it kept out untold: an inbox
 * that is full refuses thousands a second, and a log line costs more than the refusal.
 */
export function createRefusalLog({ clock, log }: { clock: Clock; log: Logger }): (error: unknown, app: string) => void {
  const told = new Map<string, { at: number; untold: number }>();
  return (error, app) => {
    const cause = `${app} ${isGatewayError(error) ? error.code : 'unexpected'}`;
    const before = told.get(cause);
    if (before && clock.now() - before.at < SAY_AGAIN_AFTER_MS) {
      before.untold += 1;
      return;
    }
    told.set(cause, { at: clock.now(), untold: 0 });
    const untold = before?.untold ?? 0;
    log.error({ err: error, app, untold }, 'a delivery could not be taken in: Slack is asked to repeat it');
  };
}

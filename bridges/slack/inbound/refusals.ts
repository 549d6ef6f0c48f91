import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import { createToldRarely } from '../../../src/base/told-rarely.js';

const SAY_AGAIN_AFTER_MS = 60_000;

/**
 * Says why deliveries are not taken in. Each cause is told once a minute, with how many it kept out untold: an inbox
 * that is full refuses thousands a second, and a log line costs more than the refusal.
 */
export function createRefusalLog({ clock, log }: { clock: Clock; log: Logger }): (error: unknown, app: string) => void {
  const untoldOf = createToldRarely(clock, SAY_AGAIN_AFTER_MS);
  return (error, app) => {
    const untold = untoldOf(`${app} ${isGatewayError(error) ? error.code : 'unexpected'}`);
    if (untold === null) return;
    log.error({ err: error, app, untold }, 'a delivery could not be taken in: Slack is asked to repeat it');
  };
}

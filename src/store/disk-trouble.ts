import { backoffMs } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { isGatewayError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import { createToldRarely } from '../base/told-rarely.js';
import type { Slot } from './queue-lanes.js';

export interface DiskTroubleDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The queue's name in the log. */
  readonly prefix: string;
}

/** The store reopens itself within seconds once the disk lets it. */
const BACKOFF = { baseMs: 1_000, maxMs: 30_000 } as const;
const SAY_AGAIN_AFTER_MS = 10 * 60_000;

/**
 * A try that the disk ended is charged to nobody: its record waits, longer each time. What is wrong is said when it
 * begins and every ten minutes after, with how many tries it has ended untold: a queue whose disk is gone may hold
 * thousands of records.
 */
export function createDiskTrouble({
  clock,
  log,
  prefix,
}: DiskTroubleDeps): (slot: Slot<unknown>, error: unknown, what: string) => void {
  const untoldOf = createToldRarely(clock, SAY_AGAIN_AFTER_MS);
  return (slot, error, what) => {
    slot.notBefore = clock.now() + backoffMs(slot.diskTries, BACKOFF);
    const untold = untoldOf(`${what} ${isGatewayError(error) ? error.code : 'unexpected'}`);
    if (untold === null) return;
    log.error({ err: error, queue: prefix, id: slot.state.id, untold }, what);
  };
}

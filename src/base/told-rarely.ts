import type { Clock } from './clock.js';

/**
 * For what may happen thousands of times a second and is worth a log line only now and then: each cause is told when it
 * begins, and again once `everyMs` have passed.
 *
 * @returns how many were left untold since the last time, or null where this one is left untold too; causes must be few
 */
export function createToldRarely(clock: Clock, everyMs: number): (cause: string) => number | null {
  const told = new Map<string, { at: number; untold: number }>();
  return (cause) => {
    const before = told.get(cause);
    if (before && clock.now() - before.at < everyMs) {
      before.untold += 1;
      return null;
    }
    told.set(cause, { at: clock.now(), untold: 0 });
    return before?.untold ?? 0;
  };
}

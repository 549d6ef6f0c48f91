import { systemClock, type Clock } from '../../src/base/clock.js';

/** Time that passes `factor` times as fast as outside, so that half a minute of waiting fits into a test. */
export function createFastClock(factor: number): Clock {
  const begun = Date.now();
  return {
    now: () => begun + (Date.now() - begun) * factor,
    sleep: (ms, signal) => systemClock.sleep(ms / factor, signal),
    after: (ms, fn) => systemClock.after(ms / factor, fn),
    every: (ms, fn) => systemClock.every(ms / factor, fn),
  };
}

/** The machine's time, which somebody sets: `now()` jumps, waits under way go on as they were. */
export function createSettableClock(): Clock & { set(byMs: number): void } {
  let offset = 0;
  return {
    ...systemClock,
    now: () => Date.now() + offset,
    set(byMs) {
      offset += byMs;
    },
  };
}

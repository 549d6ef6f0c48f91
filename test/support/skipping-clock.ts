import type { CancelTimer, Clock } from '../../src/base/clock.js';
import { sleepBy } from '../../src/testing/manual-clock.js';

/** The machine's time with a piece left out whenever a test wants it: hours pass at once, real I/O goes on as ever. */
export interface SkippingClock extends Clock {
  /** Moves the time on by `ms`; what is due by then happens now, in order. */
  advance(ms: number): void;
}

interface Timer {
  at: number;
  readonly everyMs: number | null;
  readonly fn: () => void;
}

export function createSkippingClock(): SkippingClock {
  let skipped = 0;
  let alarm: NodeJS.Timeout | undefined;
  const timers = new Set<Timer>();
  const now = () => Date.now() + skipped;

  const ring = (): void => {
    for (const timer of [...timers].sort((a, b) => a.at - b.at)) {
      if (timer.at > now() || !timers.has(timer)) continue;
      if (timer.everyMs === null) timers.delete(timer);
      else timer.at = now() + timer.everyMs;
      timer.fn();
    }
    wind();
  };
  const wind = (): void => {
    clearTimeout(alarm);
    if (timers.size === 0) return;
    alarm = setTimeout(ring, Math.max(0, Math.min(...[...timers].map(({ at }) => at)) - now()));
    alarm.unref();
  };
  const add = (ms: number, fn: () => void, everyMs: number | null): CancelTimer => {
    const timer: Timer = { at: now() + Math.max(0, ms), everyMs, fn };
    timers.add(timer);
    wind();
    return () => {
      timers.delete(timer);
      wind();
    };
  };

  return {
    now,
    sleep: sleepBy((ms, fn) => add(ms, fn, null)),
    after: (ms, fn) => add(ms, fn, null),
    every: (ms, fn) => add(ms, fn, ms),
    advance(ms) {
      skipped += ms;
      ring();
    },
  };
}

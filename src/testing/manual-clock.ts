import { onAbort } from '../base/async.js';
import type { CancelTimer, Clock } from '../base/clock.js';

interface Timer {
  at: number;
  seq: number;
  fn: () => void;
  everyMs: number | null;
}

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /**
   * Moves time forward by `ms`, firing due timers in order and letting the promises they settle run in between.
   * Work that itself waits for real I/O is not waited for.
   */
  advance(ms: number): Promise<void>;
  /** Sets the time without firing anything: what a host that slept, or an operator, does to the real clock. */
  jump(ms: number): void;
  /** How many timers are waiting. */
  readonly pending: number;
  /** Milliseconds until the next timer, or null when none waits. */
  readonly nextInMs: number | null;
}

/** @param start - milliseconds since the epoch at which the clock stands; default 2026-01-01T00:00:00Z */
export function createManualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start;
  let seq = 0;
  const timers = new Set<Timer>();

  const add = (ms: number, fn: () => void, everyMs: number | null): CancelTimer => {
    // Whole milliseconds, like a real clock: fractions would creep into every time that is derived from it.
    const timer: Timer = { at: now + Math.max(0, Math.ceil(ms)), seq: seq++, fn, everyMs };
    timers.add(timer);
    return () => {
      timers.delete(timer);
    };
  };
  const next = (): Timer | null => {
    let found: Timer | null = null;
    for (const timer of timers) {
      if (!found || timer.at < found.at || (timer.at === found.at && timer.seq < found.seq)) found = timer;
    }
    return found;
  };
  // A macrotask turn lets every chain of settled promises run to its end.
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

  return {
    now: () => now,
    sleep: sleepBy((ms, fn) => add(ms, fn, null)),
    after: (ms, fn) => add(ms, fn, null),
    every: (ms, fn) => add(ms, fn, ms),
    async advance(ms) {
      const end = now + ms;
      await settle();
      for (let due = next(); due && due.at <= end; due = next()) {
        now = Math.max(now, due.at);
        if (due.everyMs === null) timers.delete(due);
        else {
          due.at = now + Math.max(1, due.everyMs);
          due.seq = seq++;
        }
        due.fn();
        await settle();
      }
      now = Math.max(now, end);
      await settle();
    },
    jump(ms) {
      now += ms;
    },
    get pending() {
      return timers.size;
    },
    get nextInMs() {
      const due = next();
      return due ? due.at - now : null;
    },
  };
}

/** A clock's `sleep`, made of its `after`. */
export function sleepBy(after: Clock['after']): Clock['sleep'] {
  return (ms, signal) =>
    new Promise((resolve, reject) => {
      const cancel = after(ms, () => {
        release();
        resolve();
      });
      const release = onAbort(signal, (reason) => {
        cancel();
        reject(reason);
      });
    });
}

import { onAbort } from './async.js';

/** Stops a timer that has not fired yet; calling it again, or after the timer fired, does nothing. */
export type CancelTimer = () => void;

/**
 * The passing of time, as an argument. Production code takes {@link systemClock}, tests move a manual clock by hand.
 * All durations are milliseconds.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. May jump when the host sleeps or its clock is set. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason as soon as `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `fn` once after `ms`. The timer does not keep the process alive. */
  after(ms: number, fn: () => void): CancelTimer;
  /** Calls `fn` each `ms` until cancelled. The timer does not keep the process alive. */
  every(ms: number, fn: () => void): CancelTimer;
}

// setTimeout fires at once for delays beyond 2^31 - 1; a wait that long is as good as the longest one.
const LONGEST_DELAY_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => {
          release();
          resolve();
        },
        Math.min(ms, LONGEST_DELAY_MS),
      );
      const release = onAbort(signal, (reason) => {
        clearTimeout(timer);
        reject(reason);
      });
    }),
  after(ms, fn) {
    const timer = setTimeout(fn, Math.min(ms, LONGEST_DELAY_MS));
    timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
  every(ms, fn) {
    const timer = setInterval(fn, Math.min(ms, LONGEST_DELAY_MS));
    timer.unref();
    return () => {
      clearInterval(timer);
    };
  },
};

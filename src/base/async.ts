import type { Clock } from './clock.js';
import { GatewayError } from './errors.js';

interface Wait {
  readonly fn: (reason: Error) => void;
}

/**
 * Who waits for a signal, in the order they came. A service waits for one signal in a great many places at once, and an
 * EventTarget goes through all its listeners for each that comes or goes, so every signal has one of ours.
 */
const waits = new WeakMap<AbortSignal, { readonly all: Set<Wait>; readonly stop: () => void }>();

function waitsFor(signal: AbortSignal) {
  const known = waits.get(signal);
  if (known) return known;
  const all = new Set<Wait>();
  const follow = () => {
    for (const wait of all) {
      all.delete(wait);
      wait.fn(signal.reason as Error);
    }
  };
  const made = {
    all,
    stop() {
      signal.removeEventListener('abort', follow);
      waits.delete(signal);
    },
  };
  signal.addEventListener('abort', follow, { once: true });
  waits.set(signal, made);
  return made;
}

/** Calls `fn` once with the reason when the signal aborts, at once when it has. @returns stops waiting for it */
export function onAbort(signal: AbortSignal | null | undefined, fn: (reason: Error) => void): () => void {
  if (!signal) return nothing;
  if (signal.aborted) {
    fn(signal.reason as Error);
    return nothing;
  }
  const { all, stop } = waitsFor(signal);
  const wait: Wait = { fn };
  all.add(wait);
  return () => {
    // The last to go takes the listener along: one that stays would keep a signal of `AbortSignal.any` alive.
    if (all.delete(wait) && all.size === 0) stop();
  };
}

const nothing = () => undefined;

/** A signal with a lifetime of its own, detached from its parents by `dispose`. */
export interface ChildSignal extends Disposable {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

/**
 * A signal that aborts with any of its parents, and leaves nothing behind on them once disposed of.
 * `AbortSignal.any` keeps about a kilobyte per call alive for as long as a parent lives.
 */
export function childSignal(...parents: (AbortSignal | null | undefined)[]): ChildSignal {
  const controller = new AbortController();
  const abort = (reason?: unknown): void => {
    controller.abort(reason);
  };
  const releases = parents.map((parent) => onAbort(parent, abort));
  return {
    signal: controller.signal,
    abort,
    [Symbol.dispose]() {
      for (const release of releases) release();
    },
  };
}

/** A promise with its two ends in hand. */
export interface Deferred<T = void> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((ok, no) => {
    resolve = ok;
    reject = no;
  });
  return { promise, resolve, reject };
}

/**
 * What `work` comes to or fails with, unless the wait for it is ended before; the work itself goes on.
 *
 * @param arm - called before the work begins with what ends the wait, returns what disarms it
 */
function unlessEnded<T>(arm: (end: (reason: Error) => void) => () => void, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const disarm = arm(reject);
    const failed = (error: Error): void => {
      disarm();
      reject(error);
    };
    work().then((value) => {
      disarm();
      resolve(value);
    }, failed);
  });
}

/** Waits for `promise`, or rejects with the signal's reason; the promise itself goes on. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | null | undefined): Promise<T> {
  if (!signal) return promise;
  return unlessEnded(
    (fail) => onAbort(signal, fail),
    () => promise,
  );
}

/**
 * Runs `work` with a signal that aborts after `ms`.
 *
 * @throws {GatewayError} `DEADLINE_EXCEEDED` when the time is over, even if `work` ignores its signal
 */
export function withDeadline<T>(
  clock: Clock,
  ms: number,
  parent: AbortSignal | null | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  return unlessEnded(
    (fail) => {
      const end = (reason: Error) => {
        controller.abort(reason);
        fail(reason);
      };
      const cancel = afterDeadline(clock, ms, (late) => {
        release();
        end(late);
      });
      const release = onAbort(parent, (reason) => {
        cancel();
        end(reason);
      });
      return () => {
        release();
        cancel();
      };
    },
    () => begun(work, controller.signal),
  );
}

/** Work that throws before its first wait fails like work that rejects. */
async function begun<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  return work(signal);
}

/**
 * Waits for `promise` at most `ms`; what it stands for goes on. A fraction of the cost of {@link withDeadline}, for
 * work that takes no signal.
 *
 * @throws {GatewayError} `DEADLINE_EXCEEDED` when the time is over
 */
export function within<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T> {
  return unlessEnded(
    (fail) => afterDeadline(clock, ms, fail),
    () => promise,
  );
}

function afterDeadline(clock: Clock, ms: number, end: (reason: Error) => void): () => void {
  return clock.after(ms, () => {
    end(new GatewayError('DEADLINE_EXCEEDED', { details: { ms } }));
  });
}

/** Work that nobody awaits by name: it is drained at stop, and its failures reach one handler. */
export class Background {
  readonly #onError: (error: unknown) => void;
  /** A count and no list: a list of what comes and goes keeps V8 carrying the gone through its collections. */
  #running = 0;
  #idle: Deferred | null = null;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  run(work: () => Promise<void>): void {
    this.#running += 1;
    void this.#settle(work);
  }

  get size(): number {
    return this.#running;
  }

  /** Resolves when everything handed in so far, and what that handed in, has settled. */
  async drain(): Promise<void> {
    while (this.#running > 0) {
      this.#idle ??= deferred();
      await this.#idle.promise;
    }
  }

  async #settle(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#running -= 1;
      if (this.#running === 0) {
        this.#idle?.resolve();
        this.#idle = null;
      }
    }
  }
}

import { setMaxListeners } from 'node:events';
import type { Clock } from './clock.js';
import { GatewayError, toError } from './errors.js';

// A service waits on one signal in many places at once: Node's warning at eleven listeners says nothing here.
const unlimited = new WeakSet<AbortSignal>();
function listen(signal: AbortSignal, follow: (event: Event) => void): void {
  if (!unlimited.has(signal)) {
    setMaxListeners(0, signal);
    unlimited.add(signal);
  }
  signal.addEventListener('abort', follow, { once: true });
}

/** Calls `fn` once with the reason when the signal aborts, at once when it has. @returns stops waiting for it */
export function onAbort(signal: AbortSignal | null | undefined, fn: (reason: Error) => void): () => void {
  if (!signal) return nothing;
  const follow = () => {
    fn(signal.reason as Error);
  };
  if (signal.aborted) {
    follow();
    return nothing;
  }
  listen(signal, follow);
  return () => {
    signal.removeEventListener('abort', follow);
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
  const follow = (event: Event) => {
    controller.abort((event.target as AbortSignal).reason);
  };
  const live = parents.filter((parent) => parent != null);
  for (const parent of live) {
    if (parent.aborted) {
      controller.abort(parent.reason);
      break;
    }
    listen(parent, follow);
  }
  return {
    signal: controller.signal,
    abort: (reason) => {
      controller.abort(reason);
    },
    [Symbol.dispose]() {
      for (const parent of live) parent.removeEventListener('abort', follow);
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

/** Waits for `promise`, or rejects with the signal's reason; the promise itself goes on. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | null | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise<T>((resolve, reject) => {
    const release = onAbort(signal, reject);
    void promise.then(resolve, reject).then(release);
  });
}

/**
 * Runs `work` with a signal that aborts after `ms`.
 *
 * @throws {GatewayError} `DEADLINE_EXCEEDED` when the time is over, even if `work` ignores its signal
 */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  parent: AbortSignal | null | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const late = deferred<never>();
  const end = (reason: Error) => {
    controller.abort(reason);
    late.reject(reason);
  };
  const release = onAbort(parent, end);
  const cancel = clock.after(ms, () => {
    end(new GatewayError('DEADLINE_EXCEEDED', { details: { ms } }));
  });
  try {
    return await Promise.race([begun(work, controller.signal), late.promise]);
  } finally {
    release();
    cancel();
  }
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
  return new Promise<T>((resolve, reject) => {
    const cancel = clock.after(ms, () => {
      reject(new GatewayError('DEADLINE_EXCEEDED', { details: { ms } }));
    });
    promise.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error: unknown) => {
        cancel();
        reject(toError(error));
      },
    );
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

import { setImmediate } from 'node:timers';
import { toError } from '../base/errors.js';
import type { CancelTimer, Clock } from '../base/clock.js';

/** How long an adapter may take to unwind after its signal fired, before it is left behind. */
export const UNWIND_GRACE_MS = 1_000;

/** Why a cycle was ended from outside. */
export type AbortKind = 'interrupt' | 'stop' | 'room_stopped' | 'shutdown' | 'room_left';

export type CycleResult =
  | { readonly kind: 'completed' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'timed_out'; readonly seconds: number }
  | { readonly kind: 'aborted'; readonly by: AbortKind };

/** The reason an adapter finds on its signal. */
export class CycleAborted extends Error {
  readonly by: AbortKind | 'timeout';

  constructor(by: AbortKind | 'timeout') {
    super(`The cycle was ended: ${by}.`);
    this.name = 'CycleAborted';
    this.by = by;
  }
}

export interface CycleOptions {
  readonly clock: Clock;
  /** From `maxCycleSeconds`; null for no limit. */
  readonly maxSeconds: number | null;
  /** Called when an adapter that was left behind fails after all. */
  readonly onLateError: (error: Error) => void;
}

/**
 * One run of the adapter for one message: it ends when the adapter settles, or at most a second after it was told
 * to end. Whoever ended it first has the last word, except that a person's signal beats the time limit.
 */
export class Cycle {
  readonly #controller = new AbortController();
  readonly #options: CycleOptions;
  #by: AbortKind | 'timeout' | null = null;
  #settled = false;
  #leave: (() => void) | null = null;
  #cancelGrace: CancelTimer | null = null;

  constructor(options: CycleOptions) {
    this.#options = options;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Who ended the cycle so far. */
  get endedBy(): AbortKind | 'timeout' | null {
    return this.#by;
  }

  /** True while the adapter is at work. */
  get running(): boolean {
    return this.#leave !== null;
  }

  /** Ends the cycle, also one that has not begun. After the adapter settled it does nothing. */
  abort(by: AbortKind): void {
    if (this.#settled) return;
    if (this.#by === null || this.#by === 'timeout') this.#by = by;
    this.#end(by);
  }

  /** Runs `work` once. A cycle that was ended before never calls it. */
  async run(work: (signal: AbortSignal) => Promise<void>): Promise<CycleResult> {
    if (this.#by !== null) return this.#result(null);
    const { clock, maxSeconds, onLateError } = this.#options;
    const cancelLimit =
      maxSeconds === null
        ? null
        : clock.after(maxSeconds * 1_000, () => {
            // An adapter that finishes at the very moment of the limit has finished.
            setImmediate(() => {
              if (this.#settled) return;
              this.#by ??= 'timeout';
              this.#end('timeout');
            });
          });
    try {
      const outcome = await new Promise<{ error: unknown } | null | 'left'>((resolve) => {
        let left = false;
        this.#leave = () => {
          left = true;
          resolve('left');
        };
        start(work, this.signal).then(
          () => {
            this.#settled = true;
            resolve(null);
          },
          (error: unknown) => {
            this.#settled = true;
            if (left) onLateError(toError(error));
            resolve({ error });
          },
        );
      });
      this.#settled = true;
      return this.#result(outcome === 'left' ? null : outcome);
    } finally {
      cancelLimit?.();
      this.#cancelGrace?.();
      this.#leave = null;
    }
  }

  #end(by: AbortKind | 'timeout'): void {
    if (this.#controller.signal.aborted) return;
    this.#controller.abort(new CycleAborted(by));
    if (this.#leave) this.#cancelGrace = this.#options.clock.after(UNWIND_GRACE_MS, this.#leave);
  }

  #result(failure: { error: unknown } | null): CycleResult {
    if (this.#by === 'timeout') return { kind: 'timed_out', seconds: this.#options.maxSeconds ?? 0 };
    if (this.#by !== null) return { kind: 'aborted', by: this.#by };
    return failure ? { kind: 'failed', error: failure.error } : { kind: 'completed' };
  }
}

/** An adapter that throws before its first await fails like one that rejects. */
async function start(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  await work(signal);
}

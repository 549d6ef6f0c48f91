/** The waits between two looks for missed messages, in milliseconds. */
export interface ResyncTimes {
  /** First and smallest wait; also the wait after a failure. */
  readonly baseMs: number;
  /** Where doubling ends; a value under the base counts as the base. */
  readonly capMs: number;
  /** Fixed wait while a received stop pauses the room. */
  readonly stoppedMs: number;
}

export function resyncTimes(settings: {
  readonly idleResyncSeconds: number;
  readonly idleResyncMaxSeconds: number;
  readonly stoppedResyncSeconds: number | null;
}): ResyncTimes {
  const baseMs = settings.idleResyncSeconds * 1_000;
  return {
    baseMs,
    capMs: Math.max(baseMs, settings.idleResyncMaxSeconds * 1_000),
    stoppedMs: (settings.stoppedResyncSeconds ?? settings.idleResyncSeconds) * 1_000,
  };
}

/** How a look for missed messages ended. */
export type PassResult = 'empty' | 'worked' | 'failed' | 'blocked';

/**
 * When a room next looks for messages that no push announced. The deadline is a moment, not an idle timer: traffic
 * can bring it closer, never push it away.
 */
export class ResyncSchedule {
  readonly #times: ResyncTimes;
  #intervalMs: number;
  #deadline = Number.POSITIVE_INFINITY;

  constructor(times: ResyncTimes) {
    this.#times = times;
    this.#intervalMs = times.baseMs;
  }

  /** Milliseconds since the epoch; infinite before the first synchronisation. */
  get deadline(): number {
    return this.#deadline;
  }

  /** The startup synchronisation failed, or is done. Only here is the wait random, to spread rooms. */
  started(now: number, random: () => number): void {
    this.#intervalMs = this.#times.baseMs;
    this.#deadline = now + random() * this.#times.baseMs;
  }

  /** A synchronisation that could not be finished is tried again after the base interval. */
  retryAfterBase(now: number): void {
    this.#intervalMs = this.#times.baseMs;
    this.#deadline = now + this.#times.baseMs;
  }

  passEnded(result: PassResult, now: number): void {
    this.#intervalMs = result === 'empty' ? Math.min(2 * this.#intervalMs, this.#times.capMs) : this.#times.baseMs;
    this.#deadline = now + this.#intervalMs;
  }

  pausedPassEnded(now: number): void {
    this.#deadline = now + this.#times.stoppedMs;
  }

  /** New work came over the socket. */
  sawWork(now: number): void {
    this.#intervalMs = this.#times.baseMs;
    this.#deadline = Math.min(this.#deadline, now + this.#times.baseMs);
  }

  /** A stop brings a farther deadline to the stopped interval. */
  stopped(now: number): void {
    this.#deadline = Math.min(this.#deadline, now + this.#times.stoppedMs);
  }

  /** Play, reconnect or an explicit wish: the pass itself follows at the next boundary. */
  requested(): void {
    this.#intervalMs = this.#times.baseMs;
  }
}

import type { CancelTimer, Clock } from '../../../src/base/clock.js';

export type TimerName = 'silence' | 'expiry' | 'settle' | 'hold' | 'poll';

/**
 * Named timers by task. Each is set as a length of time, so a clock that is put forward or back fires none of them at
 * once and holds none of them up.
 */
export class TaskTimers {
  readonly #clock: Clock;
  readonly #timers = new Map<string, Map<TimerName, CancelTimer>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#timers.size;
  }

  /** Sets, or sets anew. */
  set(taskId: string, name: TimerName, ms: number, fire: () => void): void {
    const timers = this.#timers.get(taskId) ?? new Map<TimerName, CancelTimer>();
    this.#timers.set(taskId, timers);
    timers.get(name)?.();
    timers.set(
      name,
      this.#clock.after(Math.max(0, ms), () => {
        timers.delete(name);
        fire();
      }),
    );
  }

  /** Whether anything was set for the task. */
  knows(taskId: string): boolean {
    return this.#timers.has(taskId);
  }

  has(taskId: string, name: TimerName): boolean {
    return this.#timers.get(taskId)?.has(name) ?? false;
  }

  clear(taskId: string, ...names: readonly TimerName[]): void {
    const timers = this.#timers.get(taskId);
    for (const name of names) {
      timers?.get(name)?.();
      timers?.delete(name);
    }
  }

  clearAll(taskId: string): void {
    for (const cancel of this.#timers.get(taskId)?.values() ?? []) cancel();
    this.#timers.delete(taskId);
  }

  stop(): void {
    for (const taskId of [...this.#timers.keys()]) this.clearAll(taskId);
  }
}

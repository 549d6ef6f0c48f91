import type { Clock } from '../base/clock.js';
import { BoundedMap } from '../base/bounded.js';
import type { Logger } from '../base/log.js';
import type { BandRest } from '../platform/rest/band-rest.js';

export interface WorkingIndicatorDeps {
  readonly rest: Pick<BandRest, 'reportActivity'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly keepAliveSeconds: number;
  readonly requestTimeoutSeconds: number;
  /** Null for no end. */
  readonly maxSeconds: number | null;
}

const MAX_FAILING_ROOMS = 1_000;

/**
 * Tells the platform that the agent is at work in a room, again and again while it is. Reports of one room never
 * overlap and keep their order; none of them delays or fails the work.
 */
export class WorkingIndicator {
  readonly #deps: WorkingIndicatorDeps;
  /** The last report of each room that is under way or waits for the one before. */
  readonly #reports = new Map<string, Promise<void>>();
  readonly #failing = new BoundedMap<string, true>(MAX_FAILING_ROOMS);

  constructor(deps: WorkingIndicatorDeps) {
    this.#deps = deps;
  }

  /** Shows the agent at work. @returns ends it, once */
  begin(roomId: string): () => void {
    const { clock, keepAliveSeconds, maxSeconds } = this.#deps;
    const begun = clock.now();
    this.#report(roomId, true);
    let cancel: (() => void) | null = clock.every(keepAliveSeconds * 1_000, () => {
      if (maxSeconds !== null && clock.now() - begun >= maxSeconds * 1_000) {
        cancel?.();
        return;
      }
      // A refresh that meets a slow one would say nothing new.
      if (!this.#reports.has(roomId)) this.#report(roomId, true);
    });
    return () => {
      if (!cancel) return;
      cancel();
      cancel = null;
      this.#report(roomId, false);
    };
  }

  /** Resolves when no report is under way; each has its own deadline, so this ends. */
  async drain(): Promise<void> {
    while (this.#reports.size > 0) await Promise.all(this.#reports.values());
  }

  #report(roomId: string, working: boolean): void {
    const before = this.#reports.get(roomId);
    const report = before ? before.then(() => this.#send(roomId, working)) : this.#send(roomId, working);
    this.#reports.set(roomId, report);
    void report.then(() => {
      if (this.#reports.get(roomId) === report) this.#reports.delete(roomId);
    });
  }

  async #send(roomId: string, working: boolean): Promise<void> {
    const { rest, requestTimeoutSeconds, log } = this.#deps;
    try {
      await rest.reportActivity(roomId, working, { timeoutMs: requestTimeoutSeconds * 1_000 });
      this.#failing.delete(roomId);
    } catch (error) {
      if (this.#failing.has(roomId)) return;
      this.#failing.set(roomId, true);
      log.warn({ err: error, roomId }, 'working state could not be reported; further failures stay quiet');
    }
  }
}

import { abortable, deferred } from './async.js';
import { GatewayError } from './errors.js';

type Job = () => Promise<void>;

export interface LanesOptions {
  /** Jobs that may wait in one lane; one more is refused with `QUEUE_FULL`. */
  maxWaitingPerLane: number;
  /** Lanes that may run at the same time; default no cap beyond the number of lanes. */
  maxRunning?: number;
}

/**
 * Ordered queues by key: jobs of one key run one at a time in the order they came, keys run side by side up to
 * `maxRunning`. A lane costs nothing once it is empty.
 */
export class Lanes {
  readonly #lanes = new Map<string, Job[]>();
  readonly #ready: string[] = [];
  readonly #options: Required<LanesOptions>;
  #running = 0;
  #idle: (() => void)[] = [];

  constructor(options: LanesOptions) {
    this.#options = { maxRunning: Number.POSITIVE_INFINITY, ...options };
  }

  /**
   * Runs `job` after everything that entered the lane before it.
   *
   * @param signal - leaves the queue while waiting; a job that has begun is its own master
   * @returns what the job returns
   * @throws {GatewayError} `QUEUE_FULL` when the lane is full; nothing was queued
   */
  run<T>(key: string, job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const lane = this.#lanes.get(key);
    if (lane && lane.length > this.#options.maxWaitingPerLane) {
      return Promise.reject(new GatewayError('QUEUE_FULL', { details: { lane: key } }));
    }
    const result = deferred<T>();
    let begun = false;
    const entry: Job = async () => {
      if (signal?.aborted) return;
      begun = true;
      await job().then(result.resolve, result.reject);
    };
    if (lane) lane.push(entry);
    else {
      this.#lanes.set(key, [entry]);
      this.#ready.push(key);
    }
    this.#pump();
    if (!signal) return result.promise;
    return abortable(result.promise, signal).catch((error: unknown) => {
      if (begun) return result.promise;
      throw error;
    });
  }

  /** Jobs that wait or run under `key`. */
  depth(key: string): number {
    return this.#lanes.get(key)?.length ?? 0;
  }

  /** Lanes that hold at least one job. */
  get size(): number {
    return this.#lanes.size;
  }

  /** Resolves when no job waits or runs. */
  async drain(): Promise<void> {
    if (this.#lanes.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #pump(): void {
    while (this.#running < this.#options.maxRunning) {
      const key = this.#ready.shift();
      if (key === undefined) return;
      this.#running += 1;
      void this.#runHead(key);
    }
  }

  async #runHead(key: string): Promise<void> {
    const lane = this.#lanes.get(key);
    await lane?.[0]?.();
    lane?.shift();
    this.#running -= 1;
    if (lane && lane.length > 0) this.#ready.push(key);
    else this.#lanes.delete(key);
    this.#pump();
    if (this.#lanes.size === 0) {
      for (const resolve of this.#idle.splice(0)) resolve();
    }
  }
}

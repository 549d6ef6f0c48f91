import { deferred } from '../base/async.js';
import { watchSignals } from './signals.js';

/** What {@link GracefulShutdown} asks of an Agent. */
export interface Stoppable {
  start(): Promise<void>;
  stop(timeout?: number | null): Promise<boolean>;
  runForever(options?: { installSignalHandlers?: boolean }): Promise<void>;
}

export interface GracefulShutdownOptions {
  /** Seconds that running work gets; null cancels it at once. Default 30. */
  readonly timeout?: number | null | undefined;
  /** Called at the first signal, before the agent is stopped. */
  readonly onSignal?: ((signal: NodeJS.Signals) => void) | undefined;
  /** Where the handlers go; default this process. */
  readonly process?: Pick<NodeJS.EventEmitter, 'on' | 'off'> | undefined;
}

const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Stops an Agent when the process is asked to end: SIGINT, SIGTERM or SIGHUP stop it with the timeout, a second one at
 * once, further ones change nothing.
 */
export class GracefulShutdown {
  readonly #agent: Stoppable;
  readonly #options: GracefulShutdownOptions;

  constructor(agent: Stoppable, options: GracefulShutdownOptions = {}) {
    this.#agent = agent;
    this.#options = options;
  }

  /**
   * Waits for a signal, a stop by somebody else, or the end of the connection. The agent is started already.
   *
   * @returns false when running work was cancelled by the stop that a signal caused; else true
   * @throws what `stop()` throws; {BandConnectionError} when the platform ended the connection
   */
  async wait(): Promise<boolean> {
    const { timeout = 30, onSignal, process: target = process } = this.#options;
    const stopping = deferred<Promise<boolean>>();
    const watch = watchSignals(target, SIGNALS, (signal, count) => {
      if (count === 1) {
        onSignal?.(signal);
        stopping.resolve(this.#agent.stop(timeout));
      } else if (count === 2) {
        void this.#agent.stop(null).catch(() => undefined); // reported by the stop that is under way
      }
    });
    try {
      const ended = this.#agent.runForever({ installSignalHandlers: false }).then(() => null);
      const stop = await Promise.race([stopping.promise.then((result) => ({ result })), ended]);
      return stop ? await stop.result : true;
    } finally {
      watch.remove();
    }
  }
}

/** Starts the agent, waits, and leaves it stopped. */
export async function runWithGracefulShutdown(agent: Stoppable, options: GracefulShutdownOptions = {}): Promise<void> {
  await agent.start();
  try {
    await new GracefulShutdown(agent, options).wait();
  } finally {
    await agent.stop(options.timeout === undefined ? 30 : options.timeout);
  }
}

import { Dispatcher } from 'undici';

/**
 * Connections that can be let go of and come back: `close` ends the ones there are, the next request opens new ones. So
 * a REST client that an adapter keeps outlives the stop and the next start of its Agent.
 */
export class RenewableDispatcher extends Dispatcher {
  readonly #open: () => Dispatcher;
  #current: Dispatcher | null = null;

  constructor(open: () => Dispatcher) {
    super();
    this.#open = open;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.#current ??= this.#open();
    return this.#current.dispatch(options, handler);
  }

  override close(): Promise<void>;
  override close(callback: () => void): void;
  override close(callback?: () => void): Promise<void> | void {
    const closing = this.#current?.close() ?? Promise.resolve();
    this.#current = null;
    if (!callback) return closing;
    closing.then(callback, callback);
  }
}

import type { Logger } from '../base/log.js';

/**
 * Logs that rooms cannot be asked for work: once when it begins, once when it is over. An outage meets thousands of rooms
 * in turn and is one trouble.
 */
export class ReadTrouble {
  readonly #log: Logger;
  #failing = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  failed(error: unknown, roomId: string): void {
    const level = this.#failing ? 'debug' : 'warn';
    this.#failing = true;
    this.#log[level]({ err: error, roomId }, 'a room could not be asked for missed messages; it is asked again');
  }

  succeeded(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#log.info('rooms can be asked for missed messages again');
  }
}

import type { StateStore } from '../../../src/store/port.js';

/**
 * Which turns have already shown something in Slack. After a crash a turn that showed nothing simply runs again; one
 * that did is never rerun without being asked (S-089).
 */
export class TurnRecords {
  readonly #store: StateStore;
  readonly #prefix: string;
  /** Turns that run now. */
  readonly #shown = new Set<string>();

  constructor(store: StateStore, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
  }

  /** On disk before the first thing is shown. */
  async show(turnId: string): Promise<void> {
    if (this.#shown.has(turnId)) return;
    await this.#store.batch([{ kind: 'put', key: this.#key(turnId), value: new Uint8Array() }]);
    this.#shown.add(turnId);
  }

  async hasShown(turnId: string): Promise<boolean> {
    return this.#shown.has(turnId) || (await this.#store.get(this.#key(turnId))) !== null;
  }

  /** The turn's record is done: nobody will ask again. */
  async forget(turnId: string): Promise<void> {
    if (!(await this.hasShown(turnId))) return;
    this.#shown.delete(turnId);
    await this.#store.batch([{ kind: 'delete', key: this.#key(turnId) }]);
  }

  #key(turnId: string): string {
    return `${this.#prefix}/${turnId}`;
  }
}

import { z } from 'zod';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';
import { slackKey, type SlackThread } from '../conversation.js';

/** Without a `newTs` its posts stand at the top level of the channel. */
const moveSchema = z.object({ newTs: z.string().nullable(), at: z.number() });
const KEPT_MS = 30 * 24 * 3_600_000;
const MAX_MOVES = 10_000;

/** Threads that Slack has closed, and the message under which they go on. */
export class Moves {
  readonly #store: StateStore;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #moves = new BoundedMap<string, string | null>(MAX_MOVES);

  private constructor(store: StateStore, prefix: string, clock: Clock) {
    this.#store = store;
    this.#prefix = prefix;
    this.#clock = clock;
  }

  static async open(store: StateStore, prefix: string, clock: Clock): Promise<Moves> {
    const moves = new Moves(store, prefix, clock);
    const old: StoreChange[] = [];
    for (const { key, value } of await store.range({ ...prefixRange(`${prefix}/`), limit: MAX_MOVES })) {
      const { newTs, at } = readJson(value, moveSchema);
      if (clock.now() - at > KEPT_MS) old.push({ kind: 'delete', key });
      else moves.#moves.set(key, newTs);
    }
    if (old.length > 0) await store.batch(old);
    return moves;
  }

  /** Under which message a thread's posts go now; null: at the top level of the channel. */
  threadTs(thread: SlackThread): string | null {
    const newTs = this.#moves.get(this.#key(thread));
    return newTs === undefined ? thread.threadTs : newTs;
  }

  async put(thread: SlackThread, newTs: string | null): Promise<void> {
    const key = this.#key(thread);
    this.#moves.set(key, newTs);
    await this.#store.batch([{ kind: 'put', key, value: toBytes({ newTs, at: this.#clock.now() }) }]);
  }

  #key(thread: SlackThread): string {
    return `${this.#prefix}/${slackKey(thread)}`;
  }
}

import { z } from 'zod';
import type { Clock } from '../../../src/base/clock.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';
import { slackMessageSchema, type SlackMessage } from '../messages.js';

const changeSchema = z.object({
  message: slackMessageSchema.nullable(),
  /** When it was noted, milliseconds since the epoch. */
  at: z.number().default(0),
});

/** No message waits longer than this; a change that nobody asked for by then is of a message that never came. */
const KEPT_MS = 14 * 86_400_000;
const PRUNE_PAGE = 1_000;

/**
 * Edits and deletions of messages whose turn has not begun: the message is taken as it last stood, or not at all
 * (S-150, S-152).
 */
export class PendingChanges {
  readonly #store: StateStore;
  readonly #prefix: string;
  readonly #clock: Clock;

  constructor(store: StateStore, prefix: string, clock: Clock) {
    this.#store = store;
    this.#prefix = prefix;
    this.#clock = clock;
  }

  /** @param message - as it stands now; null when it was deleted */
  async put(identity: string, message: SlackMessage | null): Promise<void> {
    await this.#store.batch([
      { kind: 'put', key: this.#key(identity), value: toBytes({ message, at: this.#clock.now() }) },
    ]);
  }

  /** The message as it stands, or null when it was deleted; the given one when nothing changed. */
  async latest(identity: string, message: SlackMessage): Promise<SlackMessage | null> {
    const stored = await this.#store.get(this.#key(identity));
    return stored ? readJson(stored.value, changeSchema).message : message;
  }

  /** Belongs into the batch that ends the message's record. */
  forget(identity: string): StoreChange {
    return { kind: 'delete', key: this.#key(identity) };
  }

  /** Forgets changes of messages that never came. */
  async prune(): Promise<void> {
    const { from, to } = prefixRange(`${this.#prefix}/`);
    for (let next = from; ;) {
      const page = await this.#store.range({ from: next, to, limit: PRUNE_PAGE });
      const old = page.filter(({ value }) => readJson(value, changeSchema).at + KEPT_MS < this.#clock.now());
      if (old.length > 0) await this.#store.batch(old.map(({ key }): StoreChange => ({ kind: 'delete', key })));
      const last = page.at(-1);
      if (!last || page.length < PRUNE_PAGE) return;
      next = `${last.key}\0`;
    }
  }

  #key(identity: string): string {
    return `${this.#prefix}/${identity}`;
  }
}

/** Whether an edit changed what the person said; unfurls and translations arrive as edits too. */
export function isRealEdit(now: SlackMessage, before: SlackMessage | null): boolean {
  if (!now.edited) return false;
  if (!before) return true;
  const said = ({ text, blocks, files }: SlackMessage) =>
    JSON.stringify([text ?? '', blocks ?? [], (files ?? []).map(({ id }) => id)]);
  return said(now) !== said(before);
}

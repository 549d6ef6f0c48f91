import { z } from 'zod';
import { readJson, toBytes } from '../../../src/store/json.js';
import type { StateStore, StoreChange } from '../../../src/store/port.js';
import { slackMessageSchema, type SlackMessage } from '../messages.js';

const changeSchema = z.object({ message: slackMessageSchema.nullable() });

/**
 * Edits and deletions of messages whose turn has not begun: the message is taken as it last stood, or not at all
 * (S-150, S-152).
 */
export class PendingChanges {
  readonly #store: StateStore;
  readonly #prefix: string;

  constructor(store: StateStore, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
  }

  /** @param message - as it stands now; null when it was deleted */
  async put(identity: string, message: SlackMessage | null): Promise<void> {
    await this.#store.batch([{ kind: 'put', key: this.#key(identity), value: toBytes({ message }) }]);
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

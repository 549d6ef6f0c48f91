import { BoundedMap } from '../../../src/base/bounded.js';
import type { RawHistoryMessage } from '../../../src/core/history.js';

const MAX_THREADS = 200;
/** What one thread may hold: the newest messages, and of those so much text. */
export const MAX_MESSAGES = 200;
const MAX_CHARS = 60_000;

interface Kept {
  entries: ReadonlyMap<string, RawHistoryMessage>;
  /** Slack sends this app what is written in the thread, not only what mentions it. */
  fed: boolean;
}

/**
 * The past of the threads in use, read from Slack once and then kept up by its events, so that a follow-up costs no
 * call. Trusted only as long as no event can have been missed: {@link forgetAll} is for every doubt.
 */
export class ThreadPast {
  readonly #threads = new BoundedMap<string, Kept>(MAX_THREADS);

  has(key: string): boolean {
    return this.#threads.has(key);
  }

  /** Oldest first; null where Slack must be asked. */
  get(key: string): readonly RawHistoryMessage[] | null {
    const kept = this.#threads.get(key);
    return kept?.fed ? sorted(kept.entries) : null;
  }

  /** What Slack said the thread holds. */
  keep(key: string, entries: readonly RawHistoryMessage[]): void {
    this.#threads.set(key, { entries: byId(newest(entries)), fed: false });
  }

  /**
   * A message of a kept thread.
   *
   * @param entry - null for one that is no part of the past, e.g. our own notices
   * @param plain - it came as an event of the channel, not as a mention of the app
   */
  note(key: string, entry: RawHistoryMessage | null, plain: boolean): void {
    const kept = this.#threads.get(key);
    if (!kept) return;
    kept.fed ||= plain;
    if (entry) kept.entries = byId(newest(sorted(new Map(kept.entries).set(entry.id, entry))));
  }

  /** Something in the thread was changed or taken away. */
  forget(key: string): void {
    this.#threads.delete(key);
  }

  /** Deliveries may have been missed. */
  forgetAll(): void {
    this.#threads.clear();
  }
}

const sorted = (entries: ReadonlyMap<string, RawHistoryMessage>): readonly RawHistoryMessage[] =>
  [...entries.values()].sort((a, b) => (a.id < b.id ? -1 : 1));

const byId = (entries: readonly RawHistoryMessage[]): ReadonlyMap<string, RawHistoryMessage> =>
  new Map(entries.map((entry) => [entry.id, entry]));

/** The end of a past that a brain is given: the newest 200 messages, and of those 60,000 characters. */
export function newest(entries: readonly RawHistoryMessage[]): readonly RawHistoryMessage[] {
  let chars = 0;
  let from = entries.length;
  while (
    from > 0 &&
    entries.length - from < MAX_MESSAGES &&
    chars + (entries[from - 1]?.content.length ?? 0) <= MAX_CHARS
  ) {
    from -= 1;
    chars += entries[from]?.content.length ?? 0;
  }
  return entries.slice(from);
}

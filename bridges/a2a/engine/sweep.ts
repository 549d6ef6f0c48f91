import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import { readJson } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';
import type { TaskBook } from './book.js';
import { noteEveryMs } from './contexts.js';
import { contextRecordSchema, type RecordKeys } from './records.js';
import { claimRemoval } from './repeats.js';

export interface SweepDeps {
  readonly store: StateStore;
  readonly keys: RecordKeys;
  readonly book: TaskBook;
  readonly clock: Clock;
  readonly log: Logger;
  readonly retentionMs: number;
  /** How long a message's claim counts. */
  readonly windowMs: number;
}

const SWEEP_EVERY_MS = 60_000;
const PAGE = 500;

/** Removes what has been kept long enough: ended tasks, claims of messages, contexts that nobody used. */
export async function sweepForever(deps: SweepDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await sweep(deps);
    } catch (error) {
      deps.log.warn({ err: error }, 'old records could not be removed; it is tried again');
    }
    await deps.clock.sleep(SWEEP_EVERY_MS, signal).catch(() => undefined);
  }
}

export async function sweep({ store, keys, book, clock, retentionMs, windowMs }: SweepDeps): Promise<void> {
  const now = clock.now();
  for (let more = true; more;) {
    const ended = await store.range({ ...keys.endedBefore(now - retentionMs), limit: PAGE });
    for (const { key } of ended) {
      const found = await book.read(key.slice(key.lastIndexOf('/') + 1));
      if (found) await book.forget(found.row, key);
      else await store.batch([{ kind: 'delete', key }]);
    }
    more = ended.length === PAGE;
  }
  for (let more = true; more;) {
    const claims = await store.range({ ...keys.repeatsBefore(now), limit: PAGE });
    if (claims.length > 0) {
      const removals = await Promise.all(claims.map(({ key }) => claimRemoval(store, key, keys, now, windowMs)));
      await store.batch(removals.flat());
    }
    more = claims.length === PAGE;
  }
  await sweepContexts(store, keys, book, now - retentionMs - noteEveryMs(retentionMs));
}

async function sweepContexts(store: StateStore, keys: RecordKeys, book: TaskBook, before: number): Promise<void> {
  const { from: first, to } = prefixRange(keys.allContexts);
  for (let from = first; ;) {
    const page = await store.range({ from, to, limit: PAGE });
    for (const { key, value, revision } of page) {
      const record = readJson(value, contextRecordSchema);
      if (record.lastUsedAt >= before || isInUse(book, record)) continue;
      const lanes = await store.range(prefixRange(keys.lanesOf(key.slice(keys.allContexts.length))));
      await store.batch([
        { kind: 'delete', key, ifRevision: revision },
        ...(record.roomId === null ? [] : [{ kind: 'delete', key: keys.room(record.roomId) } as const]),
        ...lanes.map((lane): StoreChange => ({ kind: 'delete', key: lane.key })),
      ]);
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    from = `${last.key}\0`;
  }
}

function isInUse(book: TaskBook, record: { owner: string; contextId: string }): boolean {
  for (const { row } of book.openTasks()) {
    if (row.owner === record.owner && row.contextId === record.contextId) return true;
  }
  return false;
}

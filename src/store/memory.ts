import { type Clock, systemClock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { refusalOf } from './conditions.js';
import { compareKeys } from './key-order.js';
import { grantLease } from './lease.js';
import { rangeLimit, weigh } from './limits.js';
import type { StateStore, Stored, StoreChange, StoreEntry, StoreKey, StoreValue } from './port.js';

/** Text is kept as it came: most records are never read back. */
interface Kept {
  readonly value: StoreValue | string;
  readonly revision: number;
}

const encoder = new TextEncoder();

/** The store without a disk: everything is gone with the process. For tests, and for who asks for it by name. */
export function createMemoryStore(clock: Clock = systemClock): StateStore {
  const records = new Map<StoreKey, Kept>();
  /** All keys in order; null once a key has come or gone, until the next range asks for it. */
  let sorted: StoreKey[] | null = null;
  let revision = 0;
  let closed = false;

  /** Index of the first key that is not before `key`. */
  const seek = (keys: readonly StoreKey[], key: StoreKey): number => {
    let low = 0;
    let high = keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareKeys(keys[middle] ?? '', key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const guard = (): void => {
    if (closed) throw new GatewayError('STORE_CLOSED');
  };
  const apply = (change: StoreChange): void => {
    switch (change.kind) {
      case 'put':
        if (!records.has(change.key)) sorted = null;
        records.set(change.key, {
          value: typeof change.value === 'string' ? change.value : Buffer.from(change.value),
          revision,
        });
        return;
      case 'delete':
        if (records.delete(change.key)) sorted = null;
        return;
      case 'check':
        return;
    }
  };
  const copy = ({ value, revision: at }: Kept): Stored => ({
    value: typeof value === 'string' ? encoder.encode(value) : new Uint8Array(value),
    revision: at,
  });

  const store: StateStore = {
    // eslint-disable-next-line @typescript-eslint/require-await -- rejects like the durable form instead of throwing
    async get(key) {
      guard();
      const stored = records.get(key);
      return stored ? copy(stored) : null;
    },
    // eslint-disable-next-line @typescript-eslint/require-await -- as above
    async range(options) {
      guard();
      const limit = rangeLimit(options);
      sorted ??= [...records.keys()].sort(compareKeys);
      const from = seek(sorted, options.from);
      const to = seek(sorted, options.to);
      const span = Math.min(limit, Math.max(0, to - from));
      const keys = options.reverse ? sorted.slice(to - span, to).reverse() : sorted.slice(from, from + span);
      return keys.flatMap((key): StoreEntry[] => {
        const stored = records.get(key);
        return stored ? [{ key, ...copy(stored) }] : [];
      });
    },
    // eslint-disable-next-line @typescript-eslint/require-await -- as above
    async batch(changes) {
      guard();
      weigh(changes);
      const refusal = refusalOf(changes, (key) => records.get(key)?.revision ?? null);
      if (refusal) throw refusal;
      revision += 1;
      for (const change of changes) apply(change);
      return revision;
    },
    lease: (name, owner, ttlMs) => grantLease(store, clock, name, owner, ttlMs),
    // eslint-disable-next-line @typescript-eslint/require-await -- as above
    async close() {
      closed = true;
      records.clear();
      sorted = null;
    },
  };
  return store;
}

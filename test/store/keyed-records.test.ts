import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { KeyedRecords } from '../../src/store/keyed-records.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { toBytes } from '../../src/store/json.js';
import type { StateStore } from '../../src/store/port.js';

const setUp = (store: StateStore = createMemoryStore()) => ({
  store,
  records: new KeyedRecords({ store, prefix: 'r', schema: z.number(), empty: 0 }),
});

describe('KeyedRecords', () => {
  it('lists every record, however many pages they fill', async () => {
    const { store, records } = setUp();
    const keys = Array.from({ length: 2_500 }, (_, i) => String(i).padStart(5, '0'));
    await store.batch(keys.map((key, i) => ({ kind: 'put', key: `r/${key}`, value: toBytes(i) })));
    const listed: string[] = [];
    for await (const { key, record } of records.all()) if (record === listed.length) listed.push(key);
    expect(listed).toEqual(keys);
  });

  it('forgets what a change under way is about to write', async () => {
    const { records } = setUp();
    await Promise.all([records.change('k', (n) => n + 1), records.forget('k')]);
    expect(await records.get('k')).toBe(0);
  });
});

import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory.js';
import { IdFilter } from '../../src/store/id-filter.js';
import { SeenKeys } from '../../src/store/seen.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

const setUp = async (maxKeys = 100) => {
  const store = createMemoryStore();
  const clock = createManualClock();
  const open = () => SeenKeys.open({ store, prefix: 'seen', clock, retentionMs: 60_000, maxKeys });
  return { store, open, seen: await open() };
};
const looks = (seen: SeenKeys, id: string): boolean => seen.markAtOnce(id).some((change) => 'ifRevision' in change);

describe('SeenKeys › an id marked at once', () => {
  it('is looked for on the disk when it was marked before, in either way', async () => {
    const { seen } = await setUp();
    expect([looks(seen, 'a'), looks(seen, 'a')]).toEqual([false, true]);
    seen.mark('b');
    expect(looks(seen, 'b')).toBe(true);
  });

  it('is looked for after a restart, whoever marked it', async () => {
    const { store, open, seen } = await setUp();
    await store.batch([...seen.markAtOnce('a'), ...seen.mark('b')]);
    const again = await open();
    expect([looks(again, 'a'), looks(again, 'b'), looks(again, 'c')]).toEqual([true, true, false]);
    await expect(store.batch(again.markAtOnce('a'))).rejects.toMatchObject({ code: 'STORE_CONFLICT' });
  });

  it('is looked for as long as it may be among the ids that are kept', async () => {
    const { seen } = await setUp(50);
    let next = 0;
    for (let round = 0; round < 1_000; round += 1) {
      seen.markAtOnce(`id ${(next += 1)}`);
      for (const back of [0, 10, 49]) if (next > back) expect(looks(seen, `id ${next - back}`), `${back}`).toBe(true);
    }
  });
});

describe('IdFilter', () => {
  it('knows every id it was given, and suspects few others', () => {
    const filter = new IdFilter(10_000);
    for (let i = 0; i < 10_000; i += 1) filter.add(`main:ev:Ev07${i}`);
    for (let i = 0; i < 10_000; i += 1) expect(filter.mayHave(`main:ev:Ev07${i}`)).toBe(true);
    let suspected = 0;
    for (let i = 10_000; i < 60_000; i += 1) if (filter.mayHave(`main:ev:Ev07${i}`)) suspected += 1;
    expect(suspected).toBeLessThan(150);
  });
});

import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { compareKeys } from '../../src/store/key-order.js';
import { openLevelStore } from '../../src/store/leveldb.js';
import { MAX_BATCH_CHANGES, MAX_KEY_BYTES, MAX_VALUE_BYTES } from '../../src/store/limits.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { prefixRange, type StateStore, type StoreChange } from '../../src/store/port.js';
import { createManualClock } from '../../src/testing/manual-clock.js';
import { tempFolder } from '../support/temp-folder.js';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array | undefined) => new TextDecoder().decode(value);
const put = (key: string, value: string, ifRevision?: number | null): StoreChange =>
  ifRevision === undefined
    ? { kind: 'put', key, value: bytes(value) }
    : { kind: 'put', key, value: bytes(value), ifRevision };

const clock = createManualClock();
const forms: [string, () => Promise<StateStore>][] = [
  ['memory', async () => createMemoryStore(clock)],
  ['LevelDB', async () => await openLevelStore({ folder: join(await tempFolder(), 'store'), clock })],
];

describe.each(forms)('StateStore in its %s form', (_name, open) => {
  const opened = async () => {
    const store = await open();
    onTestFinished(() => store.close());
    return store;
  };

  it('reads back what a batch wrote, with its revision', async () => {
    const store = await opened();
    const revision = await store.batch([put('a', 'one'), put('b', 'two')]);
    expect(await store.get('a')).toEqual({ value: bytes('one'), revision });
    expect(await store.get('b')).toEqual({ value: bytes('two'), revision });
    expect(await store.get('c')).toBeNull();
  });

  it('keeps what it was given, not the array it was given', async () => {
    const store = await opened();
    const value = bytes('before');
    const written = store.batch([{ kind: 'put', key: 'a', value }]);
    await written;
    value.set(bytes('after!'));
    expect(text((await store.get('a'))?.value)).toBe('before');
  });

  it('keeps text as its UTF-8 bytes, and weighs it by them', async () => {
    const store = await opened();
    await store.batch([{ kind: 'put', key: 'a', value: 'é\u{1F600}\uD800' }]);
    expect((await store.get('a'))?.value).toEqual(bytes('é\u{1F600}\uFFFD'));
    expect((await store.range(prefixRange('a')))[0]?.value).toEqual(bytes('é\u{1F600}\uFFFD'));
    const half = 'é'.repeat(MAX_VALUE_BYTES / 2);
    await store.batch([{ kind: 'put', key: 'a', value: half }]);
    await expect(store.batch([{ kind: 'put', key: 'a', value: `${half}.` }])).rejects.toMatchObject({
      code: 'STORE_TOO_LARGE',
    });
  });

  it('commits a batch as one or not at all', async () => {
    const store = await opened();
    await store.batch([put('a', '1')]);
    await expect(store.batch([put('b', '1'), put('a', '2', null), put('c', '1')])).rejects.toMatchObject({
      code: 'STORE_CONFLICT',
      details: { key: 'a' },
      undelivered: true,
    });
    expect(await store.get('b')).toBeNull();
    expect(await store.get('c')).toBeNull();
    expect(text((await store.get('a'))?.value)).toBe('1');
  });

  it('lets exactly one of many concurrent writers of one revision win', async () => {
    const store = await opened();
    const revision = await store.batch([put('counter', '0')]);
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => store.batch([put('counter', String(i), revision)])),
    );
    expect(results.filter((r) => r.status === 'fulfilled')).toHaveLength(1);
  });

  it('never gives two writes of one key the same revision, also when they commit together', async () => {
    const store = await opened();
    const revisions = await Promise.all(Array.from({ length: 50 }, (_, i) => store.batch([put('k', String(i))])));
    expect(new Set(revisions).size).toBe(50);
    const last = await store.get('k');
    expect(last?.revision).toBe(Math.max(...revisions));
  });

  it('makes a condition on a deleted key a condition on its absence, and does not reuse its revision', async () => {
    const store = await opened();
    const first = await store.batch([put('k', '1')]);
    await store.batch([{ kind: 'delete', key: 'k', ifRevision: first }]);
    const second = await store.batch([put('k', '2', null)]);
    expect(second).toBeGreaterThan(first);
    await expect(store.batch([put('k', '3', first)])).rejects.toMatchObject({ code: 'STORE_CONFLICT' });
  });

  it('checks a key without changing it', async () => {
    const store = await opened();
    const revision = await store.batch([put('guard', 'x')]);
    await store.batch([{ kind: 'check', key: 'guard', ifRevision: revision }, put('a', '1')]);
    await expect(store.batch([{ kind: 'check', key: 'guard', ifRevision: null }, put('a', '2')])).rejects.toMatchObject(
      { code: 'STORE_CONFLICT' },
    );
    expect(await store.get('guard')).toEqual({ value: bytes('x'), revision });
  });

  it('sees the batches before it when it commits together with them', async () => {
    const store = await opened();
    const results = await Promise.allSettled([
      store.batch([put('once', 'a', null)]),
      store.batch([put('once', 'b', null)]),
      store.batch([{ kind: 'delete', key: 'once' }]),
      store.batch([put('once', 'c', null)]),
    ]);
    expect(results.map((r) => r.status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    expect(text((await store.get('once'))?.value)).toBe('c');
  });

  it('hands out ranges in byte order, both ways, up to a limit', async () => {
    const store = await opened();
    await store.batch(['p/b', 'p/a', 'p/\u{1F600}', 'p/\uFFFD', 'q/a', 'p/é', 'p'].map((key) => put(key, key)));
    const range = prefixRange('p/');
    const forward = (await store.range(range)).map((entry) => entry.key);
    expect(forward).toEqual(['p/a', 'p/b', 'p/é', 'p/\uFFFD', 'p/\u{1F600}']);
    expect((await store.range({ ...range, reverse: true, limit: 2 })).map((entry) => entry.key)).toEqual([
      'p/\u{1F600}',
      'p/\uFFFD',
    ]);
    expect((await store.range({ ...range, limit: 2 })).map((entry) => entry.key)).toEqual(['p/a', 'p/b']);
    expect(await store.range({ ...range, limit: 0 })).toEqual([]);
    expect(await store.range({ from: 'x', to: 'a' })).toEqual([]);
  });

  it('orders any keys as their bytes do', async () => {
    const store = await opened();
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.string({ minLength: 1, maxLength: 6, unit: 'grapheme' }), { maxLength: 12 }),
        fc.nat(),
        async (keys, run) => {
          const prefix = `run-${run}-${Math.random()}/`;
          await store.batch(keys.map((key) => put(prefix + key, '')));
          const expected = keys.map((key) => Buffer.from(key)).sort((a, b) => Buffer.compare(a, b));
          const got = (await store.range(prefixRange(prefix))).map((entry) =>
            Buffer.from(entry.key.slice(prefix.length)),
          );
          expect(got).toEqual(expected);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('refuses what is too large and writes none of it', async () => {
    const store = await opened();
    const tooLarge = { code: 'STORE_TOO_LARGE' };
    await expect(store.batch([put('ok', '1'), put('k'.repeat(MAX_KEY_BYTES + 1), '')])).rejects.toMatchObject(tooLarge);
    await expect(store.batch([put('', '')])).rejects.toMatchObject(tooLarge);
    await expect(
      store.batch([{ kind: 'put', key: 'big', value: new Uint8Array(MAX_VALUE_BYTES + 1) }]),
    ).rejects.toMatchObject(tooLarge);
    await expect(
      store.batch(Array.from({ length: MAX_BATCH_CHANGES + 1 }, (_, i) => put(`k${i}`, ''))),
    ).rejects.toMatchObject(tooLarge);
    expect(await store.get('ok')).toBeNull();
  });

  it('grants a lease to one owner at a time, with a growing token', async () => {
    const store = await opened();
    const first = await store.lease('job', 'a', 1_000);
    expect(await store.lease('job', 'b', 1_000)).toBeNull();
    clock.jump(1_001);
    const second = await store.lease('job', 'b', 1_000);
    expect(second?.token).toBeGreaterThan(first?.token ?? Infinity);
    expect(await first?.renew(1_000)).toBe(false);
    await first?.release();
    expect(await store.lease('job', 'a', 1_000)).toBeNull();
    expect(await second?.renew(5_000)).toBe(true);
    await second?.release();
    expect(await store.lease('job', 'a', 1_000)).not.toBeNull();
  });

  it('refuses everything once closed', async () => {
    const store = await open();
    await store.close();
    await store.close();
    await expect(store.get('a')).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await expect(store.range(prefixRange(''))).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    await expect(store.batch([put('a', '1')])).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  });
});

describe('compareKeys', () => {
  it('agrees with the bytes for any two strings', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (a, b) => {
        expect(Math.sign(compareKeys(a, b))).toBe(Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b))));
      }),
    );
  });
});

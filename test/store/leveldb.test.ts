import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { deferred } from '../../src/base/async.js';
import { openClassicLevel } from '../../src/store/level.js';
import { openLevelStore } from '../../src/store/leveldb.js';
import type { StoreChange } from '../../src/store/port.js';
import { createManualClock } from '../../src/testing/manual-clock.js';
import { tempFolder } from '../support/temp-folder.js';

const put = (key: string, bytes = 10): StoreChange => ({ kind: 'put', key, value: new Uint8Array(bytes).fill(7) });

describe('LevelDB store', () => {
  it('has one owner per folder', async () => {
    const folder = join(await tempFolder(), 'store');
    const store = await openLevelStore({ folder });
    await expect(openLevelStore({ folder })).rejects.toMatchObject({ code: 'STORE_LOCKED', details: { folder } });
    await store.close();
    await (await openLevelStore({ folder })).close();
  });

  it('keeps records and the growth of revisions over a restart', async () => {
    const folder = join(await tempFolder(), 'store');
    const first = await openLevelStore({ folder });
    await first.batch([put('a')]);
    const revision = await first.batch([put('b')]);
    await first.close();
    const second = await openLevelStore({ folder });
    onTestFinished(() => second.close());
    expect((await second.get('b'))?.revision).toBe(revision);
    expect(await second.batch([put('a')])).toBeGreaterThan(revision);
  });

  it('S-199 refuses a folder that a newer version wrote, and leaves it as it is', async () => {
    const parent = await tempFolder();
    const folder = join(parent, 'store');
    await (await openLevelStore({ folder })).close();
    const level = await openClassicLevel(folder);
    const newer = new Uint8Array([0, 0, 0, 0, 0, 0, 0, 2]);
    await level.write([{ type: 'put', key: 'm/version', value: newer }]);
    await level.close();
    await expect(openLevelStore({ folder })).rejects.toMatchObject({ code: 'STORE_NEWER', details: { version: 2 } });
    expect(await readdir(parent)).toEqual(['store']);
  });

  it('shares one synced write among the batches that arrive during another', async () => {
    const folder = join(await tempFolder(), 'store');
    let writes = 0;
    const store = await openLevelStore({
      folder,
      openLevel: async (path) => {
        const level = await openClassicLevel(path);
        return {
          ...level,
          write: (operations) => {
            writes += 1;
            return level.write(operations);
          },
        };
      },
    });
    onTestFinished(() => store.close());
    writes = 0;
    await Promise.all(Array.from({ length: 200 }, (_, i) => store.batch([put(`k${i}`)])));
    expect(writes).toBeLessThan(5);
  });

  it('moves a damaged folder aside with a name, reports it, and begins a new one', async () => {
    const parent = await tempFolder();
    const folder = join(parent, 'store');
    const first = await openLevelStore({ folder });
    for (let i = 0; i < 50; i += 1) await first.batch([put(`k${i}`, 2_000)]);
    await first.close();
    for (const name of await readdir(folder)) {
      if (!/\.(ldb|log)$|MANIFEST/.test(name)) continue;
      const path = join(folder, name);
      const bytes = await readFile(path);
      bytes.fill(0xab, 0, bytes.length);
      await writeFile(path, bytes);
    }
    const moved: string[] = [];
    const store = await openLevelStore({ folder, onDamaged: (path) => moved.push(path) });
    onTestFinished(() => store.close());
    expect(moved).toHaveLength(1);
    expect(moved[0]).toContain('store.damaged-');
    expect(await readdir(parent)).toHaveLength(2);
    expect(await store.get('k1')).toBeNull();
    await store.batch([put('new')]);
  });

  it('finds a record that does not read after an unclean stop', async () => {
    const parent = await tempFolder();
    const folder = join(parent, 'store');
    const level = await openClassicLevel(folder);
    await level.write([{ type: 'put', key: 'd' + 'short', value: new Uint8Array([1]) }]);
    await level.close();
    const moved: string[] = [];
    const store = await openLevelStore({ folder, onDamaged: (path) => moved.push(path) });
    onTestFinished(() => store.close());
    expect(moved).toHaveLength(1);
  });

  describe('after a write error', () => {
    /** A store whose next write fails `before` or `after` it has reached the disk, and whose reopening can be refused. */
    const failing = async () => {
      const clock = createManualClock();
      const state = { fail: null as 'before' | 'after' | null, refuseOpen: false, damaged: false, opened: deferred() };
      const moved: string[] = [];
      const store = await openLevelStore({
        folder: join(await tempFolder(), 'store'),
        clock,
        onDamaged: (path) => moved.push(path),
        openLevel: async (path) => {
          if (state.damaged) throw Object.assign(new Error('bad block'), { code: 'LEVEL_CORRUPTION' });
          if (state.refuseOpen) throw Object.assign(new Error('no space'), { code: 'LEVEL_DATABASE_NOT_OPEN' });
          const level = await openClassicLevel(path);
          state.opened.resolve();
          return {
            ...level,
            write: async (operations) => {
              const { fail } = state;
              state.fail = null;
              if (fail !== 'before') await level.write(operations);
              if (fail) throw Object.assign(new Error('IO error'), { code: 'LEVEL_IO_ERROR' });
            },
          };
        },
      });
      onTestFinished(() => store.close());
      return { store, state, clock, moved };
    };

    it('refuses what certainly was not written, and goes on after reopening', async () => {
      const { store, state } = await failing();
      await store.batch([put('kept')]);
      state.fail = 'before';
      await expect(store.batch([put('a')])).rejects.toMatchObject({ code: 'STORE_TRIPPED', undelivered: true });
      await store.batch([put('b')]);
      expect(await store.get('a')).toBeNull();
      expect(await store.get('kept')).not.toBeNull();
      expect(await store.get('b')).not.toBeNull();
    });

    it('acknowledges a batch that turns out to be on disk', async () => {
      const { store, state } = await failing();
      state.fail = 'after';
      const revision = await store.batch([put('a')]);
      expect((await store.get('a'))?.revision).toBe(revision);
    });

    it('acknowledges nothing that waits behind the failed write', async () => {
      const { store, state } = await failing();
      state.fail = 'before';
      const results = await Promise.allSettled(Array.from({ length: 5 }, (_, i) => store.batch([put(`k${i}`)])));
      for (const result of results) expect(result.status).toBe('rejected');
      for (let i = 0; i < 5; i += 1) expect(await store.get(`k${i}`)).toBeNull();
    });

    it('stays tripped while the folder cannot be reopened, and recovers by itself', async () => {
      const { store, state, clock } = await failing();
      await store.batch([put('kept')]);
      state.fail = 'before';
      state.refuseOpen = true;
      await expect(store.batch([put('a')])).rejects.toMatchObject({ code: 'STORE_IO' });
      await expect(store.batch([put('b')])).rejects.toMatchObject({ code: 'STORE_TRIPPED' });
      await expect(store.get('kept')).rejects.toMatchObject({ code: 'STORE_TRIPPED' });
      await clock.advance(5_000);
      await expect(store.batch([put('b')])).rejects.toMatchObject({ code: 'STORE_TRIPPED' });
      state.opened = deferred();
      state.refuseOpen = false;
      await clock.advance(30_000);
      await state.opened.promise;
      await expect
        .poll(() =>
          store.batch([put('b')]).then(
            () => 'taken',
            () => 'refused',
          ),
        )
        .toBe('taken');
      expect(await store.get('kept')).not.toBeNull();
    });

    it('stays tripped, and moves nothing aside, when it finds the folder damaged in mid-run', async () => {
      const { store, state, clock, moved } = await failing();
      await store.batch([put('kept')]);
      state.fail = 'before';
      state.damaged = true;
      await expect(store.batch([put('a')])).rejects.toMatchObject({ code: 'STORE_IO' });
      await clock.advance(60_000);
      await expect(store.batch([put('b')])).rejects.toMatchObject({ code: 'STORE_TRIPPED' });
      expect(moved).toEqual([]);
    });

    it('refuses a read that meets the folder while it reopens', async () => {
      const { store, state } = await failing();
      await store.batch([put('kept')]);
      state.fail = 'before';
      const writing = store.batch([put('a')]);
      const reads = Promise.allSettled(Array.from({ length: 20 }, () => store.get('kept')));
      await expect(writing).rejects.toMatchObject({ code: 'STORE_TRIPPED' });
      for (const read of await reads) {
        if (read.status === 'rejected') expect(read.reason).toMatchObject({ name: 'GatewayError' });
      }
      expect(await store.get('kept')).not.toBeNull();
    });

    it('can be closed while it is tripped', async () => {
      const { store, state } = await failing();
      state.fail = 'before';
      state.refuseOpen = true;
      await expect(store.batch([put('a')])).rejects.toMatchObject({ code: 'STORE_IO' });
      await store.close();
      await expect(store.batch([put('a')])).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    });
  });

  describe('on a full disk', () => {
    const mountSmallDisk = async (): Promise<string | null> => {
      const mountPoint = join(await tempFolder(), 'disk');
      await mkdir(mountPoint);
      const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', mountPoint]).status === 0;
      if (!mounted) return null;
      onTestFinished(() => {
        spawnSync('umount', ['-l', mountPoint]);
      });
      return mountPoint;
    };

    it('gives an error, loses nothing that it acknowledged, and works again once there is room', async (context) => {
      const disk = await mountSmallDisk();
      if (!disk) {
        context.skip('mounting a small disk needs root');
        return;
      }
      const folder = join(disk, 'store');
      const ballast = join(disk, 'ballast');
      await writeFile(ballast, new Uint8Array(1_500_000));
      const store = await openLevelStore({ folder });
      const acknowledged: string[] = [];
      let refusal: unknown = null;
      for (let i = 0; i < 400 && !refusal; i += 1) {
        await store.batch([put(`k${i}`, 16_000)]).then(
          () => acknowledged.push(`k${i}`),
          (error: unknown) => (refusal = error),
        );
      }
      expect(refusal).toMatchObject({ name: 'GatewayError', retryable: true });
      expect(acknowledged.length).toBeGreaterThan(10);
      await writeFile(ballast, new Uint8Array(0));
      await expect
        .poll(
          () =>
            store.batch([put('after')]).then(
              () => 'taken',
              () => 'refused',
            ),
          { timeout: 15_000, interval: 100 },
        )
        .toBe('taken');
      await store.close();
      const again = await openLevelStore({ folder });
      onTestFinished(() => again.close());
      for (const key of acknowledged) expect(await again.get(key), key).not.toBeNull();
    });
  });
});

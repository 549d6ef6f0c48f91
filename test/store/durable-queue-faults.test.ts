import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { deferred } from '../../src/base/async.js';
import { GatewayError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/log.js';
import { DurableQueue, type DurableQueueOptions, type Outcome } from '../../src/store/durable-queue.js';
import { Inbox } from '../../src/store/inbox.js';
import { createMemoryStore } from '../../src/store/memory.js';
import type { StateStore } from '../../src/store/port.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

const done = { kind: 'done' } as const;
const item = (id: string) => ({ id, lane: 'l', body: `body of ${id}` });
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A store whose next batches fail as told: before anything is written, or after all of it is. */
const setUp = () => {
  const memory = createMemoryStore();
  const faults: { code: 'STORE_IO' | 'STORE_TRIPPED'; written: boolean }[] = [];
  const store: StateStore = {
    ...memory,
    async batch(changes) {
      const fault = faults.shift();
      if (!fault) return await memory.batch(changes);
      if (fault.written) await memory.batch(changes);
      throw new GatewayError(fault.code);
    },
  };
  const clock = createManualClock();
  const options = { store, prefix: 'q', bodySchema: z.string(), clock, log: silentLogger };
  return {
    clock,
    options,
    fail: (code: 'STORE_IO' | 'STORE_TRIPPED', written = false) => faults.push({ code, written }),
    open: (more: Partial<DurableQueueOptions<string>> = {}) => DurableQueue.open<string>({ ...options, ...more }),
  };
};

describe('DurableQueue › when woken while its head is being tried', () => {
  it('tries again at once, since what the try found may be out of date', async () => {
    const { open } = setUp();
    const queue = await open();
    const looked = deferred();
    const answer = deferred();
    let isPaused = true;
    queue.start(async () => {
      const outcome: Outcome = isPaused ? { kind: 'wait', afterMs: 3_600_000 } : done;
      looked.resolve();
      await answer.promise;
      return outcome;
    });
    await queue.put(item('a'));
    await looked.promise;
    isPaused = false;
    queue.wake('l');
    answer.resolve();
    await settled();
    expect(queue.depth).toBe(0);
  });
});

describe('DurableQueue › a put that the disk refused and holds nevertheless', () => {
  it('is taken up when its sender repeats it, and told to be a repeat', async () => {
    const { options, fail } = setUp();
    const inbox = await Inbox.open({ ...options, seenRetentionMs: 1_000 });
    const handled: string[] = [];
    inbox.queue.start(async ({ id }) => {
      handled.push(id);
      return done;
    });
    fail('STORE_IO', true);
    await expect(inbox.accept(item('a'))).rejects.toMatchObject({ code: 'STORE_IO' });
    expect(await inbox.accept(item('a'))).toBe('repeat');
    await inbox.queue.drained();
    expect(handled).toEqual(['a']);
  });

  it('is taken up with the next put of anything', async () => {
    const { open, fail } = setUp();
    const queue = await open();
    const handled: string[] = [];
    queue.start(async ({ id }) => {
      handled.push(id);
      return done;
    });
    fail('STORE_IO', true);
    await expect(queue.put(item('a'))).rejects.toMatchObject({ code: 'STORE_IO' });
    fail('STORE_IO', false);
    await expect(queue.put(item('b'))).rejects.toMatchObject({ code: 'STORE_IO' });
    await queue.put(item('c'));
    await queue.drained();
    expect(handled).toEqual(['a', 'c']);
  });
});

describe('DurableQueue › the end of a try that is not stored', () => {
  it('is told to the handler, so that what it staged can be staged again', async () => {
    const { open, fail, clock } = setUp();
    const queue = await open();
    const told: string[] = [];
    queue.start(async () => {
      const staged = queue.stage({ ...item('follow-up'), lane: 'other' });
      told.push(staged ? 'staged' : 'known');
      return {
        kind: 'dead',
        code: 'X',
        reason: 'x',
        changes: staged?.changes ?? [],
        committed: () => staged?.committed(),
        abandoned: () => staged?.abandoned(),
      };
    });
    await queue.put(item('a'));
    fail('STORE_TRIPPED');
    await settled();
    await clock.advance(60_000);
    expect(told.slice(0, 2)).toEqual(['staged', 'staged']);
  });

  it('does not count against a record whose try met a tripped store', async () => {
    const { open, clock } = setUp();
    const queue = await open({ maxFailures: 2 });
    let tries = 0;
    queue.start(async () => {
      if ((tries += 1) < 5) throw new GatewayError('STORE_TRIPPED');
      return done;
    });
    await queue.put(item('a'));
    for (let i = 0; i < 6; i += 1) await clock.advance(60_000);
    expect(queue.deadCount).toBe(0);
    expect(queue.depth).toBe(0);
  });

  it('follows a death through even when the oldest dead record cannot be dropped', async () => {
    const { open, options } = setUp();
    const queue = await open({ maxDead: 1 });
    const ended: string[] = [];
    queue.start(async ({ id }) => ({ kind: 'dead', code: 'X', reason: 'x', committed: () => ended.push(id) }));
    await queue.put(item('a'));
    await queue.drained();
    const range = options.store.range.bind(options.store);
    options.store.range = (wanted) =>
      wanted.from.includes('/dead/') ? Promise.reject(new GatewayError('STORE_TRIPPED')) : range(wanted);
    await queue.put(item('b'));
    await queue.drained();
    expect(ended).toEqual(['a', 'b']);
  });
});

describe('DurableQueue › ends of the process', () => {
  it('are no failed tries: a record that fails after many of them has all its tries', async () => {
    const { open, clock } = setUp();
    let queue = await open({ maxFailures: 3 });
    await queue.put(item('unlucky'));
    for (let crash = 0; crash < 2; crash += 1) queue = await open({ maxFailures: 3 });
    const seen: unknown[] = [];
    queue.start(async ({ failures, crashes }) => {
      seen.push([failures, crashes]);
      if (failures < 2) throw new GatewayError('BAND_UNREACHABLE');
      return done;
    });
    for (let step = 0; step < 10 && queue.depth > 0; step += 1) await clock.advance(60_000);
    expect(seen).toEqual([
      [0, 2],
      [1, 2],
      [2, 2],
    ]);
    expect(queue.deadCount).toBe(0);
  });
});

describe('DurableQueue › a wait after something was tried', () => {
  it('lets the next try look first, also after a restart', async () => {
    const { open } = setUp();
    const queue = await open();
    queue.start(async () => ({ kind: 'wait', afterMs: 1_000, maybeDelivered: true }));
    await queue.put(item('a'));
    await settled();
    await queue.stop();
    const next = await open();
    const seen: unknown[] = [];
    next.start(async ({ maybeDelivered, failures }) => {
      seen.push({ maybeDelivered, failures });
      return done;
    });
    await next.drained();
    expect(seen).toEqual([{ maybeDelivered: true, failures: 0 }]);
  });
});

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { deferred } from '../../src/base/async.js';
import { GatewayError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/log.js';
import { DurableQueue, type DurableQueueOptions } from '../../src/store/durable-queue.js';
import { Inbox } from '../../src/store/inbox.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { startOutbox } from '../../src/store/outbox.js';
import { prefixRange, type StateStore } from '../../src/store/port.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

const setUp = (store: StateStore = createMemoryStore()) => {
  const clock = createManualClock();
  const options = { store, prefix: 'q', bodySchema: z.string(), clock, log: silentLogger };
  const open = (more: Partial<DurableQueueOptions<string>> = {}) => DurableQueue.open<string>({ ...options, ...more });
  return { store, clock, options, open };
};
const item = (id: string, lane = 'l') => ({ id, lane, body: `body of ${id}` });
const done = { kind: 'done' } as const;
/** Everything under the queue's prefix but the marks of an orderly stop. */
const keysLeft = async (store: StateStore) =>
  (await store.range(prefixRange('q/'))).map(({ key }) => key).filter((key) => !key.endsWith('/clean'));

describe('DurableQueue', () => {
  it('handles one lane in order, one at a time, and lanes side by side', async () => {
    const { open } = setUp();
    const queue = await open();
    const gate = deferred();
    const log: string[] = [];
    for (const [id, lane] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
    ] as const)
      await queue.put(item(id, lane));
    queue.start(async ({ id }) => {
      log.push(`begin ${id}`);
      if (id === 'a1') await gate.promise;
      log.push(`end ${id}`);
      return done;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual(['begin a1', 'begin b1', 'end b1']);
    gate.resolve();
    await queue.drained();
    expect(log.slice(3)).toEqual(['end a1', 'begin a2', 'end a2']);
  });

  it('keeps to its cap on lanes handled at the same time', async () => {
    const { open } = setUp();
    const queue = await open({ maxRunning: 3 });
    for (let i = 0; i < 20; i += 1) await queue.put(item(`i${i}`, `lane ${i}`));
    let running = 0;
    let most = 0;
    queue.start(async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return done;
    });
    await queue.drained();
    expect(most).toBe(3);
  });

  it('leaves nothing behind of a record that is done', async () => {
    const { open, store } = setUp();
    const queue = await open();
    await queue.put(item('a'));
    queue.start(async () => done);
    await queue.drained();
    expect(await keysLeft(store)).toEqual([]);
    expect(queue.depth).toBe(0);
  });

  it('takes an id once while it waits, and again when it is done', async () => {
    const { open } = setUp();
    const queue = await open();
    expect(await queue.put(item('a'))).toBe(true);
    expect(await queue.put(item('a'))).toBe(false);
    queue.start(async () => done);
    await queue.drained();
    expect(await queue.put(item('a'))).toBe(true);
  });

  it('does not call a put a repeat of one that failed', async () => {
    const memory = createMemoryStore();
    const gate = deferred();
    let failing = true;
    const store: StateStore = {
      ...memory,
      batch: async (changes) => {
        if (!failing) return await memory.batch(changes);
        await gate.promise;
        failing = false;
        throw new GatewayError('STORE_IO');
      },
    };
    const { options } = setUp();
    await memory.batch([]);
    failing = false;
    const queue = await DurableQueue.open<string>({ ...options, store });
    failing = true;
    const first = queue.put(item('a'));
    const second = queue.put(item('a'));
    gate.resolve();
    await expect(first).rejects.toMatchObject({ code: 'STORE_IO' });
    expect(await second).toBe(true);
  });

  it('refuses a record past its bound without writing it', async () => {
    const { open, store } = setUp();
    const queue = await open({ maxWaiting: 2 });
    await queue.put(item('a'));
    await queue.put(item('b'));
    await expect(queue.put(item('c'))).rejects.toMatchObject({ code: 'QUEUE_FULL', undelivered: true });
    expect((await keysLeft(store)).length).toBe(2);
  });

  it('tries again after a pause that grows, and holds the lane meanwhile', async () => {
    const { open, clock } = setUp();
    const queue = await open({ backoff: { baseMs: 1_000, maxMs: 4_000, jitter: 'none' } });
    const tries: [string, number][] = [];
    const start = clock.now();
    queue.start(async ({ id, failures }) => {
      tries.push([id, clock.now() - start]);
      if (id === 'a' && failures < 3) throw new GatewayError('BAND_UNREACHABLE');
      return done;
    });
    await queue.put(item('a'));
    await queue.put(item('b'));
    await clock.advance(10_000);
    expect(tries).toEqual([
      ['a', 0],
      ['a', 1_000],
      ['a', 3_000],
      ['a', 7_000],
      ['b', 7_000],
    ]);
  });

  it('waits as long as the other side asked', async () => {
    const { open, clock } = setUp();
    const queue = await open();
    let tries = 0;
    queue.start(async () => {
      tries += 1;
      if (tries === 1) throw new GatewayError('BAND_RATE_LIMITED', { retryAfterMs: 30_000 });
      return done;
    });
    await queue.put(item('a'));
    await clock.advance(29_999);
    expect(tries).toBe(1);
    await clock.advance(1);
    expect(tries).toBe(2);
  });

  it('ends a pause when it is woken', async () => {
    const { open, clock } = setUp();
    const queue = await open();
    let tries = 0;
    queue.start(async () => (++tries === 1 ? { kind: 'retry', error: new Error('parked'), afterMs: 3_600_000 } : done));
    await queue.put(item('a'));
    await clock.advance(1);
    queue.wake('other');
    await clock.advance(1);
    expect(tries).toBe(1);
    queue.wake('l');
    await clock.advance(1);
    expect(tries).toBe(2);
  });

  it('lets a record wait as often as its handler wants, without charging it', async () => {
    const { open, clock } = setUp();
    const queue = await open({ maxFailures: 1 });
    let paused = true;
    const looks: unknown[] = [];
    queue.start(async ({ failures, maybeDelivered }) => {
      looks.push([failures, maybeDelivered]);
      return paused ? { kind: 'wait', afterMs: 1_000 } : done;
    });
    await queue.put(item('a'));
    await clock.advance(2_500);
    paused = false;
    queue.wake();
    await queue.drained();
    expect(looks).toEqual([
      [0, false],
      [0, false],
      [0, false],
      [0, false],
    ]);
  });

  it('gives a record up after its tries, lists it, and retries it on request', async () => {
    const { open, clock } = setUp();
    const queue = await open({ maxFailures: 2 });
    let healthy = false;
    queue.start(async () => {
      if (!healthy) throw new GatewayError('BAND_UNAVAILABLE');
      return done;
    });
    await queue.put(item('a'));
    await clock.advance(60_000);
    expect(await queue.deadRecords()).toMatchObject([{ id: 'a', lane: 'l', code: 'BAND_UNAVAILABLE' }]);
    expect([queue.depth, queue.deadCount]).toEqual([0, 1]);
    expect(await queue.put(item('a'))).toBe(false);
    healthy = true;
    expect(await queue.retryDead('a')).toBe(true);
    await queue.drained();
    expect(await queue.deadRecords()).toEqual([]);
    expect(await queue.retryDead('a')).toBe(false);
  });

  it('does not repeat what may not be repeated', async () => {
    const { open, clock } = setUp();
    const queue = await open();
    let tries = 0;
    queue.start(async () => {
      tries += 1;
      throw new GatewayError('BAND_FORBIDDEN');
    });
    await queue.put(item('a'));
    await clock.advance(100_000);
    expect(tries).toBe(1);
    expect(await queue.dropDead('a')).toBe(true);
    expect(await queue.dropDead('a')).toBe(false);
    expect(await queue.put(item('a'))).toBe(true);
  });

  it('keeps only so many dead records, the newest', async () => {
    const { open, clock } = setUp();
    const queue = await open({ maxDead: 2 });
    queue.start(async () => ({ kind: 'dead', code: 'BAND_INVALID', reason: 'no' }));
    for (const id of ['a', 'b', 'c']) await queue.put(item(id));
    await clock.advance(1);
    expect((await queue.deadRecords()).map(({ id }) => id)).toEqual(['b', 'c']);
  });

  it('commits what a record led to together with its end', async () => {
    const { open, store } = setUp();
    const queue = await open();
    const value = new Uint8Array([1]);
    queue.start(async () => ({ kind: 'done', changes: [{ kind: 'put', key: 'result', value }] }));
    await queue.put(item('a'));
    await queue.drained();
    expect((await store.get('result'))?.value).toEqual(value);
  });

  it('hands everything out again after a crash, in order, the heads marked as maybe delivered', async () => {
    const { open } = setUp();
    const crashed = await open();
    crashed.start(() => new Promise(() => undefined));
    for (const id of ['a', 'b']) await crashed.put(item(id));
    await crashed.put(item('c', 'other'));

    const queue = await open();
    const seen: unknown[] = [];
    queue.start(async ({ id, crashes, maybeDelivered }) => {
      seen.push([id, crashes, maybeDelivered]);
      return done;
    });
    await queue.drained();
    expect(seen.filter((s) => (s as string[])[0] !== 'c')).toEqual([
      ['a', 1, true],
      ['b', 0, false],
    ]);
    expect(seen).toContainEqual(['c', 1, true]);
  });

  it('stops with the try under way finished, and charges an orderly stop to nobody', async () => {
    const { open, clock } = setUp();
    const queue = await open();
    const gate = deferred();
    queue.start(async ({ id }) => {
      if (id === 'a') await gate.promise;
      return done;
    });
    for (const id of ['a', 'b']) await queue.put(item(id));
    const stopped = queue.stop(5_000);
    gate.resolve();
    await stopped;
    expect(clock.pending).toBe(0);
    const again = await open();
    const seen: unknown[] = [];
    again.start(async ({ id, failures, maybeDelivered }) => {
      seen.push([id, failures, maybeDelivered]);
      return done;
    });
    await again.drained();
    expect(seen).toEqual([['b', 0, false]]);
  });

  it('aborts a try that outlasts the grace of a stop, and keeps its record', async () => {
    const { open, clock } = setUp();
    const queue = await open({ maxFailures: 1 });
    queue.start(async (_record, signal) => {
      await new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      });
      return done;
    });
    await queue.put(item('a'));
    const stopped = queue.stop(1_000);
    await clock.advance(1_000);
    await stopped;
    const again = await open();
    expect(again.depth).toBe(1);
    expect(again.deadCount).toBe(0);
  });

  it('does not hand a record out again when only what follows its end fails', async () => {
    const { open } = setUp();
    const queue = await open();
    let tries = 0;
    queue.start(async () => {
      tries += 1;
      return {
        kind: 'done',
        committed: () => {
          throw new Error('follow-up');
        },
      };
    });
    await queue.put(item('a'));
    await queue.drained();
    expect(tries).toBe(1);
  });

  it('tries again when the store did not take the end of a record', async () => {
    const memory = createMemoryStore();
    let refuse = 0;
    const store: StateStore = {
      ...memory,
      batch: (changes) => (refuse-- > 0 ? Promise.reject(new GatewayError('STORE_TRIPPED')) : memory.batch(changes)),
    };
    const { open, clock } = setUp(store);
    const queue = await open();
    const looks: boolean[] = [];
    await queue.put(item('a'));
    refuse = 1;
    queue.start(async ({ maybeDelivered }) => {
      looks.push(maybeDelivered);
      return done;
    });
    await clock.advance(2_000);
    expect(looks).toEqual([false, true]);
    expect(queue.depth).toBe(0);
  });
});

describe('Inbox', () => {
  const openInbox = (world: ReturnType<typeof setUp>) =>
    Inbox.open<string>({ ...world.options, seenRetentionMs: 60_000, maxSeen: 100 });

  it('recognises a repeat while the record waits, when it is done, and after a restart', async () => {
    const world = setUp();
    const inbox = await openInbox(world);
    expect(await inbox.accept(item('e1'))).toBe('accepted');
    expect(await inbox.accept(item('e1'))).toBe('repeat');
    inbox.queue.start(async () => done);
    await inbox.queue.drained();
    expect(await inbox.accept(item('e1'))).toBe('repeat');
    expect(await (await openInbox(world)).accept(item('e1'))).toBe('repeat');
  });

  it('accepts one of many concurrent deliveries of one id', async () => {
    const inbox = await openInbox(setUp());
    const answers = await Promise.all(Array.from({ length: 10 }, () => inbox.accept(item('e1'))));
    expect(answers.filter((answer) => answer === 'accepted')).toHaveLength(1);
  });

  it('forgets ids past their time, and the oldest past their number', async () => {
    const world = setUp();
    const inbox = await openInbox(world);
    inbox.queue.start(async () => done);
    await inbox.accept(item('old'));
    await world.clock.advance(60_001);
    for (let i = 0; i < 101; i += 1) await inbox.accept(item(`e${i}`));
    await inbox.queue.drained();
    expect(await inbox.prune()).toBe(2);
    expect(await inbox.accept(item('old'))).toBe('accepted');
    expect(await inbox.accept(item('e0'))).toBe('accepted');
    expect(await inbox.accept(item('e1'))).toBe('repeat');
  });
});

describe('outbox', () => {
  const writing = async (handler: { find: () => string | null; write: () => string }) => {
    const world = setUp();
    const crashed = await world.open();
    crashed.start(() => new Promise(() => undefined));
    await crashed.put(item('m1'));
    await crashed.put(item('m2'));
    const queue = await world.open();
    const calls: string[] = [];
    startOutbox<string, string>(queue, {
      find: async ({ id }) => {
        calls.push(`find ${id}`);
        return handler.find();
      },
      write: async ({ id }) => {
        calls.push(`write ${id}`);
        return handler.write();
      },
    });
    await queue.drained();
    return calls;
  };

  it('looks before it writes what a crash left open, and only that', async () => {
    expect(await writing({ find: () => null, write: () => 'ts' })).toEqual(['find m1', 'write m1', 'write m2']);
  });

  it('does not write what it finds', async () => {
    expect(await writing({ find: () => 'ts', write: () => 'ts' })).toEqual(['find m1', 'write m2']);
  });
});

import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { deferred } from '../../src/base/async.js';
import { GatewayError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/log.js';
import { DurableQueue, type DurableQueueOptions, type Outcome } from '../../src/store/durable-queue.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

const setUp = () => {
  const store = createMemoryStore();
  const clock = createManualClock();
  const options = { store, prefix: 'q', bodySchema: z.string(), clock, log: silentLogger };
  const open = (more: Partial<DurableQueueOptions<string>> = {}) => DurableQueue.open<string>({ ...options, ...more });
  return { store, clock, open, gets: vi.spyOn(store, 'get') };
};
const item = (id: string, lane = 'l') => ({ id, lane, body: `body of ${id}` });
const done: Outcome = { kind: 'done' };
/** Room for one of these records, not for two. */
const ONE = { maxBytesInMemory: 150 };
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('DurableQueue › more bodies wait than may stay in memory', () => {
  it('reads the others when their turn comes, in order and as they were put', async () => {
    const { open, gets } = setUp();
    const queue = await open(ONE);
    for (let i = 0; i < 5; i += 1) await queue.put(item(`i${i}`));
    gets.mockClear();
    const bodies: string[] = [];
    queue.start(({ id, body }) => {
      bodies.push(`${id}: ${body}`);
      return Promise.resolve(done);
    });
    await queue.drained();
    expect(bodies).toEqual([0, 1, 2, 3, 4].map((i) => `i${i}: body of i${i}`));
    expect(gets).toHaveBeenCalledTimes(4);
  });

  it('keeps what is put once those before are done', async () => {
    const { open, gets } = setUp();
    const queue = await open(ONE);
    queue.start(() => Promise.resolve(done));
    for (let i = 0; i < 5; i += 1) {
      await queue.put(item(`i${i}`));
      await queue.drained();
    }
    gets.mockClear();
    await queue.put(item('late'));
    await queue.drained();
    expect(gets).not.toHaveBeenCalled();
  });

  it('does the same with what an earlier process left', async () => {
    const { open, gets } = setUp();
    const earlier = await open();
    for (let i = 0; i < 4; i += 1) await earlier.put(item(`i${i}`));
    const queue = await open(ONE);
    gets.mockClear();
    const bodies: string[] = [];
    queue.start(({ body }) => {
      bodies.push(body);
      return Promise.resolve(done);
    });
    await queue.drained();
    expect(bodies).toEqual([0, 1, 2, 3].map((i) => `body of i${i}`));
    expect(gets).toHaveBeenCalledTimes(3);
  });

  it('writes the body again with each failed try, and into the dead record', async () => {
    const { open, clock } = setUp();
    const queue = await open({ ...ONE, maxFailures: 2 });
    await queue.put(item('first', 'a'));
    await queue.put(item('fails', 'b'));
    queue.start(({ id }) => (id === 'fails' ? Promise.reject(new Error('no')) : Promise.resolve(done)));
    while (queue.deadCount === 0) await clock.advance(1_000);
    expect(await queue.deadRecords()).toMatchObject([{ id: 'fails', body: 'body of fails' }]);
    await queue.retryDead('fails');
    while (queue.deadCount === 0) await clock.advance(1_000);
    expect(await queue.deadRecords()).toMatchObject([{ id: 'fails', body: 'body of fails' }]);
  });

  it('tries again, charged to nobody, when a body cannot be read now', async () => {
    const { open, clock, gets } = setUp();
    const queue = await open({ maxBytesInMemory: 0, maxFailures: 1 });
    await queue.put(item('i'));
    gets.mockRejectedValueOnce(new GatewayError('STORE_TRIPPED'));
    const seen: [string, number][] = [];
    queue.start(({ body, failures }) => {
      seen.push([body, failures]);
      return Promise.resolve(done);
    });
    await clock.advance(10_000);
    expect(seen).toEqual([['body of i', 0]]);
    expect([queue.depth, queue.deadCount]).toEqual([0, 0]);
  });

  it('still knows the tags of all, after a restart too', async () => {
    const { open } = setUp();
    const tagOf = (body: string) => body.slice(-2);
    const queue = await open({ ...ONE, tagOf });
    for (let i = 0; i < 3; i += 1) await queue.put(item(`i${i}`));
    expect(queue.laneTags('l')).toEqual(['i0', 'i1', 'i2']);
    expect((await open({ ...ONE, tagOf })).laneTags('l')).toEqual(['i0', 'i1', 'i2']);
  });
});

describe('DurableQueue › more lanes than places', () => {
  it('gives a place that is left to the lane that waits longest', async () => {
    const { open } = setUp();
    const queue = await open({ maxRunning: 1 });
    for (const [id, lane] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['a3', 'a'],
      ['b1', 'b'],
      ['c1', 'c'],
    ] as const)
      await queue.put(item(id, lane));
    const order: string[] = [];
    queue.start(({ id }) => {
      order.push(id);
      return Promise.resolve(done);
    });
    await queue.drained();
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'a3']);
  });

  it('gives the lanes of each group places of their own', async () => {
    const { open } = setUp();
    const of = (lane: string) => lane.slice(0, 1);
    const queue = await open({ maxRunning: { of, most: { a: 1, b: 2 } } });
    for (const lane of ['a1', 'a2', 'b1', 'b2', 'b3']) await queue.put(item(lane, lane));
    const gate = deferred();
    const begun: string[] = [];
    queue.start(async ({ id }) => {
      begun.push(id);
      await gate.promise;
      return done;
    });
    await turn();
    expect(begun.sort()).toEqual(['a1', 'b1', 'b2']);
    gate.resolve();
    await queue.drained();
    expect(begun).toHaveLength(5);
  });

  it('begins nothing that waited for a place once it stops, even where one has just been given', async () => {
    for (let steps = 0; steps < 20; steps += 1) {
      const { open } = setUp();
      const queue = await open({ maxRunning: 1 });
      for (const lane of ['a', 'b', 'c']) await queue.put(item(lane, lane));
      const log: string[] = [];
      const stopped = deferred();
      const stopSoon = async () => {
        for (let step = 0; step < steps; step += 1) await Promise.resolve();
        log.push('stop');
        await queue.stop(1_000);
        stopped.resolve();
      };
      queue.start(({ id }) => {
        log.push(id);
        return Promise.resolve({ kind: 'done', committed: () => (id === 'a' ? void stopSoon() : undefined) });
      });
      await stopped.promise;
      await turn();
      expect(log.at(-1), `${steps} steps`).toBe('stop');
      expect(queue.depth).toBe(4 - log.length);
    }
  });
});

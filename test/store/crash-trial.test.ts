import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { silentLogger } from '../../src/base/log.js';
import { DurableQueue, type Handler } from '../../src/store/durable-queue.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

/** Processes one after the other on one store; a killed one's clock never moves again. */
function processes() {
  const store = createMemoryStore();
  let now = Date.UTC(2026, 0, 1);
  return async (handler: Handler<string>) => {
    const clock = createManualClock(now);
    const options = { store, prefix: 'q', bodySchema: z.string(), clock, log: silentLogger, maxFailures: 3 };
    const queue = await DurableQueue.open<string>(options);
    queue.start(handler);
    return {
      queue,
      clock,
      /** Lives for `ms`. */
      lives: async (ms: number) => {
        for (let left = ms; left > 0; left -= 250) await clock.advance(Math.min(250, left));
        now = clock.now();
      },
    };
  };
}

const put = async (queue: DurableQueue<string>, ids: readonly string[]) => {
  for (const id of ids) await queue.put({ id, lane: id, body: id });
};
const done = { kind: 'done' } as const;
const never = new Promise<never>(() => undefined);

describe('a record that ends the process whenever it is tried', () => {
  it('is given up at last, and none of those that were tried beside it', async () => {
    const start = processes();
    const finished = new Set<string>();
    let tried = 0;
    let last: DurableQueue<string> | null = null;
    for (let count = 0; count < 60; count += 1) {
      const state = { ended: false };
      const { queue, clock, lives } = await start(async ({ id }) => {
        if (state.ended) return await never;
        if (id === 'poison') {
          tried += 1;
          state.ended = true;
          return await never;
        }
        await clock.sleep(100);
        finished.add(id);
        return done;
      });
      if (count === 0) await put(queue, ['a', 'b', 'poison', 'c', 'd']);
      for (let step = 0; step < 500 && !state.ended && queue.depth > 0; step += 1) await lives(250);
      last = queue;
      if (queue.depth === 0) break;
    }
    expect([...finished].sort()).toEqual(['a', 'b', 'c', 'd']);
    expect(await last?.deadRecords()).toMatchObject([{ id: 'poison', code: 'CRASH_LOOP' }]);
    expect(tried).toBeLessThanOrEqual(20);
  });
});

describe('a record that is there whenever the process is killed', () => {
  it('is not given up, however often that is', async () => {
    const start = processes();
    const first = await start(() => never);
    await put(first.queue, ['slow', 'slower']);
    for (let kill = 0; kill < 100; kill += 1) {
      const { queue, lives } = await start(() => never);
      // What the outside tells at each start wakes every lane.
      queue.wake();
      await lives(1_500);
    }
    const crashes: number[] = [];
    const { queue, lives } = await start(async (record) => {
      crashes.push(record.crashes);
      return done;
    });
    await lives(120_000);
    expect(queue.depth).toBe(0);
    expect(queue.deadCount).toBe(0);
    expect(Math.max(...crashes)).toBeLessThan(8);
  });

  it('is suspected no more when it was worked on for a minute', async () => {
    const start = processes();
    const first = await start(() => never);
    await put(first.queue, ['long']);
    for (let kill = 0; kill < 30; kill += 1) await (await start(() => never)).lives(130_000);
    const seen: number[] = [];
    const { lives } = await start(async ({ crashes }) => {
      seen.push(crashes);
      return done;
    });
    await lives(130_000);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toBeLessThanOrEqual(4);
  });

  it('is charged with nothing while it waits for something outside', async () => {
    const start = processes();
    const first = await start(() => never);
    await put(first.queue, ['waits']);
    const seen = new Set<number>();
    for (let kill = 0; kill < 40; kill += 1) {
      const { lives } = await start(async ({ crashes }) => {
        seen.add(crashes);
        return { kind: 'wait', afterMs: 3_600_000 };
      });
      await lives(5_000);
    }
    expect(Math.max(...seen)).toBe(3);
  });
});

describe('an orderly start', () => {
  it('keeps nobody waiting', async () => {
    const start = processes();
    const first = await start(() => never);
    await put(first.queue, ['suspect']);
    for (let kill = 0; kill < 3; kill += 1) await start(() => never);
    const orderly = await start(() => never);
    await orderly.queue.stop();
    const tried: string[] = [];
    const { lives } = await start(async ({ id }) => {
      tried.push(id);
      return done;
    });
    await lives(250);
    expect(tried).toEqual(['suspect']);
  });
});

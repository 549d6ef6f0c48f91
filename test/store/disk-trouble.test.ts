import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { GatewayError } from '../../src/base/errors.js';
import { DurableQueue, type Handler } from '../../src/store/durable-queue.js';
import { createMemoryStore } from '../../src/store/memory.js';
import type { StateStore } from '../../src/store/port.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

const done = { kind: 'done' } as const;
const MINUTE_MS = 60_000;

/** A queue on a disk that fails in one way as long as it is told to, and what the queue says of it. */
async function setUp(how: 'read' | 'write' | 'handler') {
  const memory = createMemoryStore();
  const clock = createManualClock();
  const lines: { id: string; msg: string; untold: number }[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  const disk = { fails: false };
  const met: number[] = [];
  const meet = <T>(kind: 'read' | 'write', go: () => Promise<T>): Promise<T> => {
    if (!disk.fails || how !== kind) return go();
    met.push(clock.now());
    return Promise.reject(new GatewayError('STORE_TRIPPED'));
  };
  const store: StateStore = {
    ...memory,
    get: (key) => meet('read', () => memory.get(key)),
    batch: (changes) => meet('write', () => memory.batch(changes)),
  };
  const open = () =>
    DurableQueue.open<string>({
      store,
      prefix: 'q',
      bodySchema: z.string(),
      clock,
      log,
      maxBytesInMemory: 0,
      maxFailures: 2,
    });
  const handled: string[] = [];
  const handler: Handler<string> = async ({ id, failures }) => {
    if (disk.fails && how === 'handler') {
      met.push(clock.now());
      throw new GatewayError('STORE_TRIPPED');
    }
    handled.push(`${id} ${failures}`);
    return done;
  };
  return { clock, disk, lines, met, open, handled, handler };
}

describe('DurableQueue › a disk that fails for hours', () => {
  it.each([
    ['gives no body', 'read', 'queued record not read'],
    ['takes no end of a try', 'write', 'end of a queued record not stored'],
    ['fails the handler', 'handler', 'queued record met a disk that fails'],
  ] as const)(
    'is tried twice a minute at last, said when it begins and rarely after, and charged to nobody: it %s',
    async (_what, how, what) => {
      const { clock, disk, lines, met, open, handled, handler } = await setUp(how);
      const queue = await open();
      for (const id of ['a', 'b', 'c']) await queue.put({ id, lane: id, body: id });
      disk.fails = true;
      queue.start(handler);
      for (let minute = 0; minute < 60; minute += 1) await clock.advance(MINUTE_MS);
      const tries = met.length / 3;
      expect(tries).toBeGreaterThan(100);
      expect(tries).toBeLessThan(260);
      expect(met.filter((at) => at > clock.now() - MINUTE_MS).length).toBeLessThanOrEqual(3 * 4);
      const said = lines.filter(({ msg }) => msg === what);
      expect(said).toHaveLength(lines.length);
      expect(said.length).toBeGreaterThan(3);
      expect(said.length).toBeLessThanOrEqual(7);
      expect(said[0]).toMatchObject({ id: 'a', untold: 0 });
      expect(said[1]?.untold).toBeGreaterThan(30);

      disk.fails = false;
      await clock.advance(30_000);
      expect(handled.filter((one) => one.startsWith('a')).at(-1)).toBe('a 0');
      expect([queue.depth, queue.deadCount]).toEqual([0, 0]);
    },
  );

  it('begins anew with a short wait once a try has ended otherwise', async () => {
    const { clock, disk, met, open, handler } = await setUp('handler');
    const queue = await open();
    let isDown = true;
    queue.start(async (record, signal) =>
      isDown && !disk.fails ? { kind: 'wait', afterMs: 1_000 } : await handler(record, signal),
    );
    await queue.put({ id: 'a', lane: 'a', body: 'a' });
    disk.fails = true;
    await clock.advance(10 * MINUTE_MS);
    disk.fails = false;
    await clock.advance(MINUTE_MS);
    met.length = 0;
    disk.fails = true;
    await clock.advance(MINUTE_MS);
    isDown = false;
    expect(met[1]! - met[0]!).toBeLessThanOrEqual(1_000);
    expect(met.length).toBeGreaterThan(4);
  });
});

describe('DurableQueue › an orderly stop after the disk did not take the end of a try', () => {
  it('leaves on disk that the record may have been delivered, so that the next start looks first', async () => {
    const { clock, disk, open } = await setUp('write');
    const queue = await open();
    const looked: boolean[] = [];
    const handler: Handler<string> = async ({ maybeDelivered }) => {
      looked.push(maybeDelivered);
      return done;
    };
    await queue.put({ id: 'a', lane: 'l', body: 'a' });
    disk.fails = true;
    queue.start(handler);
    await clock.advance(0);
    expect(looked).toEqual([false]);
    disk.fails = false;
    await queue.stop();
    const next = await open();
    next.start(handler);
    await next.drained();
    expect(looked).toEqual([false, true]);
  });
});

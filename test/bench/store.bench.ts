import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { Inbox } from '../../src/store/inbox.js';
import { openLevelStore } from '../../src/store/leveldb.js';
import { createMemoryStore } from '../../src/store/memory.js';
import type { StateStore } from '../../src/store/port.js';
import { type Figure, interleaved, median } from './figure.js';

const SENDERS = 128;
const RECORDS = 20_000;
const ROUNDS = 5;

/** Figure 7 for the store alone: records accepted into an inbox, handled and done, LevelDB against memory. */
export async function run(): Promise<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'band-gateway-bench-'));
  let round = 0;
  const durable = async () => {
    const store = await openLevelStore({ folder: join(folder, `store-${(round += 1)}`) });
    return await throughput(store);
  };
  try {
    const [level, memory] = await interleaved(ROUNDS, durable, () => throughput(createMemoryStore()));
    return {
      figure: `7 · Durable store ÷ memory store, inbox records through ${SENDERS} senders`,
      rows: [
        { name: 'LevelDB ÷ memory', value: level / memory, unit: '×', aim: '≥ 0.8 behind HTTP' },
        { name: 'LevelDB', value: level, unit: '/s' },
        { name: 'memory', value: memory, unit: '/s' },
        { name: 'one synced write of 4 KiB to this disk', value: syncMs(folder), unit: 'ms' },
      ],
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function throughput(store: StateStore): Promise<number> {
  const inbox = await Inbox.open<string>({
    store,
    prefix: 'bench',
    bodySchema: z.string(),
    clock: systemClock,
    log: silentLogger,
    maxWaiting: RECORDS,
    seenRetentionMs: 3_600_000,
  });
  inbox.queue.start(() => Promise.resolve({ kind: 'done' }));
  const body = 'x'.repeat(1_000);
  let next = 0;
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: SENDERS }, async (_, sender) => {
      while (next < RECORDS) await inbox.accept({ id: `e${(next += 1)}`, lane: `lane ${sender}`, body });
    }),
  );
  await inbox.queue.drained();
  const rate = RECORDS / ((performance.now() - begun) / 1_000);
  await store.close();
  return rate;
}

function syncMs(folder: string): number {
  const handle = openSync(join(folder, 'sync'), 'w');
  const block = Buffer.alloc(4_096, 1);
  const times = Array.from({ length: 50 }, () => {
    const begun = performance.now();
    writeSync(handle, block);
    fsyncSync(handle);
    return performance.now() - begun;
  });
  closeSync(handle);
  return median(times);
}

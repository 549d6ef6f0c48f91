import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BenchProcesses, sendMany } from '../support/a2a/bench.js';
import type { Figure } from './figure.js';

const FIRST = 6_000;
const LAST = Number(process.env['A2A_MEMORY_TASKS'] ?? 60_000);
const WORKERS = 32;
const MEGABYTE = 1_048_576;

/** Figure 8: what finished tasks leave in the gateway's anonymous memory. */
export async function run(): Promise<Figure> {
  const processes = new BenchProcesses();
  const folder = await mkdtemp(join(tmpdir(), 'band-gateway-bench-'));
  try {
    const { child, said } = await processes.fork('a2a-memory', [join(folder, 'store')]);
    const { url } = said as { url: string };
    const rss = async (): Promise<number> => {
      child.send('rss');
      const [answer] = (await once(child, 'message')) as [{ rss: number }];
      return answer.rss;
    };
    await sendMany(url, FIRST, WORKERS, 'a');
    const few = await rss();
    const ms = await sendMany(url, LAST - FIRST, WORKERS, 'b');
    const many = await rss();
    return {
      figure: `8 · Anonymous memory after ${LAST} finished tasks, LevelDB store`,
      rows: [
        { name: `growth since ${FIRST} tasks`, value: (many - few) / MEGABYTE, unit: 'MB', aim: '≤ 15' },
        { name: `after ${FIRST} tasks`, value: few / MEGABYTE, unit: 'MB' },
        {
          name: 'durable tasks a second, platform that answers at once',
          value: ((LAST - FIRST) * 1_000) / ms,
          unit: '1/s',
        },
      ],
    };
  } finally {
    processes.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

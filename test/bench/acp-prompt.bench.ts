import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ourCommand, percentile, startBenchWorld, startEditor, type BenchEditor } from '../support/acp/bench-client.js';
import type { Figure } from './figure.js';

const PROMPTS = Number(process.env['ACP_BENCH_PROMPTS'] ?? 200);
const DEFAULT_PROMPTS = 20;
const bare = ['--import', 'tsx', fileURLToPath(new URL('../support/programs/acp-bare-agent.ts', import.meta.url))];

/** What a prompt costs through the bridge, a room and a peer, beside an SDK agent that answers at once. */
export async function run(): Promise<Figure> {
  const world = await startBenchWorld();
  const folder = await mkdtemp(join(tmpdir(), 'acp-bench-'));
  const env = { ...world.env, HOME: folder, TMPDIR: folder };
  // The deliberate quiet times are measured apart from the work.
  const eager = ['--turn-grace-ms', '1', '--turn-settle-ms', '1'];
  const ours = await startEditor(ourCommand(eager), env);
  const plain = await startEditor(bare, {});
  const [oursTimes = NOTHING, plainTimes = NOTHING] = await interleaved([ours, plain], PROMPTS);
  await ours.stop();
  await plain.stop();
  const usual = await startEditor(ourCommand(), env);
  const [usualTimes = NOTHING] = await interleaved([usual], DEFAULT_PROMPTS);
  await usual.stop();
  await world.stop();
  await rm(folder, { recursive: true, force: true });

  const ms = (name: string, value: number) => ({ name, value, unit: 'ms' });
  const first = (times: Times, share: number) => percentile(times.first, share);
  const end = (times: Times, share: number) => percentile(times.end, share);
  return {
    figure: `ACP: a prompt through a room and an echo peer ÷ a bare SDK agent (${PROMPTS} prompts each)`,
    rows: [
      ms('bare SDK agent, first piece, p50', first(plainTimes, 0.5)),
      ms('bare SDK agent, first piece, p99', first(plainTimes, 0.99)),
      ms('through Band, first piece, p50', first(oursTimes, 0.5)),
      ms('through Band, first piece, p99', first(oursTimes, 0.99)),
      { name: 'first piece, p50, ratio', value: first(oursTimes, 0.5) / first(plainTimes, 0.5), unit: '×' },
      { name: 'first piece, p99, ratio', value: first(oursTimes, 0.99) / first(plainTimes, 0.99), unit: '×' },
      ms('through Band, whole turn without quiet times, p50', end(oursTimes, 0.5)),
      ms('through Band, whole turn without quiet times, p99', end(oursTimes, 0.99)),
      ms('through Band, whole turn with the default quiet times, p50', end(usualTimes, 0.5)),
    ],
  };
}

const NOTHING: Times = { first: [], end: [] };

interface Times {
  readonly first: number[];
  readonly end: number[];
}

async function interleaved(editors: readonly BenchEditor[], prompts: number): Promise<Times[]> {
  const times = editors.map(() => ({ first: [] as number[], end: [] as number[] }));
  const sessions = await Promise.all(editors.map((editor) => editor.newSession()));
  for (let i = -5; i < prompts; i += 1) {
    for (const [at, editor] of editors.entries()) {
      const { firstMs, endMs } = await editor.prompt(sessions[at] ?? '', `prompt ${i}`);
      // The first few warm both sides up.
      if (i < 0) continue;
      times[at]?.first.push(firstMs);
      times[at]?.end.push(endMs);
    }
  }
  return times;
}

import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BenchProcesses, sendMany, type BenchServer } from '../support/a2a/bench.js';
import { cpuSeconds } from '../support/bench-process.js';
import { type Figure, interleaved, median } from './figure.js';

const WORKERS = 32;
const TASKS = 1_500;
const ROUNDS = 5;

/** One server under load, and the processes whose time its tasks cost. */
interface Side {
  readonly url: string;
  readonly processes: Readonly<Record<string, readonly ChildProcess[]>>;
  /** Every round in contexts of its own: the plain server keeps a context's tasks in one list. */
  readonly freshContexts: boolean;
  rounds: number;
  readonly micros: Record<string, number[]>;
}

/**
 * Figure 3: tasks a second through Band, and through a plain server of the protocol SDK that echoes at once, both without
 * a disk and both with every step on it. The peer is made by hand, since it is not what is measured; what a whole Agent
 * as the peer leaves stands beside it, and what bare hops in the gateway's place would leave. All processes share the machine's processors, so what each spends on a task says
 * where the ratio comes from.
 */
export async function run(): Promise<Figure> {
  const processes = new BenchProcesses();
  const folder = await mkdtemp(join(tmpdir(), 'band-gateway-bench-'));
  try {
    const { env, gateways, band } = await processes.platform('by hand', ['memory', join(folder, 'gateway')]);
    const toAgent = await processes.platform('agent');
    const plainServers = [await processes.start('a2a-plain-sdk')];
    plainServers.push(await processes.start('a2a-plain-sdk', {}, [join(folder, 'plain')]));
    const [memory, disk] = gateways.map((server) => sideOf(server, { 'sandbox and peer': band }));
    const [agent] = toAgent.gateways.map((server) => sideOf(server, { 'sandbox and Agent': toAgent.band }));
    const [plain, plainDisk] = plainServers.map((server) => sideOf(server, null));
    const bare = sideOf(await processes.start('a2a-bare-gateway', env), { 'sandbox and peer': band });
    if (!memory || !disk || !agent || !plain || !plainDisk) throw new Error('a server did not start');
    const sides = [memory, disk, agent, bare, plain, plainDisk];
    for (const side of sides) await rate(side)();
    for (const side of sides) for (const list of Object.values(side.micros)) list.pop();
    const [ours, sdk] = await interleaved(ROUNDS, rate(memory), rate(plain));
    const [oursDisk, sdkDisk] = await interleaved(ROUNDS, rate(disk), rate(plainDisk));
    const [agents, sdkAgain] = await interleaved(ROUNDS, rate(agent), rate(plain));
    const [hops, sdkOnceMore] = await interleaved(ROUNDS, rate(bare), rate(plain));
    const name = 'gateway through Band ÷ plain @a2a-js/sdk';
    return {
      figure: `3 · A2A tasks a second, ${WORKERS} at a time, completion first`,
      rows: [
        { name: `${name}, both without a disk`, value: ours / sdk, unit: '×', aim: '≥ 0.5' },
        { name: `${name}, both with all on disk`, value: oursDisk / sdkDisk, unit: '×', aim: '≥ 0.5' },
        {
          name: 'bare undici and ws hops ÷ plain @a2a-js/sdk: what the machine allows',
          value: hops / sdkOnceMore,
          unit: '×',
        },
        { name: 'without a disk, an Agent of this project as the peer', value: agents / sdkAgain, unit: '×' },
        {
          name: 'without a disk, by the processor time of the servers',
          value: servers(plain) / servers(memory),
          unit: '×',
        },
        { name: 'on disk, by the processor time of the servers', value: servers(plainDisk) / servers(disk), unit: '×' },
        { name: 'gateway through Band, without a disk', value: ours, unit: '1/s' },
        { name: 'plain @a2a-js/sdk server, without a disk', value: sdk, unit: '1/s' },
        { name: 'gateway through Band, on disk', value: oursDisk, unit: '1/s' },
        { name: 'plain @a2a-js/sdk server, on disk', value: sdkDisk, unit: '1/s' },
        ...costs('without a disk', memory),
        ...costs('on disk', disk),
        ...costs('bare hops', bare),
        ...costs('plain server without a disk', plain),
        ...costs('plain server on disk', plainDisk),
      ],
    };
  } finally {
    processes.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function sideOf({ child, url }: BenchServer, behind: Readonly<Record<string, readonly ChildProcess[]>> | null): Side {
  return {
    url,
    processes: behind ? { gateway: [child], ...behind } : { server: [child] },
    freshContexts: behind === null,
    rounds: 0,
    micros: {},
  };
}

const rate = (side: Side) => async (): Promise<number> => {
  const { processes, micros } = side;
  const before = await spent(processes);
  const prefix = side.freshContexts ? `plain-${(side.rounds += 1)}` : 'ours';
  const ms = await sendMany(side.url, TASKS, WORKERS, prefix);
  const after = await spent(processes);
  for (const [name, seconds] of Object.entries(after)) {
    (micros[name] ??= []).push(((seconds - (before[name] ?? 0)) * 1_000_000) / TASKS);
  }
  return (TASKS * 1_000) / ms;
};

async function spent(processes: Side['processes']): Promise<Record<string, number>> {
  const seconds: Record<string, number> = {};
  for (const [name, children] of Object.entries(processes)) {
    seconds[name] = 0;
    for (const child of children) seconds[name] += await cpuSeconds({ child });
  }
  return seconds;
}

/** Microseconds a task; on a machine with other work to do, their ratio is steadier than the one of the rates. */
function servers({ micros }: Side): number {
  return Object.values(micros).reduce((sum, list) => sum + median(list), 0);
}

function costs(which: string, { micros }: Side): Figure['rows'] {
  return Object.entries(micros).map(([name, list]) => ({
    name: `processor time a task, ${which}: ${name}`,
    value: median(list),
    unit: 'µs',
  }));
}

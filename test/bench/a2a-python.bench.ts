import { randomUUID } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { DEMO } from '../../src/sandbox/index.js';
import {
  type BenchProcess,
  buildPackage,
  builtProgram,
  memoryMegabytes,
  startBenchProcess,
  stopBenchProcess,
} from '../support/bench-process.js';
import { startBenchSandbox } from '../support/bench-sandbox.js';
import { pythonVenv } from '../support/python-venv.js';
import { type Figure, type FigureRow, median } from './figure.js';

const AT_ONCE = [1, 32, 256];
const ROUNDS = 3;
const ROUND_MS = 3_000;
/** What every gateway has done before the first round, so that no round measures the compilers of its machine. */
const WARM_UP_TASKS = 1_000;
const WARM_UP_LIMIT_MS = 30_000;
/** What one step of a task writes, and how often that is written alone to see what the disk takes for it. */
const STEP_BYTES = 2_000;
const LONE_WRITES = 500;
/** A gateway whose last answers of a round came so late gets no further round. */
const SLOW_ROUND_SECONDS = 10;
const MANY_TASKS = Number(process.env['A2A_PYTHON_TASKS'] ?? 10_000);
/** A gateway that has not done them all by then is measured with what it has done. */
const MANY_TASKS_LIMIT_MS = Number(process.env['A2A_PYTHON_SECONDS'] ?? 60) * 1_000;
const SEND_LIMIT_MS = 20_000;
const PYTHON_PROGRAM = fileURLToPath(new URL('python-a2a.py', import.meta.url));

interface Side {
  readonly name: string;
  readonly process: BenchProcess;
  readonly rounds: Map<number, Load[]>;
  tasks: number;
  failed: number;
}

interface Load {
  readonly seconds: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/**
 * Our A2A gateway beside the Python SDK 6.0.1's: processes on one sandbox, asked by this one for the same echo peer, turn
 * by turn. A round trip ends with a completed task in its answer. Theirs keeps its tasks in memory; ours is measured so,
 * and with its usual store, which has every step of a task on disk before it goes on: three synced writes one after the
 * other, so what the disk takes for one of them stands beside.
 */
export async function run(): Promise<Figure> {
  const venv = await pythonVenv('bandSdkBridges');
  await buildPackage();
  const folder = await mkdtemp(join(tmpdir(), 'band-gateway-bench-'));
  const sandbox = await startBenchSandbox();
  const started: BenchProcess[] = [];
  const start = async (command: string, args: readonly string[], who: { id: string; apiKey: string }) => {
    const band = { BAND_REST_URL: sandbox.restUrl, BAND_WS_URL: sandbox.wsUrl, AGENT_ID: who.id, API_KEY: who.apiKey };
    const one = await startBenchProcess(command, args, band);
    started.push(one);
    return one;
  };
  const side = (name: string, process: BenchProcess): Side => ({
    name,
    process,
    rounds: new Map(AT_ONCE.map((atOnce) => [atOnce, []])),
    tasks: 0,
    failed: 0,
  });
  try {
    await start(process.execPath, [builtProgram('bench-agent')], DEMO.echo);
    const gateway = builtProgram('bench-a2a');
    const inMemory = await start(process.execPath, [gateway, 'memory'], DEMO.gateway);
    const onDisk = await start(process.execPath, [gateway, join(folder, 'store')], DEMO.editor);
    const ours = [side('gateway in memory', inMemory), side('gateway on disk', onDisk)];
    const theirs =
      venv.kind === 'present'
        ? side('Python SDK', await start(venv.python, [PYTHON_PROGRAM], DEMO.helpdesk))
        : undefined;
    const sides = theirs ? [...ours, theirs] : ours;
    const loneWrites: number[] = [];
    for (const one of sides) await load(one, 1, { tasks: WARM_UP_TASKS, limitMs: WARM_UP_LIMIT_MS });
    for (const atOnce of AT_ONCE) {
      // Rooms are made and joined before anything is measured.
      for (const one of sides) await load(one, atOnce, { tasks: atOnce, limitMs: SEND_LIMIT_MS });
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const one of sides) {
          const rounds = one.rounds.get(atOnce) ?? [];
          if (rounds.some(({ seconds }) => seconds > SLOW_ROUND_SECONDS)) continue;
          rounds.push(await load(one, atOnce, { tasks: Infinity, limitMs: ROUND_MS }));
        }
        if (atOnce === 1) loneWrites.push(...(await syncedWrites(join(folder, `lone-${round}`))));
      }
    }
    for (const one of sides) {
      await load(one, 32, { tasks: Math.max(0, MANY_TASKS - one.tasks), limitMs: MANY_TASKS_LIMIT_MS });
    }
    const title = 'A2A gateway side by side with the Python SDK 6.0.1, protocol 1.0';
    return {
      figure: venv.kind === 'present' ? title : `${title} (absent: ${venv.reason})`,
      rows: [
        ...(await Promise.all(sides.map(rowsOf))).flat(),
        { name: 'the disk, one synced write alone, p50', value: percentile(loneWrites, 0.5), unit: 'ms' },
        { name: 'the disk, one synced write alone, p99', value: percentile(loneWrites, 0.99), unit: 'ms' },
        ...ours.flatMap((one) => ratios(one, theirs)),
      ],
    };
  } finally {
    for (const one of started) await stopBenchProcess(one);
    await sandbox.stop();
    await dispatcher.destroy();
    await rm(folder, { recursive: true, force: true });
  }
}

const of = (side: Side, atOnce: number, what: keyof Load): number =>
  median((side.rounds.get(atOnce) ?? []).map((load) => load[what]));

async function rowsOf(side: Side): Promise<FigureRow[]> {
  const { anonymous } = await memoryMegabytes(side.process);
  return [
    { name: `${side.name}, round trip one at a time, p50`, value: of(side, 1, 'p50'), unit: 'ms' },
    { name: `${side.name}, round trip one at a time, p99`, value: of(side, 1, 'p99'), unit: 'ms' },
    ...AT_ONCE.map((atOnce) => ({
      name: `${side.name}, ${atOnce} at once`,
      value: of(side, atOnce, 'perSecond'),
      unit: 'tasks/s',
    })),
    { name: `${side.name}, round trip 32 at once, p99`, value: of(side, 32, 'p99'), unit: 'ms' },
    { name: `${side.name}, anonymous memory (RssAnon), ${side.tasks} tasks`, value: anonymous, unit: 'MB' },
    { name: `${side.name}, not completed`, value: side.failed, unit: '' },
  ];
}

function ratios(ours: Side, theirs: Side | undefined): FigureRow[] {
  if (!theirs) return [];
  const ratio = (atOnce: number, what: keyof Load) => of(ours, atOnce, what) / of(theirs, atOnce, what);
  const name = `${ours.name} ÷ Python SDK`;
  return [
    { name: `${name}, tasks/s, 1 at once`, value: ratio(1, 'perSecond'), unit: '×' },
    { name: `${name}, tasks/s, 32 at once`, value: ratio(32, 'perSecond'), unit: '×', aim: '≥ 5' },
    { name: `${name}, tasks/s, 256 at once`, value: ratio(256, 'perSecond'), unit: '×' },
    { name: `${name}, p99, 1 at once`, value: ratio(1, 'p99'), unit: '×', aim: '≤ 0.33' },
    { name: `${name}, p99, 32 at once`, value: ratio(32, 'p99'), unit: '×', aim: '≤ 0.33' },
  ];
}

/** Sends so many at a time, each worker in a context of its own, until the tasks are done or the time is over. */
async function load(
  side: Side,
  atOnce: number,
  { tasks, limitMs }: { readonly tasks: number; readonly limitMs: number },
): Promise<Load> {
  const times: number[] = [];
  const begun = performance.now();
  let left = tasks;
  const worker = async (context: string) => {
    while (left > 0 && performance.now() - begun < limitMs) {
      left -= 1;
      const asked = performance.now();
      if (await send(side.process.said, context)) times.push(performance.now() - asked);
      else side.failed += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, n) => worker(`context-${n}`)));
  const seconds = (performance.now() - begun) / 1_000;
  side.tasks += times.length;
  return { seconds, perSecond: times.length / seconds, p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}

/** How long each of many small writes took until the disk had it, with nothing else of this bench going on. */
async function syncedWrites(path: string): Promise<number[]> {
  const file = await open(path, 'a');
  const step = Buffer.alloc(STEP_BYTES);
  const times: number[] = [];
  while (times.length < LONE_WRITES) {
    const begun = performance.now();
    await file.write(step);
    await file.datasync();
    times.push(performance.now() - begun);
  }
  await file.close();
  return times;
}

const percentile = (times: readonly number[], part: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * part)] ?? Number.NaN;

const dispatcher = new Agent({ connections: Math.max(...AT_ONCE) });

/** One blocking send. @returns whether a completed task came back */
async function send(url: string, contextId: string): Promise<boolean> {
  const message = { messageId: randomUUID(), contextId, role: 'ROLE_USER', parts: [{ text: 'hello' }] };
  try {
    const answer = await request(`${url}/agents/echo`, {
      method: 'POST',
      dispatcher,
      headersTimeout: SEND_LIMIT_MS,
      bodyTimeout: SEND_LIMIT_MS,
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
    });
    return (await answer.body.text()).includes('"TASK_STATE_COMPLETED"');
  } catch {
    // Counted by the caller: what a gateway under load refuses or loses is part of the figure.
    return false;
  }
}

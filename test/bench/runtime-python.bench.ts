import { fileURLToPath } from 'node:url';
import { DEMO } from '../../src/sandbox/index.js';
import {
  type BenchProcess,
  buildPackage,
  builtProgram,
  cpuSeconds,
  memoryMegabytes,
  startBenchProcess,
  stopBenchProcess,
} from '../support/bench-process.js';
import { type BenchSandbox, startBenchSandbox } from '../support/bench-sandbox.js';
import { pythonVenv } from '../support/python-venv.js';
import { type Figure, type FigureRow, median } from './figure.js';

const MESSAGES = 200;
/** A burst that takes longer is measured by what was handled until then. */
const BURST_LIMIT_MS = 40_000;
const WARM_UP_LIMIT_MS = 90_000;
const ROOM_COUNTS = [1, 20, 500];
const ROUNDS = 3;
/** No further round after so long. */
const ROUNDS_LIMIT_SECONDS = 15;
const MANY_ROOMS = 1_000;
const MISSED = 100;
/** Both runtimes have read every room by then, and both have seen a pause. */
const SETTLE_MS = 6_000;

const PYTHON_PROGRAM = fileURLToPath(new URL('python-agent.py', import.meta.url));

/** What V8 is told where memory is short: the halves of its young generation are 4 MB instead of 16. */
const SMALL_HEAP = '--max-semi-space-size=4';

interface Side {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly perSecond: Map<number, number>;
  cpuSecondsPer1000: number;
  memory: Memory;
  recoverySeconds: number;
}

type Memory = Awaited<ReturnType<typeof memoryMegabytes>>;
const UNKNOWN: Memory = { anonymous: Number.NaN, resident: Number.NaN };

/**
 * This runtime, built and without a loader, beside the Python SDK 6.0.1: the same agent on the same sandbox, each in a
 * process of its own, turn by turn. Memory is what the process alone holds (RssAnon); the resident size (VmRSS) adds the
 * interpreter's own file, some 45 MB for Node, which the kernel shares among processes.
 */
export async function run(): Promise<Figure> {
  const sdk = await pythonVenv('bandSdk');
  await buildPackage();
  const program = builtProgram('bench-agent');
  const ours = sideOf('runtime', process.execPath, [program]);
  const sides = [ours];
  if (sdk.kind === 'present') sides.push(sideOf('Python SDK', sdk.python, [PYTHON_PROGRAM]));
  for (const rooms of ROOM_COUNTS) for (const side of sides) await measureMessages(side, rooms);
  for (const side of sides) await measureManyRooms(side);
  const small = sideOf(`runtime, ${SMALL_HEAP}`, process.execPath, [SMALL_HEAP, program]);
  await measureManyRooms(small);
  const title = 'Runtime side by side with the Python SDK 6.0.1';
  return {
    figure: sdk.kind === 'present' ? title : `${title} (absent: ${sdk.reason})`,
    rows: [...sides.flatMap(rowsOf), ...memoryRows(small), ...ratios(ours, sides[1])],
  };
}

const sideOf = (name: string, command: string, args: readonly string[]): Side => ({
  name,
  command,
  args,
  perSecond: new Map(),
  cpuSecondsPer1000: Number.NaN,
  memory: UNKNOWN,
  recoverySeconds: Number.NaN,
});

function rowsOf(side: Side): FigureRow[] {
  return [
    ...[...side.perSecond].map(([rooms, value]) => ({ name: `${side.name}, ${rooms} rooms`, value, unit: 'msg/s' })),
    { name: `${side.name}, CPU per 1,000 messages in 20 rooms`, value: side.cpuSecondsPer1000, unit: 's' },
    ...memoryRows(side),
    {
      name: `${side.name}, ${MANY_ROOMS} rooms: drop to last of ${MISSED} missed`,
      value: side.recoverySeconds,
      unit: 's',
    },
  ];
}

const memoryRows = ({ name, memory }: Side): FigureRow[] => [
  { name: `${name}, anonymous memory, ${MANY_ROOMS} rooms`, value: memory.anonymous, unit: 'MB' },
  { name: `${name}, resident memory, ${MANY_ROOMS} rooms`, value: memory.resident, unit: 'MB' },
];

function ratios(ours: Side, theirs: Side | undefined): FigureRow[] {
  if (!theirs) return [];
  const what = 'runtime ÷ Python SDK';
  return [
    ...ROOM_COUNTS.map((rooms) => ({
      name: `${what}, messages/s in ${rooms} rooms`,
      value: (ours.perSecond.get(rooms) ?? Number.NaN) / (theirs.perSecond.get(rooms) ?? Number.NaN),
      unit: '×',
      aim: '> 1',
    })),
    {
      name: `${what}, CPU per message`,
      value: ours.cpuSecondsPer1000 / theirs.cpuSecondsPer1000,
      unit: '×',
      aim: '< 1',
    },
    {
      name: `${what}, anonymous memory with ${MANY_ROOMS} rooms`,
      value: ours.memory.anonymous / theirs.memory.anonymous,
      unit: '×',
      aim: '< 1',
    },
    { name: `${what}, recovery`, value: ours.recoverySeconds / theirs.recoverySeconds, unit: '×', aim: '< 1' },
  ];
}

async function measureMessages(side: Side, rooms: number): Promise<void> {
  await onSandbox(side, rooms, async (agent, sandbox, ids) => {
    // Once around, so that what a room needs at its start and at its first message is not measured.
    await burst(agent, sandbox, ids, rooms, WARM_UP_LIMIT_MS);
    const rates: number[] = [];
    const cpu = await cpuSeconds(agent.process);
    let handled = 0;
    let seconds = 0;
    for (let round = 0; round < ROUNDS && seconds < ROUNDS_LIMIT_SECONDS; round += 1) {
      const begun = performance.now();
      const count = await burst(agent, sandbox, ids, MESSAGES, BURST_LIMIT_MS);
      const took = (performance.now() - begun) / 1_000;
      rates.push(count / took);
      handled += count;
      seconds += took;
    }
    side.perSecond.set(rooms, median(rates));
    if (rooms === 20) side.cpuSecondsPer1000 = ((await cpuSeconds(agent.process)) - cpu) / (handled / 1_000);
  });
}

async function measureManyRooms(side: Side): Promise<void> {
  await onSandbox(side, MANY_ROOMS, async (agent, sandbox, ids) => {
    await sleep(SETTLE_MS);
    side.memory = await memoryMegabytes(agent.process);
    const begun = performance.now();
    await sandbox.dropAgent();
    const done = agent.handled(MISSED, BURST_LIMIT_MS);
    await Promise.all(Array.from({ length: MISSED }, (_, n) => sandbox.post(ids[n * 10] ?? '', `missed ${n}`)));
    if ((await done) >= MISSED) side.recoverySeconds = (performance.now() - begun) / 1_000;
  });
}

async function burst(
  agent: BenchAgent,
  sandbox: BenchSandbox,
  rooms: readonly string[],
  count: number,
  limitMs: number,
): Promise<number> {
  const done = agent.handled(count, limitMs);
  const lanes = Array.from({ length: 16 }, async (_, lane) => {
    for (let n = lane; n < count; n += 16) await sandbox.post(rooms[n % rooms.length] ?? '', `message ${n}`);
  });
  await Promise.all(lanes);
  return done;
}

interface BenchAgent {
  readonly process: BenchProcess;
  /** Resolves when that many more messages were handled, or the limit is over. @returns how many were */
  handled(count: number, limitMs: number): Promise<number>;
}

async function onSandbox(
  { command, args }: Side,
  rooms: number,
  work: (agent: BenchAgent, sandbox: BenchSandbox, ids: readonly string[]) => Promise<void>,
): Promise<void> {
  const sandbox = await startBenchSandbox();
  try {
    const ids = await sandbox.makeRooms(rooms);
    const agent = await startBenchProcess(command, args, {
      BAND_REST_URL: sandbox.restUrl,
      BAND_WS_URL: sandbox.wsUrl,
      AGENT_ID: DEMO.echo.id,
      API_KEY: DEMO.echo.apiKey,
    });
    let seen = 0;
    let wanted: { at: number; done: () => void } | null = null;
    agent.child.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString().split('.').length - 1;
      if (wanted && seen >= wanted.at) wanted.done();
    });
    const handled = async (count: number, limitMs: number) => {
      const before = seen;
      const all = new Promise<void>((done) => {
        wanted = { at: before + count, done };
      });
      const limit = setTimeout(() => wanted?.done(), limitMs);
      await all;
      clearTimeout(limit);
      return seen - before;
    };
    try {
      await sleep(1_000);
      await work({ process: agent, handled }, sandbox, ids);
    } finally {
      await stopBenchProcess(agent);
    }
  } finally {
    await sandbox.stop();
  }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

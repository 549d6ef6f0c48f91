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
import { type Figure, type FigureRow } from './figure.js';

const MESSAGES = 200;
/** A burst that takes longer is measured by what was handled until then. */
const BURST_LIMIT_MS = 40_000;
const ROOM_COUNTS = [1, 20, 500];
const MANY_ROOMS = 1_000;
const MISSED = 100;
/** Both runtimes have read every room by then, and both have seen a pause. */
const SETTLE_MS = 6_000;

const PYTHON_PROGRAM = fileURLToPath(new URL('python-agent.py', import.meta.url));

interface Measured {
  readonly perSecond: ReadonlyMap<number, number>;
  readonly cpuSecondsPer1000: number;
  readonly memory: { readonly anonymous: number; readonly resident: number };
  readonly recoverySeconds: number;
}

/**
 * This runtime, built and without a loader, beside the Python SDK 6.0.1: the same agent on the same sandbox, each in a
 * process of its own. Memory is what the process alone holds (RssAnon); the resident size (VmRSS) adds the interpreter's
 * own file, some 45 MB for Node, which the kernel shares among processes.
 */
export async function run(): Promise<Figure> {
  const sdk = await pythonVenv('bandSdk');
  await buildPackage();
  const ours = await measure(process.execPath, [builtProgram('bench-agent')]);
  const rows: FigureRow[] = rowsOf('runtime', ours);
  if (sdk.kind === 'present') {
    const theirs = await measure(sdk.python, [PYTHON_PROGRAM]);
    rows.push(...rowsOf('Python SDK', theirs));
    for (const rooms of ROOM_COUNTS) {
      const value = (ours.perSecond.get(rooms) ?? 0) / (theirs.perSecond.get(rooms) ?? Number.NaN);
      rows.push({ name: `runtime ÷ Python SDK, messages/s in ${rooms} rooms`, value, unit: '×' });
    }
    rows.push({
      name: 'runtime ÷ Python SDK, CPU per message',
      value: ours.cpuSecondsPer1000 / theirs.cpuSecondsPer1000,
      unit: '×',
    });
    rows.push({
      name: `runtime ÷ Python SDK, anonymous memory with ${MANY_ROOMS} rooms`,
      value: ours.memory.anonymous / theirs.memory.anonymous,
      unit: '×',
      aim: '< 1',
    });
  }
  const title = 'Runtime side by side with the Python SDK 6.0.1';
  return { figure: sdk.kind === 'present' ? title : `${title} (absent: ${sdk.reason})`, rows };
}

function rowsOf(who: string, measured: Measured): FigureRow[] {
  return [
    ...[...measured.perSecond].map(([rooms, value]) => ({ name: `${who}, ${rooms} rooms`, value, unit: 'msg/s' })),
    { name: `${who}, CPU per 1,000 messages in 20 rooms`, value: measured.cpuSecondsPer1000, unit: 's' },
    { name: `${who}, anonymous memory (RssAnon), ${MANY_ROOMS} rooms`, value: measured.memory.anonymous, unit: 'MB' },
    { name: `${who}, resident memory (VmRSS), ${MANY_ROOMS} rooms`, value: measured.memory.resident, unit: 'MB' },
    {
      name: `${who}, ${MANY_ROOMS} rooms: drop to last of ${MISSED} missed`,
      value: measured.recoverySeconds,
      unit: 's',
    },
  ];
}

async function measure(command: string, args: readonly string[]): Promise<Measured> {
  const perSecond = new Map<number, number>();
  let cpuSecondsPer1000 = Number.NaN;
  let recoverySeconds = Number.NaN;
  let memory = { anonymous: Number.NaN, resident: Number.NaN };
  for (const rooms of ROOM_COUNTS) {
    await onSandbox(command, args, rooms, async (agent, sandbox, ids) => {
      // Once around, so that what a room needs at its first message is not measured.
      await burst(agent, sandbox, ids, rooms);
      const cpu = await cpuSeconds(agent.process);
      const begun = performance.now();
      const handled = await burst(agent, sandbox, ids, MESSAGES);
      perSecond.set(rooms, handled / ((performance.now() - begun) / 1_000));
      if (rooms === 20) cpuSecondsPer1000 = ((await cpuSeconds(agent.process)) - cpu) / (handled / 1_000);
    });
  }
  await onSandbox(command, args, MANY_ROOMS, async (agent, sandbox, ids) => {
    await sleep(SETTLE_MS);
    memory = await memoryMegabytes(agent.process);
    const begun = performance.now();
    await sandbox.dropAgent();
    const done = agent.handled(MISSED);
    await Promise.all(Array.from({ length: MISSED }, (_, n) => sandbox.post(ids[n * 10] ?? '', `missed ${n}`)));
    if ((await done) >= MISSED) recoverySeconds = (performance.now() - begun) / 1_000;
  });
  return { perSecond, cpuSecondsPer1000, memory, recoverySeconds };
}

async function burst(
  agent: BenchAgent,
  sandbox: BenchSandbox,
  rooms: readonly string[],
  count: number,
): Promise<number> {
  const done = agent.handled(count);
  const lanes = Array.from({ length: 16 }, async (_, lane) => {
    for (let n = lane; n < count; n += 16) await sandbox.post(rooms[n % rooms.length] ?? '', `message ${n}`);
  });
  await Promise.all(lanes);
  return done;
}

interface BenchAgent {
  readonly process: BenchProcess;
  /** Resolves when that many more messages were handled, or the limit is over. @returns how many were */
  handled(count: number): Promise<number>;
}

async function onSandbox(
  command: string,
  args: readonly string[],
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
    const handled = async (count: number) => {
      const before = seen;
      const all = new Promise<void>((done) => {
        wanted = { at: before + count, done };
      });
      const limit = setTimeout(() => wanted?.done(), BURST_LIMIT_MS);
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

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { DEMO } from '../../src/sandbox/index.js';
import { type BenchSandbox, startBenchSandbox } from '../support/bench-sandbox.js';
import { pythonVenv } from '../support/python-venv.js';
import { type Figure, type FigureRow } from './figure.js';

const MESSAGES = 200;
/** A burst that takes longer is measured by what was handled until then. */
const BURST_LIMIT_MS = 40_000;
const ROOM_COUNTS = [1, 20, 500];
const MANY_ROOMS = 1_000;
const MISSED = 100;
const CLOCK_TICKS_PER_SECOND = 100;

const PROGRAM = fileURLToPath(new URL('../support/programs/bench-agent.ts', import.meta.url));
const PYTHON_PROGRAM = fileURLToPath(new URL('python-agent.py', import.meta.url));

interface Measured {
  readonly perSecond: Map<number, number>;
  cpuSecondsPer1000: number;
  rssMegabytes: number;
  recoverySeconds: number;
}

/** This runtime beside the Python SDK 6.0.1, the same agent on the same sandbox, each in a process of its own. */
export async function run(): Promise<Figure> {
  const sdk = await pythonVenv('bandSdk');
  const ours = await measure(process.execPath, ['--import', 'tsx', PROGRAM]);
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
  }
  const title = 'Runtime side by side with the Python SDK 6.0.1';
  return { figure: sdk.kind === 'present' ? title : `${title} (absent: ${sdk.reason})`, rows };
}

function rowsOf(who: string, measured: Measured): FigureRow[] {
  return [
    ...[...measured.perSecond].map(([rooms, value]) => ({ name: `${who}, ${rooms} rooms`, value, unit: 'msg/s' })),
    { name: `${who}, CPU per 1,000 messages in 20 rooms`, value: measured.cpuSecondsPer1000, unit: 's' },
    { name: `${who}, resident memory with ${MANY_ROOMS} rooms`, value: measured.rssMegabytes, unit: 'MB' },
    {
      name: `${who}, ${MANY_ROOMS} rooms: drop to last of ${MISSED} missed`,
      value: measured.recoverySeconds,
      unit: 's',
    },
  ];
}

async function measure(command: string, args: readonly string[]): Promise<Measured> {
  const measured: Measured = { perSecond: new Map(), cpuSecondsPer1000: 0, rssMegabytes: 0, recoverySeconds: 0 };
  for (const rooms of ROOM_COUNTS) {
    await onSandbox(command, args, rooms, async (agent, sandbox, ids) => {
      // Once around, so that what a room needs at its first message is not measured.
      await burst(agent, sandbox, ids, rooms);
      const cpu = await cpuSeconds(agent.child);
      const begun = performance.now();
      const handled = await burst(agent, sandbox, ids, MESSAGES);
      measured.perSecond.set(rooms, handled / ((performance.now() - begun) / 1_000));
      if (rooms === 20) measured.cpuSecondsPer1000 = ((await cpuSeconds(agent.child)) - cpu) / (handled / 1_000);
    });
  }
  await onSandbox(command, args, MANY_ROOMS, async (agent, sandbox, ids) => {
    await sleep(6_000);
    measured.rssMegabytes = await residentMegabytes(agent.child);
    const begun = performance.now();
    await sandbox.dropAgent();
    const done = agent.handled(MISSED);
    await Promise.all(Array.from({ length: MISSED }, (_, n) => sandbox.post(ids[n * 10] ?? '', `missed ${n}`)));
    await done;
    measured.recoverySeconds = (performance.now() - begun) / 1_000;
  });
  return measured;
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
  readonly child: ChildProcess;
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
  const ids = await sandbox.makeRooms(rooms);
  const child = spawn(command, args, {
    env: {
      PATH: process.env['PATH'],
      BAND_REST_URL: sandbox.restUrl,
      BAND_WS_URL: sandbox.wsUrl,
      AGENT_ID: DEMO.echo.id,
      API_KEY: DEMO.echo.apiKey,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let seen = 0;
  let wanted: { at: number; done: () => void } | null = null;
  const online = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      const text = chunk.toString();
      if (text.includes('online')) resolve();
      seen += text.split('.').length - 1;
      if (wanted && seen >= wanted.at) wanted.done();
    });
  });
  try {
    await online;
    await sleep(1_000);
    const handled = async (count: number) => {
      const before = seen;
      const all = new Promise<void>((done) => {
        wanted = { at: before + count, done };
      });
      await Promise.race([all, sleep(BURST_LIMIT_MS)]);
      return seen - before;
    };
    await work({ child, handled }, sandbox, ids);
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
    await sandbox.stop();
  }
}

async function cpuSeconds({ pid }: ChildProcess): Promise<number> {
  const stat = await readFile(`/proc/${String(pid)}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

async function residentMegabytes({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${String(pid)}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

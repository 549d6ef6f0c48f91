import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DEMO } from '../../src/sandbox/index.js';
import {
  buildPackage,
  builtProgram,
  cpuSeconds,
  memoryMegabytes,
  startBenchProcess,
  stopBenchProcess,
} from '../support/bench-process.js';
import { startBenchSandbox } from '../support/bench-sandbox.js';
import { pythonVenv } from '../support/python-venv.js';
import { startAcme } from '../support/slack/acme.js';
import { emptyMessage } from '../support/slack/core.js';
import { FIRST_THREAD_SECOND, THREADS, type LoadResult } from '../support/slack/load.js';
import { type Figure, type FigureRow, median } from './figure.js';

const ROUNDS = 3;
const SECONDS = Number(process.env['SLACK_PYTHON_SECONDS'] ?? 5);
const STEADY_PER_SECOND = 500;
/** Part of the full speed that counts as held, where that is below the steady rate. */
const HELD = 0.8;
const LOAD_LIMIT_MS = (SECONDS + 30) * 1_000;
const PYTHON_PROGRAM = fileURLToPath(new URL('python-slack.py', import.meta.url));

interface Measured extends LoadResult {
  readonly cpuSecondsPer1000: number;
  readonly anonymousMegabytes: number;
}

type Side = (perSecond: number) => Promise<Measured>;

/**
 * Our Slack adapter, which has every event on disk before it acknowledges, beside the Python SDK 6.0.1's, which holds it
 * in memory: the same signed mentions from 128 connections, the same Slack double, a sandbox of the same program, and a
 * brain that says nothing. Each run is a process of its own. Behind the acknowledgement both go on to the room and the
 * brain, each in its own way: ours with 16 threads at a time while the rest waits on disk, theirs with all at once.
 */
export async function run(): Promise<Figure> {
  const venv = await pythonVenv('bandSdkBridges');
  await buildPackage();
  const folder = await mkdtemp(join(tmpdir(), 'band-gateway-bench-'));
  let runs = 0;
  const ours: Side = (rate) =>
    measure(process.execPath, [builtProgram('bench-slack'), join(folder, String((runs += 1)))], rate);
  const sides: [string, Side][] = [['adapter', ours]];
  if (venv.kind === 'present') {
    sides.push(['Python SDK', (rate) => measure(venv.python, [PYTHON_PROGRAM], rate)]);
  }
  try {
    const full = sides.map((): Measured[] => []);
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [n, [, side]] of sides.entries()) full[n]?.push(await side(0));
    }
    const rows: FigureRow[] = [];
    const figures: { perSecond: number; p99: number }[] = [];
    for (const [n, [name, side]] of sides.entries()) {
      const rounds = full[n] ?? [];
      const middle = (what: keyof Measured) => median(rounds.map((one) => one[what]));
      figures.push({ perSecond: middle('perSecond'), p99: middle('p99Ms') });
      const rate = Math.floor(Math.min(STEADY_PER_SECOND, HELD * middle('perSecond')));
      const steady = await side(rate);
      rows.push(
        { name: `${name}, acknowledged at full speed`, value: middle('perSecond'), unit: '/s' },
        { name: `${name}, acknowledgement at full speed, p99`, value: middle('p99Ms'), unit: 'ms' },
        { name: `${name}, CPU per 1,000 events at full speed`, value: middle('cpuSecondsPer1000'), unit: 's' },
        { name: `${name}, anonymous memory after it`, value: middle('anonymousMegabytes'), unit: 'MB' },
        { name: `${name}, acknowledgement at ${rate} events/s, p50`, value: steady.p50Ms, unit: 'ms' },
        { name: `${name}, acknowledgement at ${rate} events/s, p99`, value: steady.p99Ms, unit: 'ms' },
        { name: `${name}, acknowledged at ${rate} events/s`, value: steady.perSecond, unit: '/s' },
        {
          name: `${name}, not answered with 200`,
          value: rounds.reduce((sum, one) => sum + one.failed, steady.failed),
          unit: '',
        },
      );
    }
    const [own, theirs] = figures;
    if (own && theirs) {
      rows.push(
        {
          name: 'adapter ÷ Python SDK, acknowledged/s',
          value: own.perSecond / theirs.perSecond,
          unit: '×',
          aim: '> 1',
        },
        { name: 'adapter ÷ Python SDK, p99 at full speed', value: own.p99 / theirs.p99, unit: '×', aim: '< 1' },
      );
    }
    const title = 'Slack adapter side by side with the Python SDK 6.0.1, HTTP, 128 connections';
    return { figure: venv.kind === 'present' ? title : `${title} (absent: ${venv.reason})`, rows };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** One process under load from another. @param rate - events a second; 0: as fast as it goes */
async function measure(command: string, args: readonly string[], rate: number): Promise<Measured> {
  const sandbox = await startBenchSandbox();
  const { slack, app, botToken, general, alice } = await startAcme({ rates: false });
  try {
    for (let n = 0; n < THREADS; n += 1) {
      const root = emptyMessage(`${FIRST_THREAD_SECOND + n}.000000`, Date.now());
      general.messages.push({ ...root, user: alice.id, text: 'a question' });
    }
    const bridge = await startBenchProcess(command, args, {
      BAND_REST_URL: sandbox.restUrl,
      BAND_WS_URL: sandbox.wsUrl,
      AGENT_ID: DEMO.helpdesk.id,
      API_KEY: DEMO.helpdesk.apiKey,
      SLACK_API_URL: slack.apiUrl,
      BOT_TOKEN: botToken,
      SIGNING_SECRET: app.signingSecret,
    });
    try {
      const cpu = await cpuSeconds(bridge);
      const result = await load(bridge.said, app.signingSecret, rate);
      return {
        ...result,
        cpuSecondsPer1000: ((await cpuSeconds(bridge)) - cpu) / ((result.perSecond * SECONDS) / 1_000),
        anonymousMegabytes: (await memoryMegabytes(bridge)).anonymous,
      };
    } finally {
      await stopBenchProcess(bridge);
    }
  } finally {
    await slack.stop();
    await sandbox.stop();
  }
}

function load(url: string, secret: string, rate: number): Promise<LoadResult> {
  const client = fork(
    fileURLToPath(new URL('../support/slack/load.ts', import.meta.url)),
    [url, secret, String(SECONDS), String(rate)],
    { execArgv: ['--import', 'tsx'], timeout: LOAD_LIMIT_MS },
  );
  return new Promise((resolve, reject) => {
    client.on('message', (message) => {
      resolve(message as LoadResult);
    });
    client.on('exit', () => {
      reject(new Error('the load client ended without a result'));
    });
  });
}

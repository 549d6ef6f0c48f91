import { fork } from 'node:child_process';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { noMetrics } from '../../src/base/metrics.js';
import { Inbox } from '../../src/store/inbox.js';
import { openLevelStore } from '../../src/store/leveldb.js';
import { createMemoryStore } from '../../src/store/memory.js';
import type { StateStore } from '../../src/store/port.js';
import { createAccept } from '../../bridges/slack/inbound/accept.js';
import { createHttpIngress } from '../../bridges/slack/inbound/http.js';
import { slackRecords, type SlackRecord } from '../../bridges/slack/inbound/records.js';
import { verifySignature } from '../../bridges/slack/signature.js';
import type { LoadResult } from '../support/slack/load.js';
import { median, type Figure } from './figure.js';

const SECRET = '8f742231b10e8888abcd99yyyzzz85a5';
const ROUNDS = 5;
const SECONDS = 3;
const STEADY_PER_SECOND = 500;

/** Figures 1 and 7 for Slack: events accepted by HTTP, each on disk before its answer, from 128 connections. */
export async function run(): Promise<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'band-gateway-bench-'));
  let round = 0;
  const level = () => openLevelStore({ folder: join(folder, `store-${(round += 1)}`) });
  const rates: Record<'bare' | 'level' | 'memory', number[]> = { bare: [], level: [], memory: [] };
  try {
    for (let turn = 0; turn < ROUNDS; turn += 1) {
      rates.bare.push((await underLoad(bareListener, 0)).perSecond);
      rates.level.push((await bridgeUnderLoad(await level(), 0)).perSecond);
      rates.memory.push((await bridgeUnderLoad(createMemoryStore(), 0)).perSecond);
    }
    const steady = await bridgeUnderLoad(await level(), STEADY_PER_SECOND);
    const [bare, durable, memory] = [median(rates.bare), median(rates.level), median(rates.memory)];
    return {
      figure: '1 · Slack events accepted by HTTP, durable, 128 connections',
      rows: [
        {
          name: 'accepted on disk ÷ bare node:http that checks the signature',
          value: durable / bare,
          unit: '×',
          aim: '≥ 0.5',
        },
        { name: '7 · accepted on disk ÷ accepted in memory', value: durable / memory, unit: '×', aim: '≥ 0.8' },
        { name: 'bare', value: bare, unit: '/s' },
        { name: 'on disk', value: durable, unit: '/s' },
        { name: 'in memory', value: memory, unit: '/s' },
        { name: `acknowledgement p99 at ${STEADY_PER_SECOND} events/s`, value: steady.p99Ms, unit: 'ms', aim: '< 50' },
        { name: `acknowledgement p50 at ${STEADY_PER_SECOND} events/s`, value: steady.p50Ms, unit: 'ms' },
        { name: 'not answered with 200 at that rate', value: steady.failed, unit: '', aim: '0' },
      ],
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const bareListener: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const header = (name: string) => request.headers[name] as string | undefined;
    const signed = {
      timestamp: header('x-slack-request-timestamp'),
      signature: header('x-slack-signature'),
      body: Buffer.concat(chunks),
    };
    response.statusCode = verifySignature(signed, [SECRET], Date.now()).ok ? 200 : 401;
    response.end();
  });
};

async function bridgeUnderLoad(store: StateStore, rate: number): Promise<LoadResult> {
  const inbox = await Inbox.open<SlackRecord>({
    store,
    prefix: 'slack/bench/inbox',
    ...slackRecords,
    clock: systemClock,
    log: silentLogger,
    seenRetentionMs: 26 * 3_600_000,
    maxWaiting: 1_000_000,
    // How many records are handled side by side, and what waits for that, is not what is measured.
    maxRunning: Number.POSITIVE_INFINITY,
  });
  inbox.queue.start(() => Promise.resolve({ kind: 'done' }));
  const app = {
    slug: 'main',
    botToken: 'xoxb-1',
    signingSecrets: [SECRET],
    appToken: null,
    transport: 'http',
    persona: null,
    surface: null,
    allow: [],
    deny: [],
  } as const;
  const accept = createAccept({
    inbox,
    clock: systemClock,
    metrics: noMetrics,
    deadlineMs: 2_500,
    maxQueuedPerThread: 20,
  });
  const listener = createHttpIngress({
    apps: [app],
    mountPath: '/slack',
    accept,
    clock: systemClock,
    log: silentLogger,
    metrics: noMetrics,
    bodyLimitBytes: 4 * 1024 * 1024,
    open: () => true,
  });
  const result = await underLoad(listener, rate);
  await inbox.queue.stop();
  await store.close();
  return result;
}

async function underLoad(listener: RequestListener, rate: number): Promise<LoadResult> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/slack/events`;
  const client = fork(
    fileURLToPath(new URL('../support/slack/load.ts', import.meta.url)),
    [url, SECRET, String(SECONDS), String(rate)],
    {
      execArgv: ['--import', 'tsx'],
    },
  );
  try {
    return await new Promise<LoadResult>((resolve, reject) => {
      client.on('message', (message) => {
        resolve(message as LoadResult);
      });
      client.on('exit', () => {
        reject(new Error('the load client ended without a result'));
      });
    });
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

import { readFile } from 'node:fs/promises';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { Agent } from '../../src/agent.js';
import { SessionConfig } from '../../src/config/session-config.js';
import { DEMO } from '../../src/sandbox/index.js';
import { startBenchSandbox } from '../support/bench-sandbox.js';
import type { Figure } from './figure.js';

const ROOMS = Number(process.env['SOAK_ROOMS'] ?? 5_000);
const PER_SECOND = Number(process.env['SOAK_PER_SECOND'] ?? 50);
/** Hours for a real soak; a minute shows that it runs. */
const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 60);

/** Many rooms and a steady stream: what is answered, how late, and what it leaves in memory. */
export async function run(): Promise<Figure> {
  const sandbox = await startBenchSandbox();
  const sentAt = new Map<string, number>();
  const latencies: number[] = [];
  const agent = Agent.create(
    {
      adapter: new GenericAdapter(async ({ message, tools }) => {
        const text = message.content.replace('@demo/echo ', '');
        const at = sentAt.get(text);
        if (at !== undefined) latencies.push(performance.now() - at);
        sentAt.delete(text);
        await tools.noReply();
      }),
      agentId: DEMO.echo.id,
      apiKey: DEMO.echo.apiKey,
      restUrl: sandbox.restUrl,
      wsUrl: sandbox.wsUrl,
      sessionConfig: new SessionConfig({}),
      config: { singleInstance: false },
    },
    {},
  );
  try {
    const rooms = await sandbox.makeRooms(ROOMS);
    await agent.start();
    await sleep(5_000);
    const before = await anonymousMegabytes();
    const heapBefore = heapMegabytes();
    const timersBefore = openTimers();
    let sent = 0;
    const begun = performance.now();
    while (performance.now() - begun < SECONDS * 1_000) {
      const due = Math.floor(((performance.now() - begun) / 1_000) * PER_SECOND);
      const batch = Array.from({ length: Math.max(0, due - sent) }, (_, n) => `soak ${sent + n}`);
      await Promise.all(
        batch.map(async (text, n) => {
          sentAt.set(text, performance.now());
          await sandbox.post(rooms[((sent + n) * 7) % ROOMS] ?? '', text);
        }),
      );
      sent += batch.length;
      await sleep(20);
    }
    const deadline = performance.now() + 150_000;
    while (sentAt.size > 0 && performance.now() < deadline) await sleep(50);
    latencies.sort((a, b) => a - b);
    const at = (share: number) => latencies[Math.floor((latencies.length - 1) * share)] ?? Number.NaN;
    return {
      figure: `Soak: ${ROOMS} rooms, ${PER_SECOND} messages/s for ${SECONDS} s`,
      rows: [
        { name: 'messages sent', value: sent, unit: '' },
        { name: 'messages without an answer', value: sentAt.size, unit: '', aim: '0' },
        { name: 'post to handler, median', value: at(0.5), unit: 'ms' },
        { name: 'post to handler, 99 %', value: at(0.99), unit: 'ms' },
        { name: 'anonymous memory, end − begin', value: (await anonymousMegabytes()) - before, unit: 'MB' },
        { name: 'heap, end − begin', value: heapMegabytes() - heapBefore, unit: 'MB' },
        { name: 'open timers, begin', value: timersBefore, unit: '' },
        { name: 'open timers, end', value: openTimers(), unit: '' },
      ],
    };
  } finally {
    await agent.stop();
    await sandbox.stop();
  }
}

async function anonymousMegabytes(): Promise<number> {
  globalThis.gc?.();
  const status = await readFile('/proc/self/status', 'utf8');
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

function heapMegabytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1_048_576;
}

const openTimers = (): number => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

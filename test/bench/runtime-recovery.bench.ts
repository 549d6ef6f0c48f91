import { GenericAdapter } from '../../src/adapters/generic.js';
import { Agent } from '../../src/agent.js';
import { SessionConfig } from '../../src/config/session-config.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import { createRestClient } from '../../src/platform/rest/rest-client.js';
import { DEMO } from '../../src/sandbox/index.js';
import { startBenchSandbox } from '../support/bench-sandbox.js';
import { type Figure, median } from './figure.js';

const ROOMS = Number(process.env['BENCH_ROOMS'] ?? 5_000);
const MISSED = 200;
const ROUNDS = 3;

/** Figure 6, the whole runtime: after a drop, from the open socket until the last room has looked for what it missed. */
export async function run(): Promise<Figure> {
  const sandbox = await startBenchSandbox();
  const calls = new Map<string, number>();
  const handled = new Set<string>();
  const agent = Agent.create(
    {
      adapter: new GenericAdapter(async ({ message, tools }) => {
        handled.add(message.content.replace('@demo/echo ', ''));
        await tools.noReply();
      }),
      agentId: DEMO.echo.id,
      apiKey: DEMO.echo.apiKey,
      restUrl: sandbox.restUrl,
      wsUrl: sandbox.wsUrl,
      sessionConfig: new SessionConfig({
        enableWorkingState: false,
        idleResyncSeconds: 600,
        idleResyncMaxSeconds: 600,
      }),
      config: { singleInstance: false },
    },
    { createRest: (options) => counting(createRestClient(options), calls) },
  );
  try {
    const rooms = await sandbox.makeRooms(ROOMS);
    const begun = performance.now();
    await agent.start();
    await until(() => (calls.get('nextMessage') ?? 0) >= ROOMS);
    const startMs = performance.now() - begun;
    const drained: number[] = [];
    const perRoom: number[] = [];
    const idle: number[] = [];
    let lost = 0;
    let cpuMs = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      // A connection of some age: a short-lived one comes back later on purpose.
      await sleep(5_500);
      await sandbox.dropAgent();
      await until(() => agent.runtime.linkState?.kind === 'waiting');
      const missed = Array.from({ length: round === 0 ? 0 : MISSED }, (_, n) => `missed ${round}-${n}`);
      const posting = Promise.all(missed.map((text, n) => sandbox.post(rooms[(n * 37) % ROOMS] ?? '', text)));
      await posting;
      calls.clear();
      const cpu = process.cpuUsage();
      await until(() => agent.runtime.linkState?.kind === 'connected');
      const open = agent.runtime.linkState?.sinceMs ?? Number.NaN;
      await until(
        () => (calls.get('nextMessage') ?? 0) >= ROOMS + missed.length && missed.every((text) => handled.has(text)),
      );
      if (round === 0) {
        const used = process.cpuUsage(cpu);
        cpuMs = (used.user + used.system) / 1_000;
        idle.push(Date.now() - open);
        const listings = Math.ceil(ROOMS / 100);
        perRoom.push(([...calls.values()].reduce((sum, count) => sum + count, 0) - listings) / ROOMS);
      } else {
        drained.push(Date.now() - open);
      }
      lost += missed.filter((text) => !handled.has(text)).length;
    }
    return {
      figure: `6 · ${ROOMS} rooms after a drop, whole runtime against a sandbox in another process`,
      rows: [
        {
          name: 'socket open to last room drained, nothing missed',
          value: median(idle) / 1_000,
          unit: 's',
          aim: '≤ 2',
        },
        { name: `the same with ${MISSED} messages missed`, value: median(drained) / 1_000, unit: 's', aim: '≤ 2' },
        { name: 'processor time of the agent for that', value: cpuMs / 1_000, unit: 's' },
        { name: 'REST calls per room, listing aside', value: median(perRoom), unit: 'calls', aim: '≤ 1' },
        { name: 'messages lost', value: lost, unit: '', aim: '0' },
        { name: 'start to last room synchronised', value: startMs / 1_000, unit: 's' },
      ],
    };
  } finally {
    await agent.stop();
    await sandbox.stop();
  }
}

function counting(rest: BandRest, calls: Map<string, number>): BandRest {
  return new Proxy(rest, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        const answer: unknown = await (value as (...args: unknown[]) => Promise<unknown>).apply(target, args);
        calls.set(String(name), (calls.get(String(name)) ?? 0) + 1);
        return answer;
      };
    },
  });
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error('nothing happened for two minutes');
    await sleep(2);
  }
}

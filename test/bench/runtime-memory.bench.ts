import { GenericAdapter } from '../../src/adapters/generic.js';
import { Agent } from '../../src/agent.js';
import { roomIds, startBenchPlatform } from '../support/bench-platform.js';
import { FakeBand } from '../support/fake-band.js';
import { type Figure, median } from './figure.js';

const FEW = 100;
const MANY = 5_000;
const ROUNDS = 5;

/** Figure 4, the whole runtime: an idle room with its two channels, its place in presence, its execution and deadline. */
export async function run(): Promise<Figure> {
  const platform = await startBenchPlatform();
  try {
    const rounds: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) rounds.push(await bytesPerRoom(platform.url));
    return {
      figure: `4 · Heap per idle room, slope from ${FEW} to ${MANY} rooms, whole runtime`,
      rows: [{ name: 'agent', value: median(rounds), unit: 'bytes', aim: '≤ 4096' }],
    };
  } finally {
    await platform.stop();
  }
}

async function bytesPerRoom(url: string): Promise<number> {
  const band = new FakeBand({ now: Date.now });
  const agent = Agent.create(
    {
      adapter: new GenericAdapter(() => Promise.resolve()),
      agentId: 'bench',
      apiKey: 'bench',
      restUrl: 'http://band.invalid',
      wsUrl: url,
      config: { singleInstance: false },
    },
    // The platform is not asked for anything by an idle room; its answers would only be in the way of the figure.
    {
      createRest: () => ({
        ...band.rest,
        listMessages: () => Promise.resolve(NO_ROWS),
        nextMessage: () => Promise.resolve(null),
      }),
    },
  );
  await agent.start();
  const { rooms } = agent.runtime;
  if (!rooms) throw new Error('the agent is not running');
  const join = (ids: readonly string[]) => Promise.all(ids.map((id) => rooms.presence.add(id)));
  await join(roomIds(0, FEW));
  const few = await heapBytes();
  await join(roomIds(FEW, MANY));
  const many = await heapBytes();
  const live = rooms.rooms.size;
  await agent.stop();
  if (live !== MANY) throw new Error(`${live} rooms are live instead of ${MANY}`);
  return (many - few) / (MANY - FEW);
}

const NO_ROWS = { data: [], hasMore: false, nextCursor: null };

async function heapBytes(): Promise<number> {
  for (let i = 0; i < 5; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

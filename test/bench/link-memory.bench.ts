import {
  type BenchClient,
  connectOfficial,
  connectOurs,
  roomIds,
  startBenchPlatform,
} from '../support/bench-platform.js';
import { type Figure, interleaved } from './figure.js';

const FEW = 100;
const MANY = 5_000;
const ROUNDS = 5;

/** Figure 4, the client alone: what one more idle room with its two channels costs on the heap. */
export async function run(): Promise<Figure> {
  const platform = await startBenchPlatform();
  try {
    const [ours, official] = await interleaved(
      ROUNDS,
      () => bytesPerRoom(() => connectOurs(platform.url)),
      () => bytesPerRoom(() => connectOfficial(platform.url)),
    );
    return {
      figure: `4 · Heap per idle room with two channels, slope from ${FEW} to ${MANY} rooms, client alone`,
      rows: [
        { name: 'link ÷ official phoenix', value: ours / official, unit: '×', aim: '≤ 0.5' },
        { name: 'link', value: ours, unit: 'bytes' },
        { name: 'official phoenix', value: official, unit: 'bytes' },
      ],
    };
  } finally {
    await platform.stop();
  }
}

async function bytesPerRoom(connect: () => Promise<BenchClient>): Promise<number> {
  const client = await connect();
  await client.join(roomIds(0, FEW));
  const few = await heapBytes();
  await client.join(roomIds(FEW, MANY));
  const many = await heapBytes();
  await client.close();
  return (many - few) / (MANY - FEW);
}

async function heapBytes(): Promise<number> {
  for (let i = 0; i < 3; i += 1) {
    await new Promise(setImmediate);
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

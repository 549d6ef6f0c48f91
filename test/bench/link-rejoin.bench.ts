import {
  type BenchClient,
  connectOfficial,
  connectOurs,
  roomIds,
  startBenchPlatform,
} from '../support/bench-platform.js';
import { type Figure, interleaved } from './figure.js';

const ROOMS = 5_000;
const ROUNDS = 5;

/** Figure 6, the client's part: after a drop, from the open socket to the last join answer. */
export async function run(): Promise<Figure> {
  const platform = await startBenchPlatform();
  const rejoinMs = (connect: (url: string) => Promise<BenchClient>) => async () => {
    const client = await connect(platform.url);
    try {
      await client.join(roomIds(0, ROOMS));
      const recovered = client.recovered();
      platform.order({ order: 'drop' });
      return await recovered;
    } finally {
      await client.close();
    }
  };
  try {
    const [ours, official] = await interleaved(ROUNDS, rejoinMs(connectOurs), rejoinMs(connectOfficial));
    return {
      figure: `6 · ${ROOMS} rooms after a drop: socket open to last join reply`,
      rows: [
        { name: 'link ÷ official phoenix', value: ours / official, unit: '×', aim: '≤ 0.3' },
        { name: 'link', value: ours, unit: 'ms' },
        { name: 'official phoenix', value: official, unit: 'ms' },
      ],
    };
  } finally {
    await platform.stop();
  }
}

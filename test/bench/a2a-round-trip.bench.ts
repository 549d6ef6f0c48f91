import { BenchProcesses, sendTo } from '../support/a2a/bench.js';
import { type Figure, interleaved, median } from './figure.js';

const WARM_UP = 100;
const PER_ROUND = 200;
const ROUNDS = 5;

/** Figure 2: a blocking send through sandbox and echo agent, and the same calls made by hand. */
export async function run(): Promise<Figure> {
  const processes = new BenchProcesses();
  try {
    const { env, gateways } = await processes.platform('agent');
    const gateway = gateways[0]?.url ?? '';
    const { url: bare } = await processes.start('a2a-bare-gateway', env);
    for (const url of [gateway, bare]) for (let n = 0; n < WARM_UP; n += 1) await sendTo(url, 'warm');
    const roundTrip = (url: string) => async () => {
      const times: number[] = [];
      for (let n = 0; n < PER_ROUND; n += 1) {
        const started = performance.now();
        await sendTo(url, 'warm');
        times.push(performance.now() - started);
      }
      return median(times);
    };
    const [ours, byHand] = await interleaved(ROUNDS, roundTrip(gateway), roundTrip(bare));
    return {
      figure: '2 · A2A blocking round trip through sandbox and echo agent, completion first, memory store',
      rows: [
        { name: 'gateway ÷ bare undici and ws hops', value: ours / byHand, unit: '×', aim: '≤ 2' },
        { name: 'gateway, median', value: ours, unit: 'ms' },
        { name: 'bare hops, median', value: byHand, unit: 'ms' },
      ],
    };
  } finally {
    processes.stop();
  }
}

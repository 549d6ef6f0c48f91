import { BenchProcesses, sendMany } from '../support/a2a/bench.js';
import { type Figure, interleaved } from './figure.js';

const WORKERS = 32;
const TASKS = 1_500;
const ROUNDS = 5;

/**
 * Figure 3: tasks a second through Band, and through a plain server of the protocol SDK that echoes at once. The peer is
 * made by hand, since it is not what is measured; what a whole Agent as the peer leaves stands beside it.
 */
export async function run(): Promise<Figure> {
  const processes = new BenchProcesses();
  try {
    const { gateway } = await processes.platform('by hand');
    const { gateway: toAgent } = await processes.platform('agent');
    const { url: plain } = JSON.parse(await processes.start('a2a-plain-sdk')) as { url: string };
    let round = 0;
    const rate = (url: string, prefix: string) => async () => {
      round += 1;
      const name = prefix === 'plain' ? `${prefix}-${round}` : prefix;
      return (TASKS * 1_000) / (await sendMany(url, TASKS, WORKERS, name));
    };
    await rate(gateway, 'ours')();
    await rate(toAgent, 'ours')();
    await rate(plain, 'plain')();
    const [ours, sdk] = await interleaved(ROUNDS, rate(gateway, 'ours'), rate(plain, 'plain'));
    const [agents, sdkAgain] = await interleaved(ROUNDS, rate(toAgent, 'ours'), rate(plain, 'plain'));
    return {
      figure: `3 · A2A tasks a second, ${WORKERS} at a time, completion first, both without a disk`,
      rows: [
        { name: 'gateway through Band ÷ plain @a2a-js/sdk server', value: ours / sdk, unit: '×', aim: '≥ 0.5' },
        { name: 'the same with an Agent of this project as the peer', value: agents / sdkAgain, unit: '×' },
        { name: 'gateway through Band', value: ours, unit: '1/s' },
        { name: 'plain @a2a-js/sdk server', value: sdk, unit: '1/s' },
      ],
    };
  } finally {
    processes.stop();
  }
}

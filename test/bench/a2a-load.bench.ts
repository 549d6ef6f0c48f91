import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'undici';
import { BenchProcesses, sendTo } from '../support/a2a/bench.js';
import type { Figure } from './figure.js';

const STREAMS = 200;
const SENDS_PER_SECOND = 50;
const SECONDS = Number(process.env['A2A_LOAD_SECONDS'] ?? 60);
const MEGABYTE = 1_048_576;

/** open streams beside a steady rate of sends, against a platform that answers at once: all time is our own. */
export async function run(): Promise<Figure> {
  const processes = new BenchProcesses();
  const folder = await mkdtemp(join(tmpdir(), 'band-gateway-bench-'));
  const dispatcher = new Agent({ connections: STREAMS, bodyTimeout: 0 });
  try {
    const { child, said } = await processes.fork('a2a-memory', [join(folder, 'store')]);
    const { url } = said as { url: string };
    const rss = async (): Promise<number> => {
      child.send('rss');
      return ((await once(child, 'message')) as [{ rss: number }])[0].rss;
    };
    const streams = Array.from({ length: STREAMS }, () => openStream(url, dispatcher));
    await Promise.all(streams);
    const before = await rss();
    const times: number[] = [];
    let errors = 0;
    const pending: Promise<void>[] = [];
    for (let n = 0; n < SENDS_PER_SECOND * SECONDS; n += 1) {
      const started = performance.now();
      const sent = sendTo(url, `load-${n % SENDS_PER_SECOND}`).then(
        () => void times.push(performance.now() - started),
        () => void (errors += 1),
      );
      pending.push(sent);
      await new Promise((resolve) => setTimeout(resolve, 1_000 / SENDS_PER_SECOND));
    }
    await Promise.all(pending);
    const after = await rss();
    times.sort((a, b) => a - b);
    return {
      figure: `A-341 · ${STREAMS} streams and ${SENDS_PER_SECOND} sends a second for ${SECONDS} s, LevelDB store`,
      rows: [
        {
          name: 'own overhead of a send, p99',
          value: times[Math.floor(times.length * 0.99)] ?? Number.NaN,
          unit: 'ms',
          aim: '< 50',
        },
        {
          name: 'own overhead of a send, median',
          value: times[Math.floor(times.length / 2)] ?? Number.NaN,
          unit: 'ms',
        },
        { name: 'errors', value: errors, unit: '', aim: '0' },
        { name: 'growth of anonymous memory', value: (after - before) / MEGABYTE, unit: 'MB' },
      ],
    };
  } finally {
    processes.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A stream of a task whose peer says nothing. */
async function openStream(url: string, dispatcher: Agent): Promise<void> {
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'silence' }] };
  const answer = await request(`${url}/agents/echo`, {
    method: 'POST',
    dispatcher,
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }),
  });
  answer.body.on('error', () => undefined);
  await once(answer.body, 'data');
}

/** Sends signed Slack events from a process of its own: `load.ts URL SECRET SECONDS RATE` (rate 0: as fast as it goes). */
import { createHmac } from 'node:crypto';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';

const CONNECTIONS = 128;
export const THREADS = 400;
/** The threads' first messages are one second apart: `<second>.000000`. */
export const FIRST_THREAD_SECOND = 1_764_412_000;

export interface LoadResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
}

/** An `app_mention` of about a kilobyte, its id unlike any other. */
function eventBody(number: number): string {
  const second = FIRST_THREAD_SECOND + (number % THREADS);
  const text = `<@U07GATEBOT1> question ${number}`;
  return JSON.stringify({
    token: 'legacy-verification-token',
    team_id: 'T07GATE0001',
    api_app_id: 'A07GATE0001',
    event: {
      type: 'app_mention',
      user: 'U07MEMBER01',
      text,
      ts: `${second}.${String(number % 1_000_000).padStart(6, '0')}`,
      thread_ts: `${second}.000000`,
      channel: 'C07ROOMS001',
      event_ts: `${second}.000100`,
      blocks: [
        {
          type: 'rich_text',
          block_id: 'x',
          elements: [
            {
              type: 'rich_text_section',
              elements: [
                { type: 'user', user_id: 'U07GATEBOT1' },
                { type: 'text', text: ' question'.repeat(20) },
              ],
            },
          ],
        },
      ],
    },
    type: 'event_callback',
    event_id: `Ev${process.pid}x${number}`,
    event_time: second,
    authorizations: [
      {
        enterprise_id: null,
        team_id: 'T07GATE0001',
        user_id: 'U07GATEBOT1',
        is_bot: true,
        is_enterprise_install: false,
      },
    ],
    is_ext_shared_channel: false,
    event_context: 'ctx',
  });
}

function signed(number: number, secret: string): { body: string; headers: Record<string, string> } {
  const body = eventBody(number);
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const digest = createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex');
  const headers = {
    'content-type': 'application/json',
    'x-slack-request-timestamp': timestamp,
    'x-slack-signature': `v0=${digest}`,
  };
  return { body, headers };
}

/** As many as the other side takes: each connection sends its next when the one before is answered. */
async function flood(url: string, secret: string, seconds: number): Promise<LoadResult> {
  let number = 0;
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: seconds,
    requests: [{ method: 'POST', setupRequest: (request) => ({ ...request, ...signed((number += 1), secret) }) }],
  });
  return {
    perSecond: result['2xx'] / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    failed: result.non2xx + result.errors,
  };
}

/**
 * So many a second at even distances, whether those before are answered or not; each is timed from the moment it was
 * due. (A rate given to autocannon is sent in one burst at the beginning of every second.)
 */
async function steady(url: string, secret: string, seconds: number, rate: number): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const begun = performance.now();
  const times: number[] = [];
  let failed = 0;
  const send = async (number: number): Promise<void> => {
    const { body, headers } = signed(number, secret);
    const ok = await new Promise<boolean>((resolve) => {
      const sent = request(url, { method: 'POST', agent, headers }, (response) => {
        response.resume().on('end', () => {
          resolve(response.statusCode === 200);
        });
      });
      sent.on('error', () => {
        resolve(false);
      });
      sent.end(body);
    });
    if (ok) times.push(performance.now() - begun - (number * 1_000) / rate);
    else failed += 1;
  };
  const all: Promise<void>[] = [];
  while (all.length < seconds * rate) {
    const due = Math.min(seconds * rate, Math.floor(((performance.now() - begun) / 1_000) * rate));
    while (all.length < due) all.push(send(all.length));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(all);
  agent.destroy();
  times.sort((a, b) => a - b);
  const at = (part: number) => times[Math.floor(times.length * part)] ?? Number.NaN;
  return { perSecond: times.length / seconds, p50Ms: at(0.5), p99Ms: at(0.99), failed };
}

const [program, url, secret, seconds, rate] = process.argv.slice(1);
if (program === fileURLToPath(import.meta.url) && url !== undefined && secret !== undefined && process.send) {
  const [forSeconds, perSecond] = [Number(seconds), Number(rate)];
  process.send(await (perSecond > 0 ? steady(url, secret, forSeconds, perSecond) : flood(url, secret, forSeconds)));
  process.disconnect();
}

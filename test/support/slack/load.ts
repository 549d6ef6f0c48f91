/** Sends signed Slack events from a process of its own: `load.ts URL SECRET SECONDS RATE` (rate 0: as fast as it goes). */
import { createHmac } from 'node:crypto';
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

export async function load(url: string, secret: string, seconds: number, rate: number): Promise<LoadResult> {
  let number = 0;
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: seconds,
    ...(rate > 0 ? { overallRate: rate } : {}),
    requests: [
      {
        method: 'POST',
        setupRequest: (request) => {
          number += 1;
          const body = eventBody(number);
          const timestamp = String(Math.floor(Date.now() / 1_000));
          const digest = createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex');
          const headers = {
            'content-type': 'application/json',
            'x-slack-request-timestamp': timestamp,
            'x-slack-signature': `v0=${digest}`,
          };
          return { ...request, body, headers };
        },
      },
    ],
  });
  return {
    perSecond: result['2xx'] / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    failed: result.non2xx + result.errors,
  };
}

const [program, url, secret, seconds, rate] = process.argv.slice(1);
if (program === fileURLToPath(import.meta.url) && url !== undefined && secret !== undefined && process.send) {
  process.send(await load(url, secret, Number(seconds), Number(rate)));
  process.disconnect();
}

import { Agent } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSlackClient } from '../../../../bridges/slack/client.js';
import { createLogger } from '../../../../src/base/log.js';
import type { FaultEffect } from '../../../support/slack/faults.js';
import { openOut, recordedMetrics, type OutLab } from '../outbound/lab.js';
import { callsInGeneral, deadCodes, error, isThere, told, toldDirectly, WRITES, type WriteMethod } from './writes.js';

const MINUTE_MS = 60_000;
const METHODS = Object.keys(WRITES) as WriteMethod[];
const POSTS = ['chat.postMessage', 'chat.postEphemeral', 'files.completeUploadExternal'] as const;
const each = <T>(methods: readonly WriteMethod[], others: readonly T[]): [WriteMethod, T][] =>
  methods.flatMap((method) => others.map((other): [WriteMethod, T] => [method, other]));
const status = (code: number, header?: string): FaultEffect => ({
  kind: 'status',
  status: code,
  ...(header === undefined ? {} : { headers: { 'retry-after': header } }),
});
/** A lab in which the next calls of one method fail, and the write that makes them. */
async function failing(method: WriteMethod, effect: FaultEffect, times = 1, more: Parameters<typeof openOut>[0] = {}) {
  const lab = await openOut(more);
  const fault = lab.slack.fault({ method, times, effect });
  await WRITES[method](lab);
  return { lab, fault };
}
const tries = (lab: OutLab, method: WriteMethod) => lab.slack.calls(method).length;

describe('Slack asks to slow down', () => {
  it.each(
    each<[string, FaultEffect, number]>(METHODS, [
      ['429 with a header of 7', status(429, '7'), 7],
      ['429 without a header', status(429), 30],
      ['429 with a header that is no number', status(429, 'soon'), 30],
      ['ratelimited', error('ratelimited'), 30],
      ['rate_limited with 200', error('rate_limited'), 30],
    ]).map(([method, [name, effect, seconds]]) => ({ method, name, effect, seconds })),
  )(
    'S-105 S-092 S-093 S-094 $method, $name: it waits for $seconds s, and is done then',
    async ({ method, effect, seconds }) => {
      const { lab } = await failing(method, effect);
      await lab.pass((seconds - 1) * 1_000, 1_000);
      expect(tries(lab, method)).toBe(1);
      await lab.pass(2_500, 500);
      expect(tries(lab, method)).toBe(2);
      expect(isThere(lab, method)).toBe(true);
    },
  );
});

describe('nobody knows whether Slack took it', () => {
  const effects: [string, FaultEffect][] = [
    ['500', status(500)],
    ['502', status(502)],
    ['503', status(503)],
    ['an answer that is not JSON', { kind: 'garbage' }],
    ['half an answer', { kind: 'truncate' }],
    ['a connection that broke after the call was taken', { kind: 'drop', applied: true }],
    ['a connection that broke before', { kind: 'drop', applied: false }],
    ...[
      'internal_error',
      'fatal_error',
      'service_unavailable',
      'request_timeout',
      'update_failed',
      'messaging_processing_failed',
    ].map((word): [string, FaultEffect] => [word, error(word)]),
  ];

  it.each(each(METHODS, effects).map(([method, [name, effect]]) => ({ method, name, effect })))(
    'S-105 $method, $name: it is done once',
    async ({ method, effect }) => {
      const { lab } = await failing(method, effect);
      await lab.pass(500, 250);
      expect(tries(lab, method)).toBe(1);
      // Where Slack may still be at work on the first call, the second waits for that.
      await lab.pass(60_000, 1_000);
      expect(isThere(lab, method)).toBe(true);
      expect(await deadCodes(lab)).toEqual([]);
    },
  );

  it.each(METHODS)('S-105 %s, no answer in time: it is done once', async (method) => {
    const figures = recordedMetrics();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const { lab } = await failing(method, { kind: 'hold', until: held, apply: 'before' }, 1, {
      timeoutMs: 100,
      metrics: figures.metrics,
    });
    const isTimedOut = () =>
      figures
        .of('slack_api_requests_total')
        .some(({ labels }) => labels['method'] === method && labels['outcome'] === 'network');
    await expect.poll(isTimedOut).toBe(true);
    release();
    await lab.pass(60_000, 1_000);
    expect(isThere(lab, method)).toBe(true);
  });

  it.each(['duplicate_message_not_found', 'duplicate_channel_not_found'])(
    'S-105 %s of a post: it is looked for and sent again',
    async (word) => {
      const { lab } = await failing('chat.postMessage', error(word));
      await lab.pass(3_000, 500);
      expect(lab.shown()).toEqual(['hello']);
      expect(lab.slack.calls('conversations.replies')).toHaveLength(1);
    },
  );
});

describe('Slack is not reached', () => {
  const unresolved = () => Object.assign(new Error('getaddrinfo ENOTFOUND slack.test'), { code: 'ENOTFOUND' });
  it.each([
    ['its name does not resolve', 'http://slack.test/api/', 'SLACK_UNREACHABLE'],
    ['nothing listens there', 'http://127.0.0.1:1/api/', 'SLACK_UNREACHABLE'],
    ['it does not speak TLS', null, 'SLACK_CONNECTION_LOST'],
  ])('S-105 %s: it is tried again until it is, and given up after half an hour', async (_name, address, code) => {
    const lab = await openOut();
    const dispatcher = new Agent({
      connect: {
        lookup: (_host, _options, done) => {
          done(unresolved(), []);
        },
      },
    });
    onTestFinished(() => dispatcher.destroy());
    const working = lab.installation.current!;
    const away = createSlackClient({
      token: lab.botToken,
      slackApiUrl: address ?? lab.slack.apiUrl.replace('http:', 'https:'),
      dispatcher,
    });
    let calls = 0;
    const counted: typeof away = {
      ...away,
      call: (...args) => {
        calls += 1;
        return away.call(...args);
      },
    };
    const tried = async (count: number) => {
      for (let step = 0; step < 200 && calls < count; step += 1) {
        await lab.clock.advance(1_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(calls).toBeGreaterThanOrEqual(count);
    };
    lab.installation.current = { ...working, client: counted };
    await lab.reply('hello');
    await tried(4);
    lab.installation.current = working;
    await lab.pass(60_000, 5_000);
    expect(lab.shown()).toEqual(['hello']);
    lab.installation.current = { ...working, client: counted };
    await lab.reply('too long');
    for (let step = 0; step < 400 && (await deadCodes(lab)).length === 0; step += 1) {
      await lab.clock.advance(10_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await deadCodes(lab)).toEqual([code]);
  });

  it('S-105 an outage is waited out on a growing schedule and given up after half an hour', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: '*', times: 1_000, effect: status(503) });
    await lab.reply('hello');
    await lab.pass(3 * MINUTE_MS, 250);
    await lab.pass(26 * MINUTE_MS, 5_000);
    const at = [...new Set(lab.slack.calls().map((call) => call.at))];
    const gaps = at.slice(1).map((time, index) => time - at[index]!);
    for (const [index, seconds] of [1, 2, 4, 8, 15, 30, 60, 60].entries()) {
      expect(Math.abs(gaps[index]! - seconds * 1_000), `wait ${index + 1}`).toBeLessThanOrEqual(250 + seconds * 200);
    }
    expect(await deadCodes(lab)).toEqual([]);
    await lab.pass(3 * MINUTE_MS, 5_000);
    expect(await deadCodes(lab)).toEqual(['SLACK_UNAVAILABLE']);
  });
});

describe('the workspace has reached its message limit', () => {
  it.each(POSTS)(
    'S-105 message_limit_exceeded of %s: tried again after a minute, given up after half an hour',
    async (method) => {
      const { lab } = await failing(method, error('message_limit_exceeded'), 100, { jitter: 0 });
      await lab.pass(59_000, 1_000);
      expect(tries(lab, method)).toBe(1);
      await lab.pass(15_000, 1_000);
      expect(tries(lab, method)).toBe(2);
      await lab.pass(27 * MINUTE_MS, 15_000);
      expect(await deadCodes(lab)).toEqual([]);
      await lab.pass(4 * MINUTE_MS, 15_000);
      expect(await deadCodes(lab)).toContain('message_limit_exceeded');
    },
  );

  it('S-105 the asker hears of it', async () => {
    const { lab } = await failing('chat.postMessage', error('message_limit_exceeded'), 100);
    await lab.pass(32 * MINUTE_MS, 15_000);
    expect(told(lab)).toEqual([expect.stringMatching(/^This workspace has reached its message limit/)]);
    expect(lab.roomErrors).toMatchObject([{ slackError: 'message_limit_exceeded' }]);
  });
});

describe('the workspace or the channel is being moved', () => {
  const words = ['team_added_to_org', 'org_login_required', 'external_channel_migrating'];

  it.each(each(METHODS, words))('S-105 %s, %s: tried again every five minutes', async (method, word) => {
    const { lab } = await failing(method, error(word), 3);
    await lab.pass(16 * MINUTE_MS, MINUTE_MS);
    const at = lab.slack.calls(method).map((call) => call.at);
    // To the minute: the clock of the lab goes on in steps.
    const gaps = at.slice(1).map((time, index) => Math.round((time - at[index]!) / MINUTE_MS));
    expect(gaps).toEqual([5, 5, 5]);
    expect(isThere(lab, method)).toBe(true);
  });

  it.each(words)('S-105 %s: given up after a day', async (word) => {
    const { lab } = await failing('chat.postMessage', error(word), 1_000);
    await lab.pass(23 * 60 * MINUTE_MS, 5 * MINUTE_MS);
    expect(await deadCodes(lab)).toEqual([]);
    await lab.pass(61 * MINUTE_MS, 5 * MINUTE_MS);
    expect(await deadCodes(lab)).toEqual([word]);
    expect(told(lab)).toHaveLength(1);
  });
});

describe('a word that nobody knows', () => {
  it.each(METHODS)(
    'S-105 from %s: it is tried three times, given up, and called unknown in the log',
    async (method) => {
      const lines: string[] = [];
      const log = createLogger({ destination: { write: (line) => void lines.push(line) } });
      const { lab } = await failing(method, error('brand_new_word'), 10, { log });
      await lab.pass(MINUTE_MS, 1_000);
      expect(lab.slack.calls(method).filter(({ outcome }) => outcome === 'brand_new_word')).toHaveLength(3);
      expect(await deadCodes(lab)).toEqual(['brand_new_word']);
      expect(told(lab).filter((text) => text.includes('could not be reached'))).toEqual([]);
      expect(lines.filter((line) => line.includes('in no list') && line.includes('brand_new_word'))).toHaveLength(3);
    },
  );
});

describe('the order of a thread', () => {
  it.each([
    ['429', status(429)],
    ['rate_limited', error('rate_limited')],
    ['message_limit_exceeded', error('message_limit_exceeded')],
    ['team_added_to_org', error('team_added_to_org')],
    ['503', status(503)],
    ['internal_error', error('internal_error')],
    ['brand_new_word', error('brand_new_word')],
  ] as const)('S-105 S-090 is kept by a post that meets %s: it keeps its place', async (_name, effect) => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', after: 1, effect });
    for (const text of ['one', 'two', 'three']) await lab.reply(text);
    await lab.pass(6 * MINUTE_MS, 10_000);
    expect(lab.shown()).toEqual(['one', 'two', 'three']);
    expect(callsInGeneral(lab, 'chat.postMessage').map(({ args }) => args['text'])).toEqual([
      'one',
      'two',
      'two',
      'three',
    ]);
    expect(toldDirectly(lab)).toEqual([]);
  });
});

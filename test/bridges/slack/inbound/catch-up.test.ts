import { describe, expect, it } from 'vitest';
import { Background } from '../../../../src/base/async.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { silentLogger } from '../../../../src/base/log.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import type { Bindings } from '../../../../bridges/slack/inbound/bindings.js';
import { createLookBack } from '../../../../bridges/slack/inbound/look-back.js';
import type { Threads } from '../../../../bridges/slack/inbound/threads.js';
import type { Installation } from '../../../../bridges/slack/installations.js';

interface Page {
  readonly messages: readonly Record<string, string>[];
  readonly next?: string;
}

/** Looking back over threads that a test makes up; calls and what they found are noted. */
function setUp(options: {
  readonly threads: readonly { readonly channel: string; readonly threadTs: string; lastTs: string; at?: number }[];
  readonly answer: (method: string, args: Record<string, unknown>) => Page | GatewayError;
  readonly mode?: 'auto' | 'on';
  /** How fast this machine's clock is. */
  readonly clockAheadMs?: number;
}) {
  const clock = createManualClock();
  const calls: { method: string; args: Record<string, unknown>; at: number }[] = [];
  const taken: string[] = [];
  const call = (method: string, args: Record<string, unknown>) => {
    calls.push({ method, args, at: clock.now() });
    const answer = options.answer(method, args);
    if (answer instanceof GatewayError) return Promise.reject(answer);
    return Promise.resolve({
      ok: true,
      messages: answer.messages,
      response_metadata: { next_cursor: answer.next ?? '' },
    });
  };
  const installation = {
    app: { slug: 'main' },
    identity: { botUserId: 'UB', teamId: 'T1' },
    client: { call, clockAheadMs: () => options.clockAheadMs ?? 0 },
  };
  const stop = new AbortController();
  const threads = options.threads.map((thread) => ({ ...thread, key: `${thread.channel}:${thread.threadTs}` }));
  const lookBack = createLookBack({
    mode: options.mode ?? 'auto',
    installations: new Map([['main', installation as unknown as Installation]]),
    bindings: {
      ofApp: () => threads.map(({ key, ...thread }) => ({ key, thread: { slug: 'main', team: 'T1', ...thread } })),
    } as unknown as Bindings,
    threads: {
      get: (key: string) => {
        const found = threads.find((thread) => thread.key === key)!;
        return Promise.resolve({ lastTs: found.lastTs, touchedAt: found.at ?? clock.now() });
      },
    } as unknown as Threads,
    store: createMemoryStore(),
    prefix: 'look-back',
    pingTimeoutMs: 15_000,
    background: new Background(() => undefined),
    accept: ({ payload }) => {
      taken.push((payload as { event: { text: string } }).event.text);
      return Promise.resolve({ kind: 'accepted' });
    },
    open: () => true,
    signal: stop.signal,
    clock,
    log: silentLogger,
  });
  const pass = async (ms: number) => {
    for (let gone = 0; gone < ms; gone += 1_000) await clock.advance(1_000);
  };
  return { clock, calls, taken, threads, lookBack, pass };
}

const said = (ts: string, text: string) => ({ ts, user: 'U1', text });
const many = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ channel: `C${index}`, threadTs: '1.0', lastTs: '1.1' }));
const limited = (seconds: number) => new GatewayError('SLACK_RATE_LIMITED', { retryAfterMs: seconds * 1_000 });

describe('looking back', () => {
  it('S-195 hands in what every page holds, oldest first, whichever way Slack shows it, and nothing of bots or known', async () => {
    const { lookBack, taken, calls, pass } = setUp({
      threads: [{ channel: 'D1', threadTs: '1.0', lastTs: '1.1' }],
      answer: (method, { cursor }) => {
        if (method === 'conversations.replies') {
          return cursor === 'p2'
            ? { messages: [said('1.3', 'b'), { ...said('1.4', 'a bot'), bot_id: 'B1' }] }
            : { messages: [said('1.0', 'root'), said('1.1', 'known'), said('1.2', 'a')], next: 'p2' };
        }
        return cursor === 'p2' ? { messages: [said('2.1', 'c')] } : { messages: [said('2.2', 'd')], next: 'p2' };
      },
    });
    void lookBack.begun('main');
    await pass(15_000);
    expect(taken).toEqual(['a', 'b', 'c', 'd']);
    expect(calls.map(({ method }) => method)).toEqual([
      'conversations.replies',
      'conversations.replies',
      'conversations.history',
      'conversations.history',
    ]);
    expect(calls[2]!.args).not.toHaveProperty('ts');
    expect(calls.every(({ args }) => args['oldest'] === '1.1')).toBe(true);
  });

  it('S-195 takes twenty calls a minute of a workspace at most, however many reasons there are to look', async () => {
    const { lookBack, calls, clock, pass } = setUp({ threads: many(50), answer: () => ({ messages: [] }) });
    void lookBack.begun('main');
    lookBack.dropped('main', clock.now() / 1_000);
    await pass(400_000);
    expect(calls).toHaveLength(100);
    for (const { at } of calls) {
      expect(calls.filter((one) => one.at >= at && one.at < at + 60_000).length).toBeLessThanOrEqual(20);
    }
  });

  it('S-195 looks at two hundred threads, those in which something happened last, and no older than a day', async () => {
    const clock = createManualClock();
    const threads = many(250).map((thread, index) => ({ ...thread, at: clock.now() - index * 60_000 }));
    const old = { channel: 'COLD', threadTs: '1.0', lastTs: '1.1', at: clock.now() - 25 * 3_600_000 };
    const { lookBack, calls, pass } = setUp({ threads: [old, ...threads], answer: () => ({ messages: [] }) });
    void lookBack.begun('main');
    await pass(700_000);
    expect(calls.map(({ args }) => args['channel'])).toEqual(threads.slice(0, 200).map(({ channel }) => channel));
    const few = setUp({ threads: [old, ...threads.slice(0, 2)], answer: () => ({ messages: [] }) });
    void few.lookBack.begun('main');
    await few.pass(30_000);
    expect(few.calls.map(({ args }) => args['channel'])).toEqual(['C0', 'C1']);
  });

  it('S-195 goes by what was seen before the start, not by what has come since', async () => {
    const { lookBack, taken, threads, pass } = setUp({
      threads: [{ channel: 'C1', threadTs: '1.0', lastTs: '1.1' }],
      answer: () => ({ messages: [said('1.2', 'missed'), said('1.3', 'came by itself')] }),
    });
    await lookBack.prepare();
    threads[0]!.lastTs = '1.3';
    void lookBack.begun('main');
    await pass(2_000);
    expect(taken).toEqual(['missed', 'came by itself']);
  });

  it.each([
    ['right', 0],
    ['an hour fast', 3_600_000],
    ['an hour slow', -3_600_000],
  ])('S-195 after an outage looks from when it began, by Slack’s clock, where its own is %s', async (_how, ahead) => {
    const { lookBack, calls, threads, clock, pass } = setUp({
      threads: [{ channel: 'C1', threadTs: '1.0', lastTs: '1.1' }],
      clockAheadMs: ahead,
      answer: () => ({ messages: [] }),
    });
    const slackTs = () => ((clock.now() - ahead) / 1_000).toFixed(6);
    const before = slackTs();
    await pass(60_000);
    lookBack.noteConnections('main', 0);
    const began = slackTs();
    await pass(60_000);
    lookBack.noteConnections('main', 1);
    // What comes at once is newer than what is missing.
    threads[0]!.lastTs = slackTs();
    await pass(5_000);
    expect(calls).toHaveLength(1);
    const oldest = String(calls[0]!.args['oldest']);
    expect(oldest < began && oldest >= before).toBe(true);
  });

  it.each([
    ['right', 0],
    ['an hour fast', 3_600_000],
  ])(
    'S-195 looks at a minute of dropped events once it is over at Slack, where its own clock is %s',
    async (_, ahead) => {
      const { lookBack, calls, clock, pass } = setUp({
        threads: [{ channel: 'C1', threadTs: '1.0', lastTs: '1.1' }],
        clockAheadMs: ahead,
        answer: () => ({ messages: [] }),
      });
      const minute = (clock.now() - ahead) / 1_000 - 10;
      lookBack.dropped('main', minute);
      await pass(80_000);
      expect(calls.map(({ at }) => Math.round((at - ahead) / 1_000 - minute))).toEqual([65]);
    },
  );

  it('S-195 a page that Slack puts off or fails to show is asked for again, and costs no other conversation', async () => {
    const failures = [limited(5), new GatewayError('SLACK_UNAVAILABLE'), new GatewayError('SLACK_TIMEOUT')];
    const { lookBack, taken, pass } = setUp({
      threads: many(3).map((thread, index) => ({ ...thread, at: 1_000_000 - index })),
      answer: (_method, { channel }) => {
        if (channel === 'C0') return failures.shift() ?? { messages: [said('1.2', 'late')] };
        if (channel === 'C1') return new GatewayError('SLACK_REFUSED');
        return { messages: [said('1.2', 'last')] };
      },
    });
    void lookBack.begun('main');
    await pass(60_000);
    expect(taken).toEqual(['late', 'last']);
  });

  it.each([
    ['auto', 2],
    ['on', 4],
  ] as const)('S-196 with %s a page that has to wait half a minute ends it, or is waited for', async (mode, asked) => {
    let first = true;
    const { lookBack, calls, pass } = setUp({
      mode,
      threads: many(3),
      answer: (_method, { channel }) => {
        if (channel !== 'C1' || !first) return { messages: [] };
        first = false;
        return limited(45);
      },
    });
    void lookBack.begun('main');
    await pass(60_000);
    expect(calls).toHaveLength(asked);
    void lookBack.begun('main');
    await pass(60_000);
    expect(calls).toHaveLength(mode === 'auto' ? asked : asked + 3);
  });
});

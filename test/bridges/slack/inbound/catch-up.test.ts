import { describe, expect, it } from 'vitest';
import { catchUp } from '../../../../bridges/slack/inbound/catch-up.js';
import type { Installation } from '../../../../bridges/slack/installations.js';
import { silentLogger } from '../../../../src/base/log.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';

const thread = { slug: 'main', team: 'T1', channel: 'C1', threadTs: '1.0' };

describe('catchUp', () => {
  it('S-195 hands in what every page of a thread holds, in order', async () => {
    const clock = createManualClock();
    const pages = [
      { messages: [{ ts: '1.0' }, { ts: '1.2', user: 'U1', text: 'a' }], next: 'p2' },
      { messages: [{ ts: '1.3', user: 'U1', text: 'b' }], next: '' },
    ];
    const call = (_method: string, args: Record<string, unknown>) => {
      const { messages, next } = pages[args['cursor'] === 'p2' ? 1 : 0]!;
      return Promise.resolve({ ok: true, messages, response_metadata: { next_cursor: next } });
    };
    const installation = { app: { slug: 'main' }, identity: { botUserId: 'UB' }, client: { call } };
    const taken: unknown[] = [];
    const found = catchUp(
      installation as unknown as Installation,
      {
        mode: 'on',
        threads: () => Promise.resolve([{ thread, lastTs: '1.1' }]),
        accept: ({ payload }) => {
          taken.push((payload as { event: { text: string } }).event.text);
          return Promise.resolve({ kind: 'accepted' });
        },
        clock,
        log: silentLogger,
      },
      new AbortController().signal,
    );
    await clock.advance(3_000);
    expect(await found).toBe(2);
    expect(taken).toEqual(['a', 'b']);
  });
});

import { describe, expect, it } from 'vitest';
import { Threads } from '../../../../bridges/slack/inbound/threads.js';
import { createMemoryStore } from '../../../../src/store/memory.js';

describe('what is remembered of a thread', () => {
  it('S-195 is the newest message that was seen, and the oldest replies, in whatever order they come', async () => {
    const threads = new Threads(createMemoryStore(), 'threads');
    const key = 'slack:main:T1:C1:1.0';
    for (const ts of ['1.0', '7.0', '3.0', '5.0', '2.0', '6.0', '4.0']) {
      await threads.note(key, { ts, user: 'U1', isBot: false }, 0);
    }
    expect(await threads.get(key)).toMatchObject({
      lastTs: '7.0',
      replies: ['2.0', '3.0', '4.0', '5.0', '6.0'],
      people: ['U1'],
    });
  });
});

import { describe, expect, it } from 'vitest';
import { Tells } from '../../../../bridges/slack/outbound/tells.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';

const HOUR_MS = 3_600_000;
const thread = { slug: 'main', team: 'T1', channel: 'C1', threadTs: '1.0' };

describe('Tells', () => {
  it('S-106 gives the right to tell somebody once an hour, for each thread and cause', async () => {
    const clock = createManualClock();
    const tells = await Tells.open(createMemoryStore(), 'told', clock);
    expect(tells.claim(thread, 'is_archived')).not.toBeNull();
    expect(tells.claim(thread, 'is_archived')).toBeNull();
    expect(tells.claim(thread, 'not_in_channel')).not.toBeNull();
    expect(tells.claim({ ...thread, threadTs: '2.0' }, 'is_archived')).not.toBeNull();
    expect(tells.claim({ ...thread, team: 'T2' }, 'is_archived')).not.toBeNull();
    await clock.advance(HOUR_MS - 1);
    expect(tells.claim(thread, 'is_archived')).toBeNull();
    await clock.advance(1);
    expect(tells.claim(thread, 'is_archived')).not.toBeNull();
  });

  it('S-106 gives the right back when its batch failed, and not a moment earlier than it was due', async () => {
    const clock = createManualClock();
    const store = createMemoryStore();
    const tells = await Tells.open(store, 'told', clock);
    tells.claim(thread, 'is_archived')!.abandoned();
    const told = tells.claim(thread, 'is_archived');
    expect(told).not.toBeNull();
    await store.batch([told!.change]);
    await clock.advance(HOUR_MS);
    // The one of before was told; only the one whose batch failed was not.
    tells.claim(thread, 'is_archived')!.abandoned();
    expect(tells.claim(thread, 'is_archived')).not.toBeNull();
  });

  it('S-106 remembers over a restart what was told within the hour, and forgets the rest', async () => {
    const clock = createManualClock();
    const store = createMemoryStore();
    const first = await Tells.open(store, 'told', clock);
    await store.batch([first.claim(thread, 'old')!.change]);
    await clock.advance(HOUR_MS / 2);
    await store.batch([first.claim(thread, 'new')!.change]);
    await clock.advance(HOUR_MS / 2);
    const second = await Tells.open(store, 'told', clock);
    expect(second.claim(thread, 'new')).toBeNull();
    expect(second.claim(thread, 'old')).not.toBeNull();
    expect(await store.range({ from: 'told/', to: 'told0', limit: 10 })).toHaveLength(1);
  });
});

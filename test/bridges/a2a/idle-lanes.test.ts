import { describe, expect, it } from 'vitest';
import { Contexts } from '../../../bridges/a2a/engine/contexts.js';
import { Lanes } from '../../../bridges/a2a/engine/lanes.js';
import { recordKeys } from '../../../bridges/a2a/engine/records.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore } from '../../../src/store/port.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';

/** Lanes on a store that counts what is read of it. */
function lanesOnStore() {
  const clock = createManualClock();
  const store = createMemoryStore(clock);
  let reads = 0;
  const counted: StateStore = {
    ...store,
    get(key) {
      reads += 1;
      return store.get(key);
    },
  };
  const keys = recordKeys('a2a/x/');
  const findBinding = () => Promise.resolve(null);
  const contexts = new Contexts({ store: counted, keys, clock, retentionMs: 604_800_000, findBinding });
  const lanes = new Lanes(counted, keys, contexts, clock);
  const visit = async (contextId: string) => {
    const context = await contexts.open('me', contextId);
    const lane = await lanes.enter(context, 'helper');
    contexts.close(context);
    const leave = () => {
      lanes.leave(lane);
    };
    return { lane, leave };
  };
  return { clock, contexts, lanes, visit, reads: () => reads };
}

describe('idle lanes', () => {
  it('a conversation that goes on within a minute is not read again, and one that does not is let go', async () => {
    const { clock, lanes, visit, reads } = lanesOnStore();
    const before = await visit('one');
    before.leave();
    const first = reads();
    expect(lanes.size).toBe(0);
    const again = await visit('one');
    expect([lanes.size, again.lane === before.lane, reads()]).toEqual([1, true, first]);
    await clock.advance(600_000);
    expect([...lanes.all()]).toEqual([again.lane]);
    again.leave();
    expect([lanes.size, [...lanes.all()].length]).toEqual([0, 1]);
    await clock.advance(120_000);
    expect([[...lanes.all()].length, clock.pending]).toEqual([0, 0]);
    await visit('one');
    expect(reads()).toBeGreaterThan(first);
  });

  it('no more than a thousand are kept, and none whose record is in doubt', async () => {
    const { lanes, visit } = lanesOnStore();
    for (let n = 0; n < 1_100; n += 1) (await visit(`context ${n}`)).leave();
    expect([...lanes.all()].length).toBe(1_000);
    const known = await visit('context 7');
    known.lane.doubtful = true;
    known.leave();
    expect([...lanes.all()].length).toBe(999);
  });

  it('a use of a context is written down once a minute, a peer that is new to it at once', async () => {
    const { clock, contexts, visit } = lanesOnStore();
    const { context } = (await visit('one')).lane;
    const usedAndSaved = async (peerId: string) => {
      contexts.use(context, peerId);
      const puts = contexts.puts(context).length;
      await contexts.save(context);
      return puts;
    };
    expect([await usedAndSaved('helper'), await usedAndSaved('helper'), await usedAndSaved('other')]).toEqual([
      1, 0, 1,
    ]);
    await clock.advance(61_000);
    expect([await usedAndSaved('helper'), context.record.lastUsedAt]).toEqual([1, clock.now()]);
  });
});

import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/base/log.js';
import { newUuid } from '../../src/base/ids.js';
import { systemClock } from '../../src/base/clock.js';
import { Platform, type Journal } from '../../src/sandbox/platform.js';
import { Hub } from '../../src/sandbox/sockets/hub.js';
import { addUser } from '../../src/sandbox/world/people.js';
import { Timeline } from '../../src/sandbox/world/timeline.js';
import { createWorld } from '../../src/sandbox/world/world.js';

function platformOn(journal: Journal) {
  const world = createWorld({ timeline: new Timeline(systemClock), newId: newUuid, isOnline: () => false });
  const platform = new Platform({ world, hub: new Hub(() => true), journal, clock: systemClock, log: silentLogger });
  const add = (handle: string) =>
    platform.run((change) => addUser(change, { handle, name: handle, email: '', id: newUuid(), apiKey: handle }));
  return { platform, add };
}

describe('the platform', () => {
  it('keeps facts before it pushes and answers, and a command of nothing keeps nothing', () => {
    const kept: string[] = [];
    const { platform, add } = platformOn({
      append: (facts) => kept.push(...facts.map(({ kind }) => kind)),
      clear: () => undefined,
      close: () => Promise.resolve(),
    });
    platform.run((change) => {
      change.push({
        to: ['somebody'],
        topic: 'topic',
        event: 'event',
        payload: () => {
          throw new Error('nobody listens, so nobody asks');
        },
      });
    });
    expect(kept).toEqual([]);
    add('ada');
    expect(kept).toEqual(['user']);
  });

  it('refuses everything with 503 after a write that failed, since it may know more than the disk', () => {
    let full = false;
    const { platform, add } = platformOn({
      append: () => {
        if (full) throw new Error('no space left on device');
      },
      clear: () => undefined,
      close: () => Promise.resolve(),
    });
    add('ada');
    full = true;
    expect(() => add('bob')).toThrow(expect.objectContaining({ status: 503 }));
    full = false;
    expect(platform.healthy).toBe(false);
    expect(() => add('eve')).toThrow(expect.objectContaining({ status: 503 }));
  });
});

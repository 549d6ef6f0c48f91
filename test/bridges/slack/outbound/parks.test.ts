import { describe, expect, it } from 'vitest';
import { Parks } from '../../../../bridges/slack/outbound/parks.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import type { StateStore } from '../../../../src/store/port.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';

const place = { slug: 'main', team: 'T1', channel: 'C1' };

describe('Parks', () => {
  it('S-107 a lift that could not be stored is made by the repeat of its event, also for the next start', async () => {
    const memory = createMemoryStore();
    let fails = false;
    const store: StateStore = {
      ...memory,
      batch: (changes) => (fails ? Promise.reject(new GatewayError('STORE_TRIPPED')) : memory.batch(changes)),
    };
    const clock = createManualClock();
    const parks = await Parks.open(store, 'parks', clock);
    const fault = { kind: 'park', what: 'channel', until: 'member_joined', atMostMs: null } as const;
    await parks.add(place, fault, 'not_in_channel');
    fails = true;
    await expect(parks.resume({ kind: 'joined', ...place })).rejects.toMatchObject({ code: 'STORE_TRIPPED' });
    fails = false;
    await parks.resume({ kind: 'joined', ...place });
    expect(parks.find(place)).toBeNull();
    expect((await Parks.open(store, 'parks', clock)).find(place)).toBeNull();
  });
});

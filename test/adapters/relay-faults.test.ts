import { describe, expect, it } from 'vitest';
import { RelayPeers } from '../../src/adapters/relay-peers.js';
import { RelayTalks } from '../../src/adapters/relay-talks.js';
import { RelayWatch } from '../../src/adapters/relay-watch.js';
import { deferred } from '../../src/base/async.js';
import { GatewayError } from '../../src/base/errors.js';
import type { Outlet } from '../../src/core/outside.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

describe('RelayPeers', () => {
  it('goes on reading for the others when one who waits gives up', async () => {
    const answer = deferred();
    const rest: Pick<BandRest, 'listPeers'> = {
      async listPeers(options) {
        await Promise.race([
          answer.promise,
          new Promise((_resolve, reject) => {
            options?.signal?.addEventListener('abort', () => {
              reject(new Error('aborted'));
            });
          }),
        ]);
        return { data: [], totalPages: 1, totalCount: 0, page: 1, pageSize: 100 };
      },
    };
    const peers = new RelayPeers(rest as BandRest, createManualClock(), []);
    const one = new AbortController();
    const other = new AbortController();
    const first = peers.all(one.signal);
    const second = peers.all(other.signal);
    one.abort(new Error('interrupted'));
    await expect(first).rejects.toThrow('interrupted');
    answer.resolve();
    expect(await second).toEqual([]);
  });
});

describe('RelayWatch', () => {
  it('says later what could not be said now', async () => {
    const clock = createManualClock();
    const talks = new RelayTalks(createMemoryStore(), 'relay');
    const said: string[] = [];
    let refusals = 1;
    const outlet: Outlet = {
      answer: () => Promise.resolve(),
      notice: (_room, { text }) => {
        if ((refusals -= 1) >= 0) return Promise.reject(new GatewayError('STORE_TRIPPED'));
        said.push(text);
        return Promise.resolve();
      },
      waiting: () => undefined,
    };
    const errors: unknown[] = [];
    const watch = new RelayWatch({
      clock,
      talks,
      outlet,
      slowAfterMs: 1_000,
      timeoutMs: 900_000,
      onError: (error) => errors.push(error),
    });
    const { waits } = await talks.change('r', (talk) => ({
      ...talk,
      waits: [{ peerId: 'p', peerName: 'Echo', messageId: 'm', since: clock.now(), told: 'nothing' }],
    }));
    watch.set('r', waits);
    await clock.advance(1_000);
    expect(errors).toHaveLength(1);
    await clock.advance(30_000);
    expect(said).toEqual(['Echo is still working on it.']);
    watch.stop();
  });
});

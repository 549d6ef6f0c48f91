import { describe, expect, it } from 'vitest';
import { Controls, type ControlsDeps } from '../../../../bridges/slack/inbound/controls.js';
import type { Installation } from '../../../../bridges/slack/installations.js';
import type { SlackActionDelivery } from '../../../../bridges/slack/parse.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { prefixRange } from '../../../../src/store/port.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';

const DAY_MS = 24 * 3_600_000;
const thread = { slug: 'main', team: 'T1', channel: 'C1', threadTs: '1.1', askerId: 'U1' };
const record = {
  slug: 'main',
  transport: 'http' as const,
  receivedAt: 0,
  retryNum: null,
  retryReason: null,
  payload: {},
  again: false,
  tooMany: false,
};

const setUp = (accept: ControlsDeps['accept'] = () => Promise.resolve({ kind: 'accepted' })) => {
  const clock = createManualClock();
  const store = createMemoryStore();
  const told: string[] = [];
  let ids = 0;
  const parts = {
    store,
    clock,
    prefix: 'controls',
    // The first one made stands last in the store.
    newId: () => `id-${String(999_999 - (ids += 1))}`,
    accept,
    out: {
      ephemeral: (_thread: unknown, _user: string, { text }: { text: string }) => Promise.resolve(void told.push(text)),
      edit: () => Promise.resolve(),
    },
    controllers: [],
  };
  const controls = new Controls(parts as unknown as ControlsDeps);
  const press = (value: string) =>
    controls.press(
      {
        value,
        userId: 'U1',
        channel: 'C1',
        threadTs: '1.1',
        messageTs: null,
        triggerId: 't',
      } as unknown as SlackActionDelivery,
      {
        app: { slug: 'main' },
        identity: null,
        directory: { user: () => Promise.resolve(null) },
      } as unknown as Installation,
    );
  const kept = async () => (await store.range({ ...prefixRange('controls/'), limit: 10_000 })).length;
  return { clock, controls, press, kept, told };
};

describe('Controls', () => {
  it('S-088 a Retry that could not be stored is not used up', async () => {
    const accepted: unknown[] = [];
    let fails = true;
    const { controls, press, told } = setUp((arrival) => {
      if (fails) return Promise.reject(new GatewayError('STORE_TRIPPED'));
      accepted.push(arrival.key);
      return Promise.resolve({ kind: 'accepted' });
    });
    const { value } = await controls.button('retry', thread, record);
    await expect(press(value)).rejects.toMatchObject({ code: 'STORE_TRIPPED' });
    fails = false;
    await press(value);
    expect(accepted).toEqual([`retry:${value}`]);
    await press(value);
    expect(told).toEqual(['This has already been handled.']);
    expect(accepted).toHaveLength(1);
  });

  it('forgets every button past its day, however many younger ones stand before it', async () => {
    const { clock, controls, kept } = setUp();
    await controls.button('stop', thread);
    await clock.advance(DAY_MS + 1);
    for (let i = 0; i < 1_001; i += 1) await controls.button('stop', thread);
    await controls.prune();
    expect(await kept()).toBe(1_001);
  });
});

import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import {
  DELIVERY_LOOKS_MS,
  lookAtDelivery,
  watchDelivery,
  type DeliveryLook,
} from '../../../../bridges/acp/inbound/delivery.js';
import { FakeBand, person } from '../../../support/acp/fake-band.js';

const codex = person('codex');
const { signal } = new AbortController();

function roomWith(rowsBefore: number, rowsAfter: number) {
  const band = new FakeBand([codex]);
  band.showsDelivery = true;
  const room = band.addRoom();
  room.participants.set(codex.id, codex);
  for (let i = 0; i < rowsBefore; i += 1) band.addRow(room, band.self, `old ${i}`);
  const row = band.addRow(room, band.self, 'question');
  row.delivery[codex.id] = 'processed';
  const mention = { mentions: [{ id: band.self.id }] };
  for (let i = 0; i < rowsAfter; i += 1) band.addRow(room, codex, `answer ${i}`, { metadata: mention });
  return { band, room, row };
}

describe('lookAtDelivery', () => {
  it('P-080 finds the message wherever it stands, and what was said behind it', async () => {
    const { band, room, row } = roomWith(250, 3);
    const tail = { cursor: undefined };
    const found = await lookAtDelivery(band.rest, room.id, row.id, tail, signal);
    expect(found).toMatchObject({ kind: 'states', states: new Map([[codex.id, 'processed']]) });
    expect(found.kind === 'states' && found.texts.map(({ content }) => content)).toEqual([
      'answer 0',
      'answer 1',
      'answer 2',
    ]);
    const reads = band.of('getContext').length;
    await lookAtDelivery(band.rest, room.id, row.id, tail, signal);
    expect(band.of('getContext').length - reads, 'the second look starts where the first one ended').toBe(1);
  });

  it('P-081 finds an answer that begins the next page', async () => {
    const { band, room, row } = roomWith(99, 1);
    const found = await lookAtDelivery(band.rest, room.id, row.id, { cursor: undefined }, signal);
    expect(found.kind === 'states' && found.texts.map(({ content }) => content)).toEqual(['answer 0']);
  });

  it('P-080 tells that states are hidden', async () => {
    const { band, room, row } = roomWith(0, 0);
    band.showsDelivery = false;
    expect(await lookAtDelivery(band.rest, room.id, row.id, { cursor: undefined }, signal)).toEqual({ kind: 'hidden' });
    expect(await lookAtDelivery(band.rest, room.id, 'other', { cursor: undefined }, signal)).toEqual({
      kind: 'not_found',
    });
  });
});

describe('watchDelivery', () => {
  function watch(look: () => DeliveryLook | Error) {
    const clock = createManualClock();
    const at: number[] = [];
    const errors: unknown[] = [];
    const support = { isOff: false };
    const start = clock.now();
    const watching = watchDelivery({
      clock,
      support,
      look: () => {
        at.push(clock.now() - start);
        const found = look();
        return found instanceof Error ? Promise.reject(found) : Promise.resolve(found);
      },
      onStates: () => Promise.resolve(),
      onError: (error) => errors.push(error),
    });
    return { clock, at, errors, support, watching };
  }
  const seen: DeliveryLook = { kind: 'states', states: new Map(), texts: [] };

  it('P-080 looks after 50, 150 and 400 ms, then after 1, 2 and 5 s, and anew from a reply', async () => {
    const { clock, at, watching } = watch(() => seen);
    await clock.advance(20_000);
    expect(at).toEqual([50, 200, 600, 1_600, 3_600, 8_600, 13_600, 18_600]);
    watching.hurry();
    await clock.advance(200);
    expect(at.slice(8)).toEqual([20_050, 20_200]);
    watching.stop();
    await clock.advance(60_000);
    expect(at).toHaveLength(10);
    expect(clock.pending).toBe(0);
    expect(DELIVERY_LOOKS_MS).toHaveLength(6);
  });

  it('P-080 stops for good once a reply came and no state is shown', async () => {
    const { clock, at, support, watching } = watch(() => ({ kind: 'hidden' }));
    await clock.advance(200);
    expect(support.isOff).toBe(false);
    watching.hurry();
    await clock.advance(60_000);
    expect(support.isOff).toBe(true);
    expect(at).toHaveLength(3);
  });

  it('goes on after a look that failed', async () => {
    const { clock, at, errors } = watch(() => new Error('no'));
    await clock.advance(600);
    expect(at).toHaveLength(3);
    expect(errors).toHaveLength(3);
  });
});

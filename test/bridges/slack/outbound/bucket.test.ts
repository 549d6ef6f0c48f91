import { describe, expect, it } from 'vitest';
import { Bucket } from '../../../../bridges/slack/outbound/bucket.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';

/** Takes tokens one after the other, each call lasting `callMs`, and notes when each began. */
async function drain(count: number, rate: { burst: number; perMinute: number }, callMs = 0): Promise<number[]> {
  const clock = createManualClock();
  const bucket = new Bucket(clock, rate);
  const begun: number[] = [];
  const start = clock.now();
  const done = (async () => {
    for (let call = 0; call < count; call += 1) {
      await bucket.take();
      begun.push(clock.now() - start);
      if (callMs > 0) await clock.sleep(callMs);
      bucket.settle();
    }
  })();
  for (let step = 0; begun.length < count && step < 10_000; step += 1) await clock.advance(50);
  await Promise.all([done, clock.advance(callMs)]);
  return begun;
}

describe('a token bucket', () => {
  it('lets a burst go at once and then one at a time at its rate', async () => {
    expect(await drain(6, { burst: 3, perMinute: 60 })).toEqual([0, 0, 0, 1_000, 2_000, 3_000]);
  });

  it('S-091 never lets more into any minute than burst and rate allow, however long calls take', async () => {
    for (const callMs of [0, 70, 400, 1_300]) {
      const begun = await drain(90, { burst: 10, perMinute: 30 }, callMs);
      for (const from of begun) {
        expect(begun.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(40);
      }
    }
  });

  it('serves who asks first', async () => {
    const clock = createManualClock();
    const bucket = new Bucket(clock, { burst: 1, perMinute: 60 });
    const order: string[] = [];
    const ask = async (name: string) => {
      await bucket.take();
      order.push(name);
      bucket.settle();
    };
    const asked = Promise.all(['a', 'b', 'c'].map(ask));
    await clock.advance(3_000);
    await asked;
    expect(order).toEqual(['a', 'b', 'c']);
  });

  it('gives nobody a token while it pauses, and is not confused by a clock that is set back', async () => {
    const clock = createManualClock();
    const bucket = new Bucket(clock, { burst: 3, perMinute: 60 });
    bucket.pause(5_000);
    clock.jump(-3_600_000);
    let taken = false;
    const asked = bucket.take().then(() => (taken = true));
    await clock.advance(4_900);
    expect(taken).toBe(false);
    await clock.advance(200);
    await asked;
    expect(taken).toBe(true);
    bucket.settle();
  });

  it('forgets who stops waiting', async () => {
    const clock = createManualClock();
    const bucket = new Bucket(clock, { burst: 1, perMinute: 60 });
    await bucket.take();
    const leaving = new AbortController();
    const left = bucket.take(leaving.signal);
    const stays = bucket.take();
    leaving.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    bucket.settle();
    await clock.advance(2_000);
    await stays;
    bucket.settle(false);
    await clock.advance(2_000);
    expect(bucket.isFresh).toBe(true);
  });
});

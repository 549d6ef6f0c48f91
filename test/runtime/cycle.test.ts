import { describe, expect, it } from 'vitest';
import { deferred } from '../../src/base/async.js';
import { Cycle, CycleAborted } from '../../src/runtime/cycle.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

function lab(maxSeconds: number | null = 10) {
  const clock = createManualClock();
  const late: string[] = [];
  const cycle = new Cycle({ clock, maxSeconds, onLateError: (error) => late.push(error.message) });
  return { clock, cycle, late };
}

describe('a cycle', () => {
  it('ends with what the adapter did', async () => {
    expect(await lab().cycle.run(() => Promise.resolve())).toEqual({ kind: 'completed' });
    const error = new Error('no');
    expect(await lab().cycle.run(() => Promise.reject(error))).toEqual({ kind: 'failed', error });
  });

  it('fails like one that rejects when the adapter throws at once', async () => {
    const error = new Error('at once');
    const result = await lab().cycle.run(() => {
      throw error;
    });
    expect(result).toEqual({ kind: 'failed', error });
  });

  it('R-226 counts the real result of an adapter that finishes in the very tick of the limit', async () => {
    const { clock, cycle } = lab();
    const work = deferred();
    // Registered before the limit, so both fire in the same move of the clock, with the limit last.
    const result = cycle.run(() => work.promise);
    clock.after(10_000, () => {
      work.resolve();
    });
    const moved = clock.advance(9_999);
    await moved;
    const limit = clock.advance(1);
    work.resolve();
    await limit;
    expect(await result).toEqual({ kind: 'completed' });
  });

  it('R-230 timed out although the adapter returned after the abort', async () => {
    const { clock, cycle } = lab();
    const result = cycle.run(
      (signal) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            resolve();
          });
        }),
    );
    await clock.advance(10_000);
    expect(await result).toEqual({ kind: 'timed_out', seconds: 10 });
    expect(cycle.signal.reason).toBeInstanceOf(CycleAborted);
    expect(clock.pending).toBe(0);
  });

  it('R-232 is ended by a signal that comes while the adapter unwinds from the limit', async () => {
    const { clock, cycle } = lab();
    const result = cycle.run(() => new Promise(() => undefined));
    await clock.advance(10_500);
    cycle.abort('stop');
    await clock.advance(500);
    expect(await result).toEqual({ kind: 'aborted', by: 'stop' });
  });

  it('R-214 does not begin once it was ended', async () => {
    const { cycle } = lab();
    cycle.abort('interrupt');
    let ran = false;
    const result = await cycle.run(() => {
      ran = true;
      return Promise.resolve();
    });
    expect(result).toEqual({ kind: 'aborted', by: 'interrupt' });
    expect(ran).toBe(false);
  });

  it('R-225 is left behind a second after its end, and a later error is told', async () => {
    const { clock, cycle, late } = lab(null);
    const work = deferred();
    const result = cycle.run(() => work.promise);
    await clock.advance(50);
    cycle.abort('shutdown');
    await clock.advance(1_000);
    expect(await result).toEqual({ kind: 'aborted', by: 'shutdown' });
    work.reject(new Error('too late'));
    await clock.advance(0);
    expect(late).toEqual(['too late']);
    expect(clock.pending).toBe(0);
  });

  it('takes no notice of a signal after the adapter settled', async () => {
    const { cycle } = lab();
    const result = await cycle.run(() => Promise.resolve());
    cycle.abort('stop');
    expect(result).toEqual({ kind: 'completed' });
    expect(cycle.signal.aborted).toBe(false);
  });
});

import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { abortable, Background, childSignal, deferred, onAbort, withDeadline, within } from '../../src/base/async.js';
import { backoffMs } from '../../src/base/backoff.js';
import { BoundedMap } from '../../src/base/bounded.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

describe('onAbort', () => {
  it('calls those who wait once, in the order they came, and nobody who left meanwhile', () => {
    const controller = new AbortController();
    const { signal } = controller;
    const called: string[] = [];
    onAbort(signal, ({ message }) => {
      called.push(`first: ${message}`);
      leave();
    });
    const leave = onAbort(signal, () => called.push('left'));
    onAbort(signal, () => called.push('last'));
    controller.abort(new Error('over'));
    onAbort(signal, () => called.push('at once'));
    expect(called).toEqual(['first: over', 'last', 'at once']);
  });

  it('puts one listener on a signal for all who wait, and takes it back with the last of them', () => {
    const { signal } = new AbortController();
    const listeners = () => getEventListeners(signal, 'abort').length;
    const leave = [1, 2, 3].map(() => onAbort(signal, () => undefined));
    expect(listeners()).toBe(1);
    leave[0]?.();
    leave[0]?.();
    leave[2]?.();
    expect(listeners()).toBe(1);
    leave[1]?.();
    expect(listeners()).toBe(0);
    onAbort(signal, () => undefined);
    expect(listeners()).toBe(1);
  });
});

describe('childSignal', () => {
  it('aborts with its parents, and alone', () => {
    const parent = new AbortController();
    using child = childSignal(parent.signal, null, undefined);
    using other = childSignal(parent.signal);
    other.abort('alone');
    expect([child.signal.aborted, other.signal.reason, parent.signal.aborted]).toEqual([false, 'alone', false]);
    parent.abort('all');
    expect(child.signal.reason).toBe('all');
    using late = childSignal(parent.signal);
    expect(late.signal.reason).toBe('all');
  });

  it('follows no parent once disposed of', () => {
    const parent = new AbortController();
    const child = childSignal(parent.signal);
    child[Symbol.dispose]();
    parent.abort();
    expect(child.signal.aborted).toBe(false);
  });
});

describe('withDeadline', () => {
  it('ends work that ignores its signal, and leaves no timer behind', async () => {
    const clock = createManualClock();
    const never = withDeadline(clock, 1_000, null, () => new Promise(() => undefined));
    const refused = expect(never).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    await clock.advance(1_000);
    await refused;
    expect(await withDeadline(clock, 1_000, null, () => Promise.resolve('in time'))).toBe('in time');
    expect(clock.pending).toBe(0);
  });

  it('ends with its parent, and leaves no timer behind', async () => {
    const clock = createManualClock();
    const parent = new AbortController();
    const waiting = withDeadline(clock, 1_000, parent.signal, () => new Promise(() => undefined));
    parent.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    expect(clock.pending).toBe(0);
  });

  it('waits for its parent no longer once it ended', async () => {
    const clock = createManualClock();
    const parent = new AbortController();
    const never = withDeadline(clock, 1_000, parent.signal, () => new Promise(() => undefined));
    const refused = expect(never).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    await clock.advance(1_000);
    await refused;
    await withDeadline(clock, 1_000, parent.signal, () => Promise.resolve());
    expect(getEventListeners(parent.signal, 'abort')).toEqual([]);
  });

  it('begins no work under a signal that is not aborted when its parent was', async () => {
    const seen: boolean[] = [];
    const parent = AbortSignal.abort(new Error('before'));
    const late = withDeadline(createManualClock(), 1_000, parent, async (signal) => void seen.push(signal.aborted));
    await expect(late).rejects.toThrow('before');
    expect(seen).toEqual([true]);
  });
});

describe('a wait', () => {
  it('fails with what the work failed with, whatever that is', async () => {
    const clock = createManualClock();
    const fail = async (reason: unknown): Promise<void> => {
      const { reject, promise } = deferred();
      reject(reason);
      await promise;
    };
    for (const reason of [undefined, 'no error', new Error('an error')]) {
      const caught = await Promise.allSettled([
        abortable(fail(reason), new AbortController().signal),
        within(clock, 1_000, fail(reason)),
        withDeadline(clock, 1_000, null, () => fail(reason)),
      ]);
      expect(caught).toEqual(Array(3).fill({ status: 'rejected', reason }));
    }
  });
});

describe('abortable', () => {
  it('does not leave an unhandled rejection behind when the wait was over before', async () => {
    await expect(abortable(Promise.reject(new Error('late')), AbortSignal.abort(new Error('over')))).rejects.toThrow(
      'over',
    );
  });
});

describe('within', () => {
  it('waits for a promise until the time is over, and leaves no timer behind', async () => {
    const clock = createManualClock();
    const refused = expect(within(clock, 1_000, new Promise(() => undefined))).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    });
    await clock.advance(1_000);
    await refused;
    expect(await within(clock, 1_000, Promise.resolve('in time'))).toBe('in time');
    expect(clock.pending).toBe(0);
  });
});

describe('Background', () => {
  it('drains what it runs, and what that hands in, and passes failures to one handler', async () => {
    const errors: unknown[] = [];
    const background = new Background((error) => errors.push(error));
    const gate = deferred();
    let inner = false;
    background.run(async () => {
      await gate.promise;
      background.run(async () => void (inner = true));
      throw new Error('seen');
    });
    const drained = background.drain();
    gate.resolve();
    await drained;
    expect([inner, background.size, String(errors[0])]).toEqual([true, 0, 'Error: seen']);
  });
});

describe('the manual clock', () => {
  it('fires timers in the order of their time and lets promises settle in between', async () => {
    const clock = createManualClock(0);
    const log: string[] = [];
    clock.after(20, () => log.push('20'));
    const cancelled = clock.after(15, () => log.push('never'));
    void clock.sleep(10).then(() => {
      log.push(`slept until ${clock.now()}`);
      clock.after(5, () => log.push('5 later'));
    });
    const stop = clock.every(8, () => log.push('every'));
    cancelled();
    await clock.advance(20);
    stop();
    expect(log).toEqual(['every', 'slept until 10', '5 later', 'every', '20']);
  });

  it('rejects a sleep when its signal aborts and forgets the timer', async () => {
    const clock = createManualClock();
    const controller = new AbortController();
    const sleeping = clock.sleep(1_000, controller.signal);
    controller.abort(new Error('up'));
    await expect(sleeping).rejects.toThrow('up');
    expect(clock.pending).toBe(0);
  });
});

describe('backoffMs', () => {
  it.each([
    ['none', 0, [500, 1_000, 2_000, 30_000]],
    ['equal', 0, [250, 500, 1_000, 15_000]],
    ['equal', 1, [500, 1_000, 2_000, 30_000]],
    ['full', 0.5, [250, 500, 1_000, 15_000]],
    ['tenth', 0.5, [500, 1_000, 2_000, 30_000]],
  ] as const)('with %s jitter and a random number of %d gives %j', (jitter, random, expected) => {
    const options = { baseMs: 500, maxMs: 30_000, jitter, random: () => random };
    expect([1, 2, 3, 50].map((tries) => backoffMs(tries, options))).toEqual(expected);
  });
});

describe('BoundedMap', () => {
  it('forgets the least recently written entry', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1);
    map.set('b', 2);
    map.set('a', 3);
    map.set('c', 4);
    expect([map.has('b'), map.get('a'), map.size]).toEqual([false, 3, 2]);
  });
});

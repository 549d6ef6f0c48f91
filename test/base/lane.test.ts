import { describe, expect, it } from 'vitest';
import { deferred } from '../../src/base/async.js';
import { KeyedLock } from '../../src/base/keyed-lock.js';
import { Lanes } from '../../src/base/lane.js';

const tick = () => new Promise((resolve) => setImmediate(resolve));

describe('Lanes', () => {
  it('runs the jobs of one key in order and keys side by side', async () => {
    const lanes = new Lanes({ maxWaitingPerLane: 10 });
    const gate = deferred();
    const log: string[] = [];
    const first = lanes.run('a', async () => {
      await gate.promise;
      log.push('a1');
    });
    const second = lanes.run('a', async () => void log.push('a2'));
    await lanes.run('b', async () => void log.push('b1'));
    expect(log).toEqual(['b1']);
    gate.resolve();
    await Promise.all([first, second]);
    expect(log).toEqual(['b1', 'a1', 'a2']);
    await lanes.drain();
    expect(lanes.size).toBe(0);
  });

  it('goes on after a job that failed, and hands its error to its caller only', async () => {
    const lanes = new Lanes({ maxWaitingPerLane: 10 });
    const failed = lanes.run('a', () => Promise.reject(new Error('no')));
    const next = lanes.run('a', () => Promise.resolve(7));
    await expect(failed).rejects.toThrow('no');
    expect(await next).toBe(7);
  });

  it('refuses a job past the bound of its lane and takes one again when there is room', async () => {
    const lanes = new Lanes({ maxWaitingPerLane: 1 });
    const gate = deferred();
    const jobs = [lanes.run('a', () => gate.promise), lanes.run('a', () => gate.promise)];
    await expect(lanes.run('a', () => gate.promise)).rejects.toMatchObject({ code: 'QUEUE_FULL', undelivered: true });
    expect(await lanes.run('b', () => Promise.resolve('free'))).toBe('free');
    gate.resolve();
    await Promise.all(jobs);
    await lanes.run('a', () => Promise.resolve());
  });

  it('never runs more lanes at a time than its cap, and starves none', async () => {
    const lanes = new Lanes({ maxWaitingPerLane: 100, maxRunning: 2 });
    let running = 0;
    let most = 0;
    const job = async () => {
      most = Math.max(most, ++running);
      await tick();
      running -= 1;
    };
    await Promise.all(Array.from({ length: 30 }, (_, i) => lanes.run(`lane ${i % 7}`, job)));
    expect(most).toBe(2);
  });

  it('lets a waiting job leave on its signal, and a running one finish', async () => {
    const lanes = new Lanes({ maxWaitingPerLane: 10 });
    const gate = deferred();
    const controller = new AbortController();
    const running = lanes.run('a', () => gate.promise.then(() => 'finished'), controller.signal);
    let ran = false;
    const waiting = lanes.run('a', async () => void (ran = true), controller.signal);
    controller.abort(new Error('left'));
    await expect(waiting).rejects.toThrow('left');
    gate.resolve();
    expect(await running).toBe('finished');
    await lanes.drain();
    expect(ran).toBe(false);
  });
});

describe('KeyedLock', () => {
  it('has one holder per key', async () => {
    const lock = new KeyedLock();
    let inside = 0;
    const enter = () =>
      lock.hold('room', async () => {
        inside += 1;
        expect(inside).toBe(1);
        await tick();
        inside -= 1;
      });
    await Promise.all([enter(), enter(), enter()]);
  });
});

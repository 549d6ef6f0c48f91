import { describe, expect, it, vi } from 'vitest';
import { deferred } from '../../src/base/async.js';
import { silentLogger } from '../../src/base/log.js';
import { runUntilSignal } from '../../src/cli/run-until-signal.js';
import { fakeCliWorld } from '../support/cli-world.js';

describe('runUntilSignal', () => {
  it('stops at the first signal and ends with 0', async () => {
    const world = fakeCliWorld();
    const stop = vi.fn(async () => undefined);
    const code = runUntilSignal({ world, log: silentLogger, stop, deadlineMs: 1_000 });
    expect(stop).not.toHaveBeenCalled();
    world.signal();
    expect(await code).toBe(0);
    expect(stop).toHaveBeenCalledOnce();
  });

  it('ends with 1 when stopping fails', async () => {
    const world = fakeCliWorld();
    const code = runUntilSignal({
      world,
      log: silentLogger,
      stop: () => Promise.reject(new Error('stuck')),
      deadlineMs: 1_000,
    });
    world.signal('SIGINT');
    expect(await code).toBe(1);
  });

  it('ends with 1 at the deadline, whatever still hangs', async () => {
    vi.useFakeTimers();
    const world = fakeCliWorld();
    const code = runUntilSignal({ world, log: silentLogger, stop: () => deferred().promise, deadlineMs: 5_000 });
    world.signal();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await code).toBe(1);
    vi.useRealTimers();
  });

  it('a second signal ends the process at once', () => {
    const world = fakeCliWorld();
    void runUntilSignal({ world, log: silentLogger, stop: () => deferred().promise, deadlineMs: 60_000 });
    world.signal();
    expect(world.said.exits).toEqual([]);
    world.signal();
    expect(world.said.exits).toEqual([1]);
  });

  it('A-012 reads the settings again at SIGHUP where that can be, one time after the other, and goes on', async () => {
    const world = fakeCliWorld();
    const stop = vi.fn(async () => undefined);
    const first = deferred();
    const reload = vi
      .fn()
      .mockReturnValueOnce(first.promise)
      .mockRejectedValueOnce(new Error('no file'))
      .mockResolvedValue(undefined);
    const code = runUntilSignal({ world, log: silentLogger, stop, reload, deadlineMs: 1_000 });
    for (let n = 0; n < 3; n += 1) world.signal('SIGHUP');
    await Promise.resolve();
    expect(reload).toHaveBeenCalledTimes(1);
    first.resolve();
    await vi.waitUntil(() => reload.mock.calls.length === 3);
    expect(stop).not.toHaveBeenCalled();
    world.signal('SIGTERM');
    world.signal('SIGHUP');
    expect(await code).toBe(0);
    expect(reload).toHaveBeenCalledTimes(3);
  });

  it('without a way to read settings again SIGHUP is an end like the others', async () => {
    const world = fakeCliWorld();
    const code = runUntilSignal({ world, log: silentLogger, stop: async () => undefined, deadlineMs: 1_000 });
    world.signal('SIGHUP');
    expect(await code).toBe(0);
  });
});

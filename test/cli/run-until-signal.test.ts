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
});

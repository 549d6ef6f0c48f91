import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AttemptBook } from '../../src/runtime/attempts.js';
import { Cleanup, CleanupPhase } from '../../src/runtime/cleanup.js';
import { ControlRouter } from '../../src/runtime/control.js';
import { Deadlines, type Timed } from '../../src/runtime/deadlines.js';
import { Gate } from '../../src/runtime/gate.js';
import { Ledger } from '../../src/runtime/ledger.js';
import { readableMentions } from '../../src/runtime/mention-tokens.js';
import { RoomTeardown } from '../../src/runtime/room-teardown.js';
import { ResyncSchedule, resyncTimes } from '../../src/runtime/schedule.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

const timed = (name: string, seen: string[]): Timed => ({
  dueAt: 0,
  slot: -1,
  onDue: () => seen.push(name),
});

describe('Deadlines', () => {
  it('fires owners in the order of their moments, on one timer', async () => {
    const clock = createManualClock();
    const deadlines = new Deadlines(clock);
    const seen: string[] = [];
    const owners = ['c', 'a', 'b'].map((name) => timed(name, seen));
    deadlines.set(owners[0]!, clock.now() + 300);
    deadlines.set(owners[1]!, clock.now() + 100);
    deadlines.set(owners[2]!, clock.now() + 200);
    expect(clock.pending).toBe(1);
    await clock.advance(1_000);
    expect(seen).toEqual(['a', 'b', 'c']);
    expect(clock.pending).toBe(0);
  });

  it('behaves like a sorted list under any sequence of setting, moving and clearing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(9), fc.option(fc.integer({ min: 1, max: 50 }), { nil: null })), { maxLength: 60 }),
        async (steps) => {
          const clock = createManualClock();
          const deadlines = new Deadlines(clock);
          const fired: number[] = [];
          const owners = Array.from({ length: 10 }, (_, n): Timed => ({
            dueAt: 0,
            slot: -1,
            onDue: () => fired.push(n),
          }));
          const model = new Map<number, number>();
          for (const [n, after] of steps) {
            if (after === null) {
              deadlines.clear(owners[n]!);
              model.delete(n);
            } else {
              deadlines.set(owners[n]!, clock.now() + after);
              model.set(n, after);
            }
          }
          expect(deadlines.size).toBe(model.size);
          await clock.advance(100);
          const times = fired.map((n) => model.get(n));
          expect([...fired].sort()).toEqual([...model.keys()].sort());
          expect(times).toEqual([...times].sort((a, b) => a! - b!));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('does not wait an hour longer when the wall clock is set back', async () => {
    const clock = createManualClock();
    const deadlines = new Deadlines(clock);
    const seen: string[] = [];
    const owner = timed('first', seen);
    const later = timed('later', seen);
    let fire: () => void = () => undefined;
    const skewed = new Deadlines({ ...clock, after: (ms, fn) => ((fire = fn), clock.after(ms, fn)) });
    skewed.set(owner, clock.now() + 60_000);
    skewed.set(later, clock.now() + 120_000);
    clock.jump(-3_600_000);
    fire();
    expect(seen).toEqual(['first']);
    await clock.advance(60_000);
    expect(seen).toEqual(['first', 'later']);
    deadlines.close();
    skewed.close();
  });

  it('holds nothing once it is closed', () => {
    const clock = createManualClock();
    const deadlines = new Deadlines(clock);
    deadlines.set(timed('a', []), clock.now() + 5);
    deadlines.close();
    deadlines.set(timed('b', []), clock.now() + 5);
    expect(clock.pending).toBe(0);
    expect(deadlines.size).toBe(0);
  });
});

describe('ResyncSchedule', () => {
  const times = resyncTimes({ idleResyncSeconds: 60, idleResyncMaxSeconds: 120, stoppedResyncSeconds: null });

  it('R-199 doubles after empty passes up to the cap', () => {
    const schedule = new ResyncSchedule(times);
    schedule.started(0, () => 1);
    expect(schedule.deadline).toBe(60_000);
    schedule.passEnded('empty', 60_000);
    expect(schedule.deadline).toBe(180_000);
    schedule.passEnded('empty', 180_000);
    expect(schedule.deadline).toBe(300_000);
  });

  it('R-202 falls back to the base after work, a failure or a blocked head', () => {
    for (const result of ['worked', 'failed', 'blocked'] as const) {
      const schedule = new ResyncSchedule(times);
      schedule.started(0, () => 1);
      schedule.passEnded('empty', 60_000);
      schedule.passEnded(result, 100_000);
      expect(schedule.deadline).toBe(160_000);
    }
  });

  it('R-204 is never pushed away by work or by a stop', () => {
    const schedule = new ResyncSchedule(times);
    schedule.started(0, () => 1);
    schedule.sawWork(30_000);
    schedule.stopped(40_000);
    expect(schedule.deadline).toBe(60_000);
  });
});

describe('Ledger', () => {
  it('lets one claim through at a time', () => {
    const ledger = new Ledger(1);
    expect(ledger.claim('r', 'm')).toBe(true);
    expect(ledger.claim('r', 'm')).toBe(false);
    expect(ledger.claim('other', 'm')).toBe(true);
    ledger.release('r', 'm');
    expect(ledger.claim('r', 'm')).toBe(true);
  });

  it('remembers five hundred completed messages of a room, the latest ones', () => {
    const ledger = new Ledger(1);
    for (let n = 0; n < 501; n += 1) ledger.complete('r', `m${n}`);
    expect(ledger.isCompleted('r', 'm0')).toBe(false);
    expect(ledger.isCompleted('r', 'm1')).toBe(true);
    expect(ledger.isCompleted('r', 'm500')).toBe(true);
  });

  it('remembers a hundred thousand completed messages in all, those of the rooms that were quiet longest least', () => {
    const ledger = new Ledger(1);
    for (let room = 0; room < 201; room += 1) {
      for (let n = 0; n < 500; n += 1) ledger.complete(`r${room}`, `m${n}`);
    }
    expect(ledger.isCompleted('r0', 'm499')).toBe(false);
    expect(ledger.isCompleted('r1', 'm499')).toBe(true);
    expect(ledger.isCompleted('r200', 'm0')).toBe(true);
    expect(ledger.rooms).toBe(200);
  });

  it('never forgets an outstanding acknowledgement, and gives up after the allowed retries', () => {
    const ledger = new Ledger(2);
    ledger.intendAck('r', 'm');
    for (let n = 0; n < 2_000; n += 1) ledger.complete('r', `other${n}`);
    ledger.forgetCompleted('r');
    expect(ledger.ackPendingOf('r')).toEqual(['m']);
    expect(ledger.ackRetryFailed('r', 'm')).toBe('pending');
    expect(ledger.ackRetryFailed('r', 'm')).toBe('given_up');
    expect(ledger.isCompleted('r', 'm')).toBe(true);
    expect(ledger.ackPendingOf('r')).toEqual([]);
  });

  it('keeps nothing for a room that has no entries', () => {
    const ledger = new Ledger(1);
    ledger.claim('r', 'm');
    ledger.release('r', 'm');
    ledger.complete('q', 'm');
    ledger.forgetCompleted('q');
    expect(ledger.rooms).toBe(0);
  });
});

describe('Ledger of a room that is left', () => {
  it('R-187 keeps what is done and not known to the platform, until it is known', () => {
    const ledger = new Ledger(1);
    for (const id of ['known', 'given up']) ledger.intendAck('r', id);
    ledger.complete('r', 'known');
    expect(ledger.ackRetryFailed('r', 'given up')).toBe('given_up');
    ledger.forgetCompleted('r');
    expect(['known', 'given up'].map((id) => ledger.isCompleted('r', id))).toEqual([false, true]);
    ledger.complete('r', 'given up');
    ledger.forgetCompleted('r');
    expect(ledger.isCompleted('r', 'given up')).toBe(false);
    expect(ledger.rooms).toBe(0);
  });

  it('keeps no more of them than of anything done', () => {
    const ledger = new Ledger(1);
    for (let n = 0; n < 501; n += 1) {
      ledger.intendAck('r', `m${n}`);
      ledger.ackRetryFailed('r', `m${n}`);
    }
    ledger.forgetCompleted('r');
    expect(['m0', 'm1', 'm500'].map((id) => ledger.isCompleted('r', id))).toEqual([false, true, true]);
    for (let room = 0; room < 200; room += 1) {
      for (let n = 0; n < 500; n += 1) ledger.complete(`room-${room}`, `m${n}`);
    }
    expect(ledger.isCompleted('r', 'm500')).toBe(false);
  });
});

describe('AttemptBook', () => {
  it('counts, refunds, exhausts and forgets', () => {
    const book = new AttemptBook(2);
    expect(book.charge('r', 'm')).toBe(1);
    expect(book.isExhausted('r', 'm')).toBe(false);
    expect(book.charge('r', 'm')).toBe(2);
    expect(book.isExhausted('r', 'm')).toBe(true);
    book.refund('r', 'm');
    expect(book.isExhausted('r', 'm')).toBe(false);
    book.exhaust('r', 'm');
    expect(book.isExhausted('r', 'm')).toBe(true);
    book.clear('r', 'm');
    expect(book.isExhausted('r', 'm')).toBe(false);
    book.refund('r', 'unknown');
    expect(book.size).toBe(0);
  });

  it('forgets the oldest of more than ten thousand messages', () => {
    const book = new AttemptBook(1);
    for (let n = 0; n < 10_001; n += 1) book.charge('r', `m${n}`);
    expect(book.isExhausted('r', 'm0')).toBe(false);
    expect(book.isExhausted('r', 'm1')).toBe(true);
    expect(book.size).toBe(10_000);
  });
});

describe('ControlRouter', () => {
  it('R-216 forgets correlation ids after 256 others', () => {
    const router = new ControlRouter();
    const signal = (correlation_id: string) =>
      router.route({ mode: 'stop', scope: 'agent', agent_id: 'a', correlation_id }).kind;
    expect(signal('first')).toBe('all');
    expect(signal('first')).toBe('repeat');
    for (let n = 0; n < 256; n += 1) signal(`c${n}`);
    expect(signal('first')).toBe('all');
  });
});

describe('Cleanup', () => {
  it('R-053 R-055 R-056 runs every phase, lists failures in order, and repeats only what failed', async () => {
    const ran: string[] = [];
    const broken = new Set(['one', 'three', 'four']);
    const unit = (name: string) => async () => {
      ran.push(name);
      if (broken.has(name)) throw new Error(name);
    };
    const cleanup = new Cleanup([
      new CleanupPhase([unit('one'), unit('two')]),
      new CleanupPhase([
        async () => {
          await unit('three')().catch((error: unknown) => {
            throw new AggregateError([error, new Error('three b')]);
          });
        },
      ]),
      new CleanupPhase([unit('four'), unit('five')]),
    ]);
    const failures = await cleanup.run();
    expect(failures.map((failure) => (failure as Error).message)).toEqual(['one', 'three', 'three b', 'four']);
    expect(ran).toEqual(['one', 'two', 'three', 'four', 'five']);
    expect(cleanup.done).toBe(false);
    ran.length = 0;
    broken.clear();
    expect(await cleanup.run()).toEqual([]);
    expect(ran).toEqual(['one', 'three', 'four']);
    expect(cleanup.done).toBe(true);
  });
});

describe('Gate', () => {
  it('lets a bounded number through, first come first served, and survives failures', async () => {
    const gate = new Gate(2);
    let open = 0;
    let most = 0;
    const order: number[] = [];
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, (_, n) =>
        gate.pass(async () => {
          open += 1;
          most = Math.max(most, open);
          order.push(n);
          await Promise.resolve();
          open -= 1;
          if (n % 7 === 0) throw new Error('one of them');
        }),
      ),
    );
    expect(most).toBe(2);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(results).toHaveLength(50);
    expect(await gate.pass(() => Promise.resolve('still open'))).toBe('still open');
  });
});

describe('readableMentions', () => {
  it('R-247 replaces tokens of known participants and leaves the others', () => {
    const roster = {
      get: (id: string) =>
        id === 'u-1' ? { id, name: 'Jane', type: 'User', handle: 'jane', description: null } : undefined,
    };
    expect(readableMentions('@[[u-1]] and @[[u-2]]: see @[[u-1]]', roster)).toBe('@jane and @[[u-2]]: see @jane');
    expect(readableMentions('nothing here', roster)).toBe('nothing here');
  });
});

describe('RoomTeardown', () => {
  it('R-175 repeats what failed and nothing that succeeded; callers share an attempt', async () => {
    const steps: string[] = [];
    const failures = ['still runs', null, 'not yet', null];
    const step = (name: string) => async () => {
      steps.push(name);
      await Promise.resolve();
      const failure = failures.shift();
      if (failure) throw new Error(failure);
    };
    const teardown = new RoomTeardown({ stopped: step('stop'), cleanUp: step('clean up') });
    for (const run of [teardown.run(), teardown.run()]) await expect(run).rejects.toThrow('still runs');
    expect(steps).toEqual(['stop']);
    await expect(teardown.run()).rejects.toThrow('not yet');
    await teardown.run();
    expect(steps).toEqual(['stop', 'stop', 'clean up', 'clean up']);
  });
});

import { describe, expect, it } from 'vitest';
import { BandConfigError, CleanupIncompleteError } from '../../src/base/band-errors.js';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { InstanceLock } from '../../src/runtime/instance-lock.js';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';

/** An agent whose lock, cleanup and callbacks write down when they were called. */
function stopLab(options: AgentLabOptions = {}) {
  const order: string[] = [];
  const broken = new Set<string>();
  const step = async (name: string) => {
    order.push(name);
    if (broken.has(name)) throw new Error(`${name} failed`);
  };
  const lock: InstanceLock = { path: '/lock', claim: () => step('claim'), release: () => step('release') };
  const lab = agentLab({
    ...options,
    agent: { ...options.agent, config: { singleInstance: true } },
    ports: { createLock: () => lock, ...options.ports },
  });
  lab.adapter.onCleanup = (roomId) => step(`room ${roomId}`);
  lab.adapter.cleanupAll = () => step('cleanupAll');
  return { ...lab, order, broken, callback: (name: string) => () => step(name) };
}

/** An adapter that works until it is aborted. */
const busy: AgentLabOptions = {
  onTurn: ({ signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        reject(signal.reason as Error);
      });
    }),
};

async function started<T extends AgentLab>(lab: T, rooms: readonly string[] = []): Promise<T> {
  for (const room of rooms) lab.band.addRoom(room);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

describe('Agent.stop', () => {
  it('R-043 resolves true when the agent was idle, or its work finished', async () => {
    const idle = await started(agentLab());
    expect(await idle.agent.stop()).toBe(true);
    let finish!: () => void;
    const lab = await started(
      agentLab({
        onTurn: async ({ tools }) => {
          await new Promise<void>((resolve) => (finish = resolve));
          await tools.noReply();
        },
      }),
      ['room'],
    );
    lab.band.post('room', 'work');
    await lab.settle();
    const stopping = lab.agent.stop(30);
    await lab.clock.advance(10_000);
    finish();
    expect(await stopping).toBe(true);
  });

  it('R-044 resolves false when work was cancelled after the timeout', async () => {
    const lab = await started(agentLab(busy), ['room']);
    const id = lab.band.post('room', 'work');
    await lab.settle();
    const stopping = lab.agent.stop(5);
    await lab.clock.advance(4_999);
    expect(lab.turns[0]!.signal.aborted).toBe(false);
    await lab.clock.advance(1);
    expect(await stopping).toBe(false);
    expect(lab.band.state('room', id)).toBe('processing');
  });

  it('R-045 R-047 without a timeout cancels running work at once and resolves false', async () => {
    for (const timeout of [undefined, null] as const) {
      const lab = await started(agentLab(busy), ['room']);
      lab.band.post('room', 'work');
      await lab.settle();
      expect(await lab.agent.stop(timeout)).toBe(false);
      expect(lab.turns[0]!.signal.aborted).toBe(true);
    }
  });

  it('R-046 resolves true without effect on an agent that never started', async () => {
    const lab = stopLab();
    expect(await lab.agent.stop()).toBe(true);
    expect(lab.order).toEqual([]);
    await lab.agent.start();
    expect(lab.agent.isRunning).toBe(true);
  });

  it('rejects a timeout that is no number of seconds', async () => {
    const lab = agentLab();
    for (const timeout of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(lab.agent.stop(timeout)).rejects.toBeInstanceOf(RangeError);
    }
  });

  it('R-048 R-061 R-062 R-069 cleans up rooms, then the adapter, then what was registered last first, then the lock', async () => {
    const lab = stopLab();
    lab.adapter.addCleanup(lab.callback('first'));
    lab.adapter.addCleanup(lab.callback('second'));
    await started(lab, ['a', 'b']);
    await lab.agent.stop();
    expect(lab.order).toEqual(['claim', 'room a', 'room b', 'cleanupAll', 'second', 'first', 'release']);
    expect(lab.lines.at(-1)).toMatchObject({ level: 30, msg: 'Agent stopped: Helper (graceful=true)' });
  });

  it('R-048 calls cleanupAll only after running work has ended', async () => {
    let finish!: () => void;
    const lab = stopLab({
      onTurn: async ({ tools }) => {
        await new Promise<void>((resolve) => (finish = resolve));
        await tools.noReply();
      },
    });
    await started(lab, ['room']);
    lab.band.post('room', 'work');
    await lab.settle();
    const stopping = lab.agent.stop(30);
    await lab.settle();
    expect(lab.order).toEqual(['claim']);
    finish();
    await stopping;
    expect(lab.order).toEqual(['claim', 'room room', 'cleanupAll', 'release']);
  });

  it('R-049 an adapter without cleanupAll stops normally', async () => {
    const lab = agentLab({
      agent: {
        adapter: {
          onEvent: async () => undefined,
          onCleanup: async () => undefined,
          onStarted: async () => undefined,
        },
      },
    });
    await lab.agent.start();
    expect(await lab.agent.stop()).toBe(true);
  });
});

describe('clean-up that fails', () => {
  for (const name of ['room a', 'cleanupAll', 'callback']) {
    it(`R-050 R-051 R-052 R-054 R-055 "${name}" stays pending together with the lock, and the next stop retries it`, async () => {
      const lab = stopLab();
      lab.adapter.addCleanup(lab.callback('callback'));
      await started(lab, ['a']);
      lab.broken.add(name);
      const error: unknown = await lab.agent.stop().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(AggregateError);
      expect((error as AggregateError).message).toBe('Agent cleanup remains incomplete');
      expect((error as AggregateError).errors.map((one) => (one as Error).message)).toEqual([`${name} failed`]);
      expect(lab.order).toEqual(['claim', 'room a', 'cleanupAll', 'callback']);
      expect(lab.agent.isRunning).toBe(false);

      lab.order.length = 0;
      await expect(lab.agent.stop()).rejects.toThrow('Agent cleanup remains incomplete');
      expect(lab.order).toEqual([name]);

      lab.broken.clear();
      lab.order.length = 0;
      expect(await lab.agent.stop()).toBe(true);
      expect(lab.order).toEqual([name, 'release']);
    });
  }

  it('R-040 start while clean-up is pending throws CleanupIncompleteError', async () => {
    const lab = stopLab();
    await started(lab);
    lab.broken.add('cleanupAll');
    await lab.agent.stop().catch(() => undefined);
    const error: unknown = await lab.agent.start().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(CleanupIncompleteError);
    expect((error as Error).message).toBe('Agent cleanup is incomplete; call stop() to retry it');
    expect(lab.order.filter((step) => step === 'claim')).toHaveLength(1);
  });

  it('R-053 a retry resolves with the graceful flag of the first stop', async () => {
    const lab = stopLab(busy);
    await started(lab, ['a']);
    lab.band.post('a', 'work');
    await lab.settle();
    lab.broken.add('cleanupAll');
    await expect(lab.agent.stop()).rejects.toThrow();
    lab.broken.clear();
    expect(await lab.agent.stop(30)).toBe(false);
  });

  it('R-056 lists the failures in the order of the phases', async () => {
    const lab = stopLab();
    lab.adapter.addCleanup(lab.callback('first'));
    lab.adapter.addCleanup(lab.callback('second'));
    await started(lab, ['a', 'b']);
    for (const name of ['first', 'second', 'cleanupAll', 'room b', 'room a']) lab.broken.add(name);
    const error: unknown = await lab.agent.stop().catch((caught: unknown) => caught);
    expect((error as AggregateError).errors.map((one) => (one as Error).message)).toEqual([
      'room a failed',
      'room b failed',
      'cleanupAll failed',
      'second failed',
      'first failed',
    ]);
  });

  it('R-063 R-064 a failed callback keeps no other from running, and what succeeded is not run again', async () => {
    const lab = stopLab();
    for (const name of ['first', 'second', 'third']) lab.adapter.addCleanup(lab.callback(name));
    await started(lab);
    lab.broken.add('second');
    await expect(lab.agent.stop()).rejects.toThrow();
    expect(lab.order).toEqual(['claim', 'cleanupAll', 'third', 'second', 'first']);
    lab.broken.clear();
    lab.order.length = 0;
    await lab.agent.stop();
    expect(lab.order).toEqual(['second', 'release']);
  });

  it('R-062 registered clean-up runs also when cleanupAll failed', async () => {
    const lab = stopLab();
    lab.adapter.addCleanup(lab.callback('registered'));
    await started(lab);
    lab.broken.add('cleanupAll');
    await expect(lab.agent.stop()).rejects.toThrow();
    expect(lab.order).toContain('registered');
  });

  it('a lock that cannot be released stays held, and is released by the next stop', async () => {
    const lab = stopLab();
    await started(lab);
    lab.broken.add('release');
    await expect(lab.agent.stop()).rejects.toThrow('Agent cleanup remains incomplete');
    lab.broken.clear();
    lab.order.length = 0;
    expect(await lab.agent.stop()).toBe(true);
    expect(lab.order).toEqual(['release']);
  });
});

describe('several stops', () => {
  it('R-057 concurrent stops share one attempt; rooms are cleaned once', async () => {
    const lab = stopLab();
    await started(lab, ['a']);
    expect(await Promise.all([lab.agent.stop(5), lab.agent.stop(), lab.agent.stop(9)])).toEqual([true, true, true]);
    expect(lab.order).toEqual(['claim', 'room a', 'cleanupAll', 'release']);
  });

  it('R-058 an immediate stop preempts a graceful one, and both resolve false', async () => {
    const lab = await started(agentLab(busy), ['room']);
    lab.band.post('room', 'work');
    await lab.settle();
    const graceful = lab.agent.stop(600);
    await lab.settle();
    expect(lab.turns[0]!.signal.aborted).toBe(false);
    const immediate = lab.agent.stop();
    expect(await Promise.all([graceful, immediate])).toEqual([false, false]);
  });

  it('a stop during a start waits for it and then stops', async () => {
    const lab = await Promise.resolve(agentLab());
    const starting = lab.agent.start();
    expect(await lab.agent.stop()).toBe(true);
    await starting;
    expect(lab.agent.isRunning).toBe(false);
    expect(lab.band.link.isClosed).toBe(true);
  });

  it('a start that hangs in the adapter is left behind by a stop', async () => {
    const lab = agentLab();
    lab.adapter.onStarted = () => new Promise(() => undefined);
    const starting = lab.agent.start();
    const failed = expect(starting).rejects.toThrow('stopped before it was online');
    const stopping = lab.agent.stop(2);
    await lab.clock.advance(2_000);
    await failed;
    expect(await stopping).toBe(true);
    expect(lab.agent.isRunning).toBe(false);
    expect(lab.clock.pending).toBe(0);
  });

  it('a stop ends a start that does not come to its end, and leaves nothing', async () => {
    for (const [timeout, patience] of [
      [null, 5],
      [20, 20],
    ] as const) {
      const lab = agentLab();
      const me = lab.band.hold('getMe');
      const starting = lab.agent.start();
      const outcome = expect(starting).rejects.toThrow('stopped before it was online');
      await me.met;
      const stopping = lab.agent.stop(timeout);
      await lab.clock.advance(patience * 1_000 - 1);
      await lab.clock.advance(1);
      await outcome;
      expect(await stopping).toBe(true);
      expect(lab.clock.pending).toBe(0);
    }
  });

  it('a start during a stop waits for it and then starts', async () => {
    const lab = await started(agentLab());
    const stopping = lab.agent.stop();
    await lab.agent.start();
    await stopping;
    expect(lab.agent.isRunning).toBe(true);
    expect(lab.band.links).toHaveLength(2);
  });
});

describe('one adapter and its hosts', () => {
  it('R-059 R-060 R-065 takes functions before the host starts, and nothing after', async () => {
    const lab = stopLab();
    expect(() => {
      lab.adapter.addCleanup(Promise.resolve() as never);
    }).toThrow(TypeError);
    await started(lab);
    expect(() => {
      lab.adapter.addCleanup(() => undefined);
    }).toThrow(new BandConfigError('Register cleanup before starting the host'));
  });

  it('R-066 an adapter with registered clean-up serves one host at a time', async () => {
    const first = agentLab();
    first.adapter.addCleanup(() => undefined);
    await first.agent.start();
    const second = agentLab({ agent: { adapter: first.adapter } });
    await expect(second.agent.start()).rejects.toBeInstanceOf(BandConfigError);
    expect(second.band.called('getMe')).toEqual([]);
    expect(first.agent.isRunning).toBe(true);
  });

  it('R-067 after disposal neither the agent nor its adapter starts again, and a fresh pair does', async () => {
    const lab = agentLab();
    lab.adapter.addCleanup(() => undefined);
    await lab.agent.start();
    await lab.agent.stop();
    await expect(lab.agent.start()).rejects.toBeInstanceOf(BandConfigError);
    await expect(agentLab({ agent: { adapter: lab.adapter } }).agent.start()).rejects.toBeInstanceOf(BandConfigError);
    const fresh = agentLab({ agent: { adapter: new GenericAdapter(async () => undefined) } });
    await fresh.agent.start();
    expect(fresh.agent.isRunning).toBe(true);
  });

  it('R-068 without registered clean-up the same agent starts again and works', async () => {
    const lab = await started(agentLab(), ['room']);
    await lab.agent.stop();
    await lab.agent.start();
    lab.band.post('room', 'hello');
    await lab.settle();
    expect(lab.handled).toEqual(['hello']);
  });

  it('R-038 registered clean-up is not run by a failed start, but by the stop after it', async () => {
    const lab = stopLab();
    lab.adapter.addCleanup(lab.callback('registered'));
    lab.band.fail('getMe');
    await expect(lab.agent.start()).rejects.toThrow();
    expect(lab.order).toEqual(['claim', 'release']);
    lab.adapter.addCleanup(lab.callback('one more'));
    expect(await lab.agent.stop()).toBe(true);
    expect(lab.order.slice(2, 4)).toEqual(['one more', 'registered']);
  });
});

describe('graceful shutdown', () => {
  it('R-284 all rooms stop side by side against one deadline', async () => {
    const rooms = ['a', 'b', 'c', 'd', 'e'];
    const lab = await started(agentLab({ onTurn: () => new Promise(() => undefined) }), rooms);
    for (const room of rooms) lab.band.post(room, 'deaf');
    await lab.settle();
    const begun = lab.clock.now();
    let graceful: boolean | null = null;
    const stopping = lab.agent.stop(10).then((result) => (graceful = result));
    await lab.clock.advance(10_999);
    expect(graceful).toBeNull();
    await lab.clock.advance(1);
    await stopping;
    expect(graceful).toBe(false);
    expect(lab.clock.now() - begun).toBe(11_000);
  });

  it('R-285 a cycle that finishes within the timeout is acknowledged normally, and nothing new is begun', async () => {
    let finish!: () => void;
    const lab = await started(
      agentLab({
        onTurn: async ({ tools }) => {
          await new Promise<void>((resolve) => (finish = resolve));
          await tools.noReply();
        },
      }),
      ['room'],
    );
    const first = lab.band.post('room', 'first');
    const second = lab.band.post('room', 'second');
    await lab.settle();
    const stopping = lab.agent.stop(30);
    lab.band.post('room', 'third');
    await lab.settle();
    finish();
    expect(await stopping).toBe(true);
    expect(lab.band.state('room', first)).toBe('processed');
    expect(lab.band.state('room', second)).toBe('pending');
    expect(lab.handled).toEqual(['first']);
  });

  it('R-286 a cancelled message stays actionable and is recovered at the next start', async () => {
    let calls = 0;
    const lab = await started(
      agentLab({
        onTurn: ({ signal, tools }) => {
          calls += 1;
          if (calls > 1) return tools.noReply().then(() => undefined);
          return new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              reject(signal.reason as Error);
            });
          });
        },
      }),
      ['room'],
    );
    const id = lab.band.post('room', 'work');
    await lab.settle();
    await lab.agent.stop();
    expect(lab.band.state('room', id)).toBe('processing');
    await lab.agent.start();
    await lab.settle();
    expect(lab.band.state('room', id)).toBe('processed');
  });

  it('a message that was only claimed when the stop came stays as it is', async () => {
    const lab = await started(agentLab(), ['room']);
    const loading = lab.band.hold('getContext');
    const id = lab.band.post('room', 'work');
    await loading.met;
    expect(await lab.agent.stop(30)).toBe(true);
    expect(lab.handled).toEqual([]);
    expect(lab.band.state('room', id)).toBe('processing');
  });

  it('R-287 a stopped agent holds no timer and no topic', async () => {
    const lab = await started(agentLab({ session: { enableWorkingState: true } }), ['a', 'b']);
    lab.band.post('a', 'hello');
    await lab.settle();
    await lab.agent.stop(5);
    expect(lab.clock.pending).toBe(0);
    expect(lab.band.link.joined.size).toBe(0);
    expect(lab.agent.runtime.rooms).toBeNull();
  });

  it('waits a bounded time for a mark that does not come back', async () => {
    const lab = await started(agentLab(), ['room']);
    const mark = lab.band.hold('markProcessed');
    lab.band.post('room', 'work');
    await mark.met;
    let done = false;
    const stopping = lab.agent.stop().then(() => (done = true));
    await lab.clock.advance(4_999);
    expect(done).toBe(false);
    await lab.clock.advance(1);
    await stopping;
    expect(done).toBe(true);
  });
});

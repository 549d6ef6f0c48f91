import { EventEmitter } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { BandConnectionError } from '../../src/base/band-errors.js';
import { GatewayError } from '../../src/base/errors.js';
import { GracefulShutdown, runWithGracefulShutdown } from '../../src/runtime/graceful-shutdown.js';
import { agentLab, type AgentLabOptions } from '../support/agent-lab.js';

function runLab(options: AgentLabOptions = {}) {
  const target = new EventEmitter();
  const lab = agentLab({ ...options, ports: { process: target, ...options.ports } });
  const stops: (number | null | undefined)[] = [];
  const stop = lab.agent.stop.bind(lab.agent);
  lab.agent.stop = (timeout) => {
    stops.push(timeout);
    return stop(timeout);
  };
  return { ...lab, target, stops, signal: (name: string) => target.emit(name, name) };
}

const busy: AgentLabOptions = {
  onTurn: ({ signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        reject(signal.reason as Error);
      });
    }),
};

describe('Agent.run', () => {
  it('R-070 R-074 starts, waits for a signal, and stops with thirty seconds', async () => {
    for (const signal of ['SIGTERM', 'SIGINT']) {
      const lab = runLab();
      const running = lab.agent.run();
      await lab.settle();
      expect(lab.agent.isRunning).toBe(true);
      lab.signal(signal);
      await running;
      expect(lab.stops).toEqual([30]);
      expect(lab.agent.isRunning).toBe(false);
    }
  });

  it('R-071 shutdownTimeout null cancels running work at once', async () => {
    const lab = runLab(busy);
    lab.band.addRoom('room');
    const running = lab.agent.run({ shutdownTimeout: null });
    await lab.settle();
    lab.band.post('room', 'work');
    await lab.settle();
    lab.signal('SIGTERM');
    await running;
    expect(lab.stops).toEqual([null]);
    expect(lab.turns[0]!.signal.aborted).toBe(true);
  });

  it('R-072 R-081 stops the agent also when the connection ended for good, and reports why', async () => {
    const lab = runLab();
    const running = lab.agent.run();
    const outcome = expect(running).rejects.toThrow(/session\.already_connected/);
    await lab.settle();
    lab.band.link.end(new GatewayError('BAND_SUPERSEDED', { message: 'replaced (session.already_connected)' }));
    await outcome;
    await expect(running).rejects.toBeInstanceOf(BandConnectionError);
    expect(lab.agent.isRunning).toBe(false);
    expect(lab.band.links).toHaveLength(1);
  });

  it('R-075 R-076 leaves the process as it was, on every path, and installs nothing when told so', async () => {
    const listeners = (target: EventEmitter) => ['SIGTERM', 'SIGINT'].map((name) => target.listenerCount(name));
    const lab = runLab();
    const mine = vi.fn();
    lab.target.on('SIGTERM', mine);
    const running = lab.agent.run();
    await lab.settle();
    expect(listeners(lab.target)).toEqual([2, 1]);
    lab.signal('SIGTERM');
    await running;
    expect(listeners(lab.target)).toEqual([1, 0]);
    expect(mine).toHaveBeenCalledOnce();

    const failing = runLab();
    failing.band.fail('getMe');
    await expect(failing.agent.run()).rejects.toThrow();
    expect(listeners(failing.target)).toEqual([0, 0]);

    const without = runLab();
    const runningWithout = without.agent.run({ installSignalHandlers: false });
    await without.settle();
    expect(listeners(without.target)).toEqual([0, 0]);
    await without.agent.stop();
    await runningWithout;
  });

  it('R-080 a second signal during a graceful stop makes it immediate', async () => {
    const lab = runLab(busy);
    lab.band.addRoom('room');
    const running = lab.agent.run();
    await lab.settle();
    lab.band.post('room', 'work');
    await lab.settle();
    lab.signal('SIGINT');
    await lab.settle();
    expect(lab.turns[0]!.signal.aborted).toBe(false);
    lab.signal('SIGINT');
    await running;
    expect(lab.turns[0]!.signal.aborted).toBe(true);
  });

  it('R-082 a transient disconnect does not end the wait', async () => {
    const lab = runLab();
    let ended = false;
    const running = lab.agent.run().then(() => (ended = true));
    await lab.settle();
    lab.band.link.drop();
    await lab.clock.advance(300_000);
    lab.band.link.reconnect();
    await lab.settle();
    expect(ended).toBe(false);
    lab.signal('SIGTERM');
    await running;
  });

  it('a signal during the start ends it, and run returns', async () => {
    const lab = runLab();
    const me = lab.band.hold('getMe');
    const running = lab.agent.run();
    await me.met;
    lab.signal('SIGTERM');
    await running;
    expect(lab.agent.isRunning).toBe(false);
    expect(lab.band.links).toEqual([]);
  });

  it('an agent that was superseded takes no new work', async () => {
    const lab = runLab();
    lab.band.addRoom('room');
    await lab.agent.start();
    await lab.settle();
    lab.band.link.end(new GatewayError('BAND_SUPERSEDED'));
    await lab.settle();
    lab.band.post('room', 'for the other one', { push: false });
    await lab.clock.advance(600_000);
    expect(lab.handled).toEqual([]);
    expect(await lab.agent.stop()).toBe(true);
  });
});

describe('Agent.runForever', () => {
  it('R-073 R-074 blocks until a signal stops the agent', async () => {
    const lab = runLab();
    await lab.agent.start();
    let ended = false;
    const waiting = lab.agent.runForever().then(() => (ended = true));
    await lab.clock.advance(3_600_000);
    expect(ended).toBe(false);
    lab.signal('SIGTERM');
    await waiting;
    expect(lab.agent.isRunning).toBe(false);
    expect(lab.target.listenerCount('SIGTERM')).toBe(0);
  });

  it('R-077 returns normally when the host stops the agent', async () => {
    const lab = runLab();
    await lab.agent.start();
    const waiting = lab.agent.runForever({ installSignalHandlers: false });
    await lab.agent.stop();
    await waiting;
  });

  it('returns at once before a start', async () => {
    await runLab().agent.runForever();
  });

  it('R-081 rejects when the platform ended the connection', async () => {
    const lab = runLab();
    await lab.agent.start();
    const waiting = lab.agent.runForever();
    const outcome = expect(waiting).rejects.toBeInstanceOf(BandConnectionError);
    lab.band.link.end(new GatewayError('BAND_SUPERSEDED'));
    await outcome;
    await lab.agent.stop();
  });

  it('nested agents add and remove their own listeners', async () => {
    const first = runLab();
    const second = runLab({ ports: { process: first.target } });
    await Promise.all([first.agent.start(), second.agent.start()]);
    const waiting = [first.agent.runForever(), second.agent.runForever()];
    expect(first.target.listenerCount('SIGTERM')).toBe(2);
    await first.agent.stop();
    await waiting[0];
    expect(first.target.listenerCount('SIGTERM')).toBe(1);
    await second.agent.stop();
    await waiting[1];
    expect(first.target.listenerCount('SIGTERM')).toBe(0);
  });
});

describe('the scope form', () => {
  it('R-078 starts on enter and stops on exit, also when the body throws', async () => {
    const lab = runLab();
    {
      await using agent = await lab.agent.enter();
      expect(agent).toBe(lab.agent);
      expect(agent.isRunning).toBe(true);
    }
    expect(lab.agent.isRunning).toBe(false);
    const other = runLab();
    const body = async () => {
      await using agent = await other.agent.enter();
      throw new Error(agent.isRunning ? 'body' : 'not running');
    };
    await expect(body()).rejects.toThrow('body');
    expect(other.agent.isRunning).toBe(false);
  });

  it('R-079 stops with the timeout given to run, an explicit null kept, else with thirty seconds', async () => {
    const plain = runLab();
    await plain.agent.start();
    await plain.agent[Symbol.asyncDispose]();
    expect(plain.stops).toEqual([30]);
    for (const timeout of [null, 7]) {
      const lab = runLab();
      const running = lab.agent.run({ shutdownTimeout: timeout });
      await lab.settle();
      await lab.agent[Symbol.asyncDispose]();
      await running;
      expect(lab.stops[0]).toBe(timeout);
    }
  });
});

describe('GracefulShutdown', () => {
  it('stops the agent at SIGINT, SIGTERM and SIGHUP, tells who asked, and hurries at the second', async () => {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
      const lab = runLab(busy);
      lab.band.addRoom('room');
      const seen: string[] = [];
      await lab.agent.start();
      await lab.settle();
      lab.band.post('room', 'work');
      await lab.settle();
      const shutdown = new GracefulShutdown(lab.agent, {
        process: lab.target,
        onSignal: (signal) => seen.push(signal),
      });
      const waiting = shutdown.wait();
      lab.signal(name);
      await lab.settle();
      lab.signal(name);
      lab.signal(name);
      expect(await waiting).toBe(false);
      expect(seen).toEqual([name]);
      expect(lab.stops).toEqual([30, null]);
      expect(lab.target.listenerCount(name)).toBe(0);
    }
  });

  it('runWithGracefulShutdown starts, waits and leaves the agent stopped', async () => {
    const lab = runLab();
    const running = runWithGracefulShutdown(lab.agent, { process: lab.target, timeout: 3 });
    await lab.settle();
    expect(lab.agent.isRunning).toBe(true);
    lab.signal('SIGTERM');
    await running;
    expect(lab.stops[0]).toBe(3);
    expect(lab.agent.isRunning).toBe(false);
  });
});

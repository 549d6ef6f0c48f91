import { describe, expect, it } from 'vitest';
import { inOrder, type Lifecycle } from '../../src/gateway/lifecycle.js';

function part(name: string, said: string[], fails: { start?: Error; stop?: Error } = {}): Lifecycle {
  return {
    name,
    async start() {
      said.push(`start ${name}`);
      if (fails.start) throw fails.start;
    },
    async stop() {
      said.push(`stop ${name}`);
      if (fails.stop) throw fails.stop;
    },
  };
}

describe('inOrder', () => {
  it('starts left to right and stops right to left', async () => {
    const said: string[] = [];
    const whole = inOrder('all', [part('a', said), part('b', said)]);
    await whole.start();
    await whole.stop();
    expect(said).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('takes down what had started when one part does not start, and throws that error', async () => {
    const said: string[] = [];
    const error = new Error('no');
    const whole = inOrder('all', [part('a', said), part('b', said, { start: error }), part('c', said)]);
    await expect(whole.start()).rejects.toBe(error);
    expect(said).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  it('stops the others although one does not stop', async () => {
    const said: string[] = [];
    const whole = inOrder('all', [part('a', said), part('b', said, { stop: new Error('stuck') })]);
    await whole.start();
    await expect(whole.stop()).rejects.toThrow(/did not stop cleanly/);
    expect(said.at(-1)).toBe('stop a');
  });
});

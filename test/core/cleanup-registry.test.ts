import { describe, expect, it } from 'vitest';
import { BandConfigError } from '../../src/base/band-errors.js';
import { CleanupRegistry } from '../../src/core/cleanup-registry.js';

const host = () => ({});

describe('CleanupRegistry', () => {
  it('R-061 runs callbacks last registered first, one after the other', async () => {
    const registry = new CleanupRegistry();
    const order: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      registry.add(async () => {
        order.push(`${name} begins`);
        await Promise.resolve();
        order.push(`${name} ends`);
      });
    }
    expect(await registry.run()).toEqual([]);
    expect(order).toEqual(['c begins', 'c ends', 'b begins', 'b ends', 'a begins', 'a ends']);
  });

  it('R-059 one function registered twice is two entries', async () => {
    const registry = new CleanupRegistry();
    let runs = 0;
    const callback = () => {
      runs += 1;
    };
    registry.add(callback);
    registry.add(callback);
    await registry.run();
    expect(runs).toBe(2);
  });

  it('R-063 R-064 a failed callback keeps none from running and is the only one that runs again', async () => {
    const registry = new CleanupRegistry();
    const ran: string[] = [];
    let broken = true;
    registry.add(() => void ran.push('first'));
    registry.add(() => {
      ran.push('broken');
      if (broken) throw new Error('not yet');
    });
    registry.add(() => Promise.resolve(void ran.push('last')));
    expect(await registry.run()).toEqual([new Error('not yet')]);
    expect([ran, registry.pending]).toEqual([['last', 'broken', 'first'], 1]);
    broken = false;
    expect(await registry.run()).toEqual([]);
    expect([ran, registry.pending]).toEqual([['last', 'broken', 'first', 'broken'], 0]);
    expect(await registry.run()).toEqual([]);
    expect(ran).toHaveLength(4);
  });

  it.each([[Promise.resolve()], [undefined], [null], ['close'], [{ close: () => undefined }]])(
    'R-060 %j is no function and is refused',
    (value) => {
      expect(() => {
        new CleanupRegistry().add(value as never);
      }).toThrow(TypeError);
    },
  );

  it('R-065 registering is refused while a host has the adapter, and allowed again after a start that failed', () => {
    const registry = new CleanupRegistry();
    const owner = host();
    registry.host(owner);
    expect(() => {
      registry.add(() => undefined);
    }).toThrow(new BandConfigError('Register cleanup before starting the host'));
    registry.unhost(owner);
    registry.add(() => undefined);
    expect(registry.pending).toBe(1);
  });

  it('R-066 with callbacks a second host is refused while the first has the adapter', () => {
    const registry = new CleanupRegistry();
    registry.add(() => undefined);
    const [first, second] = [host(), host()];
    registry.host(first);
    registry.host(first);
    expect(() => {
      registry.host(second);
    }).toThrow(BandConfigError);
    registry.unhost(first);
    registry.host(second);
    expect(() => {
      registry.host(first);
    }).toThrow(BandConfigError);
  });

  it('R-066 without callbacks an adapter may have several hosts', () => {
    const registry = new CleanupRegistry();
    registry.host(host());
    expect(() => {
      registry.host(host());
    }).not.toThrow();
  });

  it('R-067 once its callbacks ran the adapter is refused for good', async () => {
    const registry = new CleanupRegistry();
    registry.add(() => undefined);
    const owner = host();
    registry.host(owner);
    await registry.run();
    registry.unhost(owner);
    expect(registry.disposed).toBe(true);
    expect(() => {
      registry.host(owner);
    }).toThrow(BandConfigError);
  });

  it('R-068 an adapter without callbacks can be hosted again', async () => {
    const registry = new CleanupRegistry();
    const owner = host();
    registry.host(owner);
    await registry.run();
    registry.unhost(owner);
    registry.host(owner);
    expect(registry.disposed).toBe(false);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatMicros, microsOf, Timeline } from '../../../src/sandbox/world/timeline.js';

describe('moments', () => {
  it('never repeat or go back, whatever the clock says', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 4_000_000_000_000 }), { minLength: 2 }), (times) => {
        const rest = [...times];
        const timeline = new Timeline({ now: () => rest.shift() ?? 0 });
        const moments = times.map(() => timeline.next());
        for (const [index, moment] of moments.entries())
          if (index > 0) expect(moment > String(moments[index - 1])).toBe(true);
      }),
    );
  });

  it('have microseconds and can be read back', () => {
    expect(formatMicros(1_763_378_410_284_136)).toBe('2025-11-17T11:20:10.284136Z');
    expect(microsOf('2025-11-17T11:20:10.284136Z')).toBe(1_763_378_410_284_136);
  });

  it('are spelled by what they are, whatever was spelled before', () => {
    const spelled = [284_998, 284_999, 285_000, 284_999].map((micros) => formatMicros(1_763_378_410_000_000 + micros));
    const fractions = ['284998', '284999', '285000', '284999'];
    expect(spelled).toEqual(fractions.map((fraction) => `2025-11-17T11:20:10.${fraction}Z`));
  });

  it('go on after one that has passed', () => {
    const timeline = new Timeline({ now: () => 0 });
    timeline.passed('2025-11-17T11:20:10.284136Z');
    expect(timeline.next()).toBe('2025-11-17T11:20:10.284137Z');
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eventText } from '../../../src/runtime/tools/event-text.js';

const LIMIT = 16_384;

describe('eventText', () => {
  it('R-267 text within the limit stays as it is', () => {
    for (const text of ['', 'short', 'x'.repeat(LIMIT)]) expect(eventText(text)).toBe(text);
  });

  it('R-267 longer text keeps its head and tail around a marker and fills the limit exactly', () => {
    const text = `HEAD${'x'.repeat(20_000)}TAIL`;
    const shortened = eventText(text);
    expect(shortened).toHaveLength(LIMIT);
    expect(shortened.startsWith('HEADxxx')).toBe(true);
    expect(shortened.endsWith('xxxTAIL')).toBe(true);
    expect(shortened).toContain('x\n… [shortened] …\nx');
  });

  it.each([LIMIT + 1, 99_999, 100_000, 1_000_003])('R-267 %i characters end at the limit', (length) => {
    const shortened = eventText('y'.repeat(length));
    expect(shortened).toHaveLength(LIMIT);
  });

  it('R-267 no character is cut in two', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 0, maxLength: 40 }), fc.nat(60), (text, pad) => {
        const long = `${'a'.repeat(pad)}${`${text}👩‍🚀`.repeat(40)}`;
        const shortened = eventText(long, 120);
        expect(shortened.length).toBeLessThanOrEqual(120);
        expect(shortened).not.toMatch(/\p{Surrogate}/u);
      }),
      { numRuns: 200 },
    );
  });
});

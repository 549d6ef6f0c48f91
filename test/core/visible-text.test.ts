import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasVisibleText } from '../../src/core/visible-text.js';

const BLANKS = [
  '',
  ' ',
  '\t\n\r',
  '\u00a0\u2003\u3000',
  '\u200b',
  '\u200d\u2060',
  '\ufeff',
  '\u00ad',
  '\u2800',
  '\u3164',
];

describe('hasVisibleText', () => {
  it.each(BLANKS)('%j is blank', (text) => {
    expect(hasVisibleText(text)).toBe(false);
  });

  it.each(['a', ' . ', '\u200bx', '👍', '中', '-', '\u200b\u0301a'])('%j can be seen', (text) => {
    expect(hasVisibleText(text)).toBe(true);
  });

  it('blanks stay blank together, and one letter among them is seen', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...BLANKS)), (parts) => {
        const blank = parts.join('');
        return !hasVisibleText(blank) && hasVisibleText(`${blank}x${blank}`);
      }),
    );
  });
});

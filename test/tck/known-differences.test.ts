import { describe, expect, it } from 'vitest';
import { failuresIn, judge, KNOWN_DIFFERENCES } from './known-differences.js';

const KNOWN = KNOWN_DIFFERENCES[0]!;

describe('the verdict on a run of the compliance suite', () => {
  it('reads the failed and the broken tests out of a report', () => {
    const output =
      'F.\nFAILED tests/a.py::test_one - assert 1\nERROR tests/b.py::test_two\n1 failed, FAILED inside a line';
    expect(failuresIn(output)).toEqual(['tests/a.py::test_one', 'tests/b.py::test_two']);
  });

  it('lets a known difference pass, by its name and for its suite only', () => {
    expect(judge('0.3', 1, [KNOWN.test])).toEqual({ passed: true, notes: [expect.stringContaining(KNOWN.reason)] });
    expect(judge('1.0', 1, [KNOWN.test]).passed).toBe(false);
    expect(judge('0.3', 1, [`${KNOWN.test}_too`]).passed).toBe(false);
  });

  it.each([
    ['another failure beside it', 1, [KNOWN.test, 'tests/a.py::test_one']],
    ['no test named', 1, []],
    ['a run that broke off', 2, [KNOWN.test]],
    ['a run that was killed', null, [KNOWN.test]],
  ])('does not pass with %s', (_name, code, failures) => {
    expect(judge('0.3', code, failures).passed).toBe(false);
  });
});

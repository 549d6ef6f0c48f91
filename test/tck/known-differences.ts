/** A test of the suite that the product does not pass on purpose. */
export interface KnownDifference {
  readonly suite: '1.0' | '0.3';
  /** As pytest names it. */
  readonly test: string;
  readonly reason: string;
}

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    suite: '0.3',
    test: 'tests/optional/quality/test_task_state_quality.py::test_task_state_transitions',
    reason:
      'It sends without `blocking` and wants the task back before anybody worked on it. 0.3 does not say what an absent ' +
      '`blocking` means; here it means to wait, as the default of 1.0 does, so the task comes back with the peer’s question.',
  },
];

export interface Verdict {
  readonly passed: boolean;
  /** Lines for the end of the report. */
  readonly notes: readonly string[];
}

/** The tests that a pytest run reports as failed or broken. */
export function failuresIn(output: string): string[] {
  return [...output.matchAll(/^(?:FAILED|ERROR) (\S+)/gm)].map(([, name = '']) => name);
}

/**
 * Whether a run is as it should be: without a failure, or with exactly such failures as are known. A run that ended badly
 * without naming a test is never excused.
 */
export function judge(
  suite: KnownDifference['suite'],
  exitCode: number | null,
  failures: readonly string[],
  known: readonly KnownDifference[] = KNOWN_DIFFERENCES,
): Verdict {
  if (exitCode === 0) return { passed: true, notes: [] };
  const notes: string[] = [];
  let passed = exitCode === 1 && failures.length > 0;
  for (const test of failures) {
    const difference = known.find((one) => one.suite === suite && one.test === test);
    if (!difference) passed = false;
    notes.push(difference ? `known difference: ${test}\n  ${difference.reason}` : `failed: ${test}`);
  }
  if (failures.length === 0) notes.push(`ended with ${String(exitCode)} and names no test`);
  return { passed, notes };
}

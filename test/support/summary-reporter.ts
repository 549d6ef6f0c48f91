import type { Reporter, TestModule } from 'vitest/node';

/** One last line that says how many tests passed, failed and were skipped. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      if (module.errors().length > 0) count.failed += 1;
      for (const test of module.children.allTests()) count[test.result().state] += 1;
    }
    const { passed, failed, skipped, pending } = count;
    console.log(`${passed} passed, ${failed + pending} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  }
}

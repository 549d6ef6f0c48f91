import type { Core } from './core.js';
import type { Faults } from './faults.js';

/** What a test must not have done, and what it says it does on purpose. */
export class Objections {
  readonly #core: Core;
  readonly #faults: Faults;
  readonly #expectedPings = new Set<string>();
  readonly #allowed: RegExp[] = [];

  constructor(core: Core, faults: Faults) {
    this.#core = core;
    this.#faults = faults;
  }

  expectPing(id: string): void {
    this.#expectedPings.add(id);
  }

  allow(pattern: RegExp): void {
    this.#allowed.push(pattern);
  }

  /** Throws when a limit was broken, a token leaked, somebody was paged unexpectedly, or an armed fault never met. */
  check(): void {
    const core = this.#core;
    const allowed = (line: string) => this.#allowed.some((pattern) => pattern.test(line));
    const problems = [
      ...core.violations.map((line) => `violation: ${line}`),
      ...core.leaks.map((line) => `leak: ${line}`),
      ...core.unknownMethods.map((line) => `unknown method: ${line}`),
      ...core.pings
        .filter((ping) => !this.#expectedPings.has(ping.id))
        .map((ping) => `unexpected ping: ${ping.kind} ${ping.id}`),
      ...this.#faults.unmet().map((line) => `fault never met: ${line}`),
    ].filter((line) => !allowed(line));
    if (problems.length > 0) throw new Error(`The Slack double objects:\n${problems.join('\n')}`);
  }
}

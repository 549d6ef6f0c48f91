import { GatewayError } from '../base/errors.js';

/** Where a value came from, in words: `gateway.yaml:12:5`, `SLACK_PORT`, `--http-port`, `default`. */
export interface Origin {
  readonly kind: 'flag' | 'environment' | 'dotenv' | 'file' | 'default';
  /** The flag, the variable, or the file's path; empty for a default. */
  readonly name: string;
  readonly line?: number;
  readonly column?: number;
}

export function originText(origin: Origin): string {
  switch (origin.kind) {
    case 'flag':
      return origin.name;
    case 'environment':
      return `${origin.name} (environment)`;
    case 'dotenv':
      return `${origin.name} (.env)`;
    case 'file':
      return origin.line === undefined ? origin.name : `${origin.name}:${origin.line}:${origin.column ?? 1}`;
    case 'default':
      return 'default';
  }
}

/** One thing that is wrong with the settings. */
export interface Problem {
  /** The setting, e.g. `agents.helpdesk.slack.port`; null for a problem of a whole file or command line. */
  readonly key: string | null;
  readonly message: string;
  readonly origin: Origin | null;
}

export function problemText({ key, message, origin }: Problem): string {
  return [origin && originText(origin), key, message].filter((part) => part !== null).join(': ');
}

/** Wrong settings: every problem found, not only the first. `code` is `CONFIG_INVALID`. */
export class ConfigError extends GatewayError {
  readonly problems: readonly Problem[];

  constructor(found: readonly Problem[]) {
    const problems = [...found].sort(byPlace);
    const count = problems.length === 1 ? 'One problem' : `${problems.length} problems`;
    const lines = problems.map((problem) => `  ${problemText(problem)}`);
    super('CONFIG_INVALID', { message: `${count} with the settings:\n${lines.join('\n')}` });
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

// Flags and variables first, then the file from top to bottom.
function byPlace(a: Problem, b: Problem): number {
  return (a.origin?.line ?? 0) - (b.origin?.line ?? 0) || (a.origin?.column ?? 0) - (b.origin?.column ?? 0);
}

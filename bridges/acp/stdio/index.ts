import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import { optionsFromSnake } from '../../../src/config/setting.js';
import { acpSettings } from '../settings.js';
import type { Credentials } from './owner.js';
import { runStandalone } from './standalone.js';

/** The process as this command sees it. */
export interface StdioWorld {
  readonly input: Readable;
  /** Takes frames, and nothing else. */
  readonly output: Writable;
  /** Given values of the group `acp` in snake_case. */
  readonly values: unknown;
  /** Null when there are none; `fresh` reads their sources anew. */
  readonly credentials: (fresh?: boolean) => Promise<Credentials | null>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly version: string;
  /** Ends everything. */
  readonly signal: AbortSignal;
}

/**
 * Serves one editor on a pair of pipes until it is gone or `signal` aborts: attached to the process that runs the
 * agent on this host, or running the agent itself.
 *
 * @throws {ValidationError} for values that the group does not have
 */
export async function serveStdio({ values, ...world }: StdioWorld): Promise<void> {
  await runStandalone({ ...world, options: optionsFromSnake(acpSettings, values) });
}

import type { BridgeTable } from '../gateway/bridge-table.js';
import type { CliWorld, ExitCode } from './world.js';

/** One command of the program. */
export interface Command {
  /** The words behind the program's name, e.g. `start [--config FILE]`. */
  readonly usage: string;
  /** One line for the overview. */
  readonly summary: string;
  run(args: readonly string[], world: CliWorld, bridges: BridgeTable): Promise<ExitCode>;
  /** The command's own `--help`, without its usage line. */
  help(bridges: BridgeTable): Promise<string>;
}

/** Prints wrong use and says where help is. */
export function wrongUse(world: CliWorld, command: string, problems: readonly string[]): ExitCode {
  for (const problem of problems) world.err(`band-gateway ${command}: ${problem}\n`);
  world.err(`Run band-gateway ${command} --help to see what it takes.\n`);
  return 2;
}

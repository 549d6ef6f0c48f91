import { toError } from '../base/errors.js';
import { nearest } from '../config/nearest.js';
import type { BridgeTable } from '../gateway/bridge-table.js';
import type { Command } from './command.js';
import { packageVersion } from './version.js';
import type { CliWorld, ExitCode } from './world.js';

/** Every command, loaded when it is used. */
const COMMANDS: Readonly<Record<string, { readonly summary: string; load(): Promise<Command> }>> = {
  start: {
    summary: 'run every configured agent; without settings: sandbox mode',
    load: async () => (await import('./start.js')).startCommand,
  },
  sandbox: {
    summary: 'run the embedded platform alone',
    load: async () => (await import('./sandbox.js')).sandboxCommand,
  },
  acp: {
    summary: 'serve an editor on standard input and output (ACP)',
    load: async () => (await import('./acp-command.js')).acpCommand,
  },
  check: {
    summary: 'look at settings, credentials and connections, without starting',
    load: async () => (await import('./check.js')).checkCommand,
  },
  dead: {
    summary: 'list, retry or drop what could not be delivered',
    load: async () => (await import('./dead.js')).deadCommand,
  },
  manifest: {
    summary: 'print the manifest of a Slack app',
    load: async () => (await import('./manifest.js')).manifestCommand,
  },
  config: {
    summary: 'print the settings in force, their schema, or an example file',
    load: async () => (await import('./config.js')).configCommand,
  },
};

/** Routes a command line to its command. @returns the exit code: 0 done, 1 failed while running, 2 wrong use */
export async function main(argv: readonly string[], world: CliWorld, bridges: BridgeTable): Promise<ExitCode> {
  const [name, ...args] = argv;
  const words = untilDoubleDash(argv);
  if (words.includes('--version') || name === '-v') {
    world.out(`${packageVersion()}\n`);
    return 0;
  }
  const wantsHelp = words.includes('--help') || words.includes('-h');
  if (name === undefined || name.startsWith('-')) {
    (wantsHelp ? world.out : world.err)(overview());
    return wantsHelp ? 0 : 2;
  }
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!entry) {
    const meant = nearest(name, Object.keys(COMMANDS));
    const hint = meant === null ? '' : `; did you mean ${meant}?`;
    world.err(`band-gateway: there is no command ${name}${hint}\n\n${overview()}`);
    return 2;
  }
  try {
    const command = await entry.load();
    if (!wantsHelp) return await command.run(args, world, bridges);
    world.out(`Usage: band-gateway ${command.usage}\n\n${command.summary}\n${await command.help(bridges)}\n`);
    return 0;
  } catch (error) {
    world.err(`band-gateway ${name}: ${toError(error).message}\n`);
    return 1;
  }
}

function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    'Usage: band-gateway <command> [flags]',
    '',
    ...lines,
    '',
    '  --help, --version   also after a command',
    '',
  ].join('\n');
}

function untilDoubleDash(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return end === -1 ? argv : argv.slice(0, end);
}

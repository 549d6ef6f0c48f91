import { ConfigError } from '../config/problems.js';
import { flagHelp } from '../config/describe.js';
import { loadConfig, readDotenv, type Config, type DefaultAgent } from '../config/load.js';
import { namedSettings, type NamedSetting } from '../config/names.js';
import type { SettingsGroup } from '../config/setting.js';
import { agentSettings, serviceSettings } from '../config/settings.js';
import type { BridgeTable } from '../gateway/bridge-table.js';
import { parseArgs, type CommandFlag, type ParsedArgs } from './args.js';
import { wrongUse } from './command.js';
import type { CliWorld, ExitCode } from './world.js';

export const CONFIG_FLAG: CommandFlag = {
  name: 'config',
  value: 'FILE',
  help: 'The settings file; default GATEWAY_CONFIG, or gateway.yaml in the working folder.',
};

/** What a command does with its words and settings, or the exit code that says they are wrong. */
export type Loaded =
  | {
      readonly kind: 'loaded';
      readonly config: Config;
      readonly args: ParsedArgs;
      /** Reads all sources again. @throws {ConfigError} that names every problem */
      readonly reread: () => Promise<Config>;
    }
  | { readonly kind: 'refused'; readonly exitCode: ExitCode };

export interface LoadArgs {
  readonly command: string;
  readonly args: readonly string[];
  readonly world: CliWorld;
  readonly bridges: BridgeTable;
  readonly own?: readonly CommandFlag[];
  readonly maxPositionals?: number;
  readonly defaultAgent?: DefaultAgent;
}

/** Reads a command line and all settings; prints every problem of either. */
export async function loadFromArgs(request: LoadArgs): Promise<Loaded> {
  const { command, world, bridges, own = [], maxPositionals = 0 } = request;
  const args = await parseSettingArgs(request.args, bridges, [CONFIG_FLAG, ...own]);
  const extra = args.positionals.slice(maxPositionals).map((word) => `${word} is one word too many`);
  // Behind a flag that nobody knows, a word may have been its value.
  const problems = args.problems.length > 0 ? args.problems : extra;
  if (problems.length > 0) return { kind: 'refused', exitCode: wrongUse(world, command, problems) };
  const file = args.own['config'];
  const given = { ...world.env };
  const read = () =>
    loadConfig({
      env: given,
      dotenv: readDotenv(world.cwd),
      cwd: world.cwd,
      flags: args.settings,
      file: typeof file === 'string' ? file : null,
      bridgeNames: Object.keys(bridges),
      bridgeGroups: async (name) => (await bridges[name]?.settings()) ?? [],
      defaultAgent: request.defaultAgent ?? null,
    });
  // Parts that read the environment themselves, as documented for the library, see `.env` too.
  for (const [name, value] of Object.entries(readDotenv(world.cwd))) world.env[name] ??= value;
  try {
    return { kind: 'loaded', config: await read(), args, reread: read };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    world.err(`${error.message}\n`);
    return { kind: 'refused', exitCode: 2 };
  }
}

/** Every setting that can be a flag, by heading. */
export async function settingsByHeading(bridges: BridgeTable): Promise<ReadonlyMap<string, readonly NamedSetting[]>> {
  const headings = new Map<string, readonly NamedSetting[]>([
    ['Service', namedSettings(serviceSettings.tree)],
    ['The agent, when no file names any', namedSettings(agentSettings.tree)],
  ]);
  for (const group of await groupsOf(bridges)) {
    headings.set(`Group ${group.name} of that agent`, namedSettings(group.tree, [group.name]));
  }
  return headings;
}

/** Help lines of every setting flag. */
export async function settingsHelp(bridges: BridgeTable): Promise<string> {
  const lines: string[] = [];
  for (const [heading, settings] of await settingsByHeading(bridges))
    lines.push('', `${heading}:`, ...flagHelp(settings));
  return lines.join('\n');
}

/** The groups of all bridges, each once. */
export async function groupsOf(bridges: BridgeTable): Promise<readonly SettingsGroup[]> {
  const lists = await Promise.all(Object.values(bridges).map((door) => door.settings()));
  return [...new Map(lists.flat().map((group) => [group.name, group])).values()];
}

/** What the example file shows: an entry for each bridge. */
export async function exampleBridges(
  bridges: BridgeTable,
): Promise<{ readonly name: string; readonly groups: readonly SettingsGroup[] }[]> {
  return await Promise.all(
    Object.entries(bridges).map(async ([name, door]) => ({ name, groups: await door.settings() })),
  );
}

async function parseSettingArgs(
  args: readonly string[],
  bridges: BridgeTable,
  own: readonly CommandFlag[],
): Promise<ParsedArgs> {
  const settings = [...namedSettings(serviceSettings.tree), ...namedSettings(agentSettings.tree)];
  const parsed = parseArgs(args, { settings, own });
  if (parsed.problems.length === 0) return parsed;
  // Bridges are loaded only when a flag may be theirs.
  const groups = await groupsOf(bridges);
  const more = groups.flatMap((group) => namedSettings(group.tree, [group.name]));
  return parseArgs(args, { settings: [...settings, ...more], own });
}

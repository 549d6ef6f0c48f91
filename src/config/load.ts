import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse as parseDotenv } from 'dotenv';
import { planAgents, readAgent, type AgentDraft } from './agents.js';
import {
  collect,
  refuseUnknownKeys,
  validate,
  type FilePart,
  type FlagValue,
  type SettledValue,
  type Sources,
} from './collect.js';
import { namedSettings } from './names.js';
import { ConfigError, type Problem } from './problems.js';
import { optionsFromSnake, type OptionsOf, type SettingsGroup } from './setting.js';
import { agentSettings, serviceSettings } from './settings.js';
import { parseYamlFile, type YamlFile } from './yaml-file.js';

/** The groups that may stand in an agent's entry, by the name of its bridge: the bridge's own first. */
export type BridgeGroups = (bridge: string) => Promise<readonly SettingsGroup[]>;

/** An agent that is used when neither a file nor the environment names one. */
export interface DefaultAgent {
  readonly name: string;
  readonly values: Readonly<Record<string, unknown>>;
  /** Values by group that stand in for missing ones. */
  readonly groups: Readonly<Record<string, Record<string, unknown>>>;
}

export interface ConfigRequest {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly flags?: readonly FlagValue[];
  /**
   * Named with `--config`; else `GATEWAY_CONFIG`, else `gateway.yaml` in the working folder when there is one. False:
   * no file is read.
   */
  readonly file?: string | false | null;
  /** What `.env` says; only the command line reads it. */
  readonly dotenv?: Readonly<Record<string, string | undefined>>;
  readonly bridgeGroups: BridgeGroups;
  readonly bridgeNames: readonly string[];
  readonly defaultAgent?: DefaultAgent | null;
  /** Stands in for a missing `BAND_BRIDGE`, for a command that runs one bridge. */
  readonly bridge?: string;
}

export type ServiceOptions = OptionsOf<typeof serviceSettings>;
export type AgentOptions = OptionsOf<typeof agentSettings>;

/** One Agent to host. */
export interface AgentEntry {
  readonly name: string;
  readonly options: AgentOptions;
  /** Given values of the bridge's groups in snake_case, secrets resolved, for `optionsFromSnake`. */
  readonly groups: Readonly<Record<string, unknown>>;
}

export interface Config {
  /** Where the agents come from: a file, the environment and flags, or nowhere (`default`). */
  readonly mode: 'file' | 'environment' | 'default';
  readonly file: string | null;
  readonly service: ServiceOptions;
  readonly agents: readonly AgentEntry[];
  /** Every setting with its value and where that came from, in the order of the declarations. */
  readonly settled: readonly SettledValue[];
  /** Every secret among the values. */
  readonly secrets: readonly string[];
  /** Full names of the files that secrets came from. */
  readonly secretFiles: readonly string[];
}

/**
 * Brings all settings together: flags, then environment, then `.env`, then the file, then defaults.
 *
 * @throws {ConfigError} that names every problem with its place
 */
export async function loadConfig(request: ConfigRequest): Promise<Config> {
  const problems: Problem[] = [];
  const secrets = new Set<string>();
  const dotenv = request.dotenv ?? {};
  const sources: Sources = { flags: request.flags ?? [], env: request.env, dotenv, cwd: request.cwd };
  const env = { ...dotenv, ...request.env };
  const secretFiles = new Set<string>();
  const shared = {
    env,
    onSecret: (secret: string) => secrets.add(secret),
    onSecretFile: (full: string) => secretFiles.add(full),
    problems,
  };

  const found = readConfigFile(request, env, problems);
  const top = found && filePart(found, []);
  if (top) refuseUnknownKeys(serviceSettings.tree, top, ['agents'], problems);
  const service = collect({ settings: namedSettings(serviceSettings.tree), sources, part: top, ...shared });
  validate(serviceSettings, service.values, service.settled, top, { key: '', path: [] }, problems);

  const plan = planAgents(request, sources, found, problems);
  const settled: SettledValue[] = [...service.settled];
  const agents: AgentDraft[] = [];
  for (const entry of plan.entries) {
    const read = await readAgent(entry, request, shared);
    settled.push(...read.settled);
    if (read.agent) agents.push(read.agent);
  }
  refuseUselessFlags(sources.flags, settled, plan.mode, problems);
  refuseSharedIdentities(agents, problems);
  if (problems.length > 0) throw new ConfigError(problems);

  return {
    mode: plan.mode,
    file: found?.name ?? null,
    service: optionsFromSnake(serviceSettings, service.values),
    agents: agents.map(({ name, values, groups }) => ({
      name,
      options: optionsFromSnake(agentSettings, values),
      groups,
    })),
    settled,
    secrets: [...secrets],
    secretFiles: [...secretFiles],
  };
}

/** The settings file that was found, parsed. */
export interface ConfigFile {
  readonly name: string;
  readonly folder: string;
  readonly file: YamlFile;
}

/** The part of the file at a path, for `collect`. */
export function filePart({ file, folder }: ConfigFile, at: readonly string[]): FilePart {
  let value = file.value as Record<string, unknown>;
  for (const key of at) value = value[key] as Record<string, unknown>;
  return { file, at, value, folder };
}

function readConfigFile(
  request: ConfigRequest,
  env: Readonly<Record<string, string | undefined>>,
  problems: Problem[],
): ConfigFile | null {
  if (request.file === false) return null;
  const named = request.file ?? env['GATEWAY_CONFIG'];
  const full = path.resolve(request.cwd, named === undefined || named === '' ? 'gateway.yaml' : named);
  if (!named && !existsSync(full)) return null;
  const name = path.relative(request.cwd, full).startsWith('..') ? full : path.relative(request.cwd, full);
  let text: string;
  try {
    text = readFileSync(full, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = code === 'ENOENT' ? 'not found' : `cannot be read (${code})`;
    problems.push({ key: null, message, origin: { kind: 'file', name } });
    return null;
  }
  const parsed = parseYamlFile(text, name);
  if ('problems' in parsed) {
    problems.push(...parsed.problems);
    return null;
  }
  return { name, folder: path.dirname(full), file: parsed.file };
}

/** The variables of `.env` in a folder; none when there is no such file. */
export function readDotenv(cwd: string): Record<string, string> {
  try {
    return parseDotenv(readFileSync(path.join(cwd, '.env')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}

// A flag of an agent or a bridge serves the one agent without a file; anything else would be ignored in silence.
function refuseUselessFlags(
  flags: readonly FlagValue[],
  settled: readonly SettledValue[],
  mode: Config['mode'],
  problems: Problem[],
): void {
  const used = new Set(settled.filter(({ origin }) => origin.kind === 'flag').map(({ origin }) => origin.name));
  for (const { name } of flags) {
    if (used.has(name)) continue;
    const message =
      mode === 'file'
        ? 'has no effect: with a settings file, agents and bridges are set there'
        : 'has no effect: it belongs to another bridge';
    problems.push({ key: null, message, origin: { kind: 'flag', name } });
  }
}

function refuseSharedIdentities(agents: readonly AgentDraft[], problems: Problem[]): void {
  const owners = new Map<string, AgentDraft>();
  for (const agent of agents) {
    const id = String(agent.values['agent_id']).toLowerCase();
    const owner = owners.get(id);
    owners.set(id, owner ?? agent);
    if (!owner) continue;
    const message = `is the identity of agents.${owner.name} already; one agent id stands in one entry`;
    problems.push({ key: `agents.${agent.name}.agent_id`, message, origin: agent.origin });
  }
}

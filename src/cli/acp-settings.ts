import { loadConfig, readDotenv, type AgentEntry, type Config } from '../config/load.js';
import type { FlagValue } from '../config/collect.js';
import { ConfigError, type Problem } from '../config/problems.js';
import type { BridgeTable, StdioCredentials } from '../gateway/bridge-table.js';
import type { CliWorld } from './world.js';

/** The settings of the one agent that the command runs. */
export interface AcpSettings {
  readonly config: Config;
  /** Given values of the group `acp`. */
  readonly values: unknown;
  /** Null when id or key is missing or cannot be read: the command serves and says so. */
  readonly credentials: StdioCredentials | null;
}

export interface AcpSettingsRequest {
  readonly world: CliWorld;
  readonly bridges: BridgeTable;
  readonly flags: readonly FlagValue[];
  readonly file: string | null;
  /** Entry of the file, where it has several for editors. */
  readonly agent: string | null;
}

const STAND_IN = 'not-configured';
const CREDENTIAL = /(?:^|\.)(?:agent_id|api_key)$/;

/**
 * Reads all settings anew. Missing credentials are no mistake here: an editor that starts the command must get an
 * answer it can show.
 *
 * @throws {ConfigError} for everything else that is wrong
 */
export async function readAcpSettings(request: AcpSettingsRequest): Promise<AcpSettings> {
  try {
    return pick(await load(request, request.world.env, request.flags), request.agent);
  } catch (error) {
    if (!(error instanceof ConfigError) || !error.problems.every(isCredentialProblem)) throw error;
  }
  const stand = { BAND_AGENT_ID: STAND_IN, BAND_API_KEY: STAND_IN, BAND_API_KEY_FILE: undefined };
  const env = { ...request.world.env, ...stand };
  const flags = request.flags.filter(({ path }) => !CREDENTIAL.test(path));
  const { config, values } = pick(await load(request, env, flags), request.agent);
  return { config, values, credentials: null };
}

function isCredentialProblem({ key, origin }: Problem): boolean {
  return key !== null && CREDENTIAL.test(key) && origin?.kind !== 'file';
}

function load(
  { world, bridges, file }: AcpSettingsRequest,
  env: Readonly<Record<string, string | undefined>>,
  flags: readonly FlagValue[],
): Promise<Config> {
  return loadConfig({
    env: withoutBlanks(env),
    dotenv: readDotenv(world.cwd),
    cwd: world.cwd,
    flags,
    file,
    bridge: 'acp',
    bridgeNames: Object.keys(bridges),
    bridgeGroups: async (name) => (await bridges[name]?.settings()) ?? [],
    defaultAgent: null,
  });
}

// Editors hand on variables that nobody set as empty ones.
function withoutBlanks(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
}

function pick(config: Config, agent: string | null): AcpSettings {
  const entries = config.agents.filter(({ options }) => options.bridge === 'acp');
  const entry = agent === null ? entries[0] : entries.find(({ name }) => name === agent);
  if (config.agents.length === 0 && agent === null) return { config, values: {}, credentials: null };
  if (!entry || (agent === null && entries.length > 1)) {
    const names = entries.map(({ name }) => name).join(', ');
    const message = entry
      ? `has several agents for editors (${names}): choose one with --agent`
      : `has no agent ${agent === null ? 'with bridge: acp' : `${agent} with bridge: acp`}`;
    throw new ConfigError([{ key: 'agents', message, origin: null }]);
  }
  return { config, values: entry.groups['acp'] ?? {}, credentials: credentialsOf(entry, config) };
}

function credentialsOf({ options }: AgentEntry, { service }: Config): StdioCredentials {
  const { agentId, apiKey, conflictPolicy, singleInstance } = options;
  const session = Object.fromEntries(Object.entries(options.session).filter(([, value]) => value !== undefined));
  return { agentId, apiKey, ...service.platform, conflictPolicy, singleInstance, session };
}

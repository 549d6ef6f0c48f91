import { BandConfigError, ValidationError } from '../base/band-errors.js';
import { loadAgentConfig } from './agent-config-file.js';
import { isPlainObject } from './casing.js';
import { collect, refuseUnknownKeys, validate, type FilePart, type SettledValue, type Sources } from './collect.js';
import { filePart, type Config, type ConfigFile, type ConfigRequest, type DefaultAgent } from './load.js';
import { namedSettings } from './names.js';
import type { Origin, Problem } from './problems.js';
import type { SettingTree } from './setting.js';
import { SessionConfig } from './session-config.js';
import { agentSettings } from './settings.js';
import { camelCase } from './spelling.js';

/** An agent whose settings will be read, and from where. */
interface PlannedAgent {
  readonly name: string;
  /** The entry in the file, or null for the agent of the environment. */
  readonly part: FilePart | null;
  readonly sources: Sources | null;
  readonly defaults: DefaultAgent | null;
  readonly keyPrefix: string;
}

/** Given values of one agent, checked, in snake_case and without defaults. */
export interface AgentDraft {
  readonly name: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly groups: Readonly<Record<string, unknown>>;
  readonly origin: Origin | null;
}

/** The agents to read: those of the file, else the one of the environment, else the default one. */
export function planAgents(
  request: ConfigRequest,
  sources: Sources,
  found: ConfigFile | null,
  problems: Problem[],
): { readonly mode: Config['mode']; readonly entries: readonly PlannedAgent[] } {
  const agents = found && asObject(found.file.value)['agents'];
  if (found && agents !== undefined && agents !== null) {
    if (!isPlainObject(agents) || Object.keys(agents).length === 0) {
      const message = 'must be a mapping with an entry for each agent';
      problems.push({ key: 'agents', message, origin: found.file.origin(['agents']) });
      return { mode: 'file', entries: [] };
    }
    const entries = Object.keys(agents).map((name) => {
      checkName(name, found, problems);
      const part = filePart(found, ['agents', name]);
      return { name, part, sources: null, defaults: null, keyPrefix: `agents.${name}.` };
    });
    return { mode: 'file', entries };
  }
  const alone = { name: 'agent', part: null, sources, defaults: null, keyPrefix: '' };
  const named = sources.flags.some(({ path }) => path === 'agent_id');
  if (named || sources.env['BAND_AGENT_ID'] || sources.dotenv['BAND_AGENT_ID']) {
    return { mode: 'environment', entries: [alone] };
  }
  if (found) {
    const message = 'names no agents: add an entry under agents, or set BAND_AGENT_ID';
    problems.push({ key: null, message, origin: found.file.origin([]) });
    return { mode: 'file', entries: [] };
  }
  const defaults = request.defaultAgent ?? null;
  return { mode: 'default', entries: defaults ? [{ ...alone, name: defaults.name, defaults }] : [] };
}

/** Reads one agent with the groups of its bridge; its problems are collected. */
export async function readAgent(
  planned: PlannedAgent,
  request: ConfigRequest,
  shared: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly onSecret: (secret: string) => void;
    readonly onSecretFile: (full: string) => void;
    readonly problems: Problem[];
  },
): Promise<{ readonly settled: readonly SettledValue[]; readonly agent: AgentDraft | null }> {
  const { problems } = shared;
  const { name, part, sources, defaults, keyPrefix } = planned;
  const before = problems.length;
  const common = { sources, part, keyPrefix, ...shared };

  const own = collect({ settings: namedSettings(agentSettings.tree), ...common });
  const values: Record<string, unknown> = { ...defaults?.values, ...own.values };
  values['bridge'] ??= request.bridge;
  if (part) addCredentials(name, part, values, shared.onSecret, problems);
  validate(agentSettings, values, own.settled, part, { key: keyPrefix, path: [] }, problems);

  if (problems.length === before) checkSession(asObject(values['session']), part, keyPrefix, problems);

  const bridge = values['bridge'];
  const known = typeof bridge === 'string' && request.bridgeNames.includes(bridge);
  const groups = known ? await request.bridgeGroups(bridge) : [];
  if (part) {
    const tree: SettingTree = {
      ...agentSettings.tree,
      ...Object.fromEntries(groups.map((one) => [one.name, one.tree])),
    };
    // Which groups belong here is unknown while the bridge is; that is a problem already.
    refuseUnknownKeys(tree, part, known ? [] : [...request.bridgeNames, 'relay'], problems, (key) =>
      request.bridgeNames.includes(key) ? `belongs to an agent whose bridge is ${key}` : null,
    );
  }

  const settled = [...own.settled];
  const given: Record<string, unknown> = {};
  for (const group of groups) {
    const read = collect({ settings: namedSettings(group.tree, [group.name]), ...common });
    const groupValues = withDefaults(asObject(read.values[group.name]), defaults?.groups[group.name] ?? {});
    validate(group, groupValues, read.settled, part, { key: keyPrefix, path: [group.name] }, problems);
    given[group.name] = groupValues;
    settled.push(...read.settled);
  }
  const origin = part?.file.origin([...part.at, 'agent_id']) ?? null;
  const sound = problems.length === before;
  return { settled, agent: sound ? { name, values, groups: given, origin } : null };
}

// The name becomes a part of store keys, log lines and metric labels.
function checkName(name: string, found: ConfigFile, problems: Problem[]): void {
  if (/^[a-z0-9][a-z0-9_-]{0,62}$/i.test(name)) return;
  const message = 'an agent is named by letters, digits, - and _, at most 63 of them';
  problems.push({ key: `agents.${name}`, message, origin: found.file.origin(['agents', name]) });
}

/** Credentials that the entry leaves out stand under its name in `agent_config.yaml` beside the file. */
function addCredentials(
  name: string,
  part: FilePart,
  values: Record<string, unknown>,
  onSecret: (secret: string) => void,
  problems: Problem[],
): void {
  if (values['agent_id'] !== undefined && values['api_key'] !== undefined) return;
  try {
    const { agentId, apiKey } = loadAgentConfig(name, { configPath: `${part.folder}/agent_config.yaml` });
    onSecret(apiKey);
    values['agent_id'] ??= agentId;
    values['api_key'] ??= apiKey;
  } catch (error) {
    if (!(error instanceof BandConfigError)) throw error;
    // A missing file or entry leaves the key missing, which the entry's own check reports.
    if (error.code === 'file_not_found' || error.code === 'agent_not_found') return;
    problems.push({ key: `agents.${name}`, message: error.message, origin: part.file.origin(part.at) });
  }
}

/** Rules between the session's values, which its own class knows. */
function checkSession(
  session: Record<string, unknown>,
  part: FilePart | null,
  keyPrefix: string,
  problems: Problem[],
): void {
  try {
    new SessionConfig(Object.fromEntries(Object.entries(session).map(([key, value]) => [camelCase(key), value])));
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    for (const { path, message } of error.issues) {
      const full = ['session', ...path];
      const origin = part?.file.origin([...part.at, ...full]) ?? null;
      problems.push({ key: keyPrefix + full.join('.'), message, origin });
    }
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return isPlainObject(value) ? value : {};
}

function withDefaults(values: Record<string, unknown>, defaults: Record<string, unknown>): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...values };
  for (const [key, value] of Object.entries(defaults)) {
    const own = merged[key];
    if (own === undefined) merged[key] = value;
    else if (isPlainObject(own) && isPlainObject(value)) merged[key] = withDefaults(own, value);
  }
  return merged;
}

import type { Logger } from '../../base/log.js';
import type { AdapterFeatures, Capability } from '../../core/features.js';
import { callTool, failed } from '../../core/tool-call.js';
import type { AgentToolsProtocol, ToolCallOutcome } from '../../core/tools.js';
import { CHAT_TOOLS } from './chat-specs.js';
import { CONTACT_TOOLS } from './contact-specs.js';
import { MEMORY_TOOLS } from './memory-specs.js';
import type { ToolSpec } from './tool-spec.js';

/** Every tool that Band gives an agent. */
export const CATALOGUE: readonly ToolSpec[] = [...CHAT_TOOLS, ...CONTACT_TOOLS, ...MEMORY_TOOLS];

const BY_NAME: ReadonlyMap<string, ToolSpec> = new Map(CATALOGUE.map((spec) => [spec.name, spec]));
const CATEGORIES: ReadonlySet<string> = new Set(CATALOGUE.map(({ category }) => category));

/** MCP clients put the server's name in front: `band-band_send_message`. */
const MCP_PREFIX = 'band-';

/** The tool of that name, also in its MCP spelling; any other prefix names somebody else's tool. */
function toolNamed(name: string): ToolSpec | undefined {
  return BY_NAME.get(name.startsWith(MCP_PREFIX) ? name.slice(MCP_PREFIX.length) : name);
}

type Filters = Pick<AdapterFeatures, 'includeTools' | 'excludeTools' | 'includeCategories'>;

/**
 * The tools on offer: those of the room always, contacts with their capability or in the hub room, memories with
 * theirs; then narrowed by category, by inclusion, by exclusion.
 */
export function offeredTools(
  capabilities: ReadonlySet<Capability>,
  filters: Filters,
  isHubRoom: boolean,
): readonly ToolSpec[] {
  const gates = { chat: true, contacts: isHubRoom || capabilities.has('contacts'), memory: capabilities.has('memory') };
  return CATALOGUE.filter((spec) => gates[spec.category] && passes(spec, filters));
}

/** Whether the adapter's filters let a tool through. */
function passes(spec: ToolSpec, { includeCategories, includeTools, excludeTools }: Filters): boolean {
  if (includeCategories && !includeCategories.has(spec.category)) return false;
  if (includeTools && !includeTools.has(spec.name)) return false;
  return !excludeTools?.has(spec.name);
}

const CHECKED = new WeakSet<Filters>();

/** Warns once about filter names that match nothing: probably a slip, never a reason to fail. */
export function warnUnknownFilters(filters: Filters, log: Logger): void {
  if (CHECKED.has(filters)) return;
  CHECKED.add(filters);
  const warn = (names: ReadonlySet<string> | null, known: { has(name: string): boolean }, what: string) => {
    for (const name of names ?? []) {
      if (!known.has(name)) log.warn({ name }, `unknown name in ${what}`);
    }
  };
  warn(filters.includeCategories, CATEGORIES, 'includeCategories');
  warn(filters.includeTools, BY_NAME, 'includeTools');
  warn(filters.excludeTools, BY_NAME, 'excludeTools');
}

/** Runs a tool of the catalogue by the name a model knows. */
export async function runTool(
  tools: AgentToolsProtocol,
  filters: Filters,
  name: string,
  args: Record<string, unknown>,
): Promise<ToolCallOutcome> {
  const spec = toolNamed(name);
  // What the adapter's author took out stays out, even if a model guesses the name.
  if (!spec || !passes(spec, filters)) return failed(`Unknown tool: ${name}`);
  const outcome = await callTool(spec.name, spec.parameters, prepared(spec, args), (parsed) => spec.run(tools, parsed));
  // A refused post returned null; a model that reads "null" would believe it was heard.
  if (outcome.ok && outcome.value === null) return failed(`${spec.name}: nothing was posted, the content is blank`);
  return outcome;
}

/** Models write null for "not given" and use names they know from elsewhere. */
function prepared(spec: ToolSpec, args: Record<string, unknown>): Record<string, unknown> {
  // Whatever a model wrote instead of an object is for the schema to refuse.
  if (typeof args !== 'object' || (args as object | null) === null || Array.isArray(args)) return args;
  const given = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null));
  for (const [alias, parameter] of Object.entries(spec.aliases ?? {})) {
    if (given[parameter] === undefined && given[alias] !== undefined) given[parameter] = given[alias];
  }
  return given;
}

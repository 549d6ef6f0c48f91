import { isDeepStrictEqual } from 'node:util';
import { toError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { AgentEntry, Config } from '../config/load.js';
import type { Bridge } from '../core/bridge.js';
import type { BridgeDoor } from './bridge-table.js';

/** How the settings stand to those at the start, by name, e.g. `agents.front-door.a2a.auth.api_keys`. */
export interface Reloaded {
  /** Changed, and in force. */
  readonly taken: readonly string[];
  /** Changed in their sources, and in force after a restart. */
  readonly restart: readonly string[];
}

export interface ReloadDeps {
  readonly started: Config;
  readonly next: Config;
  /** Agents that run, each with its entry as read last and its bridge, null while that is not open. */
  readonly agents: readonly {
    readonly entry: AgentEntry;
    readonly door: BridgeDoor;
    readonly bridge: Bridge | null;
    /** Told the entry that its bridge took over, or is to be opened with. */
    readonly keep: (entry: AgentEntry) => void;
  }[];
  readonly log: Logger;
}

/** Hands changed settings to the bridges that take them over while they run. */
export async function takeOver({ started, next, agents, log }: ReloadDeps): Promise<Reloaded> {
  const changed = changedSettings(started, next);
  const restart = new Set(changed);
  const taken: string[] = [];
  for (const { entry, door, bridge, keep } of agents) {
    const read = next.agents.find(({ name }) => name === entry.name);
    if (read?.options.bridge !== entry.options.bridge) continue;
    const fresh = { ...entry, groups: read.groups };
    try {
      const wanting = bridge ? await door.reload?.(fresh, bridge) : [];
      if (!wanting) continue;
      keep(fresh);
      const below = `agents.${entry.name}.`;
      const own = changed.filter((name) =>
        Object.keys(read.groups).some((group) => name.startsWith(`${below}${group}.`)),
      );
      const later = wanting.map((name) => below + name);
      for (const name of own) restart.delete(name);
      for (const name of later) restart.add(name);
      taken.push(...own.filter((name) => !later.includes(name)));
    } catch (error) {
      log.error({ err: toError(error), agent: entry.name }, 'changed settings were refused; the agent keeps its own');
    }
  }
  return { taken, restart: [...restart] };
}

/** Names of the settings that differ between two readings; an agent that only one of them has counts as one. */
function changedSettings(before: Config, next: Config): string[] {
  const [old, now] = [before, next].map(({ agents }) => new Set(agents.map(({ name }) => name)));
  const lone = [...(old ?? []), ...(now ?? [])].filter((name) => !old?.has(name) || !now?.has(name));
  const isLone = (key: string) => lone.some((name) => key.startsWith(`agents.${name}.`));
  const [were, are] = [before, next].map(({ settled }) => new Map(settled.map(({ key, value }) => [key, value])));
  const keys = new Set([...(were?.keys() ?? []), ...(are?.keys() ?? [])]);
  return [
    ...lone.map((name) => `agents.${name}`),
    ...[...keys].filter((key) => !isLone(key) && !isDeepStrictEqual(were?.get(key), are?.get(key))),
  ];
}

import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import { optionsFromSnake, type OptionsOf, type SettingsGroup, type SettingTree } from '../config/setting.js';
import type { Bridge, BridgeModule, BridgePorts, Finding } from '../core/bridge.js';

/** An agent's entry as a bridge reads it. */
export interface BridgeEntry {
  readonly name: string;
  /** Given values by settings group in snake_case, secrets resolved, for `optionsFromSnake`. */
  readonly groups: Readonly<Record<string, unknown>>;
}

/** A bridge before it is loaded: everything behind these functions is imported when it is used. */
export interface BridgeDoor {
  /** The groups that stand in an entry of this bridge, its own first. */
  settings(): Promise<readonly SettingsGroup[]>;
  open(entry: BridgeEntry, ports: BridgePorts): Promise<Bridge>;
  /** Looks without opening; makes only reading calls. */
  check(
    entry: BridgeEntry,
    ports: Pick<BridgePorts, 'clock' | 'dispatcher'>,
    signal: AbortSignal,
  ): Promise<readonly Finding[]>;
  /**
   * Hands changed settings to an open bridge.
   *
   * @returns names of settings that change only with a restart, e.g. `a2a.port`; null when this bridge takes none over
   * @throws what the bridge threw: nothing has changed then
   */
  readonly reload?: (entry: BridgeEntry, bridge: Bridge) => Promise<readonly string[] | null>;
  /** Path prefixes that an entry takes on the common HTTP server; no two entries may take the same. */
  readonly claims?: (entry: BridgeEntry) => readonly string[];
  /**
   * Another process of this host that runs the agent serves the same clients (`acp`), so that its doing so keeps
   * nobody waiting and the service ready.
   */
  readonly isSharedOnHost?: boolean;
  /** How to serve one client on a pair of pipes, for a bridge that can (`acp`); loads nothing else of it. */
  readonly stdio?: () => Promise<ServeStdio>;
  /** What the outside needs to know this gateway, e.g. the manifest of a Slack app. */
  readonly manifest?: (entry: BridgeEntry, options: ManifestOptions) => Promise<Manifest>;
}

export interface ManifestOptions {
  /** Which of several apps; null for the only one. */
  readonly app: string | null;
  readonly format: 'yaml' | 'json';
  readonly publicUrl: string | null;
}

export interface Manifest {
  readonly text: string;
  /** What a person still has to do by hand. */
  readonly notes: readonly string[];
}

/** Serves one client on a pair of pipes until it is gone or `signal` aborts. */
export type ServeStdio = (world: StdioWorld) => Promise<void>;

export interface StdioWorld {
  readonly input: Readable;
  /** Takes the protocol's bytes, and nothing else. */
  readonly output: Writable;
  /** Given values of the bridge's group in snake_case, for `optionsFromSnake`. */
  readonly values: unknown;
  /** Null when there are none; `fresh` reads their sources anew. */
  readonly credentials: (fresh?: boolean) => Promise<StdioCredentials | null>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly version: string;
  readonly signal: AbortSignal;
}

export interface StdioCredentials {
  readonly agentId: string;
  readonly apiKey: string;
  readonly restUrl: string;
  readonly wsUrl: string;
  readonly conflictPolicy: 'supersede' | 'reject';
  readonly singleInstance: boolean;
  /** Fields of SessionConfig that were given. */
  readonly session: Readonly<Record<string, unknown>>;
}

/** The bridges that this program has, by the name that entries use. */
export type BridgeTable = Readonly<Record<string, BridgeDoor>>;

type Extras = Pick<BridgeDoor, 'claims' | 'isSharedOnHost' | 'stdio' | 'manifest'>;

/** A bridge with one settings group, loaded when it is used. */
export function loadedOnUse<T extends SettingTree>(
  settings: () => Promise<SettingsGroup<T>>,
  load: () => Promise<BridgeModule<OptionsOf<SettingsGroup<T>>>>,
  extras: Extras = {},
): BridgeDoor {
  const read = async ({ name, groups }: BridgeEntry) => {
    const group = await settings();
    return { name, options: optionsFromSnake(group, groups[group.name] ?? {}) };
  };
  return {
    ...extras,
    settings: async () => [await settings()],
    open: async (entry, ports) => (await load()).open(await read(entry), ports),
    reload: async (entry, bridge) => (await load()).reload?.(bridge, await read(entry)) ?? null,
    check: async (entry, ports, signal) => (await load()).check(await read(entry), ports, signal),
  };
}

/** A bridge whose entries hold several groups; its options hold one member for each, under the group's name. */
export function loadedOnUseWith<G extends Readonly<Record<string, SettingsGroup>>>(
  settings: () => Promise<G>,
  load: () => Promise<BridgeModule<{ readonly [K in keyof G]: OptionsOf<G[K]> }>>,
  extras: Extras = {},
): BridgeDoor {
  const read = async (entry: BridgeEntry) => ({ name: entry.name, options: readGroups(await settings(), entry) });
  return {
    ...extras,
    settings: async () => Object.values(await settings()),
    open: async (entry, ports) => (await load()).open(await read(entry), ports),
    reload: async (entry, bridge) => (await load()).reload?.(bridge, await read(entry)) ?? null,
    check: async (entry, ports, signal) => (await load()).check(await read(entry), ports, signal),
  };
}

function readGroups<G extends Readonly<Record<string, SettingsGroup>>>(
  groups: G,
  entry: BridgeEntry,
): { readonly [K in keyof G]: OptionsOf<G[K]> } {
  const options = Object.entries(groups).map(([name, group]) => [
    name,
    optionsFromSnake(group, entry.groups[name] ?? {}),
  ]);
  return Object.fromEntries(options) as { readonly [K in keyof G]: OptionsOf<G[K]> };
}

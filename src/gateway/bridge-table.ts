import type { SettingsGroup } from '../config/setting.js';
import type { Bridge, BridgePorts, Finding } from '../core/bridge.js';

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
}

/** The bridges that this program has, by the name that entries use. */
export type BridgeTable = Readonly<Record<string, BridgeDoor>>;

import type { Dispatcher } from 'undici';
import type { Clock } from '../base/clock.js';
import type { HttpMount } from '../base/http-mount.js';
import type { Logger } from '../base/log.js';
import type { Metrics } from '../base/metrics.js';
import type { Redactor } from '../base/redact.js';
import type { StateStore } from '../store/port.js';
import type { FrameworkAdapter } from './framework-adapter.js';

/** The world as a bridge gets it. Band credentials are not part of it: they come by `PlatformConnection`. */
export interface BridgePorts {
  readonly clock: Clock;
  /** Already carries the agent's entry name. */
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly redactor: Redactor;
  /** The service's common HTTP server. */
  readonly http: HttpMount;
  /** Shared by all bridges: each keeps its records under `<bridge>/<entry>/`. */
  readonly store: StateStore;
  /** Where files that are no records may be kept; the system's folder for such when left out. */
  readonly dataDir?: string;
  /** Outgoing HTTP; undici's own agent when left out. */
  readonly dispatcher?: Dispatcher;
}

/** What keeps the service from being ready, in words an operator can act on. */
export interface Blocker {
  /** Stable and short, e.g. `slack.socket`. */
  readonly name: string;
  readonly message: string;
  /** What to do about it. */
  readonly action: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** Accepted, and given up on for now. */
export interface DeadLetter {
  readonly id: string;
  readonly queue: 'inbox' | 'outbox';
  readonly conversation: string;
  readonly code: string;
  readonly reason: string;
  readonly at: number;
}

export interface DeadLetters {
  /** Oldest first; at most `limit`, default 100. */
  list(limit?: number): Promise<readonly DeadLetter[]>;
  /** @returns false when there is no such letter */
  retry(id: string): Promise<boolean>;
  drop(id: string): Promise<boolean>;
}

/** A bridge as the status page shows it. */
export interface BridgeReport {
  readonly links: readonly { readonly name: string; readonly state: string; readonly since: number }[];
  readonly queues: readonly { readonly name: string; readonly depth: number; readonly dead: number }[];
  /** What the bridge cannot do at the moment; while there is any, the service shows as degraded. */
  readonly lastErrors: readonly {
    readonly at: number;
    readonly code: string;
    readonly text: string;
    readonly action: string;
  }[];
  readonly recent: readonly { readonly at: number; readonly conversation: string; readonly what: string }[];
}

/** One thing `band-gateway check` found. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'error';
  readonly subject: string;
  readonly message: string;
  readonly mend?: string;
}

/**
 * An opened bridge: the adapter that an Agent runs, and what the service asks of it. The adapter's own hooks
 * (`onStarted`, `onCleanup`, `cleanupAll`) start and stop it.
 */
export interface Bridge {
  readonly adapter: FrameworkAdapter;
  report(): BridgeReport;
  /** Empty when the bridge can do its work. */
  blockers(): readonly Blocker[];
  readonly deadLetters: DeadLetters | null;
}

/** What `bridges/<name>/index.ts` hands the service: how to open one entry, and how to look at it without opening. */
export interface BridgeModule<Options> {
  open(entry: { readonly name: string; readonly options: Options }, ports: BridgePorts): Promise<Bridge>;
  /**
   * Gives a bridge that this module opened the settings that may change while it runs; optional. Connections and work
   * under way go on.
   *
   * @returns names of settings that differ and want a restart, e.g. `a2a.port`; those stay as they were
   * @throws {GatewayError} `CONFIG_INVALID` for settings that no bridge could start with; nothing has changed then
   */
  reload?(bridge: Bridge, entry: { readonly name: string; readonly options: Options }): readonly string[];
  /** Looks at credentials and scopes for `band-gateway check`; makes only reading calls. */
  check(
    entry: { readonly name: string; readonly options: Options },
    ports: Pick<BridgePorts, 'clock' | 'dispatcher'>,
    signal: AbortSignal,
  ): Promise<readonly Finding[]>;
}

import type { Dispatcher } from 'undici';
import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { Metrics } from '../base/metrics.js';
import type { Redactor } from '../base/redact.js';
import type { AgentEntry, Config } from '../config/load.js';
import type { Blocker, BridgePorts, DeadLetters } from '../core/bridge.js';
import type { FrameworkAdapter } from '../core/framework-adapter.js';
import { createAgentsPart, createBridgesPart } from './agents-part.js';
import type { BridgeDoor, BridgeTable } from './bridge-table.js';
import { createControlSocket } from './control-socket.js';
import { createHealth } from './health.js';
import { createHostedAgent, type AgentLike, type HostedAgent } from './hosted-agent.js';
import { createHttpHost, type HttpHost } from './http-host.js';
import { inOrder } from './lifecycle.js';
import { createPromMetrics } from './metrics.js';
import { createMetricsDoor, exposeStates } from './metrics-door.js';
import { takeOver, type Reloaded } from './reload.js';
import { reportAgent, type AgentReport, type GatewayReport } from './report.js';
import { createStatusDoor } from './status-door.js';
import { createStorePart } from './store-part.js';

/** The world as the service gets it. */
export interface GatewayPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly redactor: Redactor;
  /** Shown on the status page. */
  readonly version: string;
  readonly dispatcher?: Dispatcher;
  createAgent(
    entry: AgentEntry,
    adapter: FrameworkAdapter,
    options: { readonly conflictPolicy: 'reject' | 'configured'; readonly metrics: Metrics },
  ): AgentLike;
  /** How an Agent's connection to the platform is, where that can be told. */
  readonly linkOf: (agent: AgentLike) => AgentReport['link'];
}

/** The running service. */
export interface Gateway {
  readonly http: HttpHost;
  readonly agents: readonly HostedAgent[];
  /** What keeps it from being ready; empty when nothing does. */
  blockers(): readonly Blocker[];
  report(): Promise<GatewayReport>;
  /**
   * Opens the store, every bridge and the HTTP server, and begins to connect the Agents. Resolves before they are
   * connected.
   *
   * @throws {GatewayError} `PORT_IN_USE`, `STORE_LOCKED`, `STORE_IO`, `CONFIG_INVALID`; everything is closed again then
   */
  start(): Promise<void>;
  /**
   * Takes over what may change while everything runs; the rest is named and stays as it was. An agent whose bridge
   * refuses its part keeps what it has, which is logged.
   */
  reload(next: Config): Promise<Reloaded>;
  /**
   * Not ready any more, then a pause for load balancers, then Agents, HTTP server and store in that order. Called
   * again, it waits for the same end.
   */
  stop(): Promise<void>;
}

/** Puts the service together: store, HTTP server, operator socket, and an Agent with its bridge for every entry. */
export function createGateway(config: Config, bridges: BridgeTable, ports: GatewayPorts): Gateway {
  const { service } = config;
  const { clock, log } = ports;
  const startedAt = clock.now();
  let stoppingSince: number | null = null;
  let stopped: Promise<void> | null = null;

  const metrics = createPromMetrics();
  const health = createHealth();
  const store = createStorePart({ kind: service.store, dataDir: service.dataDir }, { clock, log });
  const http = createHttpHost(service.http, { log, metrics, clock });
  const bridgePorts = (entry: AgentEntry): BridgePorts => ({
    ...ports,
    log: log.child({ agent: entry.name }),
    metrics,
    http,
    store: store.store,
    dataDir: service.dataDir,
  });
  /** As read last: an Agent that opens its bridge afresh gets these. */
  const entries = new Map(config.agents.map((entry) => [entry.name, entry]));
  const agents = config.agents.map((entry) =>
    createHostedAgent({
      name: entry.name,
      bridgeName: entry.options.bridge,
      onSuperseded: entry.options.onSuperseded,
      isSharedOnHost: bridges[entry.options.bridge]?.isSharedOnHost ?? false,
      stopTimeoutSeconds: service.shutdown.timeoutSeconds,
      openBridge: async () => await doorOf(bridges, entry).open(entries.get(entry.name) ?? entry, bridgePorts(entry)),
      createAgent: (adapter, conflictPolicy) => ports.createAgent(entry, adapter, { conflictPolicy, metrics }),
      clock,
      log,
    }),
  );
  const control = createControlSocket(service.dataDir, () => deadLettersOf(agents));
  const whole = inOrder('band-gateway', [
    store,
    createBridgesPart(agents, log),
    http,
    control,
    createAgentsPart(agents),
  ]);

  health.watch(() => (stoppingSince === null ? [] : [stoppingBlocker(stoppingSince)]));
  health.watch(() => store.blockers());
  health.watch(() => agents.flatMap((hosted) => hosted.blockers()));
  health.watch(() => agents.flatMap((hosted) => linkBlockers(hosted, ports)));
  exposeStates(metrics, agents, () => health.blockers().length);

  const report = async (): Promise<GatewayReport> => ({
    version: ports.version,
    now: clock.now(),
    startedAt,
    publicUrl: http.publicUrl,
    platformUrl: service.platform.restUrl,
    blockers: health.blockers(),
    notices: store.notices(),
    agents: await Promise.all(agents.map((hosted) => reportAgent(hosted, hosted.agent && ports.linkOf(hosted.agent)))),
  });
  const onError = (error: unknown): void => {
    log.error({ err: error }, 'a page of the service failed');
  };
  http.exact('/', createStatusDoor(report, { token: service.http.statusToken, onError }));
  http.exact('/healthz', health.live);
  http.exact('/readyz', health.ready);
  http.exact('/metrics', createMetricsDoor(metrics, onError));

  const stop = async (): Promise<void> => {
    stoppingSince = clock.now();
    if (service.shutdown.delayMs > 0) await clock.sleep(service.shutdown.delayMs);
    await whole.stop();
  };

  return {
    http,
    agents,
    blockers: () => health.blockers(),
    report,
    reload: (next) =>
      takeOver({
        started: config,
        next,
        agents: agents.flatMap(({ name, bridge }) => {
          const entry = entries.get(name);
          if (!entry) return [];
          return [{ entry, bridge, door: doorOf(bridges, entry), keep: (taken) => void entries.set(name, taken) }];
        }),
        log,
      }),
    async start() {
      refuseSharedPaths(config.agents, bridges);
      await whole.start();
      http.opened();
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

function doorOf(bridges: BridgeTable, entry: AgentEntry): BridgeDoor {
  const door = bridges[entry.options.bridge];
  if (!door) throw new TypeError(`This program has no bridge named ${entry.options.bridge}.`);
  return door;
}

/** An Agent that runs while its connection is down; the connection comes back by itself. */
function linkBlockers(hosted: HostedAgent, { linkOf }: GatewayPorts): readonly Blocker[] {
  const link = hosted.state === 'running' && hosted.agent ? linkOf(hosted.agent) : null;
  if (!link || link.state === 'connected') return [];
  const message = `The connection to Band is ${link.state}${link.why === null ? '' : `: ${link.why}`}.`;
  const action = 'Nothing: it is tried again by itself. If it stays, look at the way to the platform.';
  return [{ name: `agent.${hosted.name}.link`, message, action, since: link.since }];
}

function refuseSharedPaths(entries: readonly AgentEntry[], bridges: BridgeTable): void {
  const owners = new Map<string, string>();
  for (const entry of entries) {
    for (const prefix of doorOf(bridges, entry).claims?.(entry) ?? []) {
      const owner = owners.get(prefix);
      if (owner !== undefined) {
        const message = `agents.${owner} and agents.${entry.name} both want ${prefix} on the common HTTP server; give one of them a port or a path of its own.`;
        throw new GatewayError('CONFIG_INVALID', { message });
      }
      owners.set(prefix, entry.name);
    }
  }
}

function deadLettersOf(agents: readonly HostedAgent[]): ReadonlyMap<string, DeadLetters> {
  return new Map(
    agents.flatMap(({ name, bridge }) => (bridge?.deadLetters ? [[name, bridge.deadLetters] as const] : [])),
  );
}

function stoppingBlocker(since: number): Blocker {
  return { name: 'shutdown', message: 'The service is shutting down.', action: 'Nothing.', since };
}

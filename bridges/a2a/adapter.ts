import { join } from 'node:path';
import type { Dispatcher } from 'undici';
import { RuntimeError } from '../../src/base/band-errors.js';
import { systemClock, type Clock } from '../../src/base/clock.js';
import type { HttpMount } from '../../src/base/http-mount.js';
import { newUuid } from '../../src/base/ids.js';
import { silentLogger, type Logger } from '../../src/base/log.js';
import { noMetrics, type Metrics } from '../../src/base/metrics.js';
import { parseOptions } from '../../src/config/setting.js';
import { camelCase } from '../../src/config/spelling.js';
import type { CleanupReason } from '../../src/core/framework-adapter.js';
import type { HistoryProvider } from '../../src/core/history.js';
import type { PlatformMessage } from '../../src/core/platform-message.js';
import { SimpleAdapter } from '../../src/core/simple-adapter.js';
import type { AgentToolsProtocol } from '../../src/core/tools.js';
import { messageMetadataSchema } from '../../src/platform/wire/objects.js';
import { openLevelStore } from '../../src/store/leveldb.js';
import { createMemoryStore } from '../../src/store/memory.js';
import type { StateStore } from '../../src/store/port.js';
import type { BandCalls } from './band.js';
import { readReply, type ReadReply } from './convert/directive.js';
import { startGateway, type RunningGateway } from './gateway.js';
import { a2aSettings, type A2AOptions, type A2AOptionsInput } from './settings.js';

/** The world of a gateway, where a program has its own. */
export interface A2APorts {
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  /** The common HTTP server, for `port: 'shared'`. */
  readonly http?: HttpMount | null;
  /** A store that somebody else owns; otherwise the adapter opens one of its own. */
  readonly store?: { readonly state: StateStore; readonly durable: boolean };
  /** Stands in the keys of the store; default the agent's id. */
  readonly name?: string;
  /** Platform calls; default a client for the injected connection. */
  readonly rest?: BandCalls;
  /** Outgoing HTTP for key sets; default undici's own. */
  readonly dispatcher?: Dispatcher;
  readonly newId?: () => string;
  readonly random?: () => number;
  /** Reads what a peer's reply says; default the closing `a2a` block with `state` and `final`. */
  readonly readReply?: ReadReply;
}

const DATA_FOLDER = '.band-gateway';
const OPTION_NAMES: ReadonlySet<string> = new Set(Object.keys(a2aSettings.tree).map(camelCase));

/**
 * Publishes every Band peer as an A2A agent: hand it to an Agent, and clients find the peers under
 * `<public url>/agents/<slug>`.
 *
 * One request: HTTP door → task engine (stored) → room; back: runtime → `onMessage` → task engine → client.
 */
export class A2AGatewayAdapter extends SimpleAdapter {
  #options: A2AOptions;
  readonly #ports: A2APorts;
  #running: RunningGateway | null = null;
  #starting = false;
  #isConnected = true;
  #ownStore: StateStore | null = null;

  /**
   * @param options - any of the settings of the group `a2a`, in camelCase; credentials of Band are not among them
   * @param ports - the world, for tests and hosts
   * @throws {TypeError} for an option it does not have
   * @throws {ValidationError} for a bad value, or an unknown field inside an option
   */
  constructor(options: A2AOptionsInput = {}, ports: A2APorts = {}) {
    const unknown = Object.entries(options).filter(([name]) => !OPTION_NAMES.has(name));
    super(Object.fromEntries(unknown));
    this.#options = parseOptions(a2aSettings, options, 'A2AGatewayAdapter');
    this.#ports = ports;
  }

  /** The settings it was made with, or those it read last. */
  get options(): A2AOptions {
    return this.#options;
  }

  /** A message is handed on in a millisecond, so the rooms are not told of work. */
  readonly reportsWorkingState = false;

  protected override get judgesTurns(): boolean {
    return false;
  }

  /** Where the gateway is reached, without a trailing slash; null before it serves. */
  get url(): string | null {
    return this.#running?.url ?? null;
  }

  /** The gateway at work, for hosts. @throws {RuntimeError} before the Agent has started */
  get gateway(): RunningGateway {
    if (!this.#running) throw new RuntimeError('the A2A gateway is not running yet; it starts with its Agent');
    return this.#running;
  }

  /**
   * Opens the gateway.
   *
   * @throws {RuntimeError} when it is open already
   * @throws {GatewayError} `CONFIG_INVALID`, `PORT_IN_USE`, `STORE_LOCKED`
   */
  override async onStarted(agentName: string, agentDescription: string): Promise<void> {
    await super.onStarted(agentName, agentDescription);
    if (this.#running || this.#starting) throw new RuntimeError('this A2A gateway is already started');
    this.#starting = true;
    try {
      await this.#open();
    } finally {
      this.#starting = false;
    }
  }

  /**
   * Takes over the peers' overrides, the API keys and the limits; open streams and waiting requests go on.
   *
   * @param options - all settings, as the constructor takes them
   * @returns names of settings that differ and want a restart, e.g. `a2a.port`
   * @throws {ValidationError} for a bad value
   * @throws {GatewayError} `CONFIG_INVALID` for settings that no gateway could start with; nothing has changed then
   */
  reload(options: A2AOptionsInput): readonly string[] {
    const next = parseOptions(a2aSettings, options, 'A2AGatewayAdapter');
    const restarts = this.#running?.reload(next) ?? [];
    this.#options = next;
    return restarts;
  }

  override async onMessage(
    msg: PlatformMessage,
    _tools: AgentToolsProtocol,
    _history: HistoryProvider,
    _participantsMsg: string | null,
    _contactsMsg: string | null,
    ctx: { readonly roomId: string },
  ): Promise<void> {
    const metadata = messageMetadataSchema.safeParse(msg.metadata ?? {});
    await this.gateway.engine.reply({
      id: msg.id,
      roomId: ctx.roomId,
      senderId: msg.senderId,
      senderName: msg.senderName,
      content: msg.content,
      mentions: metadata.success ? (metadata.data.mentions ?? []) : [],
      writtenAt: msg.createdAt.getTime(),
    });
  }

  /** A room that is gone ends its tasks; one that the runtime lets go because it stops does not. */
  override async onCleanup(roomId: string, context?: { readonly reason: CleanupReason }): Promise<void> {
    if (context?.reason === 'shutdown') return;
    await this.#running?.engine.roomGone(roomId);
  }

  async onParticipants(
    roomId: string,
    change: { readonly kind: 'added' | 'removed'; readonly id: string },
  ): Promise<void> {
    if (change.kind === 'removed') await this.#running?.engine.peerLeft(roomId, change.id);
  }

  /** Without a connection no answer comes back: once it has been down for long, new requests are refused. */
  onConnection(isConnected: boolean): void {
    this.#isConnected = isConnected;
    this.#running?.health.socket(isConnected);
  }

  override async cleanupAll(): Promise<void> {
    await this.#running?.stop();
    this.#running = null;
    await this.#ownStore?.close();
    this.#ownStore = null;
  }

  async #open(): Promise<void> {
    const { agentId } = this.requirePlatform();
    const { clock = systemClock, log = silentLogger, http = null, dispatcher } = this.#ports;
    const shared = http !== null && (this.options.port === undefined || this.options.port === 'shared');
    const { state, durable } = this.#ports.store ?? (await this.#openStore(agentId, clock, log));
    this.#running = await startGateway({
      name: this.#ports.name ?? agentId,
      agentId,
      options: this.options,
      rest: this.#ports.rest ?? this.buildRestClient({ clock, log }),
      store: state,
      durable,
      http: shared ? http : null,
      clock,
      log,
      metrics: this.#ports.metrics ?? noMetrics,
      newId: this.#ports.newId ?? newUuid,
      random: this.#ports.random ?? Math.random,
      dispatcher,
      readReply: this.#ports.readReply ?? readReply,
    });
    this.#running.health.socket(this.#isConnected);
  }

  async #openStore(agentId: string, clock: Clock, log: Logger): Promise<{ state: StateStore; durable: boolean }> {
    const { store } = this.options;
    const durable = store !== 'memory';
    this.#ownStore = durable
      ? await openLevelStore({ folder: store ?? join(DATA_FOLDER, `a2a-${agentId}`), clock, log })
      : createMemoryStore(clock);
    return { state: this.#ownStore, durable };
  }
}

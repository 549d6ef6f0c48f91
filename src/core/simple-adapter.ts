import { RuntimeError } from '../base/band-errors.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import { createDispatcher } from '../platform/rest/dispatcher.js';
import { createRestClient, type RestClientOptions } from '../platform/rest/rest-client.js';
import type { AgentInput } from './agent-input.js';
import { CleanupRegistry, type Cleanup } from './cleanup-registry.js';
import { resolveFeatures, type AdapterFeatures, type Capability, type Emit, type FeatureOptions } from './features.js';
import type { CleanupReason, FrameworkAdapter } from './framework-adapter.js';
import type { HistoryConverter, HistoryProvider } from './history.js';
import { runJudgedTurn } from './judge.js';
import type { PlatformConnection } from './platform-connection.js';
import type { PlatformMessage } from './platform-message.js';
import { RenewableDispatcher } from './renewable-dispatcher.js';
import type { AgentToolsProtocol } from './tools.js';

export interface SimpleAdapterOptions<H> extends FeatureOptions {
  /** Makes of raw history what `onMessage` gets; left out, it gets the {@link HistoryProvider} itself. */
  historyConverter?: HistoryConverter<H> | undefined;
}

/** What `onMessage` gets beside the message. */
export interface MessageContext {
  /** True on a room session's first turn. */
  readonly isSessionBootstrap: boolean;
  readonly roomId: string;
  /** Aborts on interrupt, stop, cycle timeout and shutdown; one second later the runtime waits no longer. */
  readonly signal: AbortSignal;
}

/** The world as {@link SimpleAdapter.buildRestClient} takes it; address and key come from the connection alone. */
export type RestClientPorts = Partial<Omit<RestClientOptions, 'restUrl' | 'apiKey'>>;

let registryOf: (adapter: SimpleAdapter<unknown>) => CleanupRegistry;
let setFeatures: (adapter: SimpleAdapter<unknown>, features: AdapterFeatures) => void;
let closeConnections: (adapter: SimpleAdapter<unknown>) => Promise<void>;

/**
 * The base of an adapter: write `onMessage`, and say what the adapter supports in the two static sets.
 *
 * One message: runtime → `onEvent` → history converted → `onMessage` → the turn is judged → runtime marks the message.
 */
export abstract class SimpleAdapter<H = HistoryProvider> implements FrameworkAdapter {
  static readonly SUPPORTED_EMIT: ReadonlySet<Emit> = new Set();
  static readonly SUPPORTED_CAPABILITIES: ReadonlySet<Capability> = new Set();

  static {
    registryOf = (adapter) => adapter.#cleanups;
    setFeatures = (adapter, features) => {
      adapter.#features = features;
    };
    closeConnections = (adapter) => adapter.#connections.close();
  }

  /** Injected by the runtime before `onStarted`. */
  platform: PlatformConnection | null = null;
  /** As the platform knows it; empty before `onStarted`. */
  agentName = '';
  agentDescription = '';

  readonly #cleanups = new CleanupRegistry();
  readonly #connections = new RenewableDispatcher(() => createDispatcher(process.env));
  readonly #converter: HistoryConverter<H> | null;
  #features: AdapterFeatures;

  /**
   * @throws {TypeError} for an option that is not one of its own
   * @throws {BandConfigError} for an emit kind or a capability that the adapter does not support
   */
  constructor(options: SimpleAdapterOptions<H> = {}) {
    const { historyConverter, ...features } = options;
    const adapterClass = this.constructor as typeof SimpleAdapter;
    this.#converter = historyConverter ?? null;
    this.#features = resolveFeatures(adapterClass.name, features, {
      emit: adapterClass.SUPPORTED_EMIT,
      capabilities: adapterClass.SUPPORTED_CAPABILITIES,
    });
  }

  get features(): AdapterFeatures {
    return this.#features;
  }

  /** Whether a turn that ends without a reply is a failure; false for bridges that answer by other ways. */
  // eslint-disable-next-line @typescript-eslint/class-literal-property-style -- a field could not be overridden by a getter
  protected get judgesTurns(): boolean {
    return true;
  }

  /** Takes one message. Resolving means done, throwing means that the attempt failed. */
  abstract onMessage(
    msg: PlatformMessage,
    tools: AgentToolsProtocol,
    history: H,
    participantsMsg: string | null,
    contactsMsg: string | null,
    ctx: MessageContext,
  ): Promise<void>;

  /** @throws what `onMessage` throws; TurnResultAlreadyReported when the turn misses its reply */
  async onEvent(input: AgentInput): Promise<void> {
    // Without a converter H is HistoryProvider, the default of the type parameter.
    const history = this.#converter ? input.history.convert(this.#converter) : (input.history as H);
    const { msg, tools, participantsMsg, contactsMsg, isSessionBootstrap, roomId, signal } = input;
    await runJudgedTurn({ tools, message: msg, judges: this.judgesTurns }, () =>
      this.onMessage(msg, tools, history, participantsMsg, contactsMsg, { isSessionBootstrap, roomId, signal }),
    );
  }

  /** Stores both and tells the converter the name; call it from an override. */
  // eslint-disable-next-line @typescript-eslint/require-await -- overrides await, the base has nothing to wait for
  async onStarted(agentName: string, agentDescription: string): Promise<void> {
    this.agentName = agentName;
    this.agentDescription = agentDescription;
    this.#converter?.setAgentName?.(agentName);
  }

  /** A room's session ended; the base holds nothing for a room. */
  // eslint-disable-next-line @typescript-eslint/no-unused-vars -- named for those who override
  async onCleanup(_roomId: string, _context?: { readonly reason: CleanupReason }): Promise<void> {
    // nothing to drop
  }

  /** The Agent stops; the base holds nothing for all rooms. */
  async cleanupAll(): Promise<void> {
    // nothing to end
  }

  /**
   * Registers what is to be called when the Agent stops, after `cleanupAll`: the last registered comes first, one
   * after the other. A callback that fails is called again by the next `stop()`.
   *
   * @throws {TypeError} for anything but a function
   * @throws {BandConfigError} once an Agent runs this adapter
   */
  addCleanup(callback: Cleanup): void {
    this.#cleanups.add(callback);
  }

  /** @throws {RuntimeError} before the runtime injected the connection */
  requirePlatform(): PlatformConnection {
    if (!this.platform) {
      throw new RuntimeError('platform connection not available yet; the runtime injects it when the Agent starts');
    }
    return this.platform;
  }

  /**
   * A new client for the platform that this adapter's Agent talks to, with its key. Make it in `onStarted` or on first
   * use, and keep it.
   *
   * @param ports - the world, where a program has its own. Left out, the adapter's clients share connections that the
   *   runtime closes when the Agent has stopped
   * @throws {RuntimeError} before the runtime injected the connection
   */
  buildRestClient(ports: RestClientPorts = {}): BandRest {
    const { restUrl, apiKey } = this.requirePlatform();
    return createRestClient({ dispatcher: this.#connections, ...ports, restUrl, apiKey });
  }
}

/** The clean-up registry of an adapter; null for an adapter that is no {@link SimpleAdapter}. For the runtime. */
export function cleanupRegistryOf(adapter: FrameworkAdapter): CleanupRegistry | null {
  return adapter instanceof SimpleAdapter ? registryOf(adapter) : null;
}

/** Closes the connections of the REST clients that an adapter built; the clients stay usable. For the runtime. */
export async function closeRestConnections(adapter: FrameworkAdapter): Promise<void> {
  if (adapter instanceof SimpleAdapter) await closeConnections(adapter);
}

/** Gives an adapter the features of another one: for adapters that wrap adapters. */
export function replaceFeatures(adapter: SimpleAdapter<unknown>, features: AdapterFeatures): void {
  setFeatures(adapter, features);
}

import { randomBytes } from 'node:crypto';
import { ValueError } from '../../src/base/band-errors.js';
import { type Clock, systemClock } from '../../src/base/clock.js';
import type { HttpListener, HttpMount } from '../../src/base/http-mount.js';
import { type Logger, silentLogger } from '../../src/base/log.js';
import { type Metrics, noMetrics } from '../../src/base/metrics.js';
import { parseOptions } from '../../src/config/setting.js';
import { createAgentInput, type AgentInput } from '../../src/core/agent-input.js';
import type { Blocker, BridgeReport, DeadLetters } from '../../src/core/bridge.js';
import { NO_FEATURES, resolveFeatures, type AdapterFeatures, type FeatureOptions } from '../../src/core/features.js';
import type { CleanupReason, FrameworkAdapter } from '../../src/core/framework-adapter.js';
import type { HistoryProvider } from '../../src/core/history.js';
import { isOutsideBrain } from '../../src/core/outside.js';
import type { PlatformMessage } from '../../src/core/platform-message.js';
import { replaceFeatures, SimpleAdapter, type MessageContext } from '../../src/core/simple-adapter.js';
import type { AgentToolsProtocol } from '../../src/core/tools.js';
import type { StateStore } from '../../src/store/port.js';
import type { Dispatcher } from 'undici';
import { resolveApps, type SlackAppConfig, type SlackTransport } from './apps.js';
import { openParts, type SlackParts } from './parts.js';
import { slackSettings, type SlackOptions, type SlackOptionsInput } from './settings.js';

export interface SlackPorts {
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  /** Where everything accepted is kept; left out, a LevelDB folder of the adapter's own under `dataDir`. */
  readonly store?: StateStore;
  /** Where the records stand in the store; default `slack/main`. */
  readonly prefix?: string;
  /** Folder for files and for a store of the adapter's own; default `.band-gateway` in the working folder. */
  readonly dataDir?: string;
  /** The server that the HTTP door is mounted on; left out, `requestListener` is the host's to mount. */
  readonly http?: HttpMount;
  readonly dispatcher?: Dispatcher;
  readonly random?: () => number;
  /** Transport where neither the settings nor the tokens say; default `http`. */
  readonly usualTransport?: SlackTransport;
}

export interface SlackAdapterOptions extends SlackOptionsInput, FeatureOptions {
  /** The brain: an adapter that decides what to answer. */
  readonly inner: FrameworkAdapter;
}

const OWN_OPTIONS: ReadonlySet<string> = new Set(
  Object.keys(slackSettings.tree).map((key) => key.replace(/_(\w)/g, (_all, letter: string) => letter.toUpperCase())),
);

/**
 * A Slack workspace in front of a brain.
 *
 * In: door (HTTP, socket) → inbox, then the acknowledgement → lane of the thread → gate → room → brain's turn.
 * Back: brain's reply, or a peer's message by the relay → outbox → lane of the channel → Slack.
 *
 * @throws {ValueError} no app, two of one slug, an app without the tokens of its transport, an unknown transport
 * @throws {TypeError} an option that nobody knows; {ValidationError} a setting that is not valid
 */
export class SlackAdapter extends SimpleAdapter {
  readonly inner: FrameworkAdapter;
  readonly apps: readonly SlackAppConfig[];
  readonly #options: SlackOptions;
  readonly #ports: SlackPorts;
  #parts: SlackParts | null = null;
  #listener: HttpListener | null = null;

  constructor({ inner, ...options }: SlackAdapterOptions, ports: SlackPorts = {}) {
    const own = Object.entries(options).filter(([name]) => OWN_OPTIONS.has(name));
    const features = Object.fromEntries(Object.entries(options).filter(([name]) => !OWN_OPTIONS.has(name)));
    super();
    if (typeof inner !== 'object' || typeof inner.onEvent !== 'function') {
      throw new ValueError('SlackAdapter needs an inner adapter');
    }
    this.inner = inner;
    this.#ports = ports;
    const merged = mergeFeatures(inner, features);
    replaceFeatures(this, merged);
    if (inner instanceof SimpleAdapter) replaceFeatures(inner, merged);
    this.#options = parseOptions(slackSettings, Object.fromEntries(own) as SlackOptionsInput, 'SlackAdapter');
    this.apps = resolveApps(this.#options, ports.usualTransport);
  }

  /** As the brain wishes for messages of the room. */
  get reportsWorkingState(): boolean {
    return this.inner.reportsWorkingState ?? true;
  }

  /**
   * Slack's HTTP door as a Node request listener, the same on each access, for any framework to mount.
   *
   * @throws {RuntimeError} when every app uses the socket
   */
  get requestListener(): HttpListener {
    if (this.apps.every(({ transport }) => transport === 'socket')) {
      throw new ValueError("there is no HTTP door: set transport='http'");
    }
    this.#listener ??= (request, response) => {
      const listener = this.#parts?.listener;
      if (listener) listener(request, response);
      else response.writeHead(503).end('not started');
    };
    return this.#listener;
  }

  /** {@link requestListener} under the name the Python reference gives it; Express takes it as `app.use('/slack', router)`. */
  get router(): HttpListener {
    return this.requestListener;
  }

  override async onStarted(name: string, description: string): Promise<void> {
    await super.onStarted(name, description);
    const { clock = systemClock, log = silentLogger, metrics = noMetrics } = this.#ports;
    this.#parts = await openParts({
      apps: this.apps,
      options: this.#options,
      inner: this.inner,
      agentName: name,
      agentId: this.requirePlatform().agentId,
      features: this.features,
      rest: this.buildRestClient(),
      clock,
      log,
      metrics,
      store: this.#ports.store ?? null,
      prefix: this.#ports.prefix ?? 'slack/main',
      dataDir: this.#ports.dataDir ?? '.band-gateway',
      dispatcher: this.#ports.dispatcher,
      random: this.#ports.random ?? Math.random,
      newId: () => randomBytes(12).toString('base64url'),
    });
    try {
      this.inner.platform = this.requirePlatform();
      if (isOutsideBrain(this.inner)) this.inner.connectOutlet(this.#parts.outlet);
      await this.inner.onStarted(name, description);
      await this.#parts.start();
      if (this.apps.some(({ transport }) => transport === 'http')) await this.#mount(this.#parts);
    } catch (error) {
      await this.#parts.stop();
      throw error;
    }
    log.info({ apps: this.apps.length, agentName: name }, 'Slack bridge started');
  }

  /** A message of the room: a peer answers, or somebody there speaks to this agent. */
  override async onEvent(input: AgentInput): Promise<void> {
    const parts = this.#need();
    const place = await parts.placeOf(input);
    if (!place) {
      await this.inner.onEvent(input);
      return;
    }
    const note = [place.note, input.participantsMsg].filter(Boolean).join('\n\n');
    await place.run((tools) =>
      this.inner.onEvent(createAgentInput({ ...input, tools, participantsMsg: note === '' ? null : note })),
    );
  }

  /** {@link onEvent} in the form of a plain adapter. */
  async onMessage(
    msg: PlatformMessage,
    tools: AgentToolsProtocol,
    history: HistoryProvider,
    participantsMsg: string | null,
    contactsMsg: string | null,
    { isSessionBootstrap, roomId, signal }: MessageContext,
  ): Promise<void> {
    const parts = { msg, tools, history, participantsMsg, contactsMsg, isSessionBootstrap, roomId, signal };
    await this.onEvent(createAgentInput(parts));
  }

  override async onCleanup(roomId: string, context?: { readonly reason: CleanupReason }): Promise<void> {
    this.#parts?.roomClosed(roomId);
    await this.inner.onCleanup(roomId, context);
  }

  /** A control signal from Band does in the thread what its buttons do (S-166). */
  onControl(roomId: string | null, mode: 'interrupt' | 'stop' | 'play'): void {
    this.#parts?.control(roomId, mode);
  }

  /** Stops taking, lets turns finish, stops the brain, writes out what can be written; safe to repeat. */
  override async cleanupAll(): Promise<void> {
    const parts = this.#parts;
    this.#parts = null;
    await parts?.stop();
  }

  report(): BridgeReport {
    return this.#parts?.report() ?? { links: [], queues: [], lastErrors: [], recent: [] };
  }

  blockers(): readonly Blocker[] {
    return this.#parts?.blockers() ?? [];
  }

  get deadLetters(): DeadLetters {
    return {
      list: async (limit) => (await this.#parts?.deadLetters.list(limit)) ?? [],
      retry: async (id) => (await this.#parts?.deadLetters.retry(id)) ?? false,
      drop: async (id) => (await this.#parts?.deadLetters.drop(id)) ?? false,
    };
  }

  async #mount(parts: SlackParts): Promise<void> {
    const { port, mountPath } = this.#options;
    if (port !== undefined) await parts.listen(port, this.requestListener);
    else if (this.#ports.http) parts.onStop(this.#ports.http.mount(mountPath, this.requestListener));
  }

  #need(): SlackParts {
    if (!this.#parts) throw new ValueError('the Slack bridge has not been started');
    return this.#parts;
  }
}

/** None given: the brain's own. Some given: these, and the brain's for the rest (S-011). */
function mergeFeatures(inner: FrameworkAdapter, given: FeatureOptions): AdapterFeatures {
  const known = inner instanceof SimpleAdapter ? inner.features : NO_FEATURES;
  const innerClass = inner.constructor as Partial<
    Pick<typeof SimpleAdapter, 'SUPPORTED_EMIT' | 'SUPPORTED_CAPABILITIES'>
  >;
  const supported = {
    emit: innerClass.SUPPORTED_EMIT ?? NO_FEATURES.emit,
    capabilities: innerClass.SUPPORTED_CAPABILITIES ?? NO_FEATURES.capabilities,
  };
  const resolved = resolveFeatures('SlackAdapter', given, supported);
  if (Object.values(given).every((value) => value === undefined)) return known;
  return Object.freeze({
    emit: given.emit === undefined ? known.emit : resolved.emit,
    capabilities: given.capabilities === undefined ? known.capabilities : resolved.capabilities,
    includeTools: given.includeTools === undefined ? known.includeTools : resolved.includeTools,
    excludeTools: given.excludeTools === undefined ? known.excludeTools : resolved.excludeTools,
    includeCategories: given.includeCategories === undefined ? known.includeCategories : resolved.includeCategories,
  });
}

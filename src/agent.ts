import { BandConfigError, type BandConnectionError, CleanupIncompleteError } from './base/band-errors.js';
import { abortable, deferred, type Deferred } from './base/async.js';
import type { CancelTimer } from './base/clock.js';
import type { Logger } from './base/log.js';
import { loadAgentConfig } from './config/agent-config-file.js';
import type { CleanupRegistry } from './core/cleanup-registry.js';
import type { FrameworkAdapter } from './core/framework-adapter.js';
import { cleanupRegistryOf, closeRestConnections } from './core/simple-adapter.js';
import { agentHandlers } from './runtime/agent-handlers.js';
import type { AgentCreateOptions, AgentFromConfigOptions, AgentParts, RunOptions } from './runtime/agent-options.js';
import type { AgentRuntimeHandlers } from './runtime/agent-runtime.js';
import { Cleanup, CleanupPhase } from './runtime/cleanup.js';
import type { ContactEventConfig } from './runtime/contacts.js';
import type { InstanceLock } from './runtime/instance-lock.js';
import { PlatformRuntime } from './runtime/platform-runtime.js';
import { agentPorts, type AgentPorts } from './runtime/ports.js';
import { DefaultPreprocessor } from './runtime/preprocessor.js';
import { watchSignals } from './runtime/signals.js';
import { BAND_SDK_VERSION } from './runtime/version.js';

export type { AgentCreateOptions, AgentFromConfigOptions, AgentParts, RunOptions } from './runtime/agent-options.js';

type AgentState = 'new' | 'starting' | 'running' | 'stopping' | 'cleanup_pending' | 'stopped';

const DEFAULT_SHUTDOWN_SECONDS = 30;
/** What a start that meets an immediate stop gets to come to its end. */
const START_PATIENCE_SECONDS = 5;
const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];

/**
 * A Band agent: one identity, one adapter, kept online.
 *
 *     new → starting → running → stopping → stopped
 *              ↓                    ↓ ↑
 *             new             cleanup pending
 *
 * A start undoes itself when it fails. A stop keeps what could not be cleaned up and takes it up again at the next one.
 */
export class Agent implements AsyncDisposable {
  readonly runtime: PlatformRuntime;
  readonly #adapter: FrameworkAdapter;
  readonly #handlers: AgentRuntimeHandlers;
  readonly #ports: AgentPorts;
  readonly #lock: InstanceLock | null;
  readonly #registry: CleanupRegistry | null;
  #state: AgentState = 'new';
  #starting: Promise<void> = Promise.resolve();
  #stopping: Promise<boolean> = Promise.resolve(true);
  #cleanup: Cleanup | null = null;
  #graceful = true;
  /** Ends the wait for running work. */
  #hurry = new AbortController();
  #cancelHurry: CancelTimer = () => undefined;
  #abortStart = new AbortController();
  /** Resolves when the running agent is stopped by anyone, or with why its connection ended for good. */
  #interrupted: Deferred<BandConnectionError | null> = deferred();
  #shutdownTimeout: number | null = DEFAULT_SHUTDOWN_SECONDS;

  /** Puts the parts together; {@link Agent.create} makes them. */
  constructor(parts: AgentParts, ports: Partial<AgentPorts> = {}) {
    this.runtime = parts.runtime;
    this.#adapter = parts.adapter;
    this.#ports = agentPorts(ports);
    this.#handlers = agentHandlers({
      runtime: parts.runtime,
      adapter: parts.adapter,
      clock: this.#ports.clock,
      preprocessor: parts.preprocessor ?? new DefaultPreprocessor(),
      onParticipantAdded: parts.onParticipantAdded,
      onParticipantRemoved: parts.onParticipantRemoved,
      redact: this.#ports.redactor,
      log: () => this.#log,
    });
    this.#lock = this.runtime.config.singleInstance ? this.#ports.createLock(this.runtime.agentId) : null;
    this.#registry = cleanupRegistryOf(this.#adapter);
  }

  /**
   * An agent that is not started yet. Opens nothing, and reads the process environment for addresses and session
   * settings at this moment; no `.env` file is read.
   *
   * @param ports - the world, where a program or a test has its own
   * @throws {BandConfigError} without an adapter, an agent id or a key
   */
  static create(options: AgentCreateOptions, ports: Partial<AgentPorts> = {}): Agent {
    const given = options as Partial<AgentCreateOptions>;
    if (!given.adapter) throw new BandConfigError('An Agent needs an adapter');
    if (!given.agentId) throw new BandConfigError('An Agent needs an agentId');
    if (typeof given.apiKey !== 'string') throw new BandConfigError('An Agent needs an apiKey');
    const runtime = new PlatformRuntime(options, ports);
    const agent = new Agent({ ...options, runtime }, ports);
    if (runtime.urlWarning !== null) agent.#log.warn(runtime.urlWarning);
    return agent;
  }

  /**
   * {@link create} with the credentials that a YAML file has under `name`.
   *
   * @throws {BandConfigError} as {@link loadAgentConfig}
   */
  static fromConfig(name: string, options: AgentFromConfigOptions, ports: Partial<AgentPorts> = {}): Agent {
    const { configPath, ...rest } = options;
    return Agent.create({ ...rest, ...loadAgentConfig(name, { configPath }) }, ports);
  }

  /** As the platform knows it; empty before the first start. */
  get agentName(): string {
    return this.runtime.agentName;
  }

  get agentDescription(): string {
    return this.runtime.agentDescription;
  }

  get contactConfig(): ContactEventConfig {
    return this.runtime.contactConfig;
  }

  get isContactsSubscribed(): boolean {
    return this.runtime.isContactsSubscribed;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /**
   * Brings the agent online: lock → who am I → adapter's `onStarted` → connection → rooms → contacts. Callers share a
   * start; on a running agent it changes nothing.
   *
   * @throws {AgentAlreadyRunningError} when this agent id runs elsewhere on this host, or at the platform under `reject`
   * @throws {CleanupIncompleteError} while an earlier stop left clean-up undone
   * @throws {BandConfigError} when the adapter was disposed of, or serves another Agent and has clean-up of its own
   * @throws {ApiError} when the platform refused, e.g. 401; {BandConnectionError} when it could not be reached
   * @throws {ValueError} when the agent has no description
   */
  async start(): Promise<void> {
    while (this.#state === 'stopping') await this.#stopping.catch(() => undefined);
    switch (this.#state) {
      case 'running':
        this.#log.warn('Agent already started');
        return;
      case 'cleanup_pending':
        throw new CleanupIncompleteError();
      case 'starting':
        return this.#starting;
      case 'new':
      case 'stopped':
        this.#state = 'starting';
        this.#starting = this.#start();
        return this.#starting;
    }
  }

  /**
   * Takes the agent offline and cleans up. Callers share one attempt; a call with null hurries a graceful one. A start
   * that is under way is waited for, and ended when it takes longer than running work would get.
   *
   * @param timeout - seconds that running work gets; null, the default, cancels it at once
   * @returns false when running work was cancelled
   * @throws {RangeError} for a negative or non-finite timeout
   * @throws {AggregateError} when something could not be cleaned up; the next stop() tries that again
   */
  async stop(timeout: number | null = null): Promise<boolean> {
    if (timeout !== null && !(Number.isFinite(timeout) && timeout >= 0)) {
      throw new RangeError(`stop() takes seconds of 0 or more, or null, got ${timeout}`);
    }
    while (this.#state === 'starting') await this.#settleStart(timeout ?? START_PATIENCE_SECONDS);
    switch (this.#state) {
      case 'new':
      case 'stopped':
        if (!this.#registry?.pending) return true;
        // A start that failed leaves registered clean-up for the stop.
        this.#graceful = true;
        this.#cleanup = new Cleanup([this.#registeredCleanup()]);
        this.#stopping = this.#stop();
        return this.#stopping;
      case 'running':
        this.#beginCleanup(timeout);
        this.#stopping = this.#stop();
        return this.#stopping;
      case 'cleanup_pending':
        this.#hurryAfter(timeout);
        this.#stopping = this.#stop();
        return this.#stopping;
      case 'stopping':
        if (timeout === null) this.#hurry.abort();
        return this.#stopping;
    }
  }

  /**
   * Starts, waits for a signal, a stop or the end of the connection, and stops.
   *
   * @throws what {@link start} and {@link stop} throw; {BandConnectionError} when the platform ended the connection
   */
  async run(options: RunOptions = {}): Promise<void> {
    const { shutdownTimeout = DEFAULT_SHUTDOWN_SECONDS, installSignalHandlers = true } = options;
    this.#shutdownTimeout = shutdownTimeout;
    const signalled = this.#watchSignals(installSignalHandlers);
    try {
      try {
        await this.start();
      } catch (error) {
        if (signalled.came()) return; // the signal ended the start
        throw error;
      }
      const ended = await Promise.race([this.#interrupted.promise, signalled.first]);
      await this.#stopAfter(ended, shutdownTimeout);
    } finally {
      signalled.remove();
    }
  }

  /**
   * Waits like {@link run}, for an agent that its owner started; a signal stops it. Without a start it returns at once.
   *
   * @throws {BandConnectionError} when the platform ended the connection; the agent is not stopped then
   */
  async runForever(options: Pick<RunOptions, 'installSignalHandlers'> = {}): Promise<void> {
    if (this.#state !== 'running' && this.#state !== 'starting') return;
    const signalled = this.#watchSignals(options.installSignalHandlers ?? true);
    try {
      await this.#starting;
      const ended = await Promise.race([this.#interrupted.promise, signalled.first]);
      if (ended) throw ended;
      if (signalled.came()) await this.stop(this.#shutdownTimeout);
      else await this.#stopping.catch(() => undefined); // whoever stopped it hears of failures
    } finally {
      signalled.remove();
    }
  }

  /** Starts, and hands the agent back: `await using agent = await Agent.create(…).enter()`. */
  async enter(): Promise<this> {
    await this.start();
    return this;
  }

  /** Stops with the timeout that was given to `run()`, else 30 seconds. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop(this.#shutdownTimeout);
  }

  get #log(): Logger {
    return this.#ports.log('band.agent');
  }

  async #start(): Promise<void> {
    this.#interrupted = deferred();
    this.#abortStart = new AbortController();
    const { signal } = this.#abortStart;
    const undo: (() => Promise<void> | void)[] = [];
    try {
      await this.#lock?.claim();
      undo.push(() => this.#lock?.release());
      this.#registry?.host(this);
      undo.push(() => this.#registry?.unhost(this));
      await this.runtime.initialize(signal);
      this.#adapter.platform = this.runtime.connection;
      undo.push(() => this.#adapter.cleanupAll?.());
      await abortable(this.#adapter.onStarted(this.runtime.agentName, this.runtime.agentDescription), signal);
      signal.throwIfAborted();
      undo.push(async () => {
        const closing = this.runtime.closing(
          () => AbortSignal.abort(),
          () => undefined,
        );
        for (const failure of await closing.run()) this.#log.warn({ err: failure }, 'a failed start left something');
      });
      await this.runtime.connect(
        this.#handlers,
        (error) => {
          this.#interrupted.resolve(error);
        },
        signal,
      );
      signal.throwIfAborted();
    } catch (error) {
      await this.#undo(undo);
      this.#state = 'new';
      throw error;
    }
    this.#state = 'running';
    this.#log.info(`Agent started: ${this.agentName} (band-sdk ${BAND_SDK_VERSION})`);
  }

  async #settleStart(patienceSeconds: number): Promise<void> {
    const abortStart = this.#abortStart;
    const cancel = this.#ports.clock.after(patienceSeconds * 1_000, () => {
      abortStart.abort(new Error('The agent was stopped before it was online.'));
    });
    await this.#starting.catch(() => undefined);
    cancel();
  }

  /** Takes back what a failed start did, last first. The start's own error is the one that counts. */
  async #undo(steps: readonly (() => Promise<void> | void)[]): Promise<void> {
    for (const step of [...steps].reverse()) {
      try {
        await step();
      } catch (error) {
        this.#log.warn({ err: error }, 'a failed start could not be undone completely');
      }
    }
    await this.#closeConnections();
  }

  #beginCleanup(timeout: number | null): void {
    this.#graceful = true;
    this.#hurryAfter(timeout);
    this.#cleanup = new Cleanup([
      this.runtime.closing(
        () => this.#hurry.signal,
        (graceful) => {
          this.#graceful = graceful;
        },
      ),
      new CleanupPhase([async () => this.#adapter.cleanupAll?.()]),
      this.#registeredCleanup(),
    ]);
  }

  /** The callbacks of `addCleanup`, after everything that may still use what they free. */
  #registeredCleanup(): CleanupPhase {
    return new CleanupPhase([
      async () => {
        const failures = (await this.#registry?.run()) ?? [];
        if (failures.length > 0) throw new AggregateError(failures);
      },
    ]);
  }

  #hurryAfter(timeout: number | null): void {
    const hurry = new AbortController();
    this.#hurry = hurry;
    this.#cancelHurry();
    if (timeout === null) hurry.abort();
    else {
      this.#cancelHurry = this.#ports.clock.after(timeout * 1_000, () => {
        hurry.abort();
      });
    }
  }

  async #stop(): Promise<boolean> {
    this.#state = 'stopping';
    this.#interrupted.resolve(null);
    const failures = [...((await this.#cleanup?.run()) ?? [])];
    this.#cancelHurry();
    if (failures.length === 0) {
      await this.#lock?.release().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) {
      this.#state = 'cleanup_pending';
      throw new AggregateError(failures, 'Agent cleanup remains incomplete');
    }
    this.#registry?.unhost(this);
    await this.#closeConnections();
    this.#cleanup = null;
    this.#state = 'stopped';
    this.#log.info(`Agent stopped: ${this.agentName} (graceful=${this.#graceful})`);
    return this.#graceful;
  }

  async #stopAfter(ended: BandConnectionError | null, timeout: number | null): Promise<void> {
    try {
      await this.stop(timeout);
    } catch (error) {
      if (!ended) throw error;
      this.#log.error({ err: error }, 'the agent could not be stopped completely');
    }
    if (ended) throw ended;
  }

  async #closeConnections(): Promise<void> {
    await this.runtime.closeConnections(() => closeRestConnections(this.#adapter));
  }

  /** The first signal ends the wait, and a start that is under way; the next one hurries the stop. */
  #watchSignals(install: boolean): { readonly first: Promise<null>; came(): boolean; remove(): void } {
    if (!install) return { first: deferred<null>().promise, came: () => false, remove: () => undefined };
    const first = deferred<null>();
    let signals = 0;
    const watch = watchSignals(this.#ports.process, STOP_SIGNALS, (signal, count) => {
      signals = count;
      first.resolve(null);
      this.#abortStart.abort(new Error(`Ended by ${signal}.`));
      if (count > 1) void this.stop(null).catch(() => undefined); // reported by the stop that is under way
    });
    return {
      first: first.promise,
      came: () => signals > 0,
      remove: () => {
        watch.remove();
      },
    };
  }
}

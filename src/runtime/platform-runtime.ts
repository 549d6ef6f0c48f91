import { BandConnectionError } from '../base/band-errors.js';
import { backoffMs } from '../base/backoff.js';
import { isGatewayError } from '../base/errors.js';
import { resolvePlatformUrls } from '../config/platform-urls.js';
import { SessionConfig } from '../config/session-config.js';
import { createPlatformConnection, type PlatformConnection } from '../core/platform-connection.js';
import { RenewableDispatcher } from '../core/renewable-dispatcher.js';
import type { BandLink, LinkEvent, LinkState } from '../platform/link-port.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import { createDispatcher } from '../platform/rest/dispatcher.js';
import { topics } from '../platform/topics.js';
import { AgentConfig, type AgentConfigInit } from './agent-config.js';
import { AgentRuntime, type AgentRuntimeHandlers } from './agent-runtime.js';
import { CleanupPhase } from './cleanup.js';
import { connectError } from './connect-error.js';
import { ContactsHandling } from './contacts-handling.js';
import { ContactEventConfig, ContactEventStrategy } from './contacts.js';
import { HubRoom } from './hub-room.js';
import { fetchMetadata } from './metadata.js';
import { agentPorts, type AgentPorts } from './ports.js';

export interface PlatformRuntimeOptions {
  readonly agentId: string;
  readonly apiKey: string;
  readonly wsUrl?: string | null | undefined;
  readonly restUrl?: string | null | undefined;
  readonly config?: AgentConfigInit | undefined;
  readonly sessionConfig?: SessionConfig | undefined;
  readonly contactConfig?: ContactEventConfig | undefined;
}

/** One connected life of the runtime, from a start to its stop. */
interface Session {
  readonly link: BandLink;
  readonly rooms: AgentRuntime;
  readonly contacts: ContactsHandling;
  readonly ending: AbortController;
  /** Resolves when the last event of the link was handed out. */
  readonly consumed: Promise<void>;
}

const REJOIN = { baseMs: 1_000, maxMs: 60_000 };
const LET_GO_MS = 1_000;

/**
 * An agent's side of the platform: who it is there, the connection, the rooms and contacts that live on it. Resolves
 * its two addresses when it is made, and opens nothing before {@link connect}.
 */
export class PlatformRuntime {
  readonly agentId: string;
  readonly connection: PlatformConnection;
  readonly config: AgentConfig;
  readonly sessionConfig: SessionConfig;
  readonly contactConfig: ContactEventConfig;
  /** Calls to the platform with this agent's key. */
  readonly rest: BandRest;
  readonly #ports: AgentPorts;
  readonly #connections: RenewableDispatcher | null;
  readonly #urlWarning: string | null;
  #name = '';
  #description = '';
  #session: Session | null = null;

  constructor(options: PlatformRuntimeOptions, ports: Partial<AgentPorts> = {}) {
    this.#ports = agentPorts(ports);
    const { wsUrl, restUrl, warning } = resolvePlatformUrls(options);
    const { agentId, apiKey } = options;
    this.agentId = agentId;
    this.connection = createPlatformConnection({ agentId, apiKey, wsUrl, restUrl });
    this.config = new AgentConfig(options.config);
    this.sessionConfig = options.sessionConfig ?? new SessionConfig();
    this.contactConfig = options.contactConfig ?? new ContactEventConfig();
    this.#urlWarning = warning;
    this.#ports.redactor.add(apiKey);
    const { dispatcher, clock, random, metrics, log, createRest } = this.#ports;
    const own = new RenewableDispatcher(() => createDispatcher(process.env));
    this.#connections = dispatcher ? null : own;
    this.rest = createRest({
      restUrl,
      apiKey,
      dispatcher: dispatcher ?? own,
      clock,
      random,
      metrics,
      log: log('band.rest'),
    });
  }

  /** What to tell the operator about the addresses; null when there is nothing to tell. */
  get urlWarning(): string | null {
    return this.#urlWarning;
  }

  /** As the platform knows it; empty before {@link initialize}. */
  get agentName(): string {
    return this.#name;
  }

  get agentDescription(): string {
    return this.#description;
  }

  get isContactsSubscribed(): boolean {
    return this.#session?.contacts.subscribed ?? false;
  }

  /** State of the connection; null while there is none. */
  get linkState(): LinkState | null {
    return this.#session?.link.state ?? null;
  }

  /** The agent's rooms; null before a start and after a stop. */
  get rooms(): AgentRuntime | null {
    return this.#session?.rooms ?? null;
  }

  /** Asks the platform who this agent is. Asked anew at each start (W-03). */
  async initialize(signal?: AbortSignal): Promise<void> {
    try {
      const me = await fetchMetadata(this.rest, this.agentId, this.#ports.clock, signal);
      this.#name = me.name;
      this.#description = me.description;
    } catch (error) {
      throw connectError(error, this.agentId, this.connection.restUrl);
    }
  }

  /**
   * Connects, joins the agent's own channels and the rooms it is in, and hands out events from then on.
   *
   * @param onEnded - called when the platform ended the connection for good
   * @throws {AgentAlreadyRunningError} when the platform refused under the policy `reject`
   */
  async connect(
    handlers: AgentRuntimeHandlers,
    onEnded: (error: BandConnectionError) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    const session = this.#open(handlers);
    const { link, rooms, contacts } = session;
    this.#session = session;
    try {
      await link.connect(signal);
      await link.join(topics.control(this.agentId), signal);
      await link.join(topics.rooms(this.agentId), signal);
      void this.#watch(session, onEnded);
      await rooms.presence.synchronise();
      await contacts.start(signal);
    } catch (error) {
      throw connectError(error, this.agentId, this.connection.wsUrl);
    }
  }

  /** What must end, in this order; each unit is tried again until it succeeds. */
  closing(hurry: () => AbortSignal, done: (graceful: boolean) => void): CleanupPhase {
    const session = this.#session;
    if (!session) return new CleanupPhase([]);
    const { rooms, contacts, link, ending, consumed } = session;
    return new CleanupPhase([
      async () => {
        done(await rooms.stop(hurry()));
      },
      () => contacts.stop(),
      async () => {
        ending.abort(new Error('The agent is stopping.'));
        await link.close();
        await consumed;
        this.#session = null;
      },
    ]);
  }

  /**
   * Lets go of the connections for REST calls; they come back when they are needed.
   *
   * @param others - closes those of others, e.g. of the clients that an adapter built
   */
  async closeConnections(others: () => Promise<void>): Promise<void> {
    const closed = Promise.allSettled([this.#connections?.close(), others()]);
    // A call that an adapter left behind must not hold up the stop.
    const giveUp = new AbortController();
    const patience = this.#ports.clock.sleep(LET_GO_MS, giveUp.signal).catch(() => undefined);
    await Promise.race([closed, patience]);
    giveUp.abort();
  }

  #open(handlers: AgentRuntimeHandlers): Session {
    const { clock, random, metrics, log, createLink, newId, redactor } = this.#ports;
    const { agentId, rest, sessionConfig, contactConfig } = this;
    const { wsUrl, apiKey } = this.connection;
    const link = createLink({
      wsUrl,
      agentId,
      apiKey,
      onConflict: this.config.conflictPolicy,
      clock,
      random,
      metrics,
      log: log('band.link'),
    });
    const runtimeLog = log('band.runtime');
    const rooms = new AgentRuntime({
      agentId,
      link,
      rest,
      clock,
      random,
      log: runtimeLog,
      metrics,
      settings: sessionConfig,
      handlers,
      redact: redactor,
    });
    const hub =
      contactConfig.strategy === ContactEventStrategy.HUB_ROOM
        ? new HubRoom({ rest, runtime: rooms, clock, newId, log: runtimeLog, taskId: contactConfig.hubTaskId })
        : null;
    const contacts = new ContactsHandling({
      agentId,
      config: contactConfig,
      link,
      rest,
      clock,
      random,
      log: runtimeLog,
      hub,
      broadcast: (notice) => {
        rooms.addNotice(notice);
      },
    });
    // Before the connection, so that no signal is missed.
    link.onControl((control) => {
      rooms.control(control);
    });
    link.onState(({ kind }) => handlers.connectionChanged?.(kind === 'connected'));
    const ending = new AbortController();
    const consumed = this.#consume({ link, rooms, contacts, ending });
    return { link, rooms, contacts, ending, consumed };
  }

  async #consume(session: Omit<Session, 'consumed'>): Promise<void> {
    for await (const event of session.link.events) {
      try {
        this.#take(session, event);
      } catch (error) {
        this.#ports.log('band.runtime').error({ err: error, kind: event.kind }, 'an event could not be taken in');
      }
    }
  }

  #take({ link, rooms, contacts, ending }: Omit<Session, 'consumed'>, event: LinkEvent): void {
    switch (event.kind) {
      case 'contact_request_received':
      case 'contact_request_updated':
      case 'contact_added':
      case 'contact_removed':
        contacts.handle(event);
        return;
      case 'topic_lost':
        if (event.roomId === null) void this.#rejoin(link, event.topic, { rooms, contacts }, ending.signal);
        else rooms.dispatch(event);
        return;
      case 'reconnected':
        catchUp({ rooms, contacts }, event);
        return;
      case 'resync':
        if (event.roomId === null) catchUp({ rooms, contacts }, event);
        else rooms.dispatch(event);
        return;
      default:
        rooms.dispatch(event);
    }
  }

  /** The agent's own channels are joined again until they are; what they would have told is listed. */
  async #rejoin(link: BandLink, topic: string, listeners: Listeners, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#ports;
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        await clock.sleep(backoffMs(tries, { ...REJOIN, random }), signal);
        await link.join(topic, signal);
        catchUp(listeners, { kind: 'resync', roomId: null, why: 'rejoined' });
        return;
      } catch (error) {
        if (isAborted(signal) || isGatewayError(error, 'BAND_LINK_CLOSED')) return;
        log('band.runtime').warn({ err: error, topic, tries }, 'a channel of the agent could not be joined again yet');
      }
    }
  }

  /** A connection that ended for good takes no new work: another process may be doing it already. */
  async #watch({ link, rooms, ending }: Session, onEnded: (error: BandConnectionError) => void): Promise<void> {
    const error = await link.closed;
    if (error === null || ending.signal.aborted) return;
    rooms.closeIntake();
    onEnded(
      new BandConnectionError(`The platform ended the connection of agent ${this.agentId}: ${error.message}`, {
        cause: error,
      }),
    );
  }
}

type Listeners = Pick<Session, 'rooms' | 'contacts'>;

/** Pushes may have been missed anywhere. */
function catchUp({ rooms, contacts }: Listeners, event: LinkEvent): void {
  rooms.dispatch(event);
  contacts.catchUp();
}

/** Asked anew after a wait, whatever was known before it. */
const isAborted = (signal: AbortSignal) => signal.aborted;

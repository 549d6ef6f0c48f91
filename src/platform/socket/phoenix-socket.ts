import { deferred } from '../../base/async.js';
import type { Clock } from '../../base/clock.js';
import { GatewayError } from '../../base/errors.js';
import type { Logger } from '../../base/log.js';
import type { LinkState } from '../link-port.js';
import { type ChannelEvents, Channels } from './channels.js';
import { Connection, type ConnectionEnd } from './connection.js';
import { type ReconnectPolicy, STABLE_MS } from './reconnect-policy.js';
import type { OnConflict } from './socket-url.js';
import type { OpenWebSocket } from './web-socket.js';

interface PhoenixSocketOptions {
  readonly open: OpenWebSocket;
  /** The address of an upgrade request that carries `onConflict`. */
  readonly urlFor: (onConflict: OnConflict | undefined) => string;
  readonly headers: Readonly<Record<string, string>>;
  readonly policy: ReconnectPolicy;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly maxJoinsInFlight: number;
  /** Failed tries after which the first `connect` gives up. */
  readonly initialTries: number;
  readonly events: PhoenixSocketEvents;
}

interface PhoenixSocketEvents extends Omit<ChannelEvents, 'recovered'> {
  /** A socket that had been open is gone. */
  down(why: string): void;
  /** A later socket than the first is open and all topics have had their answers. */
  reconnected(): void;
  stateChanged(state: LinkState): void;
}

/** A Phoenix socket that comes back by its {@link ReconnectPolicy} until it is closed or ended for good. */
export class PhoenixSocket {
  readonly #options: PhoenixSocketOptions;
  readonly #channels: Channels;
  readonly #stop = new AbortController();
  readonly #firstOpen = deferred();
  readonly #finished = deferred<GatewayError | null>();
  #connection: Connection | null = null;
  /** The last one that was given up, which may still be closing. */
  #previous: Connection | null = null;
  #ref = 0;
  /** Never the same twice, not even on another socket: an old answer can't be taken for a new one. */
  readonly #nextRef = () => String(++this.#ref);
  #connections = 0;
  #started = false;
  #final: { readonly error: GatewayError | null } | null = null;
  #state: Pick<LinkState, 'kind' | 'sinceMs' | 'why' | 'nextTryAtMs'>;

  constructor(options: PhoenixSocketOptions) {
    this.#options = options;
    this.#state = { kind: 'new', sinceMs: options.clock.now(), why: null, nextTryAtMs: null };
    this.#channels = new Channels({
      clock: options.clock,
      random: options.random,
      nextRef: this.#nextRef,
      maxJoinsInFlight: options.maxJoinsInFlight,
      events: {
        ...options.events,
        recovered: () => {
          if (this.#connections > 1) options.events.reconnected();
        },
      },
    });
    this.#firstOpen.promise.catch(() => undefined); // connect() reports it, when it was called
  }

  /** Why it ended for good; null after {@link close}. */
  get finished(): Promise<GatewayError | null> {
    return this.#finished.promise;
  }

  get state(): LinkState {
    const { policy, clock } = this.#options;
    const stable = this.#state.kind === 'connected' && clock.now() - this.#state.sinceMs >= STABLE_MS;
    return {
      ...this.#state,
      failures: stable ? 0 : policy.failures,
      topicsJoined: this.#channels.joined,
      topicsKnown: this.#channels.known,
    };
  }

  /** Resolves when the first socket is open; a `signal` that aborts before closes everything. */
  async connect(signal?: AbortSignal): Promise<void> {
    if (this.#final) throw endedError(this.#final.error);
    const onAbort = () => {
      this.#firstOpen.reject(signal?.reason);
      void this.close();
    };
    if (signal?.aborted) {
      onAbort();
      throw signal.reason;
    }
    signal?.addEventListener('abort', onAbort, { once: true });
    if (!this.#started) {
      this.#started = true;
      void this.#run();
    }
    try {
      await this.#firstOpen.promise;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  join(topic: string, signal?: AbortSignal): Promise<void> {
    return this.#channels.join(topic, signal);
  }

  leave(topic: string): Promise<void> {
    return this.#channels.leave(topic);
  }

  /** Leaves every topic, closes with 1000. */
  async close(): Promise<void> {
    if (!this.#final) {
      this.#final = { error: null };
      if (this.#connection?.isOpen) {
        await Promise.all([...this.#channels.topics()].map((topic) => this.#channels.leave(topic)));
      }
      this.#shutDown();
    }
    await this.#finished.promise;
  }

  /** Ends for good from inside, e.g. because another connection took over. */
  end(error: GatewayError): void {
    if (this.#final) return;
    this.#final = { error };
    this.#shutDown();
  }

  /** Breaks the waits and the connection; the loop sees it and finishes. */
  #shutDown(): void {
    this.#stop.abort();
    this.#previous?.terminate();
    if (this.#connection) this.#connection.close();
    else if (!this.#started) this.#finish();
  }

  async #run(): Promise<void> {
    const { policy, clock, log } = this.#options;
    for (let tries = 1; !this.#final; tries += 1) {
      this.#enter('connecting', this.#state.why);
      const { end, uptimeMs } = await this.#oneConnection();
      const final = this.#ending();
      if (final) {
        if (final.error && uptimeMs !== null) this.#options.events.down(final.error.message);
        break;
      }
      const verdict = policy.judge(end, uptimeMs);
      if (uptimeMs !== null) this.#options.events.down(verdict.kind === 'retry' ? verdict.why : verdict.error.message);
      if (verdict.kind === 'final') {
        this.#final = { error: verdict.error };
        break;
      }
      if (this.#connections === 0 && tries >= this.#options.initialTries) {
        this.#final = { error: verdict.error };
        break;
      }
      log.warn({ why: verdict.why, waitMs: Math.round(verdict.waitMs), tries: policy.failures }, 'band link is down');
      this.#enter('waiting', verdict.why, clock.now() + verdict.waitMs);
      await clock.sleep(verdict.waitMs, this.#stop.signal).catch(() => undefined); // an abort ends the loop above
    }
    this.#finish();
  }

  /** One socket from its upgrade request to its end. */
  #oneConnection(): Promise<{ end: ConnectionEnd; uptimeMs: number | null }> {
    const { open, urlFor, headers, policy, clock, log, events } = this.#options;
    return new Promise((resolve) => {
      const connection = new Connection({
        open,
        url: urlFor(policy.onConflict),
        headers,
        clock,
        nextRef: this.#nextRef,
        handlers: {
          opened: () => {
            this.#connections += 1;
            policy.opened();
            log.info({ connections: this.#connections }, 'band link connected');
            this.#enter('connected', null);
            this.#firstOpen.resolve();
            this.#channels.attach(connection);
          },
          frame: (frame) => {
            this.#channels.frame(frame);
          },
          garbage: () => {
            events.dropped('garbage', null);
          },
          ended: (end) => {
            const uptimeMs = connection.openedAt === null ? null : clock.now() - connection.openedAt;
            if (end.kind === 'given_up') this.#previous = connection;
            this.#connection = null;
            this.#channels.detach();
            resolve({ end, uptimeMs });
          },
        },
      });
      this.#connection = connection;
    });
  }

  /** A call, so that the compiler knows that close() and end() may have run during a wait. */
  #ending(): { readonly error: GatewayError | null } | null {
    return this.#final;
  }

  #finish(): void {
    const error = this.#final?.error ?? null;
    this.#firstOpen.reject(endedError(error));
    this.#channels.end(
      new GatewayError('BAND_LINK_CLOSED', error === null ? {} : { cause: error, message: error.message }),
    );
    this.#enter('closed', error?.message ?? 'closed by this side');
    this.#finished.resolve(error);
  }

  #enter(kind: LinkState['kind'], why: string | null, nextTryAtMs: number | null = null): void {
    const sameOutage = isTrying(kind) && isTrying(this.#state.kind);
    this.#state = { kind, sinceMs: sameOutage ? this.#state.sinceMs : this.#options.clock.now(), why, nextTryAtMs };
    this.#options.events.stateChanged(this.state);
  }
}

const isTrying = (kind: LinkState['kind']) => kind === 'connecting' || kind === 'waiting';

function endedError(error: GatewayError | null): GatewayError {
  return error ?? new GatewayError('BAND_LINK_CLOSED');
}

import { abortable, childSignal, deferred } from '../../../src/base/async.js';
import { backoffMs } from '../../../src/base/backoff.js';
import { isGatewayError, type GatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { Accept } from './accept.js';
import { openConnection, type Envelope, type OpenConnectionOptions, type SlackConnection } from './socket-client.js';

export interface SocketLinkDeps extends Omit<OpenConnectionOptions, 'onEnvelope' | 'appToken'> {
  readonly slug: string;
  readonly appToken: string;
  /** Connections held at once. */
  readonly connections: number;
  readonly accept: Accept;
  /** What a slash command is answered with once it is on disk; left out or null: nothing. */
  readonly answerTo?: (payload: unknown) => Readonly<Record<string, unknown>> | null;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly random: () => number;
  /** Called when the number of open connections or the reason of a standstill changes. */
  readonly onChange: (state: SocketState) => void;
}

export interface SocketState {
  readonly open: number;
  /** Why no connection is even tried until somebody acts; null while all is well or being retried. */
  readonly parked: GatewayError | null;
  readonly lastError: GatewayError | null;
}

const BACKOFF = { baseMs: 500, maxMs: 30_000 } as const;
const STAGGER_MS = 500;
const LINK_DISABLED_RETRY_MS = 5 * 60_000;
const TOO_MANY_RETRY_MS = 60_000;
/** Reasons of a `disconnect` frame that become a label. */
const REASONS = new Set(['warning', 'refresh_requested', 'link_disabled', 'too_many_websockets']);

/**
 * One app's Socket Mode: so many connections, each replaced before it goes. Envelope → `accept` → acknowledgement; what
 * could not be stored is not acknowledged, and Slack delivers it again.
 */
export class SocketLink {
  readonly #deps: SocketLinkDeps;
  readonly #stopping = new AbortController();
  readonly #live = new Set<SlackConnection>();
  readonly #accepting = new Set<Promise<void>>();
  readonly #disconnects;
  readonly #gauge;
  readonly #saidAt = new Map<string, number>();
  #places: Promise<void>[] = [];
  /** Makes a connection's place give it up. */
  readonly #crowders = new Map<SlackConnection, () => void>();
  #crowdedUntil = Number.NEGATIVE_INFINITY;
  /** The one connection that stays while there is no room for more. */
  #staying: SlackConnection | null = null;
  #parked: GatewayError | null = null;
  #lastError: GatewayError | null = null;
  #wasOpen = false;
  #hasBeenOpen = false;
  #since: number;

  constructor(deps: SocketLinkDeps) {
    this.#deps = deps;
    this.#since = deps.clock.now();
    this.#disconnects = deps.metrics.counter('slack_socket_disconnects_total', 'Connections that ended', [
      'app',
      'reason',
    ]);
    this.#gauge = deps.metrics.gauge('slack_socket_connections', 'Open Socket Mode connections', ['app']);
  }

  start(): void {
    this.#places = Array.from({ length: this.#deps.connections }, (_, place) => this.#hold(place));
  }

  get slug(): string {
    return this.#deps.slug;
  }

  /** Whether there was a connection at any time since the start. */
  get hasBeenOpen(): boolean {
    return this.#hasBeenOpen;
  }

  /** Since when connections are open, or none is. Milliseconds since the epoch. */
  get since(): number {
    return this.#since;
  }

  get state(): SocketState {
    return { open: this.#live.size, parked: this.#parked, lastError: this.#lastError };
  }

  /** Closes every connection once the envelopes at hand are stored and acknowledged. Safe to repeat. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopped'));
    await Promise.all(this.#accepting);
    for (const connection of this.#live) connection.close();
    await Promise.all(this.#places);
  }

  /** Keeps one place filled; never rejects. */
  async #hold(place: number): Promise<void> {
    const { clock, log, slug } = this.#deps;
    const { signal } = this.#stopping;
    let current: SlackConnection | null = null;
    let failures = 0;
    try {
      await clock.sleep(place * STAGGER_MS, signal);
      while (!signal.aborted) {
        // One connection is all that Slack has room for; who holds it goes on.
        if (this.#staying && this.#live.has(this.#staying) && clock.now() < this.#crowdedUntil) {
          await clock.sleep(this.#crowdedUntil - clock.now(), signal);
        }
        const next = await this.#open();
        if ('failure' in next) {
          if (next.failure.code === 'SLACK_UNAUTHORIZED') {
            this.#park(next.failure);
            return;
          }
          failures += 1;
          await this.#refused(next.failure, failures);
          continue;
        }
        // The new one is up: only now may the old one go.
        current?.close();
        current = next.connection;
        const openedAt = clock.now();
        const why = await this.#untilItGoes(current);
        // A connection that lived says that all was well; one that does not may be lost again and again.
        const hasLived = clock.now() - openedAt >= this.#deps.pingTimeoutMs;
        if (hasLived) failures = 0;
        if (why === 'closed') {
          current = null;
          failures += 1;
          if (!hasLived) await clock.sleep(this.#backoff(failures), signal);
        } else if (await this.#asked(why, current)) current = null;
      }
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, app: slug }, 'a Slack connection was given up');
    } finally {
      // A stop lets go of the place at once; what came by its connection is still to be acknowledged there.
      await Promise.all(this.#accepting);
      current?.close();
    }
  }

  async #open(): Promise<{ connection: SlackConnection } | { failure: GatewayError }> {
    const { slug, log } = this.#deps;
    try {
      using child = childSignal(this.#stopping.signal);
      const options = { ...this.#deps, onEnvelope: this.#take };
      const connection = await openConnection(options, child.signal);
      this.#live.add(connection);
      this.#changed(null);
      void connection.gone.then(() => {
        this.#live.delete(connection);
        this.#changed(this.#lastError);
      });
      return { connection };
    } catch (error) {
      if (this.#stopping.signal.aborted || !isGatewayError(error)) throw error;
      log.warn({ err: error, app: slug }, 'a Slack connection could not be opened');
      this.#changed(error);
      return { failure: error };
    }
  }

  /** @returns the reason Slack gives for leaving, `closed`, or `crowded` where another connection is the one to stay */
  async #untilItGoes(connection: SlackConnection): Promise<string> {
    const crowded = deferred<string>();
    this.#crowders.set(connection, () => {
      crowded.resolve('crowded');
    });
    const either = Promise.race([connection.askedToLeave, connection.gone.then(() => 'closed'), crowded.promise]);
    try {
      const why = await abortable(either, this.#stopping.signal);
      this.#noteLoss(why);
      return why;
    } finally {
      this.#crowders.delete(connection);
    }
  }

  /** @returns whether the connection was given up before there is another */
  async #asked(why: string, connection: SlackConnection): Promise<boolean> {
    switch (why) {
      case 'link_disabled':
        connection.close();
        await this.#waitForSwitch();
        return true;
      case 'too_many_websockets':
        connection.close();
        await this.#makeRoom(connection);
        return true;
      case 'crowded':
        connection.close();
        return true;
      default:
        return false;
    }
  }

  /** No connection came to be: waits as the reason asks. */
  async #refused(failure: GatewayError, failures: number): Promise<void> {
    const { reason } = failure.details;
    if (typeof reason === 'string') this.#noteLoss(reason);
    if (reason === 'link_disabled') await this.#waitForSwitch();
    else if (reason === 'too_many_websockets') await this.#makeRoom(null);
    else await this.#deps.clock.sleep(failure.retryAfterMs ?? this.#backoff(failures), this.#stopping.signal);
  }

  async #waitForSwitch(): Promise<void> {
    const { slug, clock } = this.#deps;
    this.#alert(LINK_DISABLED_RETRY_MS, 'link_disabled', () => {
      this.#deps.log.error({ app: slug }, 'Socket Mode is switched off for this app: switch it on in its settings');
    });
    await clock.sleep(LINK_DISABLED_RETRY_MS, this.#stopping.signal);
  }

  /** Slack has no room for this many connections: one stays, and the others are tried again after a minute. */
  async #makeRoom(leaving: SlackConnection | null): Promise<void> {
    const { slug, clock, log } = this.#deps;
    this.#alert(TOO_MANY_RETRY_MS, 'too_many_websockets', () => {
      log.error({ app: slug }, 'too many connections of this app: going on with one');
    });
    this.#staying = [...this.#live].find((connection) => connection !== leaving) ?? null;
    this.#crowdedUntil = clock.now() + TOO_MANY_RETRY_MS;
    for (const [connection, leave] of this.#crowders) if (connection !== this.#staying) leave();
    await clock.sleep(TOO_MANY_RETRY_MS, this.#stopping.signal);
  }

  /** Several places meet the same trouble at the same time: it is said once. */
  #alert(everyMs: number, what: string, say: () => void): void {
    const now = this.#deps.clock.now();
    if (now - (this.#saidAt.get(what) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
    this.#saidAt.set(what, now);
    say();
  }

  #noteLoss(why: string): void {
    this.#disconnects.inc({ app: this.#deps.slug, reason: REASONS.has(why) ? why : 'other' });
  }

  #backoff(failures: number): number {
    return backoffMs(failures, { ...BACKOFF, random: this.#deps.random });
  }

  #park(failure: GatewayError): void {
    if (!this.#parked) {
      this.#deps.log.error({ err: failure, app: this.#deps.slug }, 'Slack refuses the app token: this app is parked');
    }
    this.#parked = failure;
    this.#changed(failure);
  }

  readonly #take = (envelope: Envelope, connection: SlackConnection): void => {
    const taking = this.#store(envelope, connection).finally(() => {
      this.#accepting.delete(taking);
    });
    this.#accepting.add(taking);
  };

  async #store(
    { envelopeId, type, payload, retryNum, retryReason }: Envelope,
    connection: SlackConnection,
  ): Promise<void> {
    const { slug, accept, log } = this.#deps;
    if (this.#stopping.signal.aborted && envelopeId === null) return;
    try {
      // What is no object is kept as one, so that it shows where it can be looked at.
      const body = typeof payload === 'object' && payload !== null ? payload : { type: `socket:${type}`, payload };
      await accept({ slug, transport: 'socket', payload: body, retryNum, retryReason });
    } catch (error) {
      log.error({ err: error, app: slug }, 'an envelope could not be stored: Slack is left to repeat it');
      return;
    }
    if (envelopeId === null) return;
    const answer = type === 'slash_commands' ? (this.#deps.answerTo?.(payload) ?? null) : null;
    try {
      await connection.acknowledge(envelopeId, answer);
    } catch (error) {
      // The record is safe; Slack's repeat will be recognised.
      log.warn({ err: error, app: slug }, 'an envelope could not be acknowledged');
    }
  }

  #changed(lastError: GatewayError | null): void {
    this.#lastError = lastError;
    const isOpen = this.#live.size > 0;
    if (isOpen !== this.#wasOpen) this.#since = this.#deps.clock.now();
    this.#wasOpen = isOpen;
    this.#hasBeenOpen ||= isOpen;
    this.#gauge.set({ app: this.#deps.slug }, this.#live.size);
    this.#deps.onChange(this.state);
  }
}

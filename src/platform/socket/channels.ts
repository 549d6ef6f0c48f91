import { abortable, deferred, type Deferred } from '../../base/async.js';
import { backoffMs } from '../../base/backoff.js';
import type { CancelTimer, Clock } from '../../base/clock.js';
import { GatewayError } from '../../base/errors.js';
import type { Connection } from './connection.js';
import { type Frame, PHX, replyOf } from './frame.js';

const JOIN_TIMEOUT_MS = 10_000;
const LEAVE_TIMEOUT_MS = 5_000;
/** Answers of the platform that a repeat does not change. */
const FINAL_REASONS = new Set(['unauthorized', 'unmatched topic']);

/** One topic that should be joined. Kept small: there are two for each room. */
interface Channel {
  readonly topic: string;
  /** `down`: waits for a socket. `queued`: waits for its turn to join. `crashed`: waits to be joined again. */
  state: 'down' | 'queued' | 'joining' | 'joined' | 'crashed';
  /** The ref of its latest join, which frames of this channel carry. */
  joinRef: string | null;
  /** Failed joins since it was last joined. */
  failures: number;
  /** Its answer is one of those that the current socket waits for before it counts as recovered. */
  awaited: boolean;
  /** Whoever waits for the first join. */
  waiting: Deferred | null;
  waiters: number;
}

export type DropReason = 'garbage' | 'stale' | 'unknown_topic';

export interface ChannelEvents {
  /** An event of a joined topic that is not the protocol's own. */
  push(topic: string, event: string, payload: Frame['payload']): void;
  /** Every topic that was known when the socket opened has had an answer, good or bad. */
  recovered(): void;
  /** A topic is joined again after its channel crashed or its answer came late, while the socket lived on. */
  rejoined(topic: string): void;
  /** The topic is forgotten: refused for good, or closed by the platform. */
  lost(topic: string, error: GatewayError): void;
  dropped(reason: DropReason, topic: string | null): void;
}

/**
 * The topics of one link, over all its sockets. A frame costs one look-up, however many topics there are. Joins go out
 * in order, at most `maxJoinsInFlight` unanswered at a time.
 */
export class Channels {
  readonly #channels = new Map<string, Channel>();
  /** What waits for a reply on the current socket, by ref. */
  readonly #pending = new Map<string, (payload: Frame['payload'] | null) => void>();
  readonly #timers = new Set<CancelTimer>();
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #events: ChannelEvents;
  readonly #nextRef: () => string;
  readonly #maxJoinsInFlight: number;
  #connection: Connection | null = null;
  #queue: Channel[] = [];
  #queueHead = 0;
  #joinsInFlight = 0;
  #awaited = 0;
  #recovering = false;
  #joined = 0;
  #ended: GatewayError | null = null;

  constructor(options: {
    readonly clock: Clock;
    readonly random: () => number;
    readonly nextRef: () => string;
    readonly maxJoinsInFlight: number;
    readonly events: ChannelEvents;
  }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#nextRef = options.nextRef;
    this.#maxJoinsInFlight = options.maxJoinsInFlight;
    this.#events = options.events;
  }

  get known(): number {
    return this.#channels.size;
  }

  get joined(): number {
    return this.#joined;
  }

  topics(): IterableIterator<string> {
    return this.#channels.keys();
  }

  async join(topic: string, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#ended) throw this.#ended;
    const channel = this.#channels.get(topic) ?? this.#add(topic);
    if (!channel.waiting) return;
    const { promise } = channel.waiting;
    channel.waiters += 1;
    try {
      await abortable(promise, signal);
    } catch (error) {
      channel.waiters -= 1;
      // The last one to lose interest takes the join back.
      if (channel.waiters === 0 && this.#channels.get(topic) === channel) void this.leave(topic);
      throw error;
    }
  }

  leave(topic: string): Promise<void> {
    const channel = this.#channels.get(topic);
    if (!channel) return Promise.resolve();
    const onSocket = channel.state === 'joined' || channel.state === 'joining';
    const { joinRef } = channel;
    this.#forget(channel, new GatewayError('BAND_LINK_CLOSED', { message: 'The topic was left.', details: { topic } }));
    this.#announceRecovery();
    return onSocket ? this.#sendLeave(topic, joinRef) : Promise.resolve();
  }

  /** A socket opened: everything known is joined on it. */
  attach(connection: Connection): void {
    this.#connection = connection;
    this.#recovering = true;
    this.#awaited = this.#channels.size;
    for (const channel of this.#channels.values()) channel.awaited = true;
    for (const channel of this.#channels.values()) this.#enqueue(channel);
    this.#announceRecovery();
  }

  /** The socket is gone: nothing is joined, nobody answers any more, everything waits for the next one. */
  detach(): void {
    this.#connection = null;
    this.#recovering = false;
    this.#queue = [];
    this.#queueHead = this.#joinsInFlight = this.#awaited = this.#joined = 0;
    this.#cancelTimers();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const channel of this.#channels.values()) {
      channel.state = 'down';
      channel.joinRef = null;
      channel.awaited = false;
    }
    for (const settle of pending) settle(null);
  }

  /** The link has ended: whoever still waits is told why. */
  end(error: GatewayError): void {
    this.#ended = error;
    this.detach();
    for (const channel of [...this.#channels.values()]) this.#forget(channel, error);
  }

  frame({ joinRef, ref, topic, event, payload }: Frame): void {
    if (event === PHX.reply) {
      if (ref !== null) this.#pending.get(ref)?.(payload);
      return;
    }
    const channel = this.#channels.get(topic);
    if (!channel) {
      // A topic that was just left may still push, and confirms the leave with phx_close.
      if (event !== PHX.close) this.#events.dropped('unknown_topic', topic);
      return;
    }
    if (joinRef !== null && joinRef !== channel.joinRef) {
      this.#events.dropped('stale', topic);
      return;
    }
    if (event === PHX.error) this.#crashed(channel);
    else if (event === PHX.close) this.#lose(channel, 'closed by the platform');
    else {
      this.#events.push(topic, event, payload);
      return;
    }
    this.#announceRecovery();
  }

  #add(topic: string): Channel {
    const channel: Channel = {
      topic,
      state: 'down',
      joinRef: null,
      failures: 0,
      awaited: false,
      waiting: deferred(),
      waiters: 0,
    };
    this.#channels.set(topic, channel);
    if (this.#connection) this.#enqueue(channel);
    return channel;
  }

  #enqueue(channel: Channel): void {
    channel.state = 'queued';
    this.#queue.push(channel);
    this.#pump();
  }

  #pump(): void {
    while (this.#joinsInFlight < this.#maxJoinsInFlight && this.#queueHead < this.#queue.length) {
      const channel = this.#queue[this.#queueHead];
      this.#queueHead += 1;
      // Left, lost or put in twice meanwhile.
      if (channel?.state === 'queued' && this.#channels.get(channel.topic) === channel) this.#sendJoin(channel);
    }
    if (this.#queueHead === this.#queue.length && this.#queueHead > 0) {
      this.#queue = [];
      this.#queueHead = 0;
    }
  }

  #sendJoin(channel: Channel): void {
    const ref = this.#nextRef();
    channel.state = 'joining';
    channel.joinRef = ref;
    this.#joinsInFlight += 1;
    const cancelTimer = this.#after(JOIN_TIMEOUT_MS, () => {
      settle(undefined);
    });
    const settle = (payload: Frame['payload'] | null | undefined) => {
      cancelTimer();
      if (payload === null) return; // the socket went; the next one joins again
      this.#pending.delete(ref);
      this.#joinsInFlight -= 1;
      // A channel that was left, or crashed and joined again, is not moved by an older answer.
      if (this.#channels.get(channel.topic) === channel && channel.joinRef === ref && channel.state === 'joining') {
        if (payload === undefined) this.#joinTimedOut(channel);
        else this.#joinAnswered(channel, payload);
      }
      this.#announceRecovery();
      this.#pump();
    };
    this.#pending.set(ref, settle);
    this.#connection?.send(ref, ref, channel.topic, PHX.join);
  }

  #joinAnswered(channel: Channel, payload: Frame['payload']): void {
    const { ok, reason } = replyOf(payload);
    if (ok) {
      const again = !channel.awaited && !channel.waiting;
      channel.state = 'joined';
      channel.failures = 0;
      this.#joined += 1;
      const { waiting } = channel;
      channel.waiting = null;
      channel.waiters = 0;
      this.#answered(channel);
      waiting?.resolve();
      if (again) this.#events.rejoined(channel.topic);
      return;
    }
    if (channel.waiting || FINAL_REASONS.has(reason)) this.#lose(channel, reason);
    else this.#joinLater(channel);
  }

  #joinTimedOut(channel: Channel): void {
    const { topic, joinRef, waiting } = channel;
    // The answer may still come: without a leave the platform would go on pushing to a join nobody holds.
    void this.#sendLeave(topic, joinRef);
    if (waiting) this.#forget(channel, new GatewayError('BAND_TIMEOUT', { details: { topic, ms: JOIN_TIMEOUT_MS } }));
    else this.#joinLater(channel);
  }

  #crashed(channel: Channel): void {
    if (channel.state === 'joining' && channel.waiting) this.#lose(channel, 'the channel crashed');
    else if (channel.state === 'joining' || channel.state === 'joined') this.#joinLater(channel);
  }

  /** The same socket, another try: 1 s doubling to 30 s, half of it random. */
  #joinLater(channel: Channel): void {
    if (channel.state === 'joined') this.#joined -= 1;
    channel.state = 'crashed';
    channel.joinRef = null;
    channel.failures += 1;
    this.#answered(channel);
    const waitMs = backoffMs(channel.failures, {
      baseMs: 1_000,
      maxMs: 30_000,
      jitter: 'equal',
      random: this.#random,
    });
    this.#after(waitMs, () => {
      if (channel.state === 'crashed' && this.#channels.get(channel.topic) === channel) this.#enqueue(channel);
    });
  }

  /** Forgets a topic that the platform took away or refuses. Whoever still waits for its first join is told, else the link's owner. */
  #lose(channel: Channel, reason: string): void {
    const { topic, waiting } = channel;
    const error = new GatewayError('BAND_JOIN_REFUSED', { details: { topic, reason } });
    this.#forget(channel, error);
    if (!waiting) this.#events.lost(topic, error);
  }

  #forget(channel: Channel, error: GatewayError): void {
    if (channel.state === 'joined') this.#joined -= 1;
    this.#channels.delete(channel.topic);
    const { waiting } = channel;
    channel.waiting = null;
    if (waiting) {
      waiting.promise.catch(() => undefined); // its waiters may all be gone
      waiting.reject(error);
    }
    this.#answered(channel);
  }

  /** One answer fewer to wait for before the socket counts as recovered. */
  #answered(channel: Channel): void {
    if (!channel.awaited) return;
    channel.awaited = false;
    this.#awaited -= 1;
  }

  /** Said once per socket, after all that the last answer led to. */
  #announceRecovery(): void {
    if (!this.#recovering || this.#awaited > 0) return;
    this.#recovering = false;
    this.#events.recovered();
  }

  #sendLeave(topic: string, joinRef: string | null): Promise<void> {
    if (!this.#connection?.isOpen) return Promise.resolve();
    const ref = this.#nextRef();
    const done = deferred();
    const settle = () => {
      cancelTimer();
      this.#pending.delete(ref);
      done.resolve();
    };
    const cancelTimer = this.#after(LEAVE_TIMEOUT_MS, settle);
    this.#pending.set(ref, settle);
    this.#connection.send(joinRef, ref, topic, PHX.leave);
    return done.promise;
  }

  #after(ms: number, fn: () => void): CancelTimer {
    const cancel = this.#clock.after(ms, () => {
      this.#timers.delete(cancel);
      fn();
    });
    this.#timers.add(cancel);
    return () => {
      this.#timers.delete(cancel);
      cancel();
    };
  }

  #cancelTimers(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }
}

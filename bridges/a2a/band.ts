import type { Clock } from '../../src/base/clock.js';
import { isGatewayError } from '../../src/base/errors.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';

/** The platform calls that this bridge makes. */
export type BandCalls = Pick<
  BandRest,
  | 'getMe'
  | 'listPeers'
  | 'listChats'
  | 'createChat'
  | 'listParticipants'
  | 'addParticipant'
  | 'postEvent'
  | 'postMessage'
  | 'getContext'
>;

/** Band must have been out of reach this long before new work is refused. */
const DOWN_AFTER_MS = 30_000;

/**
 * Whether Band can be worked with, learned from the calls the bridge makes anyway and from what the runtime says of
 * the socket.
 */
export class BandHealth {
  readonly #clock: Clock;
  #downSince: number | null = null;
  #socketDownSince: number | null = null;
  #unauthorized = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** New requests would only wait and fail. */
  get refuses(): boolean {
    return this.#unauthorized || this.#longDown(this.#downSince) || this.#longDown(this.#socketDownSince);
  }

  /** The key was refused; everything is, until a call succeeds. */
  get unauthorized(): boolean {
    return this.#unauthorized;
  }

  get downSince(): number | null {
    return this.#downSince ?? this.#socketDownSince;
  }

  socket(connected: boolean): void {
    this.#socketDownSince = connected ? null : (this.#socketDownSince ?? this.#clock.now());
  }

  worked(): void {
    this.#downSince = null;
    this.#unauthorized = false;
  }

  failed(error: unknown): void {
    if (!isGatewayError(error)) return;
    if (error.code === 'BAND_UNAUTHORIZED') this.#unauthorized = true;
    // Who asks to slow down is there.
    else if (error.retryable && error.code !== 'BAND_RATE_LIMITED') this.#downSince ??= this.#clock.now();
    else this.worked();
  }

  #longDown(since: number | null): boolean {
    return since !== null && this.#clock.now() - since >= DOWN_AFTER_MS;
  }
}

/** The same calls, each telling `health` how it went. An answer that refuses is an answer. */
export function watchedCalls(rest: BandCalls, health: BandHealth): BandCalls {
  const watched = async <T>(call: Promise<T>): Promise<T> => {
    try {
      const result = await call;
      health.worked();
      return result;
    } catch (error) {
      health.failed(error);
      throw error;
    }
  };
  return {
    getMe: (...args) => watched(rest.getMe(...args)),
    listPeers: (...args) => watched(rest.listPeers(...args)),
    listChats: (...args) => watched(rest.listChats(...args)),
    createChat: (...args) => watched(rest.createChat(...args)),
    listParticipants: (...args) => watched(rest.listParticipants(...args)),
    addParticipant: (...args) => watched(rest.addParticipant(...args)),
    postEvent: (...args) => watched(rest.postEvent(...args)),
    postMessage: (...args) => watched(rest.postMessage(...args)),
    getContext: (...args) => watched(rest.getContext(...args)),
  };
}

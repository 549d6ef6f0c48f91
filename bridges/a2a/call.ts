import type { PublishedPeer } from './peers/directory.js';
import type { Principal } from './auth/principals.js';
import type { Dialect } from './versions.js';

/** Who waits for an answer: there until it leaves or is sent away, then gone for good. */
export class Caller {
  readonly #told = new Set<() => void>();
  #gone = false;

  get gone(): boolean {
    return this.#gone;
  }

  leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    for (const tell of this.#told) tell();
  }

  /** Calls `tell` once when the caller is gone, unless it has gone already. @returns stops waiting for that */
  onGone(tell: () => void): () => void {
    this.#told.add(tell);
    return () => {
      this.#told.delete(tell);
    };
  }
}

/** One operation of one caller, as it travels from the door to the engine. */
export interface Call {
  readonly requestId: string;
  readonly principal: Principal;
  readonly peerId: string;
  /** Null for a peer that is gone: its ended tasks can still be read. */
  readonly peer: PublishedPeer | null;
  readonly dialect: Dialect;
  /** Where this gateway is reached, without a trailing slash. */
  readonly baseUrl: string;
  /** Gone when it has left or the gateway stops. */
  readonly caller: Caller;
  /** Takes the connection away from a reader that fell too far behind. */
  readonly cut: () => void;
  /** What an operation threw; the protocol SDK would show its text. */
  failure: Error | null;
}

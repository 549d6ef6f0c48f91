import type { PublishedPeer } from './peers/directory.js';
import type { Principal } from './auth/principals.js';
import type { Dialect } from './versions.js';

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
  /** Aborts when the caller has left or the gateway stops. */
  readonly signal: AbortSignal;
  /** Takes the connection away from a reader that fell too far behind. */
  readonly cut: () => void;
  /** What an operation threw; the protocol SDK would show its text. */
  failure: Error | null;
}

import type { CancelTimer, Clock } from '../../base/clock.js';
import { decodeFrame, encodeFrame, PHOENIX_TOPIC, PHX, type Frame } from './frame.js';
import type { OpenWebSocket, SocketEnd, WebSocketLike } from './web-socket.js';

const HEARTBEAT_INTERVAL_MS = 30_000;
/** Six pulses make a heartbeat interval; each looks whether the host slept. */
const PULSE_MS = HEARTBEAT_INTERVAL_MS / 6;
const PULSES_PER_HEARTBEAT = 6;
const OPEN_TIMEOUT_MS = 10_000;
/** How long an abandoned socket may take over its closing handshake. */
const CLOSE_GRACE_MS = 1_000;
/** Close code of a client that gave its own connection up. */
const GIVEN_UP = 4000;

/** How a connection ended: what the socket says, or that this side gave it up. */
export type ConnectionEnd = SocketEnd | { readonly kind: 'given_up'; readonly why: string };

interface ConnectionHandlers {
  opened(): void;
  frame(frame: Frame): void;
  /** Something that is no frame. */
  garbage(): void;
  /** The last call, exactly once. */
  ended(end: ConnectionEnd): void;
}

/**
 * One physical connection: opens within a deadline, beats every 30 s, and ends when a beat stays unanswered until the
 * next one is due or when the clock shows that the host slept. Its heartbeat dies with it, so nothing of it can harm
 * the next connection (PHX-02).
 */
export class Connection {
  readonly #clock: Clock;
  readonly #handlers: ConnectionHandlers;
  readonly #socket: WebSocketLike;
  readonly #nextRef: () => string;
  #state: 'opening' | 'open' | 'closing' | 'ended' = 'opening';
  #cancelTimer: CancelTimer;
  #lastPulseAt = 0;
  #pulses = 0;
  #heartbeatRef: string | null = null;
  openedAt: number | null = null;

  constructor(options: {
    readonly open: OpenWebSocket;
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly clock: Clock;
    readonly nextRef: () => string;
    readonly handlers: ConnectionHandlers;
  }) {
    this.#clock = options.clock;
    this.#handlers = options.handlers;
    this.#nextRef = options.nextRef;
    this.#cancelTimer = options.clock.after(OPEN_TIMEOUT_MS, () => {
      this.giveUp('opening took too long');
    });
    this.#socket = options.open(options.url, options.headers, {
      opened: () => {
        this.#opened();
      },
      message: (text) => {
        this.#message(text);
      },
      ended: (end) => {
        this.#end(end);
      },
    });
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  send(joinRef: string | null, ref: string, topic: string, event: string): void {
    if (this.#state === 'open') this.#socket.send(encodeFrame(joinRef, ref, topic, event));
  }

  /** Ends this connection from our side without waiting for the other: it may be dead. */
  giveUp(why: string): void {
    if (this.#state === 'ended') return;
    const wasOpening = this.#state === 'opening';
    this.#end({ kind: 'given_up', why });
    if (wasOpening) this.#socket.terminate();
    else this.#closeWithin(GIVEN_UP, why);
  }

  /** An orderly end: close frame with 1000; resolved by `ended` once the other side confirms, or after a second. */
  close(): void {
    if (this.#state === 'opening') {
      this.#end({ kind: 'given_up', why: 'closed while opening' });
      this.#socket.terminate();
      return;
    }
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(CLOSE_GRACE_MS, () => {
      this.terminate();
    });
    this.#socket.close(1000);
  }

  terminate(): void {
    this.#end({ kind: 'given_up', why: 'terminated' });
    this.#socket.terminate();
  }

  #opened(): void {
    if (this.#state !== 'opening') return;
    this.#state = 'open';
    this.#cancelTimer();
    this.openedAt = this.#lastPulseAt = this.#clock.now();
    this.#cancelTimer = this.#clock.every(PULSE_MS, () => {
      this.#pulse();
    });
    this.#handlers.opened();
  }

  #message(text: string | null): void {
    if (this.#state !== 'open') return;
    const frame = text === null ? null : decodeFrame(text);
    if (!frame) {
      this.#handlers.garbage();
      return;
    }
    if (frame.topic === PHOENIX_TOPIC) {
      if (frame.event === PHX.reply && frame.ref === this.#heartbeatRef) this.#heartbeatRef = null;
      return;
    }
    this.#handlers.frame(frame);
  }

  #pulse(): void {
    const now = this.#clock.now();
    const slept = now - this.#lastPulseAt > HEARTBEAT_INTERVAL_MS;
    this.#lastPulseAt = now;
    if (slept) {
      this.giveUp('the clock jumped: the host slept');
      return;
    }
    this.#pulses += 1;
    if (this.#pulses % PULSES_PER_HEARTBEAT !== 0) return;
    if (this.#heartbeatRef !== null) {
      this.giveUp('heartbeat unanswered');
      return;
    }
    this.#heartbeatRef = this.#nextRef();
    this.send(null, this.#heartbeatRef, PHOENIX_TOPIC, PHX.heartbeat);
  }

  #closeWithin(code: number, reason: string): void {
    this.#cancelTimer = this.#clock.after(CLOSE_GRACE_MS, () => {
      this.#socket.terminate();
    });
    this.#socket.close(code, reason);
  }

  #end(end: ConnectionEnd): void {
    if (this.#state === 'ended') {
      // The late answer of a socket that was given up: nothing is left to wait for.
      this.#cancelTimer();
      return;
    }
    this.#state = 'ended';
    this.#cancelTimer();
    this.#handlers.ended(end);
  }
}

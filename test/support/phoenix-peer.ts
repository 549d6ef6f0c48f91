import { deferred, type Deferred } from '../../src/base/async.js';
import type { OpenWebSocket, SocketEnd, WebSocketListener } from '../../src/platform/socket/web-socket.js';

export type RawFrame = [
  joinRef: string | null,
  ref: string | null,
  topic: string,
  event: string,
  payload: Record<string, unknown>,
];

/** How a scripted platform behaves; a test changes it at any time. */
export interface PhoenixScript {
  /** What a join is answered with. `silent` leaves it open. Default `ok`. */
  onJoin: (topic: string) => 'ok' | 'silent' | { reason: string };
  onLeave: 'ok' | 'silent';
  heartbeats: 'answered' | 'unanswered';
  /** Whether a close frame is confirmed. */
  closes: 'confirmed' | 'ignored';
}

export interface Refusal {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}

export function friendlyScript(): PhoenixScript {
  return { onJoin: () => 'ok', onLeave: 'ok', heartbeats: 'answered', closes: 'confirmed' };
}

/** The platform's end of one connection: keeps what it received, answers by the script. */
export class PhoenixPeer {
  readonly url: URL;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly received: RawFrame[] = [];
  /** join_ref by topic. */
  readonly joined = new Map<string, string>();
  /** The client's close frame, or how the connection ended otherwise. */
  closedByClient: { code: number; reason: string } | null = null;
  readonly ended: Deferred = deferred();
  readonly #script: PhoenixScript;
  readonly #wire: PeerWire;
  #watchers: { test: (frame: RawFrame) => boolean; found: (frame: RawFrame) => void }[] = [];

  constructor(url: URL, headers: Readonly<Record<string, unknown>>, script: PhoenixScript, wire: PeerWire) {
    this.url = url;
    this.headers = headers;
    this.#script = script;
    this.#wire = wire;
  }

  receive(text: string): void {
    const frame = JSON.parse(text) as RawFrame;
    this.received.push(frame);
    const [joinRef, ref, topic, event] = frame;
    if (topic === 'phoenix') {
      if (this.#script.heartbeats === 'answered') this.reply(null, ref, topic);
    } else if (event === 'phx_join') {
      const answer = this.#script.onJoin(topic);
      if (answer === 'ok') {
        this.joined.set(topic, ref!);
        this.reply(joinRef, ref, topic);
      } else if (answer !== 'silent') this.reply(joinRef, ref, topic, { status: 'error', response: answer });
    } else if (event === 'phx_leave') {
      const stored = this.joined.get(topic);
      this.joined.delete(topic);
      if (this.#script.onLeave === 'ok') {
        this.reply(joinRef, ref, topic);
        if (stored !== undefined) this.sendFrame([stored, stored, topic, 'phx_close', {}]);
      }
    }
    this.#watchers = this.#watchers.filter(({ test, found }) => {
      if (!test(frame)) return true;
      found(frame);
      return false;
    });
  }

  /** Resolves with the first frame, past or to come, that passes. */
  seen(test: (frame: RawFrame) => boolean): Promise<RawFrame> {
    const past = this.received.find(test);
    if (past) return Promise.resolve(past);
    return new Promise((found) => this.#watchers.push({ test, found }));
  }

  reply(
    joinRef: string | null,
    ref: string | null,
    topic: string,
    payload: Record<string, unknown> = { status: 'ok', response: {} },
  ): void {
    this.sendFrame([joinRef, ref, topic, 'phx_reply', payload]);
  }

  /** A push as Band sends it: with the channel's current join_ref. */
  push(topic: string, event: string, payload: Record<string, unknown>): void {
    this.sendFrame([this.joined.get(topic) ?? null, null, topic, event, payload]);
  }

  sendFrame(frame: RawFrame): void {
    this.#wire.send(JSON.stringify(frame));
  }

  sendText(text: string): void {
    this.#wire.send(text);
  }

  sendBinary(): void {
    this.#wire.sendBinary();
  }

  close(code: number, reason = ''): void {
    this.#wire.close(code, reason);
  }

  /** Ends the connection without a close frame. */
  drop(): void {
    this.#wire.drop();
  }

  joinsOf(topic: string): RawFrame[] {
    return this.received.filter((frame) => frame[2] === topic && frame[3] === 'phx_join');
  }

  get heartbeats(): RawFrame[] {
    return this.received.filter((frame) => frame[3] === 'heartbeat');
  }
}

export interface PeerWire {
  send(text: string): void;
  sendBinary(): void;
  close(code: number, reason: string): void;
  drop(): void;
}

/** A scripted platform without a network: each upgrade becomes a {@link PhoenixPeer} in `peers`. */
export class MemoryPlatform {
  readonly script = friendlyScript();
  readonly peers: PhoenixPeer[] = [];
  readonly attempts: URL[] = [];
  /** Answers to the next upgrades, in order: a refusal, a failure to connect, or silence. */
  readonly answers: (Refusal | { failure: string } | 'silent')[] = [];
  /** Sockets that neither side has ended yet. */
  open = 0;

  get peer(): PhoenixPeer {
    return this.peers.at(-1)!;
  }

  readonly openWebSocket: OpenWebSocket = (url, headers, listener) => {
    const address = new URL(url);
    this.attempts.push(address);
    const pair = new MemoryPair(listener, () => {
      this.open -= 1;
    });
    this.open += 1;
    const answer = this.answers.shift();
    if (answer === 'silent') return pair.client;
    queueMicrotask(() => {
      if (answer === undefined) {
        const peer = new PhoenixPeer(address, headers, this.script, pair.server);
        pair.peer = peer;
        pair.confirms = () => this.script.closes === 'confirmed';
        this.peers.push(peer);
        pair.opened();
      } else if ('failure' in answer) pair.end({ kind: 'failed', message: answer.failure });
      else pair.end({ kind: 'refused', status: answer.status, headers: answer.headers ?? {}, body: answer.body ?? '' });
    });
    return pair.client;
  };
}

/** Two ends in one process; what one sends reaches the other in a later microtask, in order. */
class MemoryPair {
  peer: PhoenixPeer | null = null;
  confirms: () => boolean = () => true;
  #ended = false;
  readonly #listener: WebSocketListener;
  readonly #onEnd: () => void;

  constructor(listener: WebSocketListener, onEnd: () => void) {
    this.#listener = listener;
    this.#onEnd = onEnd;
  }

  opened(): void {
    if (!this.#ended) this.#listener.opened();
  }

  end(end: SocketEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd();
    this.peer?.ended.resolve();
    this.#listener.ended(end);
  }

  readonly client = {
    send: (text: string) => {
      queueMicrotask(() => {
        if (!this.#ended) this.peer?.receive(text);
      });
    },
    close: (code: number, reason = '') => {
      queueMicrotask(() => {
        if (this.#ended || !this.peer) return;
        this.peer.closedByClient = { code, reason };
        if (this.confirms()) this.end({ kind: 'closed', code, reason });
      });
    },
    terminate: () => {
      queueMicrotask(() => {
        this.end({ kind: 'closed', code: 1006, reason: '' });
      });
    },
  };

  readonly server: PeerWire = {
    send: (text) => {
      queueMicrotask(() => {
        if (!this.#ended) this.#listener.message(text);
      });
    },
    sendBinary: () => {
      queueMicrotask(() => {
        if (!this.#ended) this.#listener.message(null);
      });
    },
    close: (code, reason) => {
      queueMicrotask(() => {
        this.end({ kind: 'closed', code, reason });
      });
    },
    drop: () => {
      queueMicrotask(() => {
        this.end({ kind: 'closed', code: 1006, reason: '' });
      });
    },
  };
}

import type { Duplex } from 'node:stream';
import type { RawData } from 'ws';
import type { Clock } from '../../base/clock.js';
import type { Logger } from '../../base/log.js';
import { frameText, parseFrame, replyText, type Frame } from './frame.js';
import type { PlatformSocket } from './platform-socket.js';
import type { JoinVerdict } from './topics.js';

/** A connection that says nothing for this long is taken for dead. */
export const SILENCE_LIMIT_MS = 45_000;
/** Readers in common use refuse larger frames. */
const MAX_FRAME_BYTES = 1024 * 1024;
const MAX_CHANNELS = 50_000;

const CLOSE_UNSUPPORTED_DATA = 1003;
const CLOSE_INTERNAL_ERROR = 1011;
const DROPPED = 1006;

export interface ConnectionDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly judge: (topic: string) => JoinVerdict;
  /** Bytes that may wait for the reader. */
  readonly slowReaderBytes: number;
  /** What the socket writes into. */
  readonly stream: Pick<Duplex, 'cork' | 'uncork'>;
  readonly onClosed: () => void;
}

/**
 * One socket with its channels. Frame in → heartbeat, join or leave → reply. Pushes carry the `join_ref` of their
 * channel, because clients drop those that do not.
 */
export class Connection {
  readonly principalId: string;
  readonly #socket: PlatformSocket;
  readonly #deps: ConnectionDeps;
  /** Topic → the `ref` of its join. */
  readonly #channels = new Map<string, string | null>();
  #heardAtMs: number;
  #cancelSilence: () => void;
  #gathering = false;

  constructor(principalId: string, socket: PlatformSocket, deps: ConnectionDeps) {
    this.principalId = principalId;
    this.#socket = socket;
    this.#deps = deps;
    this.#heardAtMs = deps.clock.now();
    this.#cancelSilence = deps.clock.after(SILENCE_LIMIT_MS, this.#checkSilence);
    socket.on('message', (data, isBinary) => {
      this.#heard();
      if (isBinary) this.#socket.end(CLOSE_UNSUPPORTED_DATA, '');
      else this.#receive(textOf(data));
    });
    socket.on('ping', this.#heard);
    socket.on('pong', this.#heard);
    socket.on('error', (error) => {
      deps.log.debug({ principalId, reason: error.message }, 'socket failed');
    });
    socket.on('close', () => {
      this.#cancelSilence();
      this.#channels.clear();
      deps.onClosed();
    });
  }

  get topics(): readonly string[] {
    return [...this.#channels.keys()];
  }

  has(topic: string): boolean {
    return this.#channels.has(topic);
  }

  /**
   * @param payload - finished JSON
   * @returns false when the topic is not joined or the socket is closing: nothing was sent
   */
  push(topic: string, event: string, payload: string): boolean {
    const joinRef = this.#channels.get(topic);
    if (joinRef === undefined || this.#socket.readyState !== this.#socket.OPEN) return false;
    const text = frameText(joinRef, null, topic, event, payload);
    // A UTF-16 unit takes three bytes at most, so only long frames need the exact count, which costs a walk.
    if (text.length * 3 > MAX_FRAME_BYTES && Buffer.byteLength(text) >= MAX_FRAME_BYTES) {
      this.#deps.log.warn({ principalId: this.principalId, topic, event }, 'push left out: larger than a frame may be');
      return false;
    }
    this.#send(text);
    return true;
  }

  /** Ends a channel with `phx_error`; the client is expected to join again. */
  crash(topic: string): boolean {
    const joinRef = this.#channels.get(topic);
    if (joinRef === undefined) return false;
    this.#channels.delete(topic);
    this.#send(frameText(joinRef, joinRef, topic, 'phx_error', '{}'));
    return true;
  }

  /** @param code - 1006 drops the TCP connection */
  close(code: number, reason = ''): void {
    if (code !== DROPPED) {
      this.#socket.end(code, reason);
      return;
    }
    // What was pushed before the drop is on its way.
    this.#letGo();
    this.#socket.terminate();
  }

  #receive(text: string): void {
    const frame = parseFrame(text);
    if (!frame) {
      this.#socket.end(CLOSE_INTERNAL_ERROR, '');
      return;
    }
    if (frame.topic === 'phoenix' && frame.event === 'heartbeat') {
      this.#send(replyText(frame, 'ok', {}));
    } else if (frame.event === 'phx_join') {
      this.#join(frame);
    } else if (frame.event === 'phx_leave') {
      this.#leave(frame);
    } else {
      const reason = this.#channels.has(frame.topic) ? 'unsupported event' : 'unmatched topic';
      this.#send(replyText(frame, 'error', { reason }));
    }
  }

  #join(frame: Frame): void {
    const verdict = this.#channels.size >= MAX_CHANNELS ? 'unauthorized' : this.#deps.judge(frame.topic);
    if (verdict !== 'ok') {
      this.#send(replyText(frame, 'error', { reason: verdict }));
      return;
    }
    const before = this.#channels.get(frame.topic);
    if (before !== undefined) this.#send(frameText(before, before, frame.topic, 'phx_close', '{}'));
    // The ref of the join is what pushes must carry; a join without a join_ref of its own is known by its ref.
    const joinRef = frame.joinRef ?? frame.ref;
    this.#channels.set(frame.topic, joinRef);
    this.#send(frameText(joinRef, frame.ref, frame.topic, 'phx_reply', '{"status":"ok","response":{}}'));
  }

  #leave(frame: Frame): void {
    const joinRef = this.#channels.get(frame.topic);
    this.#send(replyText(frame, 'ok', {}));
    // A leave that names an older join of the topic must not end the channel that replaced it.
    if (joinRef === undefined || (frame.joinRef !== null && frame.joinRef !== joinRef)) return;
    this.#channels.delete(frame.topic);
    this.#send(frameText(joinRef, joinRef, frame.topic, 'phx_close', '{}'));
  }

  #send(text: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#socket.bufferedAmount > this.#deps.slowReaderBytes) {
      this.#deps.log.warn({ principalId: this.principalId }, 'socket cut off: its reader is too slow');
      this.#socket.terminate();
      return;
    }
    this.#gather();
    this.#socket.send(text);
  }

  /** Frames of one turn of the event loop leave in one write, which is most of what a frame costs, here and there. */
  #gather(): void {
    if (this.#gathering) return;
    this.#gathering = true;
    this.#deps.stream.cork();
    setImmediate(this.#letGo);
  }

  readonly #letGo = (): void => {
    if (!this.#gathering) return;
    this.#gathering = false;
    this.#deps.stream.uncork();
  };

  readonly #heard = (): void => {
    this.#heardAtMs = this.#deps.clock.now();
  };

  readonly #checkSilence = (): void => {
    const leftMs = this.#heardAtMs + SILENCE_LIMIT_MS - this.#deps.clock.now();
    if (leftMs <= 0) {
      // Clients come back after a drop; a close with 1000 would end them.
      this.#socket.terminate();
      return;
    }
    this.#cancelSilence = this.#deps.clock.after(leftMs, this.#checkSilence);
  };
}

function textOf(data: RawData): string {
  if (Buffer.isBuffer(data)) return data.toString();
  return Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]).toString();
}

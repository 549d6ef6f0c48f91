import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import type { CancelTimer } from '../../../src/base/clock.js';
import type { Outgoing } from './events.js';
import type { App, Json, World } from './world.js';

const MOST_CONNECTIONS = 10;
const PING_EVERY_MS = 10_000;

export interface SocketAck {
  outcome: 'acked' | 'no_connection' | 'timeout' | 'closed';
  payload: unknown;
}

export interface DoubleSocket {
  readonly number: number;
  readonly app: App;
  readonly ws: WebSocket;
  readonly openedAt: number;
  /** Stops answering pings and sending anything, without closing. */
  half: boolean;
  saidHello: boolean;
  closedAt: number | null;
  closeCode: number | null;
}

interface Waiting {
  settle(ack: SocketAck): void;
  socket: DoubleSocket;
}

/** Socket Mode's far end: tickets, hello, envelopes to one connection at random, pings, disconnects. */
export class SocketDoor {
  readonly sockets: DoubleSocket[] = [];
  /** Frames from the app that answered no open envelope. */
  readonly strayFrames: string[] = [];
  readonly ackedEnvelopes: string[] = [];
  /** Most connections of one app that were open at one time, and fewest once any had opened. */
  highWater = 0;
  readonly #world: World;
  readonly #server = new WebSocketServer({ noServer: true });
  readonly #waiting = new Map<string, Waiting>();
  readonly #random: () => number;
  readonly #touched: () => void;
  readonly #cancelPing: CancelTimer;
  #counter = 0;
  /** Sends no hello: the connection opens and stays silent. */
  mute = false;
  onOpen: ((socket: DoubleSocket) => void) | null = null;
  onClose: ((socket: DoubleSocket) => void) | null = null;

  constructor(options: { world: World; random: () => number; touched: () => void }) {
    this.#world = options.world;
    this.#random = options.random;
    this.#touched = options.touched;
    this.#cancelPing = options.world.clock.every(PING_EVERY_MS, () => {
      for (const socket of this.open()) if (!socket.half) socket.ws.ping('ping');
    });
  }

  ticket(app: App): string {
    const ticket = this.#world.nextId('ticket-');
    this.#world.tickets.set(ticket, app.id);
    return `${this.#world.baseUrl.replace('http', 'ws')}/link?ticket=${ticket}&app_id=${app.id}`;
  }

  /** Connections that are open now. */
  open(app?: App): DoubleSocket[] {
    return this.sockets.filter((socket) => socket.closedAt === null && (!app || socket.app === app));
  }

  upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    const ticket = new URL(request.url ?? '/', 'http://double').searchParams.get('ticket') ?? '';
    const app = this.#world.apps.get(this.#world.tickets.get(ticket) ?? '');
    this.#world.tickets.delete(ticket);
    if (!app) {
      stream.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n');
      return;
    }
    this.#server.handleUpgrade(request, stream, head, (ws) => {
      this.#accept(app, ws);
    });
  }

  #accept(app: App, ws: WebSocket): void {
    this.#counter += 1;
    const socket: DoubleSocket = {
      number: this.#counter,
      app,
      ws,
      openedAt: this.#world.clock.now(),
      half: false,
      saidHello: false,
      closedAt: null,
      closeCode: null,
    };
    const already = this.open(app).length;
    if (already >= MOST_CONNECTIONS) {
      ws.send(
        JSON.stringify({ type: 'disconnect', reason: 'too_many_websockets', debug_info: { host: 'applink-double' } }),
      );
      ws.close(1000);
      return;
    }
    this.sockets.push(socket);
    this.highWater = Math.max(this.highWater, already + 1);
    ws.on('message', (data: Buffer, binary: boolean) => {
      if (!binary) this.#receive(data.toString('utf8'));
    });
    ws.on('error', () => undefined);
    ws.on('close', (code) => {
      socket.closedAt = this.#world.clock.now();
      socket.closeCode = code;
      for (const [id, waiting] of this.#waiting) {
        if (waiting.socket !== socket) continue;
        this.#waiting.delete(id);
        waiting.settle({ outcome: 'closed', payload: null });
      }
      this.onClose?.(socket);
      this.#touched();
    });
    this.onOpen?.(socket);
    if (!this.mute) this.hello(socket);
    this.#touched();
  }

  hello(socket: DoubleSocket): void {
    socket.saidHello = true;
    this.sendRaw(socket, {
      type: 'hello',
      num_connections: this.open(socket.app).length,
      connection_info: { app_id: socket.app.id },
      debug_info: { host: `applink-${socket.number}`, build_number: 1, approximate_connection_time: 18_060 },
    });
  }

  #receive(text: string): void {
    let frame: Json;
    try {
      frame = JSON.parse(text) as Json;
    } catch {
      this.strayFrames.push(text);
      return;
    }
    const id = String(frame['envelope_id']);
    const waiting = this.#waiting.get(id);
    this.ackedEnvelopes.push(id);
    if (!waiting) {
      this.strayFrames.push(text);
    } else {
      this.#waiting.delete(id);
      waiting.settle({ outcome: 'acked', payload: frame['payload'] ?? null });
    }
    this.#touched();
  }

  /** Sends an envelope to one open connection and waits for its acknowledgement. */
  async deliver(
    outgoing: Outgoing,
    options: { retryNum: number; reason: string; limitMs: number; socket?: DoubleSocket; envelopeId?: string },
  ): Promise<SocketAck> {
    const ready = this.open(outgoing.app).filter((one) => one.saidHello && !one.half);
    const socket = options.socket ?? ready[Math.floor(this.#random() * ready.length)];
    if (!socket) return { outcome: 'no_connection', payload: null };
    const envelopeId = options.envelopeId ?? this.#world.nextId('envelope-');
    return new Promise((resolve) => {
      const cancel = this.#world.clock.after(options.limitMs, () => {
        this.#waiting.delete(envelopeId);
        resolve({ outcome: 'timeout', payload: null });
      });
      this.#waiting.set(envelopeId, {
        socket,
        settle: (ack) => {
          cancel();
          resolve(ack);
        },
      });
      this.sendRaw(socket, {
        envelope_id: envelopeId,
        type: outgoing.kind,
        accepts_response_payload: outgoing.kind !== 'events_api',
        payload: outgoing.body,
        ...(outgoing.kind === 'events_api' ? { retry_attempt: options.retryNum, retry_reason: options.reason } : {}),
      });
    });
  }

  /** Any frame: an object as JSON, a string as it is, bytes as a binary frame. */
  sendRaw(socket: DoubleSocket, frame: Json | string | Buffer): void {
    if (socket.half) return;
    socket.ws.send(Buffer.isBuffer(frame) || typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  /** Slack's notice that it wants this connection replaced. */
  disconnect(
    socket: DoubleSocket,
    reason: 'warning' | 'refresh_requested' | 'link_disabled' | 'too_many_websockets',
  ): void {
    this.sendRaw(socket, { type: 'disconnect', reason, debug_info: { host: `applink-${socket.number}` } });
  }

  /** The TCP connection goes away without a frame. */
  sever(socket: DoubleSocket): void {
    socket.ws.terminate();
  }

  /** The peer vanishes: nothing is sent, nothing answered, nothing closed. */
  freeze(socket: DoubleSocket): void {
    socket.half = true;
    socket.ws.pause();
  }

  async stop(): Promise<void> {
    this.#cancelPing();
    for (const socket of this.open()) socket.ws.terminate();
    await new Promise<void>((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
  }
}

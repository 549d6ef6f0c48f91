import { createServer, STATUS_CODES, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { deferred } from '../../src/base/async.js';
import { friendlyScript, PhoenixPeer, type Refusal } from './phoenix-peer.js';

/** A scripted platform on a real socket of the loopback interface. */
export async function startPhoenixServer() {
  const script = friendlyScript();
  const peers: PhoenixPeer[] = [];
  const refusals: (Refusal | 'hang' | 'hang up' | ((socket: Duplex) => void))[] = [];
  const waiting: { count: number; reached: () => void }[] = [];
  const raw = new Set<Duplex>();
  const http = createServer();
  const upgrades = new WebSocketServer({ noServer: true });

  http.on('connection', (socket) => {
    raw.add(socket);
    socket.on('close', () => raw.delete(socket));
  });
  http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const refusal = refusals.shift();
    if (refusal === 'hang') return;
    if (refusal === 'hang up') {
      socket.destroy();
      return;
    }
    if (typeof refusal === 'function') {
      refusal(socket);
      return;
    }
    if (refusal) {
      const { status, headers = {}, body = '' } = refusal;
      const lines = [
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
        ...Object.entries({ 'content-length': String(Buffer.byteLength(body)), connection: 'close', ...headers }).map(
          ([name, value]) => `${name}: ${value}`,
        ),
      ];
      socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
      return;
    }
    upgrades.handleUpgrade(request, socket, head, (ws) => {
      peers.push(accept(ws, request));
      for (const { count, reached } of waiting) if (peers.length >= count) reached();
    });
  });

  const accept = (ws: WebSocket, request: IncomingMessage): PhoenixPeer => {
    const peer = new PhoenixPeer(new URL(request.url ?? '', 'ws://127.0.0.1'), request.headers, script, {
      send: (text) => {
        ws.send(text);
      },
      sendBinary: () => {
        ws.send(Buffer.from([1, 2, 3]));
      },
      close: (code, reason) => {
        ws.close(code, reason);
      },
      drop: () => {
        ws.terminate();
      },
    });
    ws.on('message', (data: Buffer) => {
      peer.receive(data.toString('utf8'));
    });
    ws.on('close', (code, reason) => {
      peer.closedByClient ??= { code, reason: reason.toString('utf8') };
      peer.ended.resolve();
    });
    ws.on('error', () => undefined);
    return peer;
  };

  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    script,
    peers,
    refusals,
    url: `ws://127.0.0.1:${port}/api/v1/socket/websocket`,
    /** Resolves with the `count`th accepted connection, from 1. */
    async peer(count: number): Promise<PhoenixPeer> {
      if (peers.length < count) {
        const reached = deferred();
        waiting.push({ count, reached: reached.resolve });
        await reached.promise;
      }
      return peers[count - 1]!;
    },
    async stop(): Promise<void> {
      for (const client of upgrades.clients) client.terminate();
      for (const socket of raw) socket.destroy();
      await new Promise<void>((resolve) => {
        http.close(() => {
          resolve();
        });
      });
    },
  };
}

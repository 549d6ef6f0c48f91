/**
 * A platform for benches, in a process of its own: answers joins, leaves and heartbeats at once, sends what its parent
 * asks for. Says `{ port }` once it listens.
 */
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';

export type PlatformOrder =
  /** Sends `count` messages to a joined topic, then says `{ sent: count }`. */
  | { readonly order: 'flood'; readonly topic: string; readonly count: number; readonly message: object }
  /** Drops every connection without a close frame. */
  | { readonly order: 'drop' };

const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
const joinRefs = new Map<string, { socket: WebSocket; joinRef: string }>();

server.on('connection', (socket) => {
  socket.on('message', (data: Buffer) => {
    const [joinRef, ref, topic, event] = JSON.parse(data.toString('utf8')) as [string, string, string, string];
    if (event === 'phx_join') joinRefs.set(topic, { socket, joinRef });
    if (event === 'phx_leave') joinRefs.delete(topic);
    socket.send(`[${JSON.stringify(joinRef)},"${ref}","${topic}","phx_reply",{"status":"ok","response":{}}]`);
  });
});
server.on('listening', () => process.send?.({ port: (server.address() as AddressInfo).port }));

process.on('message', (order: PlatformOrder) => {
  if (order.order === 'drop') for (const socket of server.clients) socket.terminate();
  else void flood(order);
});
process.on('disconnect', () => process.exit(0));

async function flood({ topic, count, message }: Extract<PlatformOrder, { order: 'flood' }>): Promise<void> {
  const channel = joinRefs.get(topic);
  if (!channel) return;
  const frame = JSON.stringify([channel.joinRef, null, topic, 'message_created', message]);
  for (let sent = 0; sent < count; sent += 1) {
    channel.socket.send(frame);
    // Never more in the socket's buffer than it can take: the reader sets the pace.
    while (channel.socket.bufferedAmount > 1_000_000) await new Promise(setImmediate);
  }
  process.send?.({ sent: count });
}

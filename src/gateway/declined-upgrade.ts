import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** Headers that offer another protocol; the rest of the request stands without them. */
const OFFERS: ReadonlySet<string> = new Set(['upgrade', 'http2-settings']);

/**
 * Whether a request offers another protocol and can as well be answered in this one: Java's client offers HTTP/2 with
 * every request it sends without TLS. A WebSocket is all that such a request wants.
 */
export function canDecline({ headers }: IncomingMessage): boolean {
  return !tokensOf(headers.upgrade ?? '').some((protocol) => protocol.toLowerCase() === 'websocket');
}

/**
 * Answers a request that offered another protocol as if it had not. Node hands such a connection over with its parser
 * taken off, so the request goes in again from the start, without the offer.
 */
export function declineUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${request.method ?? 'GET'} ${request.url ?? '/'} HTTP/${request.httpVersion}`];
  for (let at = 0; at + 1 < request.rawHeaders.length; at += 2) {
    const name = request.rawHeaders[at] ?? '';
    const value = request.rawHeaders[at + 1] ?? '';
    if (OFFERS.has(name.toLowerCase())) continue;
    if (name.toLowerCase() !== 'connection') lines.push(`${name}: ${value}`);
    else {
      const kept = tokensOf(value).filter((token) => !OFFERS.has(token.toLowerCase()));
      if (kept.length > 0) lines.push(`${name}: ${kept.join(', ')}`);
    }
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}

function tokensOf(header: string): string[] {
  return header
    .split(',')
    .map((token) => token.trim())
    .filter((token) => token !== '');
}

import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/** Whether a request comes from this machine itself, not through a proxy on it and not from a page of another origin. */
export function isLocalVisitor(request: IncomingMessage): boolean {
  const { headers, socket } = request;
  // Behind a proxy on this machine every visitor has a local address.
  if (headers.forwarded !== undefined || headers['x-forwarded-for'] !== undefined || headers.via !== undefined) {
    return false;
  }
  return isLoopbackAddress(socket.remoteAddress ?? '') && isLoopbackHost(headers.host ?? '');
}

function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address);
}

/** A name that other machines could point here would let a page of theirs read the answer. */
function isLoopbackHost(host: string): boolean {
  const name = host
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  return name === 'localhost' || (isIP(name) !== 0 && isLoopbackAddress(name));
}

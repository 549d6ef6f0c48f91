import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';

/** What trusted proxies say about a request; from anybody else it counts for nothing. */
export interface Origin {
  /** The caller's address. */
  readonly address: string;
  readonly requestId: string;
  /** Origin and prefix the proxy is reached under, or null. */
  readonly forwardedUrl: string | null;
  readonly secure: boolean;
}

type Network = [ipaddr.IPv4 | ipaddr.IPv6, number];

const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;
const HOST = /^[A-Za-z0-9.[\]:-]{1,255}$/;
const PREFIX = /^(?:\/[\w.~-]+)*$/;

/** @param trusted - addresses or networks in CIDR form, checked by {@link isNetwork} */
export function createOriginReader(trusted: readonly string[]): (request: IncomingMessage) => Origin {
  const networks = trusted.map(parseNetwork);
  return (request) => {
    const peer = plainAddress(request.socket.remoteAddress ?? '');
    if (!isTrusted(peer, networks)) {
      return { address: peer, requestId: randomUUID(), forwardedUrl: null, secure: false };
    }
    const asked = first(request.headers['x-request-id']);
    const protocol = first(request.headers['x-forwarded-proto'])?.toLowerCase();
    return {
      address: clientAddress(request, peer, networks),
      requestId: asked !== undefined && REQUEST_ID.test(asked) ? asked : randomUUID(),
      forwardedUrl: forwardedUrl(request, protocol),
      secure: protocol === 'https',
    };
  };
}

function forwardedUrl(request: IncomingMessage, protocol: string | undefined): string | null {
  const host = first(request.headers['x-forwarded-host']);
  const prefix = (first(request.headers['x-forwarded-prefix']) ?? '').replace(/\/+$/, '');
  if (host === undefined || !HOST.test(host) || !PREFIX.test(prefix)) return null;
  if (protocol !== undefined && protocol !== 'http' && protocol !== 'https') return null;
  return `${protocol ?? 'http'}://${host}${prefix}`;
}

/** The nearest address in X-Forwarded-For that is no proxy of ours. */
function clientAddress(request: IncomingMessage, peer: string, networks: readonly Network[]): string {
  const hops = String(request.headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((hop) => plainAddress(hop.trim()))
    .filter((hop) => ipaddr.isValid(hop));
  return hops.findLast((hop) => !isTrusted(hop, networks)) ?? peer;
}

function first(header: string | string[] | undefined): string | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  return value?.split(',', 1)[0]?.trim();
}

function isTrusted(address: string, networks: readonly Network[]): boolean {
  if (networks.length === 0 || !ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return networks.some(([network, bits]) => parsed.kind() === network.kind() && parsed.match(network, bits));
}

/** Whether a setting names an address, or a network in CIDR form. */
export function isNetwork(text: string): boolean {
  return text.includes('/') ? ipaddr.isValidCIDR(text) : ipaddr.isValid(text);
}

function parseNetwork(text: string): Network {
  if (text.includes('/')) return ipaddr.parseCIDR(text);
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError } from '../../../src/base/errors.js';
import { matchesAny } from '../peers/patterns.js';
import type { PublishedPeer } from '../peers/directory.js';
import type { A2AOptions } from '../settings.js';
import { createKeyRing } from './api-keys.js';
import type { JwtVerifier } from './jwt.js';

export const SCOPES = ['a2a.read', 'a2a.send', 'a2a.cancel', 'a2a.push', 'a2a.card'] as const;
export type Scope = (typeof SCOPES)[number];

/** An authenticated caller. Its tasks, contexts and repeats are its own. */
export interface Principal {
  /** `key:<name>`, `jwt:<issuer>|<claim>` or `anonymous`. */
  readonly id: string;
  /** null: all. */
  readonly scopes: ReadonlySet<string> | null;
  /** Patterns of the peers it may use; null: all. */
  readonly peers: readonly string[] | null;
}

export const ANONYMOUS: Principal = { id: 'anonymous', scopes: null, peers: null };

/** Whether a principal may use a peer; one it may not use looks like one that does not exist. */
export function mayUse(principal: Principal, peer: PublishedPeer): boolean {
  if (principal.peers === null) return true;
  return matchesAny(principal.peers, [peer.id, peer.slug, ...(peer.handle === null ? [] : [peer.handle])]);
}

export interface Authenticator {
  /** Whether any credential is configured. */
  readonly configured: boolean;
  /** Whether one principal only can ever call. */
  readonly single: boolean;
  /** Takes other API keys from now on. */
  reload(apiKeys: A2AOptions['auth']['apiKeys']): void;
  /** @throws {GatewayError} `A2A_UNAUTHENTICATED`, the same for a missing, unknown, wrong and expired credential */
  authenticate(request: IncomingMessage): Promise<Principal>;
}

export interface AuthDeps {
  readonly options: A2AOptions['auth'];
  readonly clock: Clock;
  readonly jwt: JwtVerifier | null;
}

export function createAuthenticator({ options, clock, jwt }: AuthDeps): Authenticator {
  let keys = createKeyRing(options.apiKeys, clock);
  const header = options.apiKeyHeader.toLowerCase();

  const refuse = (tokenSent: boolean): GatewayError => {
    const bearer = tokenSent ? 'Bearer realm="a2a", error="invalid_token"' : 'Bearer realm="a2a"';
    const schemes = keys.size > 0 ? [bearer, `ApiKey realm="a2a", header="${options.apiKeyHeader}"`] : [bearer];
    return new GatewayError('A2A_UNAUTHENTICATED', { details: { challenge: schemes.join(', ') } });
  };

  return {
    get configured() {
      return keys.size > 0 || jwt !== null;
    },
    get single() {
      return !this.configured || (jwt === null && keys.names.size === 1 && options.anonymous === 'never');
    },
    reload(apiKeys) {
      keys = createKeyRing(apiKeys, clock);
    },
    async authenticate(request) {
      if (request.headers[header] === undefined && request.headers.authorization === undefined) {
        if (isAnonymousAllowed(options.anonymous, request)) return ANONYMOUS;
        throw refuse(false);
      }
      const own = request.headersDistinct[header];
      const authorization = request.headersDistinct['authorization'];
      if ((own?.length ?? 0) > 1 || (authorization?.length ?? 0) > 1) throw refuse(true);
      const bearer = /^Bearer +(\S+)$/i.exec(authorization?.[0]?.trim() ?? '')?.[1];
      const token = own?.[0] ?? bearer ?? '';
      const known = keys.find(token);
      if (known) return known;
      if (own || bearer === undefined || !jwt) throw refuse(true);
      const principal = await jwt.verify(bearer);
      if (!principal) throw refuse(true);
      return principal;
    },
  };
}

/** On loopback only: the caller is on this machine, and no proxy speaks for somebody else. */
function isAnonymousAllowed(mode: A2AOptions['auth']['anonymous'], request: IncomingMessage): boolean {
  if (mode !== 'loopback') return mode === 'always';
  const forwarded = request.headers.forwarded ?? request.headers['x-forwarded-for'];
  return forwarded === undefined && isLoopbackAddress(request.socket.remoteAddress ?? '');
}

export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address);
}

/** Whether a host name or address of a setting stays on this machine. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  return bare === 'localhost' || bare.endsWith('.localhost') || isLoopbackAddress(bare);
}

import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
} from 'jose';
import { request, type Dispatcher } from 'undici';
import { z } from 'zod';
import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import type { A2AOptions } from '../settings.js';
import { SCOPES, type Principal } from './principals.js';

export interface JwtVerifier {
  /** The token's principal, or null for any token that is not right. */
  verify(token: string): Promise<Principal | null>;
}

export interface JwtDeps {
  readonly issuers: A2AOptions['auth']['jwt'];
  readonly clock: Clock;
  readonly log: Logger;
  readonly dispatcher: Dispatcher | undefined;
}

type Issuer = A2AOptions['auth']['jwt'][number];

const MAX_TOKEN_BYTES = 8_192;
const FRESH_MS = 600_000;
const REFETCH_GAP_MS = 60_000;
const KEEP_MS = 86_400_000;
const FETCH_TIMEOUT_MS = 5_000;
const MAX_JWKS_BYTES = 262_144;

const jwksSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

/** Verifies bearer tokens against the key sets of the configured issuers. */
export function createJwtVerifier(deps: JwtDeps): JwtVerifier {
  const issuers = deps.issuers.map((issuer) => ({ issuer, keys: new KeySet(issuer.jwksUrl, deps) }));
  return {
    async verify(token) {
      if (Buffer.byteLength(token) > MAX_TOKEN_BYTES) return null;
      for (const { issuer, keys } of candidates(issuers, token)) {
        const payload = await verified(token, issuer, keys, deps);
        if (payload) return principalOf(issuer, payload);
      }
      return null;
    },
  };
}

/** Issuers the token names itself after; a name proves nothing yet. */
function candidates<T extends { issuer: Issuer }>(issuers: readonly T[], token: string): readonly T[] {
  try {
    const { iss } = decodeJwt(token);
    return issuers.filter(({ issuer }) => issuer.issuer === iss);
  } catch {
    return []; // not a token at all
  }
}

async function verified(
  token: string,
  issuer: Issuer,
  keys: KeySet,
  { clock, log }: JwtDeps,
): Promise<JWTPayload | null> {
  try {
    const { kid } = decodeProtectedHeader(token);
    const set = await keys.for(kid);
    if (!set || (kid === undefined && set.keys.length !== 1)) return null;
    const { payload } = await jwtVerify(token, createLocalJWKSet(set), {
      issuer: issuer.issuer,
      audience: issuer.audience,
      algorithms: issuer.algorithms,
      clockTolerance: issuer.clockSkewSeconds,
      currentDate: new Date(clock.now()),
      requiredClaims: ['exp', issuer.principalClaim],
    });
    return payload;
  } catch (error) {
    // The reason is for the operator; the caller learns only that it was refused.
    log.debug({ err: error, issuer: issuer.issuer }, 'a bearer token was refused');
    return null;
  }
}

function principalOf(issuer: Issuer, payload: JWTPayload): Principal | null {
  const claim = payload[issuer.principalClaim];
  if (typeof claim !== 'string' || claim === '') return null;
  const scopes = listOf(payload[issuer.scopesClaim])?.filter((scope) => SCOPES.some((one) => one === scope));
  const peers = issuer.peersClaim === undefined ? null : (listOf(payload[issuer.peersClaim]) ?? []);
  return { id: `jwt:${issuer.issuer}|${claim}`, scopes: scopes ? new Set(scopes) : null, peers };
}

function listOf(claim: unknown): string[] | null {
  if (typeof claim === 'string') return claim.split(/[\s,]+/).filter((one) => one !== '');
  return Array.isArray(claim) ? claim.filter((one): one is string => typeof one === 'string') : null;
}

/** A key set by URL: fetched when old or when a key is unknown, at most once a minute; the last good one is kept. */
class KeySet {
  readonly #url: string;
  readonly #deps: JwtDeps;
  #set: JSONWebKeySet | null = null;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | null = null;

  constructor(url: string, deps: JwtDeps) {
    this.#url = url;
    this.#deps = deps;
  }

  async for(kid: string | undefined): Promise<JSONWebKeySet | null> {
    const now = this.#deps.clock.now();
    const unknown = kid !== undefined && !this.#set?.keys.some((key) => key.kid === kid);
    if ((now - this.#fetchedAt >= FRESH_MS || unknown) && now - this.#triedAt >= REFETCH_GAP_MS) await this.#fetch();
    else await this.#fetching;
    return this.#deps.clock.now() - this.#fetchedAt < KEEP_MS ? this.#set : null;
  }

  #fetch(): Promise<void> {
    this.#triedAt = this.#deps.clock.now();
    this.#fetching ??= this.#fetchNow()
      .catch((error: unknown) => {
        this.#deps.log.warn({ err: error }, 'a key set could not be fetched; the last good one is used');
      })
      .finally(() => {
        this.#fetching = null;
      });
    return this.#fetching;
  }

  async #fetchNow(): Promise<void> {
    const { dispatcher, clock } = this.#deps;
    const answer = await request(this.#url, {
      headersTimeout: FETCH_TIMEOUT_MS,
      bodyTimeout: FETCH_TIMEOUT_MS,
      headers: { accept: 'application/json' },
      ...(dispatcher && { dispatcher }),
    });
    if (answer.statusCode !== 200) {
      await answer.body.dump();
      throw new Error(`the key set answered ${answer.statusCode}`);
    }
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_JWKS_BYTES) throw new Error('the key set is too large');
      chunks.push(chunk);
    }
    this.#set = jwksSchema.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
    this.#fetchedAt = clock.now();
  }
}

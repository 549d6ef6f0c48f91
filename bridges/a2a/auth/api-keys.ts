import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../../src/base/clock.js';
import type { A2AOptions } from '../settings.js';
import type { Principal } from './principals.js';

export interface KeyRing {
  readonly size: number;
  readonly names: ReadonlySet<string>;
  /** The principal of a presented key, or null; every call does the same work. */
  find(presented: string): Principal | null;
}

/**
 * Configured API keys, held as digests. Several keys of one name are one principal.
 *
 * @param isSame - compares two digests in a time that does not tell where they differ
 */
export function createKeyRing(
  keys: A2AOptions['auth']['apiKeys'],
  clock: Clock,
  isSame: (a: Buffer, b: Buffer) => boolean = timingSafeEqual,
): KeyRing {
  const entries = keys.map((one) => ({
    digest: one.key === undefined ? Buffer.from(one.sha256 ?? '', 'hex') : sha256(one.key),
    expiresAt: one.expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(one.expires),
    principal: {
      id: `key:${one.name}`,
      scopes: one.scopes ? new Set<string>(one.scopes) : null,
      peers: one.peers ?? null,
    } satisfies Principal,
  }));
  return {
    size: entries.length,
    names: new Set(keys.map((one) => one.name)),
    find(presented) {
      const digest = sha256(presented);
      const now = clock.now();
      let found: Principal | null = null;
      // All are compared, so that neither the place of a key nor its expiry shows in the time taken.
      for (const entry of entries) {
        const same = isSame(entry.digest, digest);
        if (same && entry.expiresAt > now) found = entry.principal;
      }
      return presented === '' ? null : found;
    },
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

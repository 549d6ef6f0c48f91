import type { Clock } from '../base/clock.js';
import { isGatewayError } from '../base/errors.js';
import type { Lease, StateStore } from './port.js';
import { readJson } from './json.js';
import { z } from 'zod';

const leaseRecordSchema = z.object({ owner: z.string(), until: z.number() });

// U+0001 keeps lease records apart from every owner's own keys.
const keyOf = (name: string) => `\u0001lease/${name}`;

/**
 * Grants the named lease when it is free, expired, or already this owner's. The record's revision is the fencing
 * token, since revisions only grow.
 */
export async function grantLease(
  store: Pick<StateStore, 'get' | 'batch'>,
  clock: Clock,
  name: string,
  owner: string,
  ttlMs: number,
): Promise<Lease | null> {
  const key = keyOf(name);
  const held = await store.get(key);
  if (held) {
    const record = readJson(held.value, leaseRecordSchema);
    if (record.owner !== owner && record.until > clock.now()) return null;
  }
  const write = async (ifRevision: number | null, ttl: number): Promise<number | null> => {
    try {
      const value = JSON.stringify({ owner, until: clock.now() + ttl });
      return await store.batch([{ kind: 'put', key, value, ifRevision }]);
    } catch (error) {
      if (isGatewayError(error, 'STORE_CONFLICT')) return null;
      throw error;
    }
  };
  const token = await write(held?.revision ?? null, ttlMs);
  if (token === null) return null;
  let revision = token;
  return {
    name,
    token,
    async renew(ttl) {
      const next = await write(revision, ttl);
      if (next === null) return false;
      revision = next;
      return true;
    },
    async release() {
      try {
        await store.batch([{ kind: 'delete', key, ifRevision: revision }]);
      } catch (error) {
        // Lost to somebody else meanwhile: then it is theirs to release.
        if (!isGatewayError(error, 'STORE_CONFLICT')) throw error;
      }
    },
  };
}

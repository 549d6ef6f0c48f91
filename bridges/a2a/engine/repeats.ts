import { createHash } from 'node:crypto';
import { refusal } from '../errors.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import type { StateStore, StoreChange } from '../../../src/store/port.js';
import type { Message } from '../wire.js';
import { idempotencyRecordSchema, type RecordKeys } from './records.js';

/** One message of one principal to one peer: what makes a repeat a repeat. */
export interface Claim {
  readonly key: string;
  readonly messageId: string;
  readonly fingerprint: string;
}

/** The message as one dialect-free text, whatever the order of its keys, hashed. */
export function fingerprintOf(message: Message): string {
  return createHash('sha256').update(canonical(message)).digest('hex');
}

/** The changes that claim a message for a task; the batch fails when somebody else was first. */
export function claimPuts(
  claim: Claim,
  taskId: string,
  keys: RecordKeys,
  now: number,
  windowMs: number,
): StoreChange[] {
  const value = toBytes({ fingerprint: claim.fingerprint, taskId, at: now });
  return [
    { kind: 'put', key: claim.key, value, ifRevision: null },
    { kind: 'put', key: keys.repeatExpiry(now + windowMs, claim.key), value: toBytes(0) },
  ];
}

/**
 * The task an earlier copy of the message made, or null. A claim past its window is taken off.
 *
 * @throws {GatewayError} `A2A_MESSAGE_ID_REUSED` when the id was used for another message
 */
export async function findRepeat(
  store: StateStore,
  claim: Claim,
  now: number,
  windowMs: number,
): Promise<string | null> {
  const stored = await store.get(claim.key);
  if (!stored) return null;
  const record = readJson(stored.value, idempotencyRecordSchema);
  if (now - record.at >= windowMs) {
    await store.batch([{ kind: 'delete', key: claim.key }]);
    return null;
  }
  if (record.fingerprint !== claim.fingerprint) {
    throw refusal('A2A_MESSAGE_ID_REUSED', { messageId: claim.messageId });
  }
  return record.taskId;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(',')}}`;
}

import { hash } from 'node:crypto';
import { refusal } from '../errors.js';
import { readJson } from '../../../src/store/json.js';
import type { StateStore, StoreChange } from '../../../src/store/port.js';
import type { Message } from '../wire.js';
import { idempotencyRecordSchema, MARK, type RecordKeys } from './records.js';

/** One message of one principal to one peer: what makes a repeat a repeat. */
export interface Claim {
  readonly key: string;
  readonly messageId: string;
  readonly fingerprint: string;
  /** Revision of an earlier claim that may be taken over; null for none. */
  readonly replaces: number | null;
}

/** The task that an earlier copy of a message made. */
export interface Repeat {
  readonly taskId: string;
  /** Of the claim. */
  readonly revision: number;
  /** Its window is over. */
  readonly expired: boolean;
}

/** The message as one dialect-free text, whatever the order of its keys, hashed. */
export function fingerprintOf(message: Message): string {
  return hash('sha256', canonical(message), 'hex');
}

/** The changes that claim a message for a task; the batch fails when somebody else was faster. */
export function claimPuts(
  claim: Claim,
  taskId: string,
  keys: RecordKeys,
  now: number,
  windowMs: number,
): StoreChange[] {
  const value = JSON.stringify({ fingerprint: claim.fingerprint, taskId, at: now });
  return [
    { kind: 'put', key: claim.key, value, ifRevision: claim.replaces },
    { kind: 'put', key: keys.repeatExpiry(now + windowMs, claim.key), value: MARK },
  ];
}

/**
 * The earlier copy of a message, or null.
 *
 * @throws {GatewayError} `A2A_MESSAGE_ID_REUSED` when the id was used for another message
 */
export async function findRepeat(
  store: StateStore,
  claim: Claim,
  now: number,
  windowMs: number,
): Promise<Repeat | null> {
  const stored = await store.get(claim.key);
  if (!stored) return null;
  const record = readJson(stored.value, idempotencyRecordSchema);
  const expired = isPast(record.at, now, windowMs);
  if (!expired && record.fingerprint !== claim.fingerprint) {
    throw refusal('A2A_MESSAGE_ID_REUSED', { messageId: claim.messageId });
  }
  return { taskId: record.taskId, revision: stored.revision, expired };
}

/** The changes that take off a claim whose time has come, unless a later message has taken it over. */
export async function claimRemoval(
  store: StateStore,
  expiryKey: string,
  keys: RecordKeys,
  now: number,
  windowMs: number,
): Promise<StoreChange[]> {
  const key = keys.repeatOf(expiryKey);
  const stored = await store.get(key);
  const over = stored && isPast(readJson(stored.value, idempotencyRecordSchema).at, now, windowMs);
  return [
    { kind: 'delete', key: expiryKey },
    ...(over ? [{ kind: 'delete', key, ifRevision: stored.revision } as const] : []),
  ];
}

function isPast(at: number, now: number, windowMs: number): boolean {
  return now - at >= windowMs;
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(',')}}`;
}

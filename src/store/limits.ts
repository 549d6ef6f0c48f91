import { GatewayError } from '../base/errors.js';
import type { RangeOptions, StoreChange } from './port.js';

export const MAX_KEY_BYTES = 1_024;
export const MAX_VALUE_BYTES = 8 * 1_024 * 1_024;
export const MAX_BATCH_BYTES = 16 * 1_024 * 1_024;
export const MAX_BATCH_CHANGES = 10_000;
export const MAX_RANGE_ENTRIES = 10_000;
const DEFAULT_RANGE_ENTRIES = 1_000;

/** @returns the bytes the batch weighs. @throws {GatewayError} `STORE_TOO_LARGE`; nothing was written */
export function weigh(changes: readonly StoreChange[]): number {
  if (changes.length > MAX_BATCH_CHANGES) throw tooLarge({ changes: changes.length, max: MAX_BATCH_CHANGES });
  let bytes = 0;
  for (const change of changes) {
    const keyBytes = Buffer.byteLength(change.key);
    if (keyBytes === 0 || keyBytes > MAX_KEY_BYTES) throw tooLarge({ keyBytes, max: MAX_KEY_BYTES });
    bytes += keyBytes;
    if (change.kind !== 'put') continue;
    const valueBytes = Buffer.byteLength(change.value);
    if (valueBytes > MAX_VALUE_BYTES) throw tooLarge({ valueBytes, max: MAX_VALUE_BYTES });
    bytes += valueBytes;
  }
  if (bytes > MAX_BATCH_BYTES) throw tooLarge({ batchBytes: bytes, max: MAX_BATCH_BYTES });
  return bytes;
}

/** How many entries one range call hands out. */
export function rangeLimit(options: RangeOptions): number {
  return Math.min(MAX_RANGE_ENTRIES, Math.max(0, options.limit ?? DEFAULT_RANGE_ENTRIES));
}

function tooLarge(details: Record<string, number>): GatewayError {
  return new GatewayError('STORE_TOO_LARGE', { details });
}

import { GatewayError } from '../base/errors.js';
import type { StoreChange, StoreKey } from './port.js';

/**
 * Checks what a batch wishes of its keys.
 *
 * @param revisionOf - the revision a key carries when this batch would commit; null when it is absent
 * @returns the refusal, or null when every wish holds
 */
export function refusalOf(
  changes: readonly StoreChange[],
  revisionOf: (key: StoreKey) => number | null,
): GatewayError | null {
  for (const change of changes) {
    if (change.ifRevision === undefined) continue;
    if (revisionOf(change.key) !== change.ifRevision) {
      return new GatewayError('STORE_CONFLICT', { details: { key: change.key } });
    }
  }
  return null;
}

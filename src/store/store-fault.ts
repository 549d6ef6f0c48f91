import { isGatewayError } from '../base/errors.js';

/** The disk's fault, not that of what was to be stored: the same thing can be stored once the store has recovered. */
export const isStoreFault = (error: unknown): boolean =>
  isGatewayError(error, 'STORE_TRIPPED') || isGatewayError(error, 'STORE_IO');

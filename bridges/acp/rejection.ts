import { ApiError } from '../../src/base/band-errors.js';
import { isGatewayError } from '../../src/base/errors.js';
import { AcpFault, platformDetails } from './errors.js';

/** A working 401, or a 403 on the agent's own identity. */
export function isRejection(error: unknown): boolean {
  if (isGatewayError(error, 'BAND_UNAUTHORIZED') || isGatewayError(error, 'BAND_FORBIDDEN')) return true;
  return error instanceof ApiError && (error.statusCode === 401 || error.statusCode === 403);
}

export function rejection(error: unknown): AcpFault {
  return new AcpFault('credentials_rejected', platformDetails(error), { cause: error });
}

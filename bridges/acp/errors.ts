import { randomUUID } from 'node:crypto';
import { RequestError } from '@agentclientprotocol/sdk';
import { ApiError } from '../../src/base/band-errors.js';
import { isGatewayError, type GatewayError } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import { ACP_FAULTS, type AcpReason, type Fault } from './wire-faults.js';

export type { AcpReason } from './wire-faults.js';

/** A refusal that the editor is told in these words. `data` holds ids and figures only. */
export class AcpFault extends Error {
  readonly reason: AcpReason;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(reason: AcpReason, data: Record<string, unknown> = {}, options: { text?: string; cause?: unknown } = {}) {
    super(options.text ?? ACP_FAULTS[reason].text, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AcpFault';
    this.reason = reason;
    this.data = data;
  }
}

export function isAcpFault(error: unknown, reason?: AcpReason): error is AcpFault {
  return error instanceof AcpFault && (reason === undefined || error.reason === reason);
}

/** The error object of a JSON-RPC answer. */
export interface WireError {
  readonly code: number;
  readonly message: string;
  readonly data: Record<string, unknown>;
}

export function faultToWire(fault: AcpFault): WireError {
  const row: Fault = ACP_FAULTS[fault.reason];
  return {
    code: row.code,
    message: fault.message,
    data: { reason: fault.reason, retryable: row.retryable ?? false, ...fault.data },
  };
}

/**
 * The one place where an error becomes an answer. What is not a known refusal is logged with a fresh reference, and
 * only the reference is told: no text of an unexpected error leaves the process.
 */
export function toRequestError(error: unknown, log: Logger): RequestError {
  if (error instanceof RequestError) return error;
  const fault = isAcpFault(error) ? error : isGatewayError(error) ? platformFault(error) : null;
  if (fault) {
    const { code, message, data } = faultToWire(fault);
    return new RequestError(code, message, data);
  }
  const ref = randomUUID();
  log.error({ err: error, ref }, 'ACP request failed');
  return new RequestError(ACP_FAULTS.internal.code, ACP_FAULTS.internal.text, {
    reason: 'internal',
    retryable: false,
    ref,
  });
}

/** What an error of Band's REST API means to an editor. */
export function platformFault(error: GatewayError): AcpFault {
  const details = platformDetails(error);
  const fault = (reason: AcpReason) => new AcpFault(reason, details, { cause: error });
  switch (error.code) {
    case 'BAND_UNAUTHORIZED':
      return fault('credentials_rejected');
    case 'BAND_ROOM_STOPPED':
      return fault('agent_stopped');
    case 'ROOM_LIMIT':
      return fault('plan_limit');
    case 'BAND_FORBIDDEN':
      return fault(details['code'] === 'limit_reached' ? 'plan_limit' : 'platform_refused');
    case 'BAND_CONFLICT':
      return fault('platform_refused');
    case 'BAND_INVALID':
      return fault('platform_rejected');
    case 'BAND_NOT_FOUND':
      return fault('platform_refused');
    case 'BAND_SUPERSEDED':
      return fault('superseded');
    case 'BAND_ALREADY_CONNECTED':
      return fault('agent_already_running');
    case 'BAND_UNREACHABLE':
    case 'BAND_TIMEOUT':
    case 'BAND_CONNECTION_LOST':
    case 'BAND_RATE_LIMITED':
    case 'BAND_UNAVAILABLE':
    case 'BAND_LINK_CLOSED':
    case 'BAND_JOIN_REFUSED':
    case 'DEADLINE_EXCEEDED':
      return fault('platform_unavailable');
    default:
      return new AcpFault('internal', { code: error.code }, { cause: error });
  }
}

/** Status, code and request id of the HTTP answer behind an error, as far as there was one. */
export function platformDetails(error: unknown): Record<string, unknown> {
  for (let cause: unknown = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if (cause instanceof ApiError) {
      return {
        status: cause.statusCode,
        ...(cause.code === null ? {} : { code: cause.code }),
        ...(cause.requestId === null ? {} : { requestId: cause.requestId }),
      };
    }
  }
  return {};
}

import type { ErrorCode } from '../../src/base/error-codes.js';
import { GatewayError, isGatewayError } from '../../src/base/errors.js';
import type { TaskState } from './wire.js';

/** What one of our errors is on the wire, by the tables of A2A 1.0.1 (5.4, 9.5, 11.6). */
interface Row {
  readonly rpc: number;
  /** HTTP status of a JSON-RPC answer. */
  readonly http: number;
  /** HTTP status of a REST answer. */
  readonly rest: number;
  /** The status word of REST. */
  readonly word: string;
  /** `reason` of the ErrorInfo; without one there is none. */
  readonly reason?: string;
  /** The protocol's own errors; ours have the domain `band-gateway`. */
  readonly protocol?: true;
}

const row = (rpc: number, http: number, rest: number, word: string, reason?: string): Row => ({
  rpc,
  http,
  rest,
  word,
  ...(reason !== undefined && { reason }),
});
const protocol = (rpc: number, rest: number, word: string, reason: string): Row => ({
  ...row(rpc, 200, rest, word, reason),
  protocol: true,
});
const own = (http: number, rest: number, word: string, reason: string): Row => row(-32000, http, rest, word, reason);

const ROWS: Partial<Record<ErrorCode, Row>> = {
  A2A_PARSE: row(-32700, 200, 400, 'INVALID_ARGUMENT'),
  A2A_ENVELOPE: row(-32600, 200, 400, 'INVALID_ARGUMENT'),
  A2A_METHOD_UNKNOWN: row(-32601, 200, 404, 'NOT_FOUND'),
  A2A_ROUTE_UNKNOWN: own(404, 404, 'NOT_FOUND', 'ROUTE_UNKNOWN'),
  A2A_METHOD_NOT_ALLOWED: own(405, 405, 'UNIMPLEMENTED', 'METHOD_NOT_ALLOWED'),
  A2A_VERSION: protocol(-32009, 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'),
  A2A_REQUEST_TYPE: row(-32600, 415, 415, 'INVALID_ARGUMENT'),
  A2A_NOT_ACCEPTABLE: row(-32600, 406, 406, 'INVALID_ARGUMENT'),
  A2A_ENCODED: row(-32600, 415, 415, 'INVALID_ARGUMENT'),
  A2A_TOO_LARGE: own(413, 413, 'INVALID_ARGUMENT', 'PAYLOAD_TOO_LARGE'),
  A2A_SLOW: own(408, 408, 'DEADLINE_EXCEEDED', 'REQUEST_TIMEOUT'),
  A2A_PARAMS: row(-32602, 200, 400, 'INVALID_ARGUMENT'),
  A2A_CONTENT_TYPE: protocol(-32005, 400, 'INVALID_ARGUMENT', 'CONTENT_TYPE_NOT_SUPPORTED'),
  A2A_TASK_UNKNOWN: protocol(-32001, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'),
  A2A_TASK_ENDED: protocol(-32004, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'),
  A2A_TASK_OVER: protocol(-32004, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'),
  A2A_TASK_BUSY: row(-32004, 200, 400, 'FAILED_PRECONDITION', 'TASK_BUSY'),
  A2A_NOT_CANCELABLE: protocol(-32002, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'),
  A2A_MESSAGE_ID_REUSED: row(-32602, 200, 409, 'ALREADY_EXISTS', 'MESSAGE_ID_REUSED'),
  A2A_PUSH_UNSUPPORTED: protocol(-32003, 400, 'FAILED_PRECONDITION', 'PUSH_NOTIFICATION_NOT_SUPPORTED'),
  A2A_NO_EXTENDED_CARD: protocol(-32007, 400, 'FAILED_PRECONDITION', 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'),
  A2A_UNAUTHENTICATED: own(401, 401, 'UNAUTHENTICATED', 'UNAUTHENTICATED'),
  A2A_SCOPE: own(403, 403, 'PERMISSION_DENIED', 'PERMISSION_DENIED'),
  A2A_PEER_UNKNOWN: own(404, 404, 'NOT_FOUND', 'PEER_UNKNOWN'),
  A2A_RATE_LIMITED: own(429, 429, 'RESOURCE_EXHAUSTED', 'RATE_LIMITED'),
  A2A_STREAM_LIMIT: own(429, 429, 'RESOURCE_EXHAUSTED', 'STREAM_LIMIT'),
  A2A_CONTEXT_BUSY: own(200, 409, 'ABORTED', 'CONTEXT_BUSY'),
  A2A_TASK_LIMIT: own(429, 429, 'RESOURCE_EXHAUSTED', 'TASK_LIMIT'),
  A2A_CAPACITY: own(503, 503, 'UNAVAILABLE', 'CAPACITY'),
  A2A_NOT_READY: own(503, 503, 'UNAVAILABLE', 'NOT_READY'),
  A2A_BAND_DOWN: own(503, 503, 'UNAVAILABLE', 'BAND_UNAVAILABLE'),
  A2A_STORE_DOWN: own(503, 503, 'UNAVAILABLE', 'STORE_UNAVAILABLE'),
  A2A_STOPPING: own(503, 503, 'UNAVAILABLE', 'SHUTTING_DOWN'),
};

const STORE_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['STORE_CLOSED', 'STORE_IO', 'STORE_TRIPPED']);
const RETRY_AFTER_STOP_SECONDS = 5;
const INTERNAL: Row = row(-32603, 500, 500, 'INTERNAL', 'INTERNAL');

export interface FieldViolation {
  /** Path in the request's own spelling, e.g. `message.parts[1].text`. */
  readonly field: string;
  readonly description: string;
}

/** What a client is told. Sentences are fixed: no exception text, no Band id, no URL, no stack. */
export interface WireError {
  readonly rpcCode: number;
  readonly rpcStatus: number;
  readonly restStatus: number;
  readonly word: string;
  readonly message: string;
  readonly details: readonly Readonly<Record<string, unknown>>[];
  readonly headers: Readonly<Record<string, string>>;
  /** False for a bug: the one case that is logged as an error. */
  readonly expected: boolean;
}

/** A request that is refused for its fields (-32602). */
export function invalidFields(violations: readonly FieldViolation[], message?: string): GatewayError {
  return new GatewayError('A2A_PARAMS', { details: { violations }, ...(message !== undefined && { message }) });
}

export function invalidField(field: string, description: string): GatewayError {
  return invalidFields([{ field, description }]);
}

/** A refusal whose ErrorInfo carries more than its reason. */
export function refusal(
  code: ErrorCode,
  metadata: Readonly<Record<string, string>> = {},
  retryAfterMs?: number,
): GatewayError {
  return new GatewayError(code, { details: { metadata }, ...(retryAfterMs !== undefined && { retryAfterMs }) });
}

export const taskUnknown = (): GatewayError => refusal('A2A_TASK_UNKNOWN');
export const taskEnded = (state: TaskState): GatewayError => refusal('A2A_TASK_ENDED', { state });

/** Our error as the wire has it; anything that is not one of ours is `INTERNAL` and shows nothing but the request id. */
export function toWireError(error: unknown, requestId: string): WireError {
  const known = isGatewayError(error) ? asRequestError(error) : null;
  const found = known ? ROWS[known.code] : undefined;
  if (!known || !found) {
    return {
      rpcCode: INTERNAL.rpc,
      rpcStatus: INTERNAL.http,
      restStatus: INTERNAL.rest,
      word: INTERNAL.word,
      message: 'An internal error occurred.',
      details: [errorInfo(INTERNAL, { requestId })],
      headers: {},
      expected: false,
    };
  }
  const { violations, metadata } = known.details as {
    violations?: readonly FieldViolation[];
    metadata?: Readonly<Record<string, string>>;
  };
  const details = [
    ...(found.reason === undefined ? [] : [errorInfo(found, metadata)]),
    ...(violations ? [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations }] : []),
  ];
  return {
    rpcCode: found.rpc,
    rpcStatus: found.http,
    restStatus: found.rest,
    word: found.word,
    message: known.message,
    details,
    headers: headersOf(known),
    expected: true,
  };
}

/** The body of a JSON-RPC error, both dialects. */
export function rpcErrorBody(id: unknown, error: WireError): object {
  const { rpcCode: code, message, details } = error;
  return {
    jsonrpc: '2.0',
    id: id ?? null,
    error: { code, message, ...(details.length > 0 && { data: details }) },
  };
}

/** The body of an HTTP+JSON error (google.rpc.Status). */
export function restErrorBody(error: WireError): object {
  return {
    error: { code: error.restStatus, status: error.word, message: error.message, details: error.details },
  };
}

/** An A2A code for what went wrong underneath. */
function asRequestError(error: GatewayError): GatewayError {
  if (STORE_CODES.has(error.code)) return new GatewayError('A2A_STORE_DOWN', { cause: error, retryAfterMs: 1_000 });
  return error;
}

function headersOf(error: GatewayError): Record<string, string> {
  const seconds = error.code === 'A2A_STOPPING' ? RETRY_AFTER_STOP_SECONDS : null;
  const retry = seconds ?? (error.retryAfterMs === null ? null : Math.max(1, Math.ceil(error.retryAfterMs / 1_000)));
  const { allow, challenge } = error.details as { allow?: string; challenge?: string };
  return {
    ...(retry !== null && { 'retry-after': String(retry) }),
    ...(allow !== undefined && { allow }),
    ...(challenge !== undefined && { 'www-authenticate': challenge }),
  };
}

function errorInfo(found: Row, metadata: Readonly<Record<string, string>> | undefined): Record<string, unknown> {
  return {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: found.reason,
    domain: found.protocol ? 'a2a-protocol.org' : 'band-gateway',
    ...(metadata && Object.keys(metadata).length > 0 && { metadata }),
  };
}

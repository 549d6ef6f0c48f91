import { ERROR_CODES, type ErrorCode } from './error-codes.js';

export interface GatewayErrorOptions {
  /** What went wrong underneath. */
  cause?: unknown;
  /** How long the other side asked to wait before a repeat. */
  retryAfterMs?: number;
  /** Ids that help the reader of a log line; never secrets or message text. */
  details?: Record<string, unknown>;
  /** Replaces the table's sentence where a more exact one is known. */
  message?: string;
}

/**
 * An error from the table {@link ERROR_CODES}: a code, a sentence, a cause, and whether a repeat makes sense.
 * Doors translate `code`; nobody recognises an error by its text.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly undelivered: boolean;
  readonly tellUser: boolean;
  readonly retryAfterMs: number | null;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, options: GatewayErrorOptions = {}) {
    const row = ERROR_CODES[code];
    super(options.message ?? row.text, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.retryable = row.retryable;
    this.undelivered = row.undelivered;
    this.tellUser = row.tellUser;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.details = Object.freeze({ ...options.details });
  }
}

/** True for an error of the table, with the given code when one is named. */
export function isGatewayError(error: unknown, code?: ErrorCode): error is GatewayError {
  return error instanceof GatewayError && (code === undefined || error.code === code);
}

/** Any thrown value as an Error, so that it can be logged and carried as a cause. */
export function toError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}

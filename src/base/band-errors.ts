import { STATUS_CODES } from 'node:http';
import type { z } from 'zod';
import { isGatewayError } from './errors.js';

/** Base of the errors that an adapter or a host may meet. */
export class BandError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Settings or set-up are wrong; nothing was started. */
export class BandConfigError extends BandError {
  /** Tells failures of one door apart, e.g. `file_not_found` of `loadAgentConfig`; null where there is only one. */
  readonly code: string | null;

  constructor(message: string, options: ErrorOptions & { readonly code?: string } = {}) {
    super(message, options);
    this.code = options.code ?? null;
  }
}

/** The identity is in use: on this host (the lock is held), or at the platform (under the policy `reject`). */
export class AgentAlreadyRunningError extends BandConfigError {}

/** `start()` while an earlier `stop()` left clean-up undone. */
export class CleanupIncompleteError extends BandError {
  constructor(message = 'Agent cleanup is incomplete; call stop() to retry it', options?: ErrorOptions) {
    super(message, options);
  }
}

/** The platform could not be reached, the connection broke, or it ended for good. */
export class BandConnectionError extends BandError {}

/** A tool call that must not be papered over: meant for the adapter, never turned into a tool result. */
export class BandToolError extends BandError {}

/** The turn is over (aborted, or ended by the runtime), so its tools refuse to post. */
export class TurnEndedError extends BandToolError {
  constructor(message = 'This turn has ended; its tools post nothing any more', options?: ErrorOptions) {
    super(message, options);
  }
}

/** Thrown by an adapter that did not take the input: the context is handed out again with the next one. */
export class InputNotAccepted extends BandError {}

/**
 * The turn failed and the room already knows: the runtime marks the delivery failed without a report of its own,
 * unless the report did not reach the room.
 */
export class TurnResultAlreadyReported extends BandError {
  /** No further attempt, whatever the retry budget: the verdict "missing reply". */
  readonly final: boolean;

  constructor(message: string, options: ErrorOptions & { readonly final?: boolean } = {}) {
    super(message, options);
    this.final = options.final ?? false;
  }
}

/** The platform refused a post or a claim because this agent is stopped in the room. */
export class RoomExecutionStoppedError extends BandError {
  readonly roomId: string;

  constructor(roomId: string, options?: ErrorOptions) {
    super(`The agent is stopped in room ${roomId}`, options);
    this.roomId = roomId;
  }
}

/** The answer was made but could not be posted; never to be mistaken for a failure of the one who made it. */
export class DeliveryFailedError extends BandError {}

/** A value outside its domain. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

/** A call at the wrong time. */
export class RuntimeError extends Error {
  override readonly name = 'RuntimeError';
}

/** A REST answer outside 2xx. Its text opens with the status line, e.g. `403 Forbidden: not a participant`. */
export class ApiError extends BandError {
  readonly statusCode: number;
  /** The answer's body as parsed JSON, or its text; null when there was none. */
  readonly body: unknown;
  /** `error.code` of Band's envelope, null for any other shape. */
  readonly code: string | null;
  /** `error.request_id`, for Band's support. */
  readonly requestId: string | null;

  constructor(answer: {
    statusCode: number;
    body?: unknown;
    code?: string | null;
    requestId?: string | null;
    message?: string | null;
  }) {
    const statusLine = `${answer.statusCode} ${STATUS_CODES[answer.statusCode] ?? 'Unknown Status'}`;
    super(answer.message ? `${statusLine}: ${answer.message}` : statusLine);
    this.statusCode = answer.statusCode;
    this.body = answer.body ?? null;
    this.code = answer.code ?? null;
    this.requestId = answer.requestId ?? null;
  }
}

/** One thing wrong with a value. */
export interface ValidationIssue {
  /** Field names in the spelling of settings files (snake_case); empty when the value as a whole is wrong. */
  readonly path: readonly string[];
  readonly message: string;
  /** Stable name of the rule, e.g. `greater_than`. */
  readonly type: string;
  readonly input: unknown;
}

/** All that is wrong with a value, one or two lines per issue. */
export class ValidationError extends Error {
  override readonly name = 'ValidationError';
  /** What was validated, e.g. `SessionConfig`. */
  readonly title: string;
  readonly issues: readonly ValidationIssue[];

  constructor(title: string, issues: readonly ValidationIssue[]) {
    const lines = issues.flatMap(({ path, message }) => [...(path.length > 0 ? [path.join('.')] : []), `  ${message}`]);
    super([`${issues.length} validation error${issues.length === 1 ? '' : 's'} for ${title}`, ...lines].join('\n'));
    this.title = title;
    this.issues = issues;
  }

  /** The same failures as zod found them; an unknown field reads `Extra inputs are not permitted`. */
  static fromZod(title: string, error: z.ZodError): ValidationError {
    return new ValidationError(title, error.issues.flatMap(issuesOf));
  }
}

function issuesOf(issue: z.core.$ZodIssue): ValidationIssue[] {
  const path = issue.path.map(String);
  if (issue.code !== 'unrecognized_keys') {
    return [{ path, message: issue.message, type: issue.code, input: issue.input }];
  }
  return issue.keys.map((key) => ({
    path: [...path, key],
    message: 'Extra inputs are not permitted',
    type: 'extra_forbidden',
    input: undefined,
  }));
}

const CONNECTION_CODES: ReadonlySet<string> = new Set([
  'BAND_UNREACHABLE',
  'BAND_TIMEOUT',
  'BAND_CONNECTION_LOST',
  'BAND_LINK_CLOSED',
]);

/**
 * An error of the wire as the public class that adapters and hosts know: {@link RoomExecutionStoppedError} for a stop
 * in `roomId`, {@link ApiError} where the platform answered, {@link BandConnectionError} where it did not. Any other
 * value comes back as it is.
 */
export function publicError(error: unknown, roomId?: string): unknown {
  if (!isGatewayError(error)) return error;
  if (error.code === 'BAND_ROOM_STOPPED' && roomId !== undefined) {
    return new RoomExecutionStoppedError(roomId, { cause: error });
  }
  if (error.cause instanceof ApiError) return error.cause;
  if (CONNECTION_CODES.has(error.code)) {
    // The table's sentence does not say why, e.g. `connect ECONNREFUSED 127.0.0.1:4000`.
    const why = error.cause instanceof Error && error.cause.message !== '' ? ` (${error.cause.message})` : '';
    return new BandConnectionError(`${error.message}${why}`, { cause: error });
  }
  return error;
}

import {
  AgentAlreadyRunningError,
  ApiError,
  BandConfigError,
  ValidationError,
  ValueError,
} from '../base/band-errors.js';
import type { ErrorCode } from '../base/error-codes.js';
import { isGatewayError, toError } from '../base/errors.js';

/**
 * Why an Agent is not running, as far as what to do next depends on it: `transient` is tried again soon, `credentials`
 * and `elsewhere` rarely, `superseded` as the entry says, `settings` not at all.
 */
export interface Verdict {
  readonly kind: 'transient' | 'credentials' | 'elsewhere' | 'superseded' | 'settings';
  readonly code: string;
  readonly message: string;
  /** What a person can do about it. */
  readonly action: string;
}

/** The code of a verdict that another process of this host runs the agent. */
export const RUNS_ON_HOST = 'AGENT_ALREADY_RUNNING';

const CREDENTIAL_CODES: readonly ErrorCode[] = ['BAND_UNAUTHORIZED', 'BAND_FORBIDDEN'];

/** Reads an error of starting or running an Agent, through its causes. No error is recognised by its text. */
export function judgeAgentError(error: unknown): Verdict {
  const message = toError(error).message;
  for (
    let cause: unknown = error;
    cause !== undefined && cause !== null;
    cause = cause instanceof Error ? cause.cause : null
  ) {
    const found = judgeOne(cause);
    if (found) return { ...found, message };
  }
  const action = 'Nothing: it is tried again by itself. If it stays, look at the address of the platform.';
  const code = isGatewayError(error) ? error.code : toError(error).name;
  return { kind: 'transient', code, message, action };
}

function judgeOne(error: unknown): Omit<Verdict, 'message'> | null {
  if (isGatewayError(error, 'BAND_SUPERSEDED')) {
    const action = 'Stop the other connection of this agent, then restart this one; or set on_superseded: standby.';
    return { kind: 'superseded', code: 'BAND_SUPERSEDED', action };
  }
  if (error instanceof AgentAlreadyRunningError) {
    const action = 'Stop the other process of this agent; this one takes over within a minute.';
    return { kind: 'elsewhere', code: RUNS_ON_HOST, action };
  }
  if (isGatewayError(error, 'BAND_ALREADY_CONNECTED')) {
    const action = 'Stop the other connection of this agent; this one takes over within a minute.';
    return { kind: 'elsewhere', code: 'BAND_ALREADY_CONNECTED', action };
  }
  const refused = error instanceof ApiError && (error.statusCode === 401 || error.statusCode === 403);
  if (refused || (isGatewayError(error) && CREDENTIAL_CODES.includes(error.code))) {
    const action = "Look at agent_id and api_key: the key must be this agent's own and not revoked. Then restart.";
    return { kind: 'credentials', code: 'BAND_UNAUTHORIZED', action };
  }
  if (
    error instanceof ValidationError ||
    error instanceof ValueError ||
    error instanceof BandConfigError ||
    error instanceof TypeError ||
    isGatewayError(error, 'CONFIG_INVALID')
  ) {
    return { kind: 'settings', code: 'CONFIG_INVALID', action: 'Mend the settings, then restart.' };
  }
  return null;
}

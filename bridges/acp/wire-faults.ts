export interface Fault {
  /** JSON-RPC code. */
  readonly code: number;
  readonly text: string;
  readonly retryable?: boolean;
}

const AUTH_REQUIRED = -32_000;
const NOT_FOUND = -32_002;
const INVALID_REQUEST = -32_600;
const INVALID_PARAMS = -32_602;
const INTERNAL = -32_603;

/** What an editor can be told, by reason: the code of the answer and the sentence in it. */
export const ACP_FAULTS = {
  credentials_missing: { code: AUTH_REQUIRED, text: 'Authentication required: no Band agent key is configured' },
  credentials_rejected: { code: AUTH_REQUIRED, text: 'Authentication required: Band rejected the agent key' },
  unknown_session: { code: NOT_FOUND, text: 'Resource not found' },
  unknown_auth_method: { code: INVALID_PARAMS, text: 'Invalid params: unknown authentication method' },
  invalid_params: { code: INVALID_PARAMS, text: 'Invalid params' },
  invalid_cwd: { code: INVALID_PARAMS, text: 'Invalid params: cwd must be an absolute path' },
  invalid_cursor: { code: INVALID_PARAMS, text: 'Invalid params: this cursor was not issued by this agent' },
  unknown_mode: { code: INVALID_PARAMS, text: 'Invalid params: unknown mode' },
  unknown_option: { code: INVALID_PARAMS, text: 'Invalid params: unknown option' },
  invalid_value: { code: INVALID_PARAMS, text: 'Invalid params: not a value of this option' },
  empty_prompt: { code: INVALID_PARAMS, text: 'Invalid params: the prompt has no visible text' },
  unsupported_content: { code: INVALID_PARAMS, text: 'Invalid params: this kind of content is not supported' },
  prompt_too_large: { code: INVALID_PARAMS, text: 'Invalid params: the prompt is too long' },
  prompt_queue_full: { code: INVALID_REQUEST, text: 'Invalid request: too many prompts are waiting', retryable: true },
  invalid_request: { code: INVALID_REQUEST, text: 'Invalid request' },
  not_initialized: { code: INVALID_REQUEST, text: 'Invalid request: initialize the connection first' },
  frame_too_large: { code: INVALID_REQUEST, text: 'Invalid request: the frame is larger than allowed' },
  parse_error: { code: -32_700, text: 'Parse error' },
  unknown_method: { code: -32_601, text: 'Method not found' },
  session_limit: { code: INTERNAL, text: 'Internal error: too many sessions are open', retryable: true },
  turn_timeout: { code: INTERNAL, text: 'Internal error: no reply in time', retryable: true },
  turn_failed: { code: INTERNAL, text: 'Internal error: everyone who was asked failed', retryable: true },
  platform_unavailable: { code: INTERNAL, text: 'Internal error: Band could not be reached', retryable: true },
  platform_refused: { code: INTERNAL, text: 'Internal error: Band does not allow this' },
  platform_rejected: { code: INTERNAL, text: 'Internal error: Band refused the request as invalid' },
  plan_limit: { code: INTERNAL, text: 'Internal error: the limit of the Band plan is reached' },
  agent_stopped: { code: INTERNAL, text: 'Internal error: this agent is stopped in the room', retryable: true },
  agent_already_running: {
    code: INTERNAL,
    text: 'Internal error: this agent already runs elsewhere on this host and cannot be shared',
    retryable: true,
  },
  superseded: { code: INTERNAL, text: 'Internal error: another connection of this agent took over', retryable: true },
  post_unconfirmed: {
    code: INTERNAL,
    text: 'Internal error: Band did not confirm the message; it may have been posted, so it is not repeated',
  },
  gateway_lost: { code: INTERNAL, text: 'Internal error: the process that ran this agent has gone', retryable: true },
  request_cancelled: { code: -32_800, text: 'Request cancelled' },
  internal: { code: INTERNAL, text: 'Internal error' },
} as const satisfies Record<string, Fault>;

export type AcpReason = keyof typeof ACP_FAULTS;

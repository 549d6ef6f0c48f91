/** Why a task stands where it stands, as `band_reason` says it, with the fixed sentence that a client reads. */
export const REASONS = {
  PEER_TIMEOUT: 'The agent did not answer in time.',
  WAITING_FOR_BAND: 'No answer has come yet. The request stays open and continues when the answer arrives.',
  PEER_FAILED: 'The agent failed to handle the request.',
  PEER_SAID: 'The agent ended the request.',
  PEER_LEFT: 'The agent left the conversation.',
  PEER_REMOVED: 'The agent is no longer available.',
  PEER_UNREACHABLE: 'The agent cannot be reached.',
  BAND_QUOTA: 'A quota of the platform is used up.',
  GATEWAY_STOPPED: 'The gateway was stopped in this conversation.',
  BAND_REJECTED: 'The platform refused the request.',
  BAND_UNAVAILABLE: 'The platform is not available.',
  BAND_UNAUTHORIZED: 'The gateway is not allowed to use the platform.',
  ROOM_CLOSED: 'The conversation was closed.',
  EXPIRED: 'The request was open for too long.',
  GATEWAY_SHUTDOWN: 'The gateway was shut down.',
  CLIENT_CANCELLED: 'The request was cancelled.',
  INTERNAL: 'Something went wrong inside the gateway.',
} as const;
export type Reason = keyof typeof REASONS;

/** A request that cannot reach its peer; ends the task with `reason`. */
export class TaskFailure extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, options?: ErrorOptions) {
    super(REASONS[reason], options);
    this.name = 'TaskFailure';
    this.reason = reason;
  }
}

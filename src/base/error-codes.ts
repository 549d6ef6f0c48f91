/** What each error code means to a person and to the code that meets it. */
export interface ErrorRow {
  /** The sentence a person reads. */
  readonly text: string;
  /** The same call may succeed later. */
  readonly retryable: boolean;
  /** It is certain that nothing reached the other side, so a repeat cannot double anything. */
  readonly undelivered: boolean;
  /** The person outside (in Slack, behind A2A, in an editor) is told. */
  readonly tellUser: boolean;
}

const row = (text: string, flags: Partial<Omit<ErrorRow, 'text'>> = {}): ErrorRow => ({
  text,
  retryable: false,
  undelivered: false,
  tellUser: false,
  ...flags,
});

/**
 * Every error code of the gateway. A bridge or layer adds its rows here, under its own heading; a retired code stays,
 * marked, and is never given a new meaning.
 */
export const ERROR_CODES = {
  // The Band wire
  BAND_UNREACHABLE: row('Band could not be reached.', { retryable: true, undelivered: true, tellUser: true }),
  BAND_TIMEOUT: row('Band did not answer in time.', { retryable: true, tellUser: true }),
  BAND_CONNECTION_LOST: row('The connection to Band broke before the answer came.', {
    retryable: true,
    tellUser: true,
  }),
  BAND_RATE_LIMITED: row('Band asked to slow down.', { retryable: true, undelivered: true, tellUser: true }),
  BAND_UNAVAILABLE: row('Band is not able to answer at the moment.', { retryable: true, tellUser: true }),
  BAND_BAD_ANSWER: row('Band answered something that this version does not understand.', { retryable: true }),
  BAND_UNAUTHORIZED: row('Band refused the credentials.', { undelivered: true }),
  BAND_FORBIDDEN: row('Band does not allow this.', { undelivered: true, tellUser: true }),
  BAND_NOT_FOUND: row('Band does not know this, or does not show it to this agent.', { undelivered: true }),
  BAND_CONFLICT: row('Band refused this because of its current state.', { undelivered: true }),
  BAND_INVALID: row('Band refused the request as invalid.', { undelivered: true }),
  BAND_ROOM_STOPPED: row('The agent is stopped in this room.', { undelivered: true, tellUser: true }),
  ROOM_LIMIT: row('Band refuses another room for this agent.', { undelivered: true, tellUser: true }),
  BAND_SUPERSEDED: row('Another connection of this agent replaced this one.'),
  BAND_ALREADY_CONNECTED: row('This agent already has a live connection to Band.'),
  BAND_LINK_CLOSED: row('The connection to Band was closed.', { undelivered: true }),
  BAND_JOIN_REFUSED: row('Band refused a subscription.', { retryable: true, undelivered: true }),

  // The store
  STORE_CLOSED: row('The store is closed.', { undelivered: true }),
  STORE_TRIPPED: row('The store met a write error and takes no writes until it has reopened.', {
    retryable: true,
    undelivered: true,
  }),
  STORE_IO: row('The disk refused a write.', { retryable: true }),
  STORE_LOCKED: row('Another process owns this data directory.'),
  STORE_NEWER: row('The data directory was written by a newer version of this program.'),
  STORE_DAMAGED: row('The data directory is damaged.'),
  STORE_CONFLICT: row('The record changed meanwhile.', { undelivered: true }),
  CRASH_LOOP: row('The process ended too often while this was being handled.'),
  STORE_TOO_LARGE: row('A record is larger than the store accepts.', { undelivered: true }),

  // Slack's Web API
  SLACK_RATE_LIMITED: row('Slack asked to slow down.', { retryable: true, undelivered: true }),
  SLACK_UNREACHABLE: row('Slack could not be reached.', { retryable: true, undelivered: true }),
  SLACK_TIMEOUT: row('Slack did not answer in time.', { retryable: true }),
  SLACK_CONNECTION_LOST: row('The connection to Slack broke before the answer came.', { retryable: true }),
  SLACK_UNAVAILABLE: row('Slack is not able to answer at the moment.', { retryable: true }),
  SLACK_BAD_ANSWER: row('Slack answered something that is not JSON.', { retryable: true }),
  SLACK_UNAUTHORIZED: row('Slack refused the credentials.', { undelivered: true }),
  SLACK_REFUSED: row('Slack refused the call.', { undelivered: true, tellUser: true }),
  SLACK_SUPERSEDED: row('Something newer was to be said before this had its turn.', { undelivered: true }),
  SLACK_EMPTY: row('There is nothing in this text that a reader would see.', { undelivered: true }),
  SLACK_FILE_SIZE: row('The file is empty or larger than may be sent.', { undelivered: true }),
  SLACK_FILE_PATH: row('This path does not lead to a plain file in the allowed directory.', { undelivered: true }),
  SLACK_NOT_INSTALLED: row('The app is not installed in this workspace.', { undelivered: true }),

  // A2A requests
  A2A_PARSE: row('The body is not valid JSON.', { undelivered: true, tellUser: true }),
  A2A_ENVELOPE: row('The body is not a valid request.', { undelivered: true, tellUser: true }),
  A2A_METHOD_UNKNOWN: row('This method does not exist here.', { undelivered: true, tellUser: true }),
  A2A_ROUTE_UNKNOWN: row('Nothing is served under this address.', { undelivered: true, tellUser: true }),
  A2A_METHOD_NOT_ALLOWED: row('This address does not take this HTTP method.', { undelivered: true, tellUser: true }),
  A2A_VERSION: row('This protocol version is not served.', { undelivered: true, tellUser: true }),
  A2A_REQUEST_TYPE: row('The content type of the request is not accepted.', { undelivered: true, tellUser: true }),
  A2A_NOT_ACCEPTABLE: row('None of the accepted content types is offered.', { undelivered: true, tellUser: true }),
  A2A_ENCODED: row('Compressed request bodies are not accepted.', { undelivered: true, tellUser: true }),
  A2A_TOO_LARGE: row('The request body is too large.', { undelivered: true, tellUser: true }),
  A2A_SLOW: row('The request took too long to arrive.', { undelivered: true, tellUser: true }),
  A2A_PARAMS: row('The request has invalid fields.', { undelivered: true, tellUser: true }),
  A2A_CONTENT_TYPE: row('The agent does not take this kind of content.', { undelivered: true, tellUser: true }),
  A2A_TASK_UNKNOWN: row('Task not found', { undelivered: true, tellUser: true }),
  A2A_TASK_ENDED: row('The task has ended and takes no further messages.', { undelivered: true, tellUser: true }),
  A2A_TASK_OVER: row('The task has ended; there is nothing left to subscribe to.', { tellUser: true }),
  A2A_TASK_BUSY: row('The task is running and takes no further messages.', { undelivered: true, tellUser: true }),
  A2A_NOT_CANCELABLE: row('The task can no longer be cancelled', { undelivered: true, tellUser: true }),
  A2A_MESSAGE_ID_REUSED: row('This messageId was already used for a different message', {
    undelivered: true,
    tellUser: true,
  }),
  A2A_PUSH_UNSUPPORTED: row('Push notifications are not offered.', { undelivered: true, tellUser: true }),
  A2A_NO_EXTENDED_CARD: row('An extended card is not offered.', { undelivered: true, tellUser: true }),
  A2A_UNAUTHENTICATED: row('Valid credentials are required.', { undelivered: true, tellUser: true }),
  A2A_SCOPE: row('The credentials do not allow this operation.', { undelivered: true, tellUser: true }),
  A2A_PEER_UNKNOWN: row('No agent is published under this address', { undelivered: true, tellUser: true }),
  A2A_RATE_LIMITED: row('Too many requests.', { retryable: true, undelivered: true, tellUser: true }),
  A2A_STREAM_LIMIT: row('Too many open streams.', { retryable: true, undelivered: true, tellUser: true }),
  A2A_CONTEXT_BUSY: row('Too many requests wait in this context.', {
    retryable: true,
    undelivered: true,
    tellUser: true,
  }),
  A2A_TASK_LIMIT: row('Too many open tasks.', { retryable: true, undelivered: true, tellUser: true }),
  A2A_CAPACITY: row('The gateway holds as many open tasks as it may.', {
    retryable: true,
    undelivered: true,
    tellUser: true,
  }),
  A2A_NOT_READY: row('The gateway is still starting.', { retryable: true, undelivered: true, tellUser: true }),
  A2A_BAND_DOWN: row('The gateway has no connection to Band.', { retryable: true, undelivered: true, tellUser: true }),
  A2A_STORE_DOWN: row('The gateway cannot store requests at the moment.', {
    retryable: true,
    undelivered: true,
    tellUser: true,
  }),
  A2A_STOPPING: row('The gateway is shutting down.', { retryable: true, undelivered: true, tellUser: true }),
  A2A_STREAM_CUT: row('The stream was ended because its reader fell too far behind.', { retryable: true }),

  // Queues and limits
  QUEUE_FULL: row('Too much is waiting already.', { retryable: true, undelivered: true, tellUser: true }),
  DEADLINE_EXCEEDED: row('This took longer than allowed.', { retryable: true }),

  // Settings
  CONFIG_INVALID: row('The settings are not valid.'),
  PORT_IN_USE: row('The port is already in use.'),

  // The service
  CONTROL_UNREACHABLE: row('No running gateway answers for this data directory.', { undelivered: true }),

  // The sandbox
  SANDBOX_REFUSED: row('The sandbox refuses this user, agent or seed.', { undelivered: true }),
  SANDBOX_DATA: row('The data folder of the sandbox cannot be used.'),

  // The relay
  RELAY_NOT_STARTED: row('The relay has not been started.'),
  RELAY_PEER_GONE: row('The peer can no longer be brought into the room.', { undelivered: true, tellUser: true }),
  RELAY_PEER_UNKNOWN: row('No peer of that name may be asked.', { undelivered: true, tellUser: true }),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERROR_CODES;

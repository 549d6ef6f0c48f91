import { GatewayError, isGatewayError, toError } from '../../src/base/errors.js';
import { CONNECT_BLOCKED, FAULT_ROWS, UNKNOWN_CODE, type FaultRow, type SlackFault } from './fault-table.js';

export type { Reshape, ResumeOn, RetryPlan, SlackFault } from './fault-table.js';

/** What a Web API method does, as far as its faults differ. */
export type MethodFamily =
  'post' | 'edit' | 'delete' | 'read' | 'reaction' | 'upload' | 'status' | 'modal' | 'stream' | 'other';

const FAMILY = new Map<string, MethodFamily>(
  Object.entries({
    'chat.postMessage': 'post',
    'chat.postEphemeral': 'post',
    'chat.update': 'edit',
    'chat.delete': 'delete',
    'chat.startStream': 'stream',
    'chat.appendStream': 'stream',
    'chat.stopStream': 'stream',
    'files.getUploadURLExternal': 'upload',
    'files.completeUploadExternal': 'upload',
  } as const),
);

export function methodFamily(method: string): MethodFamily {
  const known = FAMILY.get(method);
  if (known) return known;
  if (method.startsWith('reactions.')) return 'reaction';
  if (method.startsWith('assistant.') || method.startsWith('agents.')) return 'status';
  if (method.startsWith('views.')) return 'modal';
  return /^(?:conversations|users|bots|team|files|usergroups|emoji|auth)\./.test(method) ? 'read' : 'other';
}

/** Slack says these with HTTP 200 although nobody knows whether the call took effect. */
const AMBIGUOUS = new Set([
  'internal_error',
  'fatal_error',
  'service_unavailable',
  'request_timeout',
  'update_failed',
  'messaging_processing_failed',
]);

const UNAUTHORIZED = new Set([
  'invalid_auth',
  'not_authed',
  'token_expired',
  'token_revoked',
  'account_inactive',
  'team_disabled',
  'user_removed_from_team',
  'two_factor_setup_required',
]);

const LIMITED = new Set(['ratelimited', 'rate_limited']);
const DEFAULT_RETRY_AFTER_MS = 30_000;

/** An answer with `ok: false` as an error of ours; `details.slackError` is Slack's word. */
export function fromSlackAnswer(answer: Readonly<Record<string, unknown>>, method: string): GatewayError {
  const slackError = typeof answer['error'] === 'string' ? answer['error'] : 'unknown_error';
  const metadata = (answer['response_metadata'] ?? {}) as Record<string, unknown>;
  const details = {
    method,
    slackError,
    ...pick(answer, 'needed'),
    ...pick(answer, 'provided'),
    ...(Array.isArray(metadata['messages']) && metadata['messages'].length > 0
      ? { messages: metadata['messages'] }
      : {}),
  };
  if (LIMITED.has(slackError)) {
    const seconds = metadata['retryAfter'];
    return new GatewayError('SLACK_RATE_LIMITED', {
      retryAfterMs: typeof seconds === 'number' ? seconds * 1_000 : DEFAULT_RETRY_AFTER_MS,
      details,
    });
  }
  if (AMBIGUOUS.has(slackError)) return new GatewayError('SLACK_UNAVAILABLE', { details });
  if (UNAUTHORIZED.has(slackError)) return new GatewayError('SLACK_UNAUTHORIZED', { details });
  return new GatewayError('SLACK_REFUSED', { details });
}

const pick = (answer: Readonly<Record<string, unknown>>, name: string): Record<string, string> => {
  const value = answer[name];
  return typeof value === 'string' ? { [name]: value } : {};
};

/** Slack's own error word, or null when the failure was none of Slack's. */
export function slackErrorOf(error: unknown): string | null {
  if (!isGatewayError(error)) return null;
  const word = error.details['slackError'];
  return typeof word === 'string' ? word : null;
}

/** What to do about a failed call, and the sentence for the person where one is due. */
export interface FaultVerdict {
  readonly fault: SlackFault;
  /** One line for the person in Slack, or null when nobody is told. */
  readonly notice: string | null;
  /** The sentence goes by direct message: the channel takes nothing from us. */
  readonly direct: boolean;
  /** The code is in no list of ours: logged as unknown. */
  readonly unknown: boolean;
}

/**
 * The row of the fault table for a failed Web API call.
 *
 * @param error - what {@link SlackClient.call} threw
 * @param method - decides between rows for one code, e.g. `message_not_found` on an edit and on a reply
 */
export function judgeFault(error: unknown, method: string): FaultVerdict {
  if (!isGatewayError(error)) {
    throw new TypeError('Only errors of a Slack client can be judged.', { cause: toError(error) });
  }
  const ambiguous = !error.undelivered;
  switch (error.code) {
    case 'SLACK_RATE_LIMITED':
      return known({ kind: 'wait', ms: error.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS });
    case 'SLACK_UNREACHABLE':
    case 'SLACK_TIMEOUT':
    case 'SLACK_CONNECTION_LOST':
    case 'SLACK_UNAVAILABLE':
    case 'SLACK_BAD_ANSWER':
      return known({ kind: 'again', ambiguous, plan: 'usual' });
    default:
      return judgeWord(slackErrorOf(error), methodFamily(method));
  }
}

function judgeWord(word: string | null, family: MethodFamily): FaultVerdict {
  if (word === null) return { ...known(UNKNOWN_CODE), unknown: true };
  const rows: readonly FaultRow[] =
    FAULT_ROWS.get(word) ?? (CONNECT_BLOCKED.words.test(word) ? CONNECT_BLOCKED.rows : []);
  const row =
    rows.find((candidate) => candidate.families?.includes(family)) ?? rows.find((candidate) => !candidate.families);
  if (row) return { fault: row.fault, notice: row.notice, direct: row.direct ?? false, unknown: false };
  return { ...known(UNKNOWN_CODE), unknown: true };
}

const known = (fault: SlackFault): FaultVerdict => ({ fault, notice: null, direct: false, unknown: false });

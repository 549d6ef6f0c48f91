import type { Reply } from '../convert/directive.js';
import { isVisible } from '../convert/to-band.js';
import type { ConversationSettings } from '../settings.js';
import { isInterrupted, type JsonObject, type Message, type Part } from '../wire.js';
import type { Change, OpenTask } from './book.js';
import type { LogEvent } from './log.js';
import { REASONS, type Reason } from './reasons.js';
import type { TaskRow } from './records.js';
import { nextState, type Cause } from './states.js';

/** The pure part of the engine: what one happening adds to a task. Nothing here waits, stores or tells anybody. */

/** A status for `cause` as a log entry, or null where the state does not allow it. */
export function statusFor(
  row: TaskRow,
  from: TaskRow['state'],
  cause: Cause,
  now: number,
  parts: { readonly message?: Message; readonly metadata?: JsonObject } = {},
): Extract<LogEvent, { kind: 'status' }> | null {
  const state = nextState(from, cause);
  if (state === null) return null;
  const timestamp = new Date(Math.max(now, row.stateAt)).toISOString();
  return {
    kind: 'status',
    status: { state, timestamp, ...(parts.message && { message: parts.message }) },
    ...(parts.metadata && { metadata: parts.metadata }),
  };
}

/** An agent's message of one text part. */
export function agentMessage(
  row: TaskRow,
  messageId: string,
  text: string | readonly Part[],
  metadata?: JsonObject,
): Message {
  return {
    messageId,
    role: 'ROLE_AGENT',
    taskId: row.id,
    contextId: row.contextId,
    parts: typeof text === 'string' ? [{ text }] : text,
    ...(metadata && { metadata }),
  };
}

/**
 * The end of a task that did not reach an answer.
 *
 * @param unposted - nothing of it can have stood in a room
 */
export function failure(
  task: OpenTask,
  { reason, unposted }: { readonly reason: Reason; readonly unposted: boolean },
  newId: () => string,
  now: number,
): Change | null {
  const message = agentMessage(task.row, newId(), REASONS[reason], { band_reason: reason });
  const status = statusFor(task.row, task.row.state, 'failed', now, { message });
  return status && { events: [status], row: { lastEventAt: now, pending: [], ...(unposted && { unposted }) } };
}

/** Silence, where it parks the task instead of failing it. */
export function parking(task: OpenTask, peerName: string, newId: () => string, now: number): Change | null {
  const text = `${peerName} has not answered yet. The request stays open and continues when the answer arrives.`;
  const metadata = { band_reason: 'WAITING_FOR_BAND' satisfies Reason };
  // In the message too, for who gets the task and not its events.
  const message = agentMessage(task.row, newId(), text, metadata);
  const status = statusFor(task.row, task.row.state, 'parked', now, { message, metadata });
  return status && { events: [status], row: { lastEventAt: now, parked: true } };
}

export function cancellation({ row }: OpenTask, now: number): Change | null {
  const metadata = { band_reason: 'CLIENT_CANCELLED' satisfies Reason };
  const status = statusFor(row, row.state, 'cancelled', now, { metadata });
  return status && { events: [status], row: { lastEventAt: now, pending: [] } };
}

/** A message of the request stands in the room. */
export function posting({ row }: OpenTask, clientMessageId: string, bandMessageId: string, now: number): Change | null {
  // The reply was faster than the answer to the post, and told already that it stands there.
  if (!row.pending.includes(clientMessageId)) return { row: { lastPostId: bandMessageId } };
  const status = row.state === 'TASK_STATE_SUBMITTED' ? statusFor(row, row.state, 'posted', now) : null;
  return {
    ...(status && { events: [status] }),
    row: {
      pending: row.pending.filter((id) => id !== clientMessageId),
      posted: row.posted + 1,
      unanswered: row.unanswered + 1,
      lastPostId: bandMessageId,
      lastActivityAt: now,
      ...(status && { lastEventAt: now }),
    },
  };
}

/** A further message of the client. */
export function followUp({ row }: OpenTask, message: Message, now: number): Change {
  const resumed = isInterrupted(row.state) ? statusFor(row, row.state, 'follow_up', now) : null;
  return {
    // The question moves into the history when the state changes, so the answer to it comes after it.
    events: [...(resumed ? [resumed] : []), { kind: 'message', message }],
    row: {
      pending: [...row.pending, message.messageId],
      lastEventAt: now,
      lastActivityAt: now,
      parked: false,
      moreFollows: false,
    },
  };
}

/** Someone other than the target spoke. */
export function remark(
  task: OpenTask,
  remarkOf: { messageId: string; name: string; text: string },
  now: number,
): Change | null {
  const { row } = task;
  const status = statusFor(row, row.state, 'progress', now, {
    message: agentMessage(row, `band-${remarkOf.messageId}`, `${remarkOf.name}: ${remarkOf.text}`),
    metadata: { band_sender_name: remarkOf.name },
  });
  return status && { events: [status], row: { lastEventAt: now, lastActivityAt: now } };
}

export interface IncomingReply {
  readonly bandMessageId: string;
  readonly reply: Reply;
  readonly settings: ConversationSettings;
  /** The message that is on its way into the room at this moment. */
  readonly inFlight: string | null;
  /** An interrupting directive came in the same turn, so a plain remark resumes nothing. */
  readonly sameTurn: boolean;
  /** Goes into the events' metadata. */
  readonly metadata?: JsonObject;
  readonly now: number;
}

const ASKING: Readonly<Partial<Record<NonNullable<Reply['state']>, Cause>>> = {
  working: 'progress',
  'input-required': 'asked',
  'auth-required': 'auth_asked',
  failed: 'failed',
  rejected: 'refused',
};

/** What a reply of the target peer adds, or null when it says nothing that counts. */
export function answer(task: OpenTask, incoming: IncomingReply): Change | null {
  const { row } = task;
  const { reply, settings, now } = incoming;
  if (!reply.directed && !isVisible(reply.text)) return null;
  const messageId = `band-${incoming.bandMessageId}`;
  if (isInterrupted(row.state) && incoming.sameTurn && reply.state === null) {
    const status = statusFor(row, row.state, 'remark', now, { message: agentMessage(row, messageId, reply.text) });
    return status && { events: [status], row: { lastEventAt: now } };
  }
  const events: LogEvent[] = [];
  const opening = openingStatus(row, now);
  if (opening) events.push(opening);
  const base: Partial<TaskRow> = {
    lastEventAt: now,
    lastActivityAt: now,
    lastReplyAt: now,
    parked: false,
    ...readBy(row, incoming.inFlight),
  };
  const cause = reply.state === null ? undefined : ASKING[reply.state];
  if (cause !== undefined) {
    const ends = cause === 'failed' || cause === 'refused';
    const words = ends && !isVisible(reply.text) ? REASONS.PEER_SAID : reply.text;
    const said = agentMessage(row, messageId, words, ends ? { band_reason: 'PEER_SAID' } : undefined);
    const status = statusFor(row, 'TASK_STATE_WORKING', cause, now, {
      ...(reply.text !== '' || ends ? { message: said } : {}),
      ...(incoming.metadata && { metadata: incoming.metadata }),
    });
    if (!status) return null;
    const turnOver: Partial<TaskRow> = cause === 'progress' ? {} : { moreFollows: false, unanswered: 0 };
    return { events: [...events, status], row: { ...base, ...turnOver } };
  }
  const shown = artifactOf(task, incoming);
  if (shown && settings.resultIn !== 'status') events.push(shown);
  const after: TaskRow = {
    ...row,
    ...base,
    replies: row.replies + 1,
    unanswered: Math.max(0, (base.unanswered ?? row.unanswered) - (reply.final === false ? 0 : 1)),
    moreFollows: reply.final === false,
    resultTexts: resultTexts(row, reply, settings),
  };
  const complete =
    reply.final === true ||
    (reply.state === 'completed' && reply.final !== false) ||
    (settings.completion === 'first' && reply.final !== false && isAnswered(after));
  const status = complete ? completedStatus(after, now) : null;
  if (status) events.push(status);
  return { events, row: { ...after, seq: row.seq, state: row.state, stateAt: row.stateAt } };
}

/** The quiet end of an answer. */
export function completion({ row }: OpenTask, now: number): Change | null {
  if (row.state !== 'TASK_STATE_WORKING') return null;
  const status = completedStatus(row, now);
  return status && { events: [status], row: { lastEventAt: now } };
}

/** Every message that was posted has had a reply, and nothing is left to post. */
export function isAnswered(row: TaskRow): boolean {
  return row.pending.length === 0 && row.unanswered === 0 && row.replies > 0 && !row.moreFollows;
}

/** Who answers has read what was on its way, whatever becomes of the answer to its post. */
function readBy(row: TaskRow, inFlight: string | null): Partial<TaskRow> {
  const [first] = row.pending;
  const isRead = first !== undefined && (row.posted === 0 || (first === inFlight && row.unanswered === 0));
  return isRead ? { posted: row.posted + 1, unanswered: row.unanswered + 1, pending: row.pending.slice(1) } : {};
}

function openingStatus(row: TaskRow, now: number): LogEvent | null {
  if (row.state === 'TASK_STATE_SUBMITTED') return statusFor(row, row.state, 'posted', now);
  return isInterrupted(row.state) ? statusFor(row, row.state, 'resumed', now) : null;
}

function artifactOf({ view }: OpenTask, { bandMessageId, reply, metadata }: IncomingReply): LogEvent | null {
  const parts: Part[] = [...(reply.text === '' && reply.parts ? [] : [{ text: reply.text }]), ...(reply.parts ?? [])];
  if (reply.text === '' && !reply.parts) return null;
  const { id, name, append, lastChunk } = reply.artifact ?? {};
  const count = view.artifacts.length + 1;
  const known = id !== undefined && view.artifacts.some((one) => one.artifactId === id);
  return {
    kind: 'artifact',
    artifact: {
      artifactId: id ?? `band-${bandMessageId}`,
      name:
        name ?? (known ? view.artifacts.find((one) => one.artifactId === id)?.name : undefined) ?? artifactName(count),
      parts,
    },
    append: append === true && known,
    lastChunk: lastChunk ?? true,
    ...(metadata && { metadata }),
  };
}

function artifactName(count: number): string {
  return count === 1 ? 'reply' : `reply-${count}`;
}

function resultTexts(row: TaskRow, reply: Reply, { resultIn }: ConversationSettings): string[] {
  if (resultIn === 'artifact' || reply.text === '') return row.resultTexts;
  return resultIn === 'both' ? [reply.text] : [...row.resultTexts, reply.text];
}

function completedStatus(row: TaskRow, now: number): Extract<LogEvent, { kind: 'status' }> | null {
  const parts = row.resultTexts.map((text): Part => ({ text }));
  const message = parts.length > 0 ? agentMessage(row, `result-${row.id}`, parts) : undefined;
  return statusFor(row, 'TASK_STATE_WORKING', 'answered', now, message ? { message } : {});
}

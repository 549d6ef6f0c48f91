import type { Change, OpenTask } from '../../../bridges/a2a/engine/book.js';
import type { LogEvent } from '../../../bridges/a2a/engine/log.js';
import type { TaskRow } from '../../../bridges/a2a/engine/records.js';
import { remark } from '../../../bridges/a2a/engine/steps.js';

export const OWNER = 'key:alpha';
export const PEER_ID = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';

/** A task at work, as the engine stores it. */
export function newTask(id: string, at = 1_000): { row: TaskRow; events: LogEvent[] } {
  const row: TaskRow = {
    v: 1,
    id,
    owner: OWNER,
    peerId: PEER_ID,
    contextId: `c-${id}`,
    state: 'TASK_STATE_WORKING',
    seq: 0,
    createdAt: at,
    order: at,
    stateAt: at,
    lastEventAt: at,
    lastActivityAt: at,
    pending: [],
    posted: 1,
    lastPostId: null,
    replies: 0,
    unanswered: 1,
    lastReplyAt: null,
    moreFollows: false,
    parked: false,
    resultTexts: [],
  };
  const timestamp = new Date(at).toISOString();
  return {
    row,
    events: [
      { kind: 'message', message: { messageId: `m-${id}`, role: 'ROLE_USER', parts: [{ text: `job ${id}` }] } },
      { kind: 'status', status: { state: 'TASK_STATE_WORKING', timestamp } },
    ],
  };
}

/** One more entry of a task's log. */
export function remarkOn(task: OpenTask, text: string, now = task.row.lastEventAt + 1): Change | null {
  return remark(task, { messageId: `r-${task.row.seq}`, name: 'Jane', text }, now);
}

import { isInterrupted, type TaskState } from '../wire.js';

/** Why a task moves. `progress` and `remark` carry a message and keep the state. */
export const CAUSES = [
  'posted',
  'progress',
  'remark',
  'answered',
  'asked',
  'auth_asked',
  'refused',
  'parked',
  'resumed',
  'follow_up',
  'cancelled',
  'failed',
] as const;
export type Cause = (typeof CAUSES)[number];

const WORKING: Partial<Record<Cause, TaskState>> = {
  posted: 'TASK_STATE_WORKING',
  progress: 'TASK_STATE_WORKING',
  follow_up: 'TASK_STATE_WORKING',
  answered: 'TASK_STATE_COMPLETED',
  asked: 'TASK_STATE_INPUT_REQUIRED',
  auth_asked: 'TASK_STATE_AUTH_REQUIRED',
  refused: 'TASK_STATE_REJECTED',
  parked: 'TASK_STATE_INPUT_REQUIRED',
  cancelled: 'TASK_STATE_CANCELED',
  failed: 'TASK_STATE_FAILED',
};

/**
 * The state after a cause, or null where the cause means nothing: a terminal state never changes, and a task that was
 * not posted cannot be answered.
 */
export function nextState(state: TaskState, cause: Cause): TaskState | null {
  switch (state) {
    case 'TASK_STATE_SUBMITTED':
      if (cause === 'posted') return 'TASK_STATE_WORKING';
      if (cause === 'cancelled') return 'TASK_STATE_CANCELED';
      if (cause === 'failed') return 'TASK_STATE_FAILED';
      return null;
    case 'TASK_STATE_WORKING':
      return WORKING[cause] ?? null;
    case 'TASK_STATE_INPUT_REQUIRED':
    case 'TASK_STATE_AUTH_REQUIRED':
      if (cause === 'follow_up' || cause === 'resumed') return 'TASK_STATE_WORKING';
      if (cause === 'remark') return state;
      if (cause === 'cancelled') return 'TASK_STATE_CANCELED';
      if (cause === 'failed') return 'TASK_STATE_FAILED';
      return null;
    case 'TASK_STATE_COMPLETED':
    case 'TASK_STATE_FAILED':
    case 'TASK_STATE_CANCELED':
    case 'TASK_STATE_REJECTED':
      return null;
  }
}

/** A task that a blocking caller need not wait for any longer. */
export function isSettled(state: TaskState): boolean {
  return isInterrupted(state) || nextState(state, 'cancelled') === null;
}

import { isGatewayError } from '../../../src/base/errors.js';
import { isInterrupted } from '../wire.js';
import type { OpenTask } from './book.js';
import type { EngineCore } from './core.js';
import { removeFromLane, type Lane } from './lanes.js';

/** Gives a task that was read from the store its place in its lane, and its timers as they stand by stored times. */
export async function restore(core: EngineCore, task: OpenTask): Promise<Lane> {
  const { row } = task;
  const context = await core.contexts.open(row.owner, row.contextId);
  const lane = await core.lanes.enter(context, row.peerId);
  if (isInterrupted(row.state)) lane.interrupted.push(row.id);
  else if (row.state === 'TASK_STATE_WORKING' && row.pending.length === 0) lane.running = row.id;
  else lane.queue.push(row.id);
  core.lanes.leave(lane);
  core.contexts.close(context);
  const settings = core.settingsOf(row.peerId);
  const since = (at: number): number => Math.max(0, core.now() - at);
  core.armExpiry(task, since(row.lastEventAt));
  if (row.state !== 'TASK_STATE_WORKING') return lane;
  core.armSilence(task, settings, since(row.lastActivityAt));
  if (row.replies > 0) core.completion.afterReply(task, context, settings);
  else core.completion.awaitReply(task, context, settings);
  return lane;
}

/**
 * Takes up a task that stands in the store and that this process does not hold: the write that made it failed without
 * saying whether it reached the disk, and it did.
 */
export async function adopt(core: EngineCore, taskId: string): Promise<void> {
  const task = await core.book.adopt(taskId);
  if (!task) return;
  const lane = await restore(core, task);
  core.accepted();
  core.deps.log.info({ taskId, contextId: task.row.contextId, peer: task.row.peerId }, 'a2a task found in the store');
  core.kick(lane);
}

/**
 * After a step whose write failed without saying whether it reached the disk: finds out, and goes on with what is there.
 * The caller was told that the step failed; what it asked for may be done all the same.
 */
export function settleDoubt(core: EngineCore, taskId: string, error: unknown): void {
  if (!isGatewayError(error, 'STORE_IO')) return;
  core.later(async () => {
    await core.durably(() => adopt(core, taskId));
    await core.durably(() => core.change(taskId, () => null));
    const task = core.book.find(taskId);
    const lane = task && core.laneOf(task);
    if (!lane || task.row.pending.length === 0) return;
    if (lane.running !== taskId && !lane.queue.includes(taskId)) {
      removeFromLane(lane, taskId);
      lane.queue.push(taskId);
    }
    core.kick(lane);
  });
}

import type { Change } from './change.js';
import type { Execution, Room, World } from './world.js';

export type ControlMode = 'interrupt' | 'stop' | 'play';

/** Every agent has one execution in each of its rooms, from joining to leaving. */
export function startExecution(change: Change, room: Room, agentId: string): void {
  const at = change.world.timeline.next();
  change.add({
    kind: 'execution',
    execution: {
      id: change.world.newId(),
      agentId,
      roomId: room.record.id,
      stopped: false,
      insertedAt: at,
      updatedAt: at,
    },
  });
}

/**
 * Stops, resumes or interrupts agents in one room, each told by a signal of its own.
 *
 * @returns the ids of the agents told
 */
export function controlRoom(change: Change, room: Room, agentIds: readonly string[], mode: ControlMode): string[] {
  const correlationId = change.world.newId();
  return agentIds.filter((agentId) => {
    const execution = room.executions.get(agentId);
    if (!execution) return false;
    switchExecution(change, execution, mode);
    signal(change, agentId, mode, 'room', execution.id, room.record.id, correlationId);
    return true;
  });
}

/** The same for one agent in all its rooms, told by a single signal. */
export function controlAgent(change: Change, agentId: string, mode: ControlMode, executionId: string | null): void {
  for (const execution of executionsOf(change.world, agentId)) switchExecution(change, execution, mode);
  signal(change, agentId, mode, 'agent', executionId, null, change.world.newId());
}

export function executionsOf(world: World, agentId: string): Execution[] {
  const executions: Execution[] = [];
  for (const room of world.roomsOf.get(agentId) ?? []) {
    const execution = room.executions.get(agentId);
    if (execution) executions.push(execution);
  }
  return executions;
}

function switchExecution(change: Change, execution: Execution, mode: ControlMode): void {
  const stopped = mode === 'interrupt' ? execution.stopped : mode === 'stop';
  if (stopped === execution.stopped) return;
  change.add({
    kind: 'execution',
    execution: { ...execution, stopped, updatedAt: change.world.timeline.next() },
  });
}

function signal(
  change: Change,
  agentId: string,
  mode: ControlMode,
  scope: 'agent' | 'room',
  executionId: string | null,
  roomId: string | null,
  correlationId: string,
): void {
  change.push({
    to: [agentId],
    topic: `agent_control:${agentId}`,
    event: 'agent.control',
    // Without a reason the key is left out: clients take a string there or nothing, not null.
    payload: () => ({
      type: 'agent.control',
      mode,
      scope,
      agent_id: agentId,
      execution_id: executionId,
      room_id: roomId,
      correlation_id: correlationId,
    }),
  });
}

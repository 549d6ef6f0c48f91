import { z } from 'zod';
import { data, type Answer } from '../answer.js';
import type { Platform } from '../platform.js';
import { isWorking } from '../world/activity.js';
import { controlAgent, controlRoom, executionsOf, type ControlMode } from '../world/control.js';
import { answerAsk, readAsk, sortedListing } from '../world/paging.js';
import { addAgent, removeAgent } from '../world/people.js';
import { forbidden, invalid, notFound } from '../world/problem.js';
import { requireOwner, roomFor } from '../world/rooms.js';
import * as shapes from '../world/shapes.js';
import type { Agent, User } from '../world/world.js';
import { parseBody } from './body.js';
import { bothFamilies, choice, queryBoolean, requiredText } from './fields.js';
import { userRoute, type Call, type Route } from './router.js';

const registration = z.object({
  agent: z.object({ name: requiredText, description: requiredText }, { error: 'must be an object' }),
});

const MODES: readonly ControlMode[] = ['stop', 'play', 'interrupt'];
const AVAILABLE_FILTERS = [
  { param: 'name', label: 'Name', type: 'string' },
  { param: 'is_external', label: 'External', type: 'boolean' },
  { param: 'listed_in_directory', label: 'Listed in directory', type: 'boolean' },
];
const SORTABLE_FIELDS = [
  { param: 'name', label: 'Name' },
  { param: 'inserted_at', label: 'Created' },
  { param: 'updated_at', label: 'Updated' },
];

export interface MyAgentsDeps {
  readonly platform: Platform;
  readonly newKey: (kind: 'User' | 'Agent') => string;
  /** Ends the sockets of an agent that is no more. */
  readonly disconnect: (agentId: string) => void;
}

/** A person's own agents, and control over agents in rooms. */
export function myAgentRoutes({ platform, newKey, disconnect }: MyAgentsDeps): Route[] {
  const { world } = platform;

  const ownAgent = ({ caller, params }: Call<User>): Agent => {
    const agent = world.agents.get(params['agent_id'] ?? '');
    if (!agent) throw notFound('Agent');
    if (agent.ownerId !== caller.id) throw forbidden('This agent is not yours');
    return agent;
  };
  const controlled = (call: Call<User>, mode: ControlMode, agentId: string | null): Answer => {
    const room = roomFor(world, call.caller.id, call.params['chat_id'] ?? '');
    requireOwner(room, call.caller.id);
    if (agentId !== null && !room.executions.has(agentId)) throw notFound('Agent');
    const targets = agentId === null ? [...room.executions.keys()] : [agentId];
    return told(platform.run((change) => controlRoom(change, room, targets, mode)));
  };

  return [
    userRoute('POST', '/agents/register', ({ caller, body }) => {
      const { agent: wanted } = parseBody(registration, body);
      const agent = platform.run((change) =>
        addAgent(change, {
          ...wanted,
          ownerId: caller.id,
          id: world.newId(),
          apiKey: newKey('Agent'),
          global: false,
          tags: [],
        }),
      );
      const { id, name, description, ownerId, insertedAt } = agent;
      return data(
        {
          agent: { id, name, description, owner_id: ownerId, inserted_at: insertedAt },
          credentials: { api_key: agent.apiKey },
        },
        201,
      );
    }),

    userRoute('GET', '/agents', ({ caller, query }) => listAgents(platform, caller, query)),

    userRoute('DELETE', '/agents/:agent_id', (call) => {
      const agent = ownAgent(call);
      const executions = executionsOf(world, agent.id).length;
      if (executions > 0 && queryBoolean(call.query, 'force') !== true) {
        throw invalid('/force', 'must be true: the agent has executions');
      }
      platform.run((change) => {
        removeAgent(change, agent);
      });
      disconnect(agent.id);
      const { id, name, description } = agent;
      return data({ id, name, description, executions_deleted: executions });
    }),

    userRoute('GET', '/agents/:agent_id/executions', (call) => {
      const agent = ownAgent(call);
      const nowMs = platform.clock.now();
      return data(executionsOf(world, agent.id).map((one) => shapes.execution(one, isWorking(world, one.id, nowMs))));
    }),

    userRoute('POST', '/agents/:agent_id/executions/:execution_id/interrupt', (call) => {
      const agent = ownAgent(call);
      const { execution_id: executionId = '' } = call.params;
      if (!executionsOf(world, agent.id).some(({ id }) => id === executionId)) throw notFound('Execution');
      platform.run((change) => {
        controlAgent(change, agent.id, 'interrupt', executionId);
      });
      return told([agent.id]);
    }),

    ...MODES.flatMap((mode) => [
      userRoute('POST', `/agents/:agent_id/${mode}`, (call) => {
        const agent = ownAgent(call);
        platform.run((change) => {
          controlAgent(change, agent.id, mode, null);
        });
        return told([agent.id]);
      }),
      userRoute('POST', `/chats/:chat_id/agents/${mode}`, (call) => controlled(call, mode, null)),
      userRoute('POST', `/chats/:chat_id/agents/:agent_id/${mode}`, (call) =>
        controlled(call, mode, call.params['agent_id'] ?? ''),
      ),
    ]),
  ];
}

const told = (agents: readonly string[]): Answer => data({ success: true, agents });

function listAgents({ world }: Platform, caller: User, query: URLSearchParams): Answer {
  const name = query.get('name')?.toLowerCase() ?? '';
  const isExternal = queryBoolean(query, 'is_external');
  const listed = queryBoolean(query, 'listed_in_directory');
  const sort = choice(query, 'sort', ['name', 'inserted_at', 'updated_at']) ?? 'inserted_at';
  const order = choice(query, 'order', ['asc', 'desc']) ?? 'desc';
  const filters = `agents ${name} ${String(isExternal)} ${String(listed)} ${sort} ${order}`;
  const agents = [...(world.agentsOf.get(caller.id) ?? [])]
    .map((id) => world.agents.get(id))
    .filter((agent) => agent !== undefined)
    .filter(
      (agent) =>
        agent.name.toLowerCase().includes(name) &&
        // Every agent of the sandbox is a program outside of it.
        isExternal !== false &&
        (listed === null || listed === agent.global),
    );
  const sortOf = {
    name: (a: Agent) => a.name,
    inserted_at: (a: Agent) => a.insertedAt,
    updated_at: (a: Agent) => a.updatedAt,
  };
  const listing = sortedListing(agents, (agent) => ({ sort: sortOf[sort](agent), id: agent.id }), order);
  const answered = answerAsk(readAsk(query, 'both', filters), listing, filters);
  return bothFamilies(answered, answered.rows.map(shapes.myAgent), {
    available_filters: AVAILABLE_FILTERS,
    sortable_fields: SORTABLE_FIELDS,
  }).answer;
}

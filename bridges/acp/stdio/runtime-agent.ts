import { Agent } from '../../../src/agent.js';
import { SessionConfig } from '../../../src/config/session-config.js';
import { BandACPServerAdapter } from '../adapter.js';
import type { AgentMaker } from './standalone.js';

/** The runtime's Agent around a bridge that serves the editors of an existing server. */
export const createRuntimeAgent: AgentMaker = (server, credentials, conflict, deps) => {
  const ports = { clock: deps.clock, log: deps.log, ...(deps.socketPath ? { socketPath: deps.socketPath } : {}) };
  const adapter = new BandACPServerAdapter({}, ports, server);
  const { agentId, apiKey, restUrl, wsUrl, singleInstance, session } = credentials;
  const conflictPolicy = conflict === 'reject' ? 'reject' : credentials.conflictPolicy;
  const agent = Agent.create(
    {
      adapter,
      agentId,
      apiKey,
      restUrl,
      wsUrl,
      config: { conflictPolicy, singleInstance },
      sessionConfig: new SessionConfig(session),
    },
    { clock: deps.clock, log: (name) => deps.log.child({ logger: name }) },
  );
  return Promise.resolve(agent);
};

import { Agent, type AgentCreateOptions } from '../../src/agent.js';
import type { AgentPorts } from '../../src/runtime/ports.js';
import { DEMO, type Sandbox } from '../../src/sandbox/index.js';

/**
 * An Agent for one of the sandbox's identities; the demo's echo unless another is named. It takes no host-wide lock, so
 * that tests do not meet each other.
 */
export function sandboxAgent(
  sandbox: Pick<Sandbox, 'restUrl' | 'wsUrl'>,
  options: Partial<AgentCreateOptions> & Pick<AgentCreateOptions, 'adapter'>,
  ports: Partial<AgentPorts> = {},
): Agent {
  return Agent.create(
    {
      agentId: DEMO.echo.id,
      apiKey: DEMO.echo.apiKey,
      restUrl: sandbox.restUrl,
      wsUrl: sandbox.wsUrl,
      ...options,
      config: { singleInstance: false, ...options.config },
    },
    ports,
  );
}

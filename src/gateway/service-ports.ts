import { Agent } from '../agent.js';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { Redactor } from '../base/redact.js';
import type { ServiceOptions } from '../config/load.js';
import { SessionConfig } from '../config/session-config.js';
import type { GatewayPorts } from './create-gateway.js';

/** The real world of the service: Agents of this package's own runtime, writing to the service's log. */
export function createServicePorts(
  service: ServiceOptions,
  world: { readonly clock: Clock; readonly log: Logger; readonly redactor: Redactor; readonly version: string },
): GatewayPorts {
  const { clock, log, redactor } = world;
  return {
    ...world,
    createAgent(entry, adapter, { conflictPolicy: policy, metrics }) {
      const { agentId, apiKey, conflictPolicy, singleInstance, session } = entry.options;
      return Agent.create(
        {
          adapter,
          agentId,
          apiKey,
          restUrl: service.platform.restUrl,
          wsUrl: service.platform.wsUrl,
          config: { singleInstance, conflictPolicy: policy === 'reject' ? 'reject' : conflictPolicy },
          sessionConfig: new SessionConfig(given(session)),
        },
        { clock, redactor, metrics, log: (name) => log.child({ logger: name, agent: entry.name }) },
      );
    },
    linkOf(agent) {
      const link = agent instanceof Agent ? agent.runtime.linkState : null;
      return link && { state: link.kind, since: link.sinceMs, why: link.why };
    },
  };
}

/** The properties that have a value. */
function given<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

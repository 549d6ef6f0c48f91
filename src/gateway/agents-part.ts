import { GatewayError, toError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import { judgeAgentError } from './agent-verdict.js';
import type { HostedAgent } from './hosted-agent.js';
import type { Lifecycle } from './lifecycle.js';

/**
 * Opens every bridge. Wrong settings of any entry keep the service from starting, since a restart mends nothing, and do
 * so before a port is open; whatever else goes wrong with one is that one's state, and is tried again.
 */
export function createBridgesPart(agents: readonly HostedAgent[], log: Logger): Lifecycle {
  return {
    name: 'bridges',
    async start() {
      const failures: Error[] = [];
      for (const hosted of agents) {
        try {
          await hosted.open();
        } catch (error) {
          if (judgeAgentError(error).kind !== 'settings') {
            log.error({ err: toError(error), agent: hosted.name }, 'bridge did not open; it is tried again');
            continue;
          }
          failures.push(new Error(`agents.${hosted.name}: ${toError(error).message}`, { cause: error }));
        }
      }
      if (failures.length > 0) throw settingsError(failures);
    },
    async stop() {
      // What ran has stopped already; this is for bridges that were opened and never ran.
      await stopAll(agents);
    },
  };
}

/** Runs every Agent, and ends them side by side. */
export function createAgentsPart(agents: readonly HostedAgent[]): Lifecycle {
  return {
    name: 'agents',
    start() {
      for (const hosted of agents) hosted.run();
      return Promise.resolve();
    },
    stop: () => stopAll(agents),
  };
}

async function stopAll(agents: readonly HostedAgent[]): Promise<void> {
  const results = await Promise.allSettled(agents.map((hosted) => hosted.stop()));
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  if (failures.length > 0) throw new AggregateError(failures, 'Some agents did not stop cleanly');
}

function settingsError(failures: readonly Error[]): Error {
  const lines = failures.map(({ message }) => `  ${message.replaceAll('\n', '\n  ')}`);
  return new GatewayError('CONFIG_INVALID', {
    message: `The settings are not valid:\n${lines.join('\n')}`,
    cause: failures[0],
  });
}

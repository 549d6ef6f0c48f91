import { randomInt } from 'node:crypto';
import { GenericAdapter } from '../adapters/generic.js';
import { Agent } from '../agent.js';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import { dice, echo, type DemoSelf, type DemoStep } from '../sandbox/demo-agents.js';
import { DEMO, startSandbox, type Sandbox } from '../sandbox/index.js';
import { createConsole } from '../sandbox/console/index.js';

/** A sandbox with its two demo agents in it. */
export interface Demo {
  readonly sandbox: Sandbox;
  stop(): Promise<void>;
}

/**
 * Starts the sandbox with its console, and the agents `demo/echo` and `demo/dice` in it.
 *
 * @throws {GatewayError} `PORT_IN_USE`; `SANDBOX_DATA` when the data folder cannot be used
 */
export async function startDemo(
  options: { readonly host?: string; readonly port: number; readonly dataDir: string | null },
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<Demo> {
  const sandbox = await startSandbox({
    ...options,
    clock,
    log,
    seed: 'demo',
    extraRoutes: createConsole({ apiKey: DEMO.user.apiKey }),
  });
  const agents = [
    demoAgent(sandbox, { ...DEMO.echo, name: 'Echo' }, echo, { clock, log }),
    demoAgent(sandbox, { ...DEMO.dice, name: 'Dice' }, (text, self) => dice(text, self, random), { clock, log }),
  ];
  try {
    await Promise.all(agents.map((agent) => agent.start()));
  } catch (error) {
    await sandbox.close();
    throw error;
  }
  return {
    sandbox,
    async stop() {
      await Promise.allSettled(agents.map((agent) => agent.stop()));
      await sandbox.close();
    },
  };
}

/** Numbers in [0, 1), from dice that nobody can foresee. */
function random(): number {
  return randomInt(2 ** 32) / 2 ** 32;
}

function demoAgent(
  { restUrl, wsUrl }: Sandbox,
  self: DemoSelf & { readonly apiKey: string },
  think: (text: string, self: DemoSelf) => DemoStep[],
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Agent {
  const adapter = new GenericAdapter(async ({ message, tools, isSessionBootstrap, roomId }) => {
    for (const step of think(message.content, self)) {
      if (step.kind === 'event') await tools.sendEvent(step.content, step.messageType, step.metadata ?? {});
      else await tools.sendMessage(step.content, [{ id: message.senderId }]);
    }
    if (!isSessionBootstrap) return;
    // The console shows the rooms of its person, so that the person is asked in, after the answer.
    await tools.addParticipant(DEMO.user.id).catch((error: unknown) => {
      log.debug({ err: error, roomId }, 'the demo person could not be added');
    });
  });
  return Agent.create(
    // The sandbox is this process's own, so nobody else can be this agent in it.
    { adapter, agentId: self.id, apiKey: self.apiKey, restUrl, wsUrl, config: { singleInstance: false } },
    { clock, log: (name) => log.child({ logger: name, agent: self.handle }) },
  );
}

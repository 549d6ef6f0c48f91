// An echo agent of the sandbox's demo that is killed and started again: `killable-agent.ts <restUrl> <wsUrl> <lockFolder>`.
import { setTimeout as sleep } from 'node:timers/promises';
import { GenericAdapter } from '../../../src/adapters/generic.js';
import { Agent } from '../../../src/agent.js';
import { SessionConfig } from '../../../src/config/session-config.js';
import { createInstanceLock } from '../../../src/runtime/instance-lock.js';
import { DEMO } from '../../../src/sandbox/index.js';

const [restUrl = '', wsUrl = '', lockFolder = ''] = process.argv.slice(2);
const agent = Agent.create(
  {
    adapter: new GenericAdapter(async ({ message, tools }) => {
      await sleep(Math.random() * 5);
      await tools.sendMessage(`answer to ${/message \d+/.exec(message.content)?.[0]}`, [{ id: message.senderId }]);
    }),
    agentId: DEMO.echo.id,
    apiKey: DEMO.echo.apiKey,
    restUrl,
    wsUrl,
    sessionConfig: new SessionConfig({ enableWorkingState: false, idleResyncSeconds: 1 }),
  },
  { createLock: (agentId) => createInstanceLock(agentId, lockFolder) },
);
process.stdout.write('up\n');
await agent.run();

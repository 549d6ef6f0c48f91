// Starts an agent, answers nothing, stops it, and ends only if nothing of it is left: `start-and-stop.ts <restUrl> <wsUrl> <lockFolder>`.
import { GenericAdapter } from '../../../src/adapters/generic.js';
import { Agent } from '../../../src/agent.js';
import { createInstanceLock } from '../../../src/runtime/instance-lock.js';
import { DEMO } from '../../../src/sandbox/index.js';

const [restUrl = '', wsUrl = '', lockFolder = ''] = process.argv.slice(2);
const listeners = () => process.eventNames().map((name) => [String(name), process.listenerCount(name)]);
const before = JSON.stringify(listeners());
const agent = Agent.create(
  {
    adapter: new GenericAdapter(({ tools }) => tools.noReply().then(() => undefined)),
    agentId: DEMO.echo.id,
    apiKey: DEMO.echo.apiKey,
    restUrl,
    wsUrl,
  },
  { createLock: (agentId) => createInstanceLock(agentId, lockFolder) },
);
await agent.start();
const stopped = await agent.stop(5);
const left = process.getActiveResourcesInfo().filter((name) => name !== 'PipeWrap');
process.stdout.write(JSON.stringify({ stopped, left, sameListeners: JSON.stringify(listeners()) === before }));

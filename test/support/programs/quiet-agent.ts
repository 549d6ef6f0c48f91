// Makes an Agent, lets its start fail, and says nothing.
import { Agent } from '../../../src/agent.js';
import { GenericAdapter } from '../../../src/adapters/generic.js';

const agent = Agent.create({
  adapter: new GenericAdapter(async () => undefined),
  agentId: 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
  apiKey: 'k',
  restUrl: 'http://127.0.0.1:9',
  wsUrl: 'ws://127.0.0.1:9',
  config: { singleInstance: false },
});
await agent.start().catch(() => undefined);
await agent.stop();

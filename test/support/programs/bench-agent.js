/**
 * An agent on the built package that answers `ok` to everything, and writes a dot for each message: `bench-agent.js`.
 * Where it connects stands in the environment: BAND_REST_URL, BAND_WS_URL, AGENT_ID, API_KEY. Says `online` on a line of
 * its own first.
 */
import { Agent } from 'band-gateway';
import { GenericAdapter } from 'band-gateway/adapters';

const agent = Agent.create({
  adapter: new GenericAdapter(async ({ message, tools }) => {
    await tools.sendMessage('ok', [{ id: message.senderId }]);
    process.stdout.write('.');
  }),
  agentId: process.env['AGENT_ID'] ?? '',
  apiKey: process.env['API_KEY'] ?? '',
  config: { singleInstance: false },
});
await agent.start();
process.stdout.write('online\n');
await agent.runForever();

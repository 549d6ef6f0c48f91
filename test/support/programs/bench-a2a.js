/**
 * An A2A gateway on the built package, as a program that wants no key and no rate limit sets it up: `bench-a2a.js STORE`,
 * where STORE is `memory` or the folder of a durable store. Where it connects stands in the environment: BAND_REST_URL,
 * BAND_WS_URL, AGENT_ID, API_KEY. Says its origin once it serves.
 */
import { Agent } from 'band-gateway';
import { A2AGatewayAdapter } from 'band-gateway/adapters/a2a';

const adapter = new A2AGatewayAdapter({
  port: 0,
  store: process.argv[2],
  completion: 'first',
  auth: { anonymous: 'loopback' },
  limits: { ratePerMin: 0, ipRatePerMin: 0, openTasksPerPrincipal: 1_000 },
});
const agent = Agent.create({
  adapter,
  agentId: process.env['AGENT_ID'] ?? '',
  apiKey: process.env['API_KEY'] ?? '',
  config: { singleInstance: false },
});
await agent.start();
process.stdout.write(`http://127.0.0.1:${adapter.gateway.port}\n`);
await agent.runForever();

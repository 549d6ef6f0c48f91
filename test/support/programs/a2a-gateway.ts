/**
 * An A2A gateway in a process of its own, to be killed: `a2a-gateway.ts <settings as JSON>`. Where it connects stands in
 * the environment: BAND_REST_URL, BAND_WS_URL, AGENT_ID, API_KEY. Says `{ url }` on a line of its own once it serves.
 */
import { A2AGatewayAdapter, type A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { Agent } from '../../../src/agent.js';
import { createLogger } from '../../../src/base/log.js';
import { SessionConfig } from '../../../src/config/session-config.js';

const options = JSON.parse(process.argv[2] ?? '{}') as A2AOptionsInput;
const adapter = new A2AGatewayAdapter(options, {
  log: createLogger({ level: 'warn' }),
});
const agent = Agent.create({
  adapter,
  agentId: process.env['AGENT_ID'] ?? '',
  apiKey: process.env['API_KEY'] ?? '',
  config: { singleInstance: false },
  sessionConfig: new SessionConfig({ enableWorkingState: false, idleResyncSeconds: 1 }),
});
await agent.start();
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${adapter.gateway.port ?? 0}` })}\n`);
await agent.runForever();

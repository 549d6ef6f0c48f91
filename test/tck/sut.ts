/**
 * The system under test of the official compliance suite: the sandbox, a scripted peer, the gateway with the settings of
 * such a run, and a front with what only the suite needs. `npm run tck:sut -- --port 9999 [--suite 1.0|0.3]`
 */
import { parseArgs } from 'node:util';
import { A2AGatewayAdapter } from '../../bridges/a2a/index.js';
import { Agent } from '../../src/agent.js';
import { createLogger } from '../../src/base/log.js';
import { DEMO, startSandbox } from '../../src/sandbox/index.js';
import { startFront } from './front.js';
import { readSuiteReply } from './reply-reader.js';
import { scriptedPeer } from './scripted-peer.js';

const { values } = parseArgs({
  options: { port: { type: 'string', default: '9999' }, suite: { type: 'string', default: '1.0' } },
});
const port = Number(values.port);
const SLUG = 'tck';

const sandbox = await startSandbox({ port: 0 });
const peer = sandbox.dev.addAgent({
  ownerHandle: DEMO.user.handle,
  name: SLUG,
  description: 'Answers the scenarios of the compliance suite',
});
const adapter = new A2AGatewayAdapter(
  {
    port: 0,
    publicUrl: `http://localhost:${port}`,
    store: 'memory',
    completion: 'first',
    inputModes: ['*/*'],
    // The 1.0 runner sends no credentials and wants the card; the 0.3 suite wants it refused without them.
    extendedCard: values.suite === '0.3' ? 'off' : 'always',
    auth: { anonymous: 'loopback' },
    limits: { ratePerMin: 0, ipRatePerMin: 0, openTasks: 100_000, openTasksPerPrincipal: 100_000 },
  },
  { readReply: readSuiteReply, log: createLogger({ level: 'warn' }) },
);
const address = { restUrl: sandbox.restUrl, wsUrl: sandbox.wsUrl, config: { singleInstance: false } };
const agents = [
  Agent.create({
    ...address,
    adapter: scriptedPeer(sandbox, DEMO.gateway.id, values.suite === '0.3'),
    agentId: peer.id,
    apiKey: peer.apiKey,
  }),
  Agent.create({ ...address, adapter, agentId: DEMO.gateway.id, apiKey: DEMO.gateway.apiKey }),
];
for (const agent of agents) await agent.start();
const target = `http://127.0.0.1:${adapter.gateway.port ?? 0}`;
const front = await startFront({ port, target, slug: SLUG, olderSuite: values.suite === '0.3' });
await adapter.gateway.directory.whenReady(new AbortController().signal);
console.log(`ready: http://localhost:${port}/agents/${SLUG}`);

const end = async (): Promise<void> => {
  front.close();
  front.closeAllConnections();
  for (const agent of agents) await agent.stop();
  await sandbox.close();
};
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void end().finally(() => process.exit(0));
  });
}

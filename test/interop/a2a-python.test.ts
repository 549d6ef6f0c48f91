import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { A2AGatewayAdapter } from '../../bridges/a2a/index.js';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { Agent } from '../../src/agent.js';
import { deferred, type Deferred } from '../../src/base/async.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { pythonVenv } from '../support/python-venv.js';
import { sandboxAgent } from '../support/sandbox-agent.js';

const PROGRAM = fileURLToPath(new URL('a2a-python-client.py', import.meta.url));
const KEY = 'partner-key';

const sdk = await pythonVenv('a2aSdk');
if (sdk.kind === 'absent') console.warn(`skipped: ${sdk.reason}`);

describe.skipIf(sdk.kind === 'absent')('A-360 A-361 the official Python client', () => {
  let sandbox: Sandbox;
  let agents: Agent[];
  let adapter: A2AGatewayAdapter;
  let gate: Deferred;

  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0 });
    adapter = new A2AGatewayAdapter({
      host: '127.0.0.1',
      port: 0,
      store: 'memory',
      completion: 'first',
      auth: { apiKeys: [{ name: 'partner', key: KEY }] },
    });
    const peer = new GenericAdapter(async ({ message: { content, senderId }, tools, signal }) => {
      const text = content.replace(/^@\S+\s*/, '');
      if (text === 'never')
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        });
      if (text === 'slow') await gate.promise;
      if (!signal.aborted) await tools.sendMessage(`echo: ${text}`, [{ id: senderId }]);
    });
    agents = [
      sandboxAgent(sandbox, { adapter: peer }),
      sandboxAgent(sandbox, { adapter, agentId: DEMO.gateway.id, apiKey: DEMO.gateway.apiKey }),
    ];
    for (const agent of agents) await agent.start();
  });
  afterAll(async () => {
    for (const agent of agents) await agent.stop();
    await sandbox.close();
  });

  it.each(['JSONRPC', 'HTTP+JSON'])(
    'over %s discovers, sends, streams, subscribes after a cut, gets, lists and cancels',
    async (binding) => {
      gate = deferred();
      const url = `http://127.0.0.1:${adapter.gateway.port}/agents/echo`;
      const python = sdk.kind === 'present' ? sdk.python : '';
      const child = spawn(python, [PROGRAM, url, KEY, binding], { stdio: ['ignore', 'pipe', 'pipe'] });
      let errors = '';
      child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
      const events: Record<string, unknown>[] = [];
      for await (const line of createInterface({ input: child.stdout })) {
        const event = JSON.parse(line) as Record<string, unknown>;
        events.push(event);
        if (event['event'] === 'subscribed') gate.resolve();
      }
      const [code] = child.exitCode === null ? ((await once(child, 'exit')) as [number]) : [child.exitCode];
      expect(code, errors).toBe(0);
      expect(events.map(({ event }) => event)).toEqual([
        'discovered',
        'answered',
        'streamed',
        'cut',
        'subscribed',
        'resubscribed',
        'got',
        'listed',
        'cancelled',
      ]);
      const of = (name: string) => events.find(({ event }) => event === name);
      expect(of('answered')).toMatchObject({ state: 'TASK_STATE_COMPLETED', text: 'echo: hello' });
      expect(of('streamed')).toMatchObject({ kinds: ['task', 'status_update', 'artifact_update', 'status_update'] });
      expect((of('resubscribed')?.['kinds'] as string[]).slice(-2)).toEqual(['artifact_update', 'status_update']);
      expect(of('got')).toMatchObject({ state: 'TASK_STATE_COMPLETED' });
      expect(of('listed')).toMatchObject({ page: 2, more: true });
      expect(of('cancelled')).toMatchObject({ state: 'TASK_STATE_CANCELED' });
    },
    60_000,
  );
});

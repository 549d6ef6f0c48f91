import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { A2AGatewayAdapter } from '../../bridges/a2a/index.js';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { Agent } from '../../src/agent.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { a2aClient, kindOf, legacyMessage, message, type A2AClient } from '../support/a2a/client.js';
import { sandboxAgent } from '../support/sandbox-agent.js';

describe('an A2A client, the gateway, a room on the sandbox and a peer', () => {
  let sandbox: Sandbox;
  let agents: Agent[];
  let client: A2AClient;

  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
    const adapter = new A2AGatewayAdapter({ port: 0, store: 'memory', auth: { anonymous: 'loopback' } });
    const gateway = sandboxAgent(sandbox, { adapter, agentId: DEMO.gateway.id, apiKey: DEMO.gateway.apiKey });
    const peer = sandboxAgent(sandbox, {
      adapter: new GenericAdapter(async ({ message: { content, senderId }, tools }) => {
        await tools.sendMessage(`echo: ${content.replace(/^@\S+\s*/, '')}`, [{ id: senderId }]);
      }),
    });
    agents = [peer, gateway];
    for (const agent of agents) await agent.start();
    client = a2aClient(adapter.url!.replace('localhost', '127.0.0.1'));
  });
  afterEach(async () => {
    for (const agent of agents) await agent.stop();
    await sandbox.close();
  });

  it('finds a card that says what is served', async () => {
    await expect.poll(async () => (await client.request('GET', '/peers')).status).toBe(200);
    const card = await client.request('GET', '/agents/echo/.well-known/agent-card.json');
    expect(card.status).toBe(200);
    expect(card.body).toMatchObject({ name: 'Echo', capabilities: { streaming: true, pushNotifications: false } });
  });

  it('sends and waits for the answer in 1.0', async () => {
    await expect.poll(async () => (await client.request('GET', '/peers')).status).toBe(200);
    const answer = await client.rpc('echo', 'SendMessage', message('Hello'), { id: 'r1' });
    expect(answer.body).toMatchObject({
      jsonrpc: '2.0',
      id: 'r1',
      result: {
        task: {
          status: { state: 'TASK_STATE_COMPLETED' },
          artifacts: [{ name: 'reply', parts: [{ text: 'echo: Hello' }] }],
          history: [{ role: 'ROLE_USER', parts: [{ text: 'Hello' }] }],
        },
      },
    });
    const rooms = sandbox.dev.state().rooms;
    expect(rooms).toHaveLength(1);
  });

  it('sends and waits for the answer in 0.3', async () => {
    await expect.poll(async () => (await client.request('GET', '/peers')).status).toBe(200);
    const answer = await client.rpc('echo', 'message/send', legacyMessage('Hello'), { version: null, id: 0 });
    expect(answer.body).toMatchObject({
      id: 0,
      result: {
        kind: 'task',
        status: { state: 'completed' },
        artifacts: [{ parts: [{ kind: 'text', text: 'echo: Hello' }] }],
      },
    });
  });

  it('streams the task, its state, its answer and its end', async () => {
    await expect.poll(async () => (await client.request('GET', '/peers')).status).toBe(200);
    const stream = await client.stream('echo', 'SendStreamingMessage', message('Hello'));
    const events = await stream.rest();
    expect(events.map(kindOf)).toEqual(['task', 'statusUpdate', 'artifactUpdate', 'statusUpdate']);
    expect(events.at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
  });
});

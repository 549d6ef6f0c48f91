import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { A2AGatewayAdapter } from '../../bridges/a2a/index.js';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { Agent } from '../../src/agent.js';
import { deferred, type Deferred } from '../../src/base/async.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { a2aClient, message, type A2AClient } from '../support/a2a/client.js';
import { sandboxAgent } from '../support/sandbox-agent.js';

describe('an A2A task while the platform is in trouble', () => {
  let sandbox: Sandbox;
  let agents: Agent[];
  let adapter: A2AGatewayAdapter;
  let client: A2AClient;
  let gate: Deferred;

  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
    gate = deferred();
    adapter = new A2AGatewayAdapter({ port: 0, store: 'memory', auth: { anonymous: 'loopback' } });
    const peer = new GenericAdapter(async ({ message: { content, senderId }, tools }) => {
      if (content.includes('slow')) await gate.promise;
      await tools.sendMessage(`echo: ${content.replace(/^@\S+\s*/, '')}`, [{ id: senderId }]);
    });
    agents = [
      sandboxAgent(sandbox, { adapter: peer }),
      sandboxAgent(sandbox, { adapter, agentId: DEMO.gateway.id, apiKey: DEMO.gateway.apiKey }),
    ];
    for (const agent of agents) await agent.start();
    client = a2aClient(`http://127.0.0.1:${adapter.gateway.port}`);
    await expect.poll(async () => (await client.request('GET', '/peers')).status, { interval: 10 }).toBe(200);
  });
  afterEach(async () => {
    gate.resolve();
    for (const agent of agents) await agent.stop();
    await sandbox.close();
  });

  const posted = () =>
    sandbox.dev
      .state()
      .rooms.flatMap(({ messages }) => messages)
      .filter((row) => row.messageType === 'text');

  it('A-343 a reply that was posted while the socket was lost is taken after the reconnect, once', async () => {
    const sent = client.rpc('echo', 'SendMessage', message('slow one'));
    await expect.poll(() => posted().length, { interval: 5 }).toBe(1);
    sandbox.dev.faultUpgrades({ mode: 'refuse', principalId: DEMO.gateway.id, status: 503, times: 2 });
    sandbox.dev.closeSockets(DEMO.gateway.id, 1006);
    gate.resolve();
    await expect.poll(() => posted().length, { interval: 5 }).toBe(2);
    const { task } = (await sent).body.result;
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(['echo: slow one']);
  }, 30_000);

  it('A-153 the bridge knows how long the socket has been down', async () => {
    expect(adapter.gateway.health.downSince).toBeNull();
    sandbox.dev.faultUpgrades({ mode: 'refuse', principalId: DEMO.gateway.id, status: 503, times: 2 });
    sandbox.dev.closeSockets(DEMO.gateway.id, 1006);
    await expect.poll(() => adapter.gateway.health.downSince, { interval: 2 }).not.toBeNull();
    await expect.poll(() => adapter.gateway.health.downSince, { interval: 5, timeout: 15_000 }).toBeNull();
  }, 30_000);

  it('A-150 a post whose connection breaks after the platform took it stands in the room once', async () => {
    sandbox.dev.faultRest({ method: 'POST', path: '*/messages', callerId: DEMO.gateway.id, drop: 'after', times: 1 });
    const { task } = (await client.rpc('echo', 'SendMessage', message('once'))).body.result;
    expect(task.artifacts?.[0]?.parts[0]?.text).toBe('echo: once');
    expect(posted().filter(({ senderId }) => senderId === DEMO.gateway.id)).toHaveLength(1);
  }, 30_000);

  it('A-155 a peer that leaves the room ends its task, and the next brings it back', async () => {
    const sent = client.rpc('echo', 'SendMessage', message('slow one', { contextId: 'c' }));
    await expect.poll(() => posted().length, { interval: 5 }).toBe(1);
    const [room] = sandbox.dev.state().rooms;
    const rest = await fetch(`${sandbox.restUrl}/api/v1/agent/chats/${room!.id}/participants/${DEMO.echo.id}`, {
      method: 'DELETE',
      headers: { 'x-api-key': DEMO.echo.apiKey },
    });
    expect(rest.status).toBe(200);
    expect((await sent).body.result.task.status.message?.metadata).toEqual({ band_reason: 'PEER_LEFT' });
    gate.resolve();
    const next = await client.rpc('echo', 'SendMessage', message('back again', { contextId: 'c' }));
    expect(next.body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
  }, 30_000);
});

import { expect, it, onTestFinished } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { DEMO } from '../../src/sandbox/index.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { tempFolder } from '../support/temp-folder.js';
import { PARTNER_KEY, demoWorld, frontDoor, startService } from './service.js';

const MESSAGES = Number(process.env['FAST_PEER_MESSAGES'] ?? 5);

it.each([
  [150, 'shows'],
  [400, 'shows'],
  [150, 'hides'],
  [400, 'hides'],
] as const)(
  'a peer that ends its turn before its messages are taken in, each call taking %i ms, loses none of them where the platform %s delivery states',
  async (delayMs, states) => {
    const { sandbox } = await demoWorld();
    sandbox.dev.set({ deliveryStatusOnOwnRows: states === 'shows' });
    const peer = sandboxAgent(sandbox, {
      agentId: DEMO.editor.id,
      apiKey: DEMO.editor.apiKey,
      adapter: new GenericAdapter(async ({ message, tools }) => {
        for (let n = 0; n < MESSAGES; n += 1) await tools.sendMessage(`part ${n}`, [{ id: message.senderId }]);
      }),
    });
    await peer.start();
    onTestFinished(async () => {
      await peer.stop();
    });
    const service = await startService({ folder: await tempFolder(), sandbox, agents: [frontDoor()] });
    await service.ready();
    // A platform that is not on the same machine: each call of the gateway takes its time.
    sandbox.dev.faultRest({ path: '*/chats/*', callerId: DEMO.gateway.id, delayMs, times: 10_000 });
    const message = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'write' }] };
    const answer = await fetch(`${service.url}/agents/editor`, {
      method: 'POST',
      headers: { 'x-api-key': PARTNER_KEY, 'a2a-version': '1.0', 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
    });
    const { result } = (await answer.json()) as {
      result: { task: { status: { state: string }; artifacts: { parts: { text: string }[] }[] } };
    };
    expect(result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(result.task.artifacts.flatMap(({ parts }) => parts.map(({ text }) => text))).toEqual(
      Array.from({ length: MESSAGES }, (_, n) => `part ${n}`),
    );
  },
  30_000,
);

import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BandACPServerAdapter } from '../../bridges/acp/adapter.js';
import { Agent } from '../../src/agent.js';
import { createManualClock } from '../../src/testing/manual-clock.js';
import { updateOf, type Frame } from '../support/acp/lab.js';
import { ponders, startWorld, type World } from '../support/acp/world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
  await world.peer('Mute', ponders);
});
afterAll(() => world.stop());

const turn = () => new Promise((resolve) => setImmediate(resolve));

it('P-081 an editor of an agent in the service is told as well when the connection to Band is down in a turn', async () => {
  // The bridge's waits go by this clock, the agent and the sandbox by the real one.
  const clock = createManualClock();
  const adapter = new BandACPServerAdapter({ peers: ['ana/mute'], deliveryPoll: 'off' }, { clock, socketPath: null });
  const agent = Agent.create({
    adapter,
    agentId: world.editor.id,
    apiKey: world.editor.apiKey,
    restUrl: world.sandbox.restUrl,
    wsUrl: world.sandbox.wsUrl,
    config: { singleInstance: false },
  });
  await agent.start();
  const frames: Frame[] = [];
  let push!: (message: AnyMessage) => void;
  const stream: Stream = {
    readable: new ReadableStream<AnyMessage>({
      start: (controller) => {
        push = (message) => {
          controller.enqueue(message);
        };
      },
    }),
    writable: new WritableStream<AnyMessage>({
      write: (message) => {
        frames.push(JSON.parse(JSON.stringify(message)) as Frame);
      },
    }),
  };
  await adapter.connect(stream);
  const request = async (id: number, method: string, params: unknown): Promise<Frame> => {
    push({ jsonrpc: '2.0', id, method, params });
    for (;;) {
      const answer = frames.find((frame) => frame.id === id && frame.method === undefined);
      if (answer) return answer;
      await turn();
    }
  };
  const clientCapabilities = { session: { notices: {} } };
  await request(1, 'initialize', { protocolVersion: 1, clientCapabilities });
  const { result } = await request(2, 'session/new', { cwd: '/x', mcpServers: [] });
  const sessionId = result?.sessionId ?? '';
  const prompt = [{ type: 'text', text: 'hello?' }];
  push({ jsonrpc: '2.0', id: 3, method: 'session/prompt', params: { sessionId, prompt } });
  while (!world.room(sessionId).messages.some(({ messageType }) => messageType === 'text')) await turn();

  const notices = () =>
    frames
      .flatMap((frame) => updateOf(frame) ?? [])
      .filter(({ sessionUpdate, title }) => sessionUpdate === 'notice' && title.includes('is down'));
  await clock.advance(20_000);
  expect(notices()).toEqual([]);
  world.sandbox.dev.faultUpgrades({ mode: 'hold', principalId: world.editor.id });
  world.sandbox.dev.closeSockets(world.editor.id, 1012);
  while (agent.runtime.linkState?.kind === 'connected') await turn();
  await clock.advance(20_000);
  expect(notices()).toHaveLength(1);

  world.sandbox.dev.clearFaults();
  const stopped = agent.stop();
  await clock.advance(5_000);
  expect(await stopped).toBe(true);
});

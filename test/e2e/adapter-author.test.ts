import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { GenericAdapter, type GenericCallback } from '../../src/adapters/index.js';
import { customTool, relayReply, SimpleAdapter, withCustomTools } from '../../src/core/index.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/testing/index.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { sandboxPerson, type SandboxPerson } from '../support/sandbox-person.js';

/** What somebody who writes an adapter does, with nothing but the public entry points and the sandbox. */

let sandbox: Sandbox;
let person: SandboxPerson;

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  person = await sandboxPerson(sandbox);
});
afterAll(async () => {
  await person.close();
  await sandbox.close();
});

/** Runs the demo's echo with an adapter while `work` plays the person. */
async function online(adapter: SimpleAdapter<unknown>, work: (roomId: string) => Promise<void>): Promise<void> {
  const agent = sandboxAgent(sandbox, { adapter });
  await agent.start();
  try {
    await work(await person.createRoom([DEMO.echo.id]));
  } finally {
    await agent.stop(5);
  }
}

const generic = (callback: GenericCallback) => new GenericAdapter(callback, { capabilities: ['contacts'] });

describe('an adapter on the sandbox', () => {
  it('answers a person, and the delivery ends as processed', async () => {
    const adapter = generic(async ({ message, tools }) => {
      await tools.sendMessage(`you said: ${message.content}`, [{ id: message.senderId }]);
    });
    await online(adapter, async (roomId) => {
      const asked = await person.post(roomId, 'good morning', [DEMO.echo.id]);
      expect((await person.reply(roomId, DEMO.echo.id)).content).toContain('you said: @demo/echo good morning');
      expect((await person.delivery(asked, DEMO.echo.id, 'processed')).attempts).toHaveLength(1);
    });
  });

  it('R-274 R-276 that ends its turn without an answer is told on in the room, once, and the delivery fails', async () => {
    await online(
      generic(() => Promise.resolve()),
      async (roomId) => {
        const asked = await person.post(roomId, 'anyone there?', [DEMO.echo.id]);
        const { content, metadata } = await person.event(roomId, 'error');
        expect(content).toBe(
          'The agent ended its turn without replying or calling band_no_reply, so nothing reached the room.',
        );
        expect(metadata).toMatchObject({ failure: { provider: 'band-runtime', message: content } });
        await person.delivery(asked, DEMO.echo.id, 'failed');
        const errors = (await person.messages(roomId)).filter(({ message_type }) => message_type === 'error');
        expect(errors).toHaveLength(1);
      },
    );
  });

  it('brings a peer in with a tool call and relays its closing words only when no tool spoke', async () => {
    const weather = customTool({
      name: 'get_weather',
      description: 'Tells the weather.',
      parameters: z.object({ town: z.string() }),
      run: ({ town }) => Promise.resolve(`sunny in ${town}`),
    });
    const adapter = generic(async ({ message, tools: own }) => {
      const tools = withCustomTools(own, [weather]);
      const words = String(await tools.executeToolCall('get_weather', { town: 'Oslo' }));
      await tools.executeToolCall('band_add_participant', { identifier: '@demo/dice' });
      expect(await relayReply(tools, words, ['@demo/dice', { id: message.senderId }])).toBe(true);
      expect(await relayReply(tools, 'and once more', [{ id: message.senderId }])).toBe(false);
    });
    await online(adapter, async (roomId) => {
      await person.post(roomId, 'how is the weather?', [DEMO.echo.id]);
      const { metadata } = await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('sunny in Oslo'));
      expect((metadata['mentions'] as { id: string }[]).map(({ id }) => id).sort()).toEqual(
        [DEMO.dice.id, DEMO.user.id].sort(),
      );
      const texts = (await person.messages(roomId)).filter(({ sender_id }) => sender_id === DEMO.echo.id);
      expect(texts).toHaveLength(1);
    });
  });

  it('R-292 R-150 uses a REST client of its own, built when it starts', async () => {
    const names: string[] = [];
    class Curious extends SimpleAdapter {
      override async onStarted(name: string, description: string): Promise<void> {
        await super.onStarted(name, description);
        names.push(name, (await this.buildRestClient().getMe()).name);
      }
      async onMessage(): Promise<void> {
        await Promise.resolve();
      }
    }
    await online(new Curious(), () => Promise.resolve());
    expect(names).toEqual(['Echo', 'Echo']);
  });
});

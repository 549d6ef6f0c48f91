import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { Agent } from '../../src/agent.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { sandboxPerson, type SandboxPerson } from '../support/sandbox-person.js';

describe('an agent on the sandbox', () => {
  let sandbox: Sandbox;
  let person: SandboxPerson;
  let agent: Agent;

  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
    person = await sandboxPerson(sandbox);
    agent = sandboxAgent(sandbox, {
      adapter: new GenericAdapter(async ({ message, tools }) => {
        await tools.sendMessage(`heard: ${message.content}`, [{ id: message.senderId }]);
      }),
    });
  });
  afterEach(async () => {
    await agent.stop();
    await person.close();
    await sandbox.close();
  });

  it('answers a message in a room that was there before it, marks it processed, and stops cleanly', async () => {
    const roomId = await person.createRoom([DEMO.echo.id]);
    await agent.start();

    const messageId = await person.post(roomId, 'hello', [DEMO.echo.id]);
    const reply = await person.reply(roomId, DEMO.echo.id);
    expect(reply.content).toContain('heard: @demo/echo hello');
    const delivery = await person.delivery(messageId, DEMO.echo.id, 'processed');
    expect(delivery.attempts).toHaveLength(1);

    expect(await agent.stop(5)).toBe(true);
    expect(agent.isRunning).toBe(false);
    expect(sandbox.dev.state().sockets.filter(({ kind }) => kind === 'Agent')).toEqual([]);
  });

  it('answers in a room that it is added to while it runs', async () => {
    await agent.start();
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'are you there?', [DEMO.echo.id]);
    expect((await person.reply(roomId, DEMO.echo.id)).content).toContain('are you there?');
  });
});

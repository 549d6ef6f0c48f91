import { createServer } from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { Agent } from '../../src/agent.js';
import { AgentAlreadyRunningError, ApiError, BandConnectionError } from '../../src/base/band-errors.js';
import { ConflictPolicy } from '../../src/core/conflict-policy.js';
import { createBandLink } from '../../src/platform/link.js';
import * as root from '../../src/index.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { sandboxPerson, type SandboxPerson } from '../support/sandbox-person.js';

const echo = () =>
  new GenericAdapter(async ({ message, tools }) => {
    await tools.sendMessage(`heard: ${message.content}`, [{ id: message.senderId }]);
  });

describe('an agent and its connection', () => {
  let sandbox: Sandbox;
  let person: SandboxPerson;
  const agents: Agent[] = [];
  const agentOf = (options: Parameters<typeof sandboxAgent>[1]) => {
    const agent = sandboxAgent(sandbox, options);
    agents.push(agent);
    return agent;
  };

  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
    person = await sandboxPerson(sandbox);
  });
  afterEach(async () => {
    await Promise.all(agents.splice(0).map((agent) => agent.stop()));
    await person.close();
    await sandbox.close();
  });

  it('R-041 a wrong key surfaces as an error that carries 401 Unauthorized', async () => {
    const error: unknown = await agentOf({ adapter: echo(), apiKey: 'band_a_wrong' })
      .start()
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).statusCode).toBe(401);
    expect((error as Error).message).toContain('401 Unauthorized');
    expect((error as Error).message).not.toContain('band_a_wrong');
  });

  it('R-042 an unreachable host surfaces as a connection error, soon', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    server.close();
    const error: unknown = await agentOf({ adapter: echo(), restUrl: `http://127.0.0.1:${port}` })
      .start()
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BandConnectionError);
    expect((error as Error).message).toBe(`Band could not be reached. (connection refused, http://127.0.0.1:${port})`);
  });

  it('R-042 a socket that cannot be reached surfaces as one as well', async () => {
    const agent = sandboxAgent(
      sandbox,
      { adapter: echo(), wsUrl: 'ws://127.0.0.1:9/socket?token=secret' },
      { createLink: (options) => createBandLink({ ...options, initialTries: 1 }) },
    );
    agents.push(agent);
    const error: unknown = await agent.start().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BandConnectionError);
    expect((error as Error).message).toContain('ws://127.0.0.1:9');
    expect((error as Error).message).not.toContain('secret');
  });

  it('R-088 ConflictPolicy comes from the root', () => {
    expect(root.ConflictPolicy).toEqual({ SUPERSEDE: 'supersede', REJECT: 'reject' });
  });

  it('R-099 R-081 with SUPERSEDE the new connection takes over and the old agent ends with the reason', async () => {
    const first = agentOf({ adapter: echo() });
    await first.start();
    const waiting = first.runForever({ installSignalHandlers: false });
    const outcome = expect(waiting).rejects.toThrow(/replaced this one/);
    const second = agentOf({ adapter: echo(), config: { conflictPolicy: ConflictPolicy.SUPERSEDE } });
    await second.start();
    await outcome;
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'who is there?', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id);
    expect(second.isRunning).toBe(true);
    expect(first.runtime.linkState?.kind).toBe('closed');
  });

  it('R-100 R-103 R-289 with REJECT a refused connection fails the start and leaves the first agent alone', async () => {
    const first = agentOf({ adapter: echo() });
    await first.start();
    const second = agentOf({ adapter: echo(), config: { conflictPolicy: ConflictPolicy.REJECT } });
    const error: unknown = await second.start().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(AgentAlreadyRunningError);
    expect((error as Error).message).toContain(`Agent ${DEMO.echo.id} already has a live connection to the platform`);
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'still there?', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id);
    expect(first.isRunning).toBe(true);
  });

  it('R-101 REJECT covers the first connection only: a reconnect is no such error', async () => {
    const agent = agentOf({ adapter: echo(), config: { conflictPolicy: ConflictPolicy.REJECT } });
    await agent.start();
    const roomId = await person.createRoom([DEMO.echo.id]);
    const first = await person.post(roomId, 'one', [DEMO.echo.id]);
    await person.delivery(first, DEMO.echo.id, 'processed');
    while (agent.runtime.rooms?.rooms.get(roomId)?.state !== 'idle') await new Promise((go) => setImmediate(go));
    sandbox.dev.closeSockets(DEMO.echo.id, 1006);
    await person.post(roomId, 'two', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('two'));
    // The answer may be out before the link is back: a turn needs REST alone.
    await expect.poll(() => agent.runtime.linkState?.kind, { timeout: 15_000 }).toBe('connected');
    expect(agent.isRunning).toBe(true);
  });

  it('R-102 REJECT starts normally where nobody else is connected', async () => {
    const agent = agentOf({ adapter: echo(), config: { conflictPolicy: ConflictPolicy.REJECT } });
    await agent.start();
    expect(agent.isRunning).toBe(true);
  });

  it('R-286 what was posted while the agent was away is answered, in order, when it is back', async () => {
    const roomId = await person.createRoom([DEMO.echo.id]);
    for (const text of ['one', 'two', 'three']) await person.post(roomId, text, [DEMO.echo.id]);
    await agentOf({ adapter: echo() }).start();
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('three'));
    const rows = (await person.messages(roomId)).filter(({ sender_id }) => sender_id === DEMO.echo.id);
    expect(rows.reverse().map(({ content }) => /one|two|three/.exec(content)?.[0])).toEqual(['one', 'two', 'three']);
  });

  it('R-211 R-212 is stopped and played by the person; the message in hand runs first afterwards', async () => {
    const begun: string[] = [];
    let release: (() => void) | null = null;
    const agent = agentOf({
      adapter: new GenericAdapter(async ({ message, tools, signal }) => {
        begun.push(message.content);
        if (begun.length === 1) {
          await new Promise<void>((resolve) => {
            release = resolve;
            signal.addEventListener('abort', () => {
              resolve();
            });
          });
        }
        await tools.sendMessage(`done ${begun.length}`, [{ id: message.senderId }]);
      }),
    });
    await agent.start();
    const roomId = await person.createRoom([DEMO.echo.id]);
    const first = await person.post(roomId, 'first', [DEMO.echo.id]);
    await person.delivery(first, DEMO.echo.id, 'processing');
    while (!release) await new Promise((resolve) => setImmediate(resolve));
    await person.stop(roomId);
    const second = await person.post(roomId, 'second', [DEMO.echo.id]);
    await person.play(roomId);
    await person.delivery(second, DEMO.echo.id, 'processed');
    expect(begun.map((text) => text.replace('@demo/echo ', ''))).toEqual(['first', 'first', 'second']);
    const states = await person.messages(roomId);
    expect(states.filter(({ sender_id }) => sender_id === DEMO.echo.id)).toHaveLength(2);
  });

  it('R-210 is interrupted by the person: the message is processed and nothing is sent', async () => {
    let begun: (() => void) | null = null;
    const working = new Promise<void>((resolve) => (begun = resolve));
    const agent = agentOf({
      adapter: new GenericAdapter(async ({ tools, signal, message }) => {
        begun?.();
        await new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => {
            resolve();
          });
        });
        await tools.sendMessage('too late', [{ id: message.senderId }]);
      }),
    });
    await agent.start();
    const roomId = await person.createRoom([DEMO.echo.id]);
    const id = await person.post(roomId, 'work', [DEMO.echo.id]);
    await working;
    await person.interrupt(roomId, DEMO.echo.id);
    await person.delivery(id, DEMO.echo.id, 'processed');
    expect((await person.messages(roomId)).filter(({ sender_id }) => sender_id === DEMO.echo.id)).toEqual([]);
  });

  it('R-167 is removed from a room and comes back to it', async () => {
    const agent = agentOf({ adapter: echo() });
    await agent.start();
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'one', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id);
    await person.remove(roomId, DEMO.echo.id);
    await person.add(roomId, DEMO.echo.id);
    await person.post(roomId, 'two', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('two'));
  });
});

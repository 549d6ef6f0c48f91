import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { Agent } from '../../src/agent.js';
import type { ContactEvent } from '../../src/core/events.js';
import { SessionConfig } from '../../src/config/session-config.js';
import { ContactEventConfig, ContactEventStrategy } from '../../src/runtime/contacts.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { callRest } from '../support/rest-call.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { sandboxPerson, type SandboxPerson } from '../support/sandbox-person.js';

const ECHO = DEMO.echo.id;

describe('an agent on a platform that has a bad day', () => {
  let sandbox: Sandbox;
  let person: SandboxPerson;
  let agent: Agent;
  let roomId: string;
  const handled: string[] = [];

  beforeEach(async () => {
    handled.length = 0;
    sandbox = await startSandbox({ port: 0 });
    person = await sandboxPerson(sandbox);
  });
  /** The agent runs, and has answered a first message. By default no idle look helps it within a test. */
  const begin = async (idleResyncSeconds = 60) => {
    agent = sandboxAgent(sandbox, {
      adapter: new GenericAdapter(async ({ message, tools }) => {
        handled.push(message.content.replace('@demo/echo ', ''));
        await tools.sendMessage(`heard ${handled.length}`, [{ id: message.senderId }]);
      }),
      sessionConfig: new SessionConfig({ idleResyncSeconds, enableWorkingState: false }),
    });
    roomId = await person.createRoom([ECHO]);
    await agent.start();
    const first = await post('first');
    await person.delivery(first, ECHO, 'processed');
    while (agent.runtime.rooms?.rooms.get(roomId)?.state !== 'idle') await turn();
  };
  afterEach(async () => {
    sandbox.dev.clearFaults();
    await agent.stop();
    await person.close();
    await sandbox.close();
  });

  const post = (text: string) => person.post(roomId, text, [ECHO]);
  const processed = (id: string) => person.delivery(id, ECHO, 'processed');
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  it('R-181 answers a message once that is pushed twice', async () => {
    await begin();
    sandbox.dev.faultPushes({ mode: 'duplicate', principalId: ECHO, event: 'message_created', times: 3 });
    for (const text of ['one', 'two']) await post(text);
    await processed(await post('three'));
    expect(handled).toEqual(['first', 'one', 'two', 'three']);
  });

  it('R-198 PHX-04 finds a message that was never pushed, within the idle interval', async () => {
    await begin(1);
    sandbox.dev.faultPushes({ mode: 'drop', principalId: ECHO, event: 'message_created', times: 1 });
    const { attempts } = await processed(await post('silent'));
    expect(attempts).toHaveLength(1);
    expect(handled).toEqual(['first', 'silent']);
  });

  it('R-187 does the work once when the answer to its processed mark is lost', async () => {
    await begin();
    sandbox.dev.faultRest({ method: 'POST', path: '*/processed', callerId: ECHO, drop: 'after', times: 1 });
    const { attempts } = await processed(await post('once'));
    expect(attempts).toHaveLength(1);
    await processed(await post('next'));
    expect(handled).toEqual(['first', 'once', 'next']);
  });

  it('posts an answer once when the platform takes it and the confirmation is lost', async () => {
    await begin();
    sandbox.dev.faultRest({ method: 'POST', path: '*/messages', callerId: ECHO, drop: 'after', times: 1 });
    await processed(await post('once'));
    await processed(await post('next'));
    expect(handled).toEqual(['first', 'once', 'next']);
    const answers = sandbox.dev
      .state()
      .rooms.flatMap(({ messages }) => messages)
      .filter(({ senderId, messageType }) => senderId === ECHO && messageType === 'text')
      .map(({ content }) => content.replace(/^@\[\[[^\]]+\]\] /, ''));
    expect(answers).toEqual(['heard 1', 'heard 2', 'heard 3']);
  });

  it('R-185 runs a message whose claim met a passing error', async () => {
    await begin();
    sandbox.dev.faultRest({ method: 'POST', path: '*/processing', callerId: ECHO, status: 503, times: 1 });
    await processed(await post('claimed late'));
    expect(handled).toEqual(['first', 'claimed late']);
  });

  it('R-171 R-173 catches up in order after the socket is gone and the platform restarted its service', async () => {
    await begin();
    sandbox.dev.closeSockets(ECHO, 1012);
    for (const text of ['gap one', 'gap two']) await post(text);
    await processed(await post('gap three'));
    expect(handled).toEqual(['first', 'gap one', 'gap two', 'gap three']);
  });

  it('catches up after one channel crashed', async () => {
    await begin();
    sandbox.dev.crashChannel(ECHO, `chat_room:${roomId}`);
    await post('while crashed');
    await processed(await post('and after'));
    expect(handled).toEqual(['first', 'while crashed', 'and after']);
  });

  it('R-171 leaves a room that it was removed from while it was away, and joins the one it was added to', async () => {
    await begin();
    sandbox.dev.faultPushes({ mode: 'drop', principalId: ECHO, event: 'room_removed', times: 1 });
    sandbox.dev.faultPushes({ mode: 'drop', principalId: ECHO, event: 'room_added', times: 1 });
    await person.remove(roomId, ECHO);
    const other = await person.createRoom([ECHO]);
    sandbox.dev.closeSockets(ECHO, 1006);
    const id = await person.post(other, 'hello', [ECHO]);
    await processed(id);
    while (agent.runtime.rooms?.rooms.has(roomId)) await turn();
    expect(handled).toEqual(['first', 'hello']);
  });

  it('R-255 is told of a contact request that came while it had no socket', async () => {
    const asked: string[] = [];
    const onEvent = (event: ContactEvent) => {
      if (event.kind === 'contact_request_received') asked.push(event.request.from_handle ?? '');
    };
    agent = sandboxAgent(sandbox, {
      adapter: new GenericAdapter(() => Promise.resolve()),
      contactConfig: new ContactEventConfig({ strategy: ContactEventStrategy.CALLBACK, onEvent }),
    });
    const ask = async (handle: string) => {
      const { apiKey } = sandbox.dev.addUser({ handle, name: handle });
      const contact_request = { recipient_handle: DEMO.echo.handle };
      const answer = await callRest(sandbox.restUrl, 'POST', '/api/v1/me/contacts/requests', apiKey, {
        contact_request,
      });
      expect(answer.status).toBe(201);
    };
    await ask('before');
    await agent.start();
    while (!asked.includes('before')) await turn();
    sandbox.dev.faultPushes({ mode: 'drop', principalId: ECHO, event: 'contact_request_received', times: 1 });
    await ask('meanwhile');
    sandbox.dev.closeSockets(ECHO, 1006);
    while (!asked.includes('meanwhile')) await turn();
    await ask('after');
    while (!asked.includes('after')) await turn();
    expect(asked).toEqual(['before', 'meanwhile', 'after']);
  });
});

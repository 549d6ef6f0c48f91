import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { A2AGatewayAdapter } from '../../bridges/a2a/index.js';
import { GenericAdapter, type GenericCallback } from '../../src/adapters/generic.js';
import type { Agent } from '../../src/agent.js';
import { AgentAlreadyRunningError } from '../../src/base/band-errors.js';
import { createLogger } from '../../src/base/log.js';
import { SessionConfig } from '../../src/config/session-config.js';
import { ConflictPolicy } from '../../src/core/conflict-policy.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { openRawSocket } from '../support/raw-socket.js';
import { callRest } from '../support/rest-call.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { verdictOf } from '../support/sandbox-lab.js';
import { tempFolder } from '../support/temp-folder.js';
import { sandboxPerson, type SandboxPerson } from '../support/sandbox-person.js';

/** The fifteen checks by which a platform and a client are compatible, each against our runtime on the sandbox. */

const { echo: ECHO, dice: DICE } = DEMO;

describe('compatibility', () => {
  let sandbox: Sandbox;
  let person: SandboxPerson;
  let agents: Agent[];
  /** `GET /api/v1/…` of every REST call, in order. */
  let calls: string[];
  /** What the agents' adapter was asked to do, in order. */
  let runs: string[];

  beforeEach(async () => {
    agents = [];
    calls = [];
    runs = [];
    const log = createLogger({
      level: 'debug',
      destination: {
        write: (line) => {
          const { msg, method, target } = JSON.parse(line) as Record<string, string>;
          if (msg === 'sandbox call') calls.push(`${String(method)} ${String(target)}`);
        },
      },
    });
    sandbox = await startSandbox({ port: 0, log });
    person = await sandboxPerson(sandbox);
  });
  afterEach(async () => {
    await Promise.all(agents.map((agent) => agent.stop()));
    await person.close();
    await sandbox.close();
  });

  const answer: GenericCallback = async ({ message, tools }) => {
    await tools.sendMessage(`answer to ${spoken(message.content)}`, [{ id: message.senderId }]);
  };
  const agentOf = (
    work: GenericCallback = answer,
    options: Partial<Parameters<typeof sandboxAgent>[1]> = {},
  ): Agent => {
    const adapter = new GenericAdapter(async (turn) => {
      runs.push(spoken(turn.message.content));
      await work(turn);
    });
    const agent = sandboxAgent(sandbox, { adapter, ...options });
    agents.push(agent);
    return agent;
  };
  const started = async (...args: Parameters<typeof agentOf>): Promise<Agent> => {
    const agent = agentOf(...args);
    await agent.start();
    return agent;
  };
  const agentCall = (method: string, path: string, body?: unknown, key: string = ECHO.apiKey) =>
    callRest(sandbox.restUrl, method, `/api/v1/agent${path}`, key, body);
  const agentTopics = () => sandbox.dev.state().sockets.find(({ kind }) => kind === 'Agent')?.topics ?? [];
  const byAgent = async (roomId: string) =>
    (await person.messages(roomId)).filter(({ sender_id }) => sender_id === ECHO.id);

  it('check 1: a start reads who it is, opens the socket, joins every topic and finds its work', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    await person.post(roomId, 'hello', [ECHO.id]);
    calls.length = 0;
    await started();
    await person.reply(roomId, ECHO.id);
    expect(agentTopics().slice(0, 4)).toEqual([
      `agent_control:${ECHO.id}`,
      `agent_rooms:${ECHO.id}`,
      `chat_room:${roomId}`,
      `room_participants:${roomId}`,
    ]);
    const own = calls.filter((call) => call.includes('/api/v1/agent/'));
    expect(own[0]).toBe('GET /api/v1/agent/me');
    expect(own[1]).toMatch(/^GET \/api\/v1\/agent\/chats\?.*page_size=100/);
    expect(own).toContain(`GET /api/v1/agent/chats/${roomId}/messages/next`);
  });

  it('check 1: the same start, frame by frame as the Python client sends it, is answered ok throughout', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    expect((await agentCall('GET', '/me')).status).toBe(200);
    const url = `${sandbox.wsUrl}?api_key=${ECHO.apiKey}&vsn=2.0.0&agent_id=${ECHO.id}&on_conflict=supersede`;
    const socket = await openRawSocket(url, { 'x-api-key': ECHO.apiKey });
    const topics = [`agent_control:${ECHO.id}`, `agent_rooms:${ECHO.id}`];
    for (const topic of [
      ...topics,
      `chat_room:${roomId}`,
      `room_participants:${roomId}`,
      `agent_contacts:${ECHO.id}`,
    ]) {
      expect(await socket.join(topic)).toEqual({ status: 'ok', response: {} });
    }
    expect((await agentCall('GET', `/chats/${roomId}/messages?status=processing&page=1`)).status).toBe(200);
    expect((await agentCall('GET', `/chats/${roomId}/messages/next`)).status).toBe(204);
    await socket.leave(`agent_control:${ECHO.id}`);
    await socket.close();
  });

  it('check 2: a message that mentions the agent leads to one run, one success, and a reply the person sees', async () => {
    await started();
    const roomId = await person.createRoom([ECHO.id]);
    const messageId = await person.post(roomId, '@Echo hello', [ECHO.id]);
    expect((await person.reply(roomId, ECHO.id)).content).toContain('answer to hello');
    await person.delivery(messageId, ECHO.id, 'processed');
    expect(runs).toEqual(['hello']);
    const row = (await person.messages(roomId)).find(({ id }) => id === messageId);
    expect(row?.metadata.delivery_status?.[ECHO.id]).toMatchObject({
      status: 'processed',
      attempts: [{ attempt_number: 1, status: 'success' }],
    });
  });

  it('check 3: the same message by socket, by socket again and by the work list runs once', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    await started();
    sandbox.dev.faultPushes({ mode: 'duplicate', principalId: ECHO.id, event: 'message_created', times: 2 });
    const first = await person.post(roomId, 'one', [ECHO.id]);
    const second = await person.post(roomId, 'two', [ECHO.id]);
    await person.delivery(first, ECHO.id, 'processed');
    await person.delivery(second, ECHO.id, 'processed');
    sandbox.dev.closeSockets(ECHO.id, 1006);
    const third = await person.post(roomId, 'three', [ECHO.id]);
    await person.delivery(third, ECHO.id, 'processed');
    expect(runs).toEqual(['one', 'two', 'three']);
    expect(await byAgent(roomId)).toHaveLength(3);
  });

  it('check 4: a message that a crash left in processing is found again, and its second attempt succeeds', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    const messageId = await person.post(roomId, 'hello', [ECHO.id]);
    // The process that marked it is gone.
    expect((await agentCall('POST', `/chats/${roomId}/messages/${messageId}/processing`)).status).toBe(200);
    const next = await agentCall('GET', `/chats/${roomId}/messages/next`);
    expect(next.body).toMatchObject({ data: { id: messageId } });
    await started();
    const delivery = await person.delivery(messageId, ECHO.id, 'processed');
    expect(delivery.attempts.map(({ status }) => status)).toEqual(['processing', 'success']);
    expect(runs).toEqual(['hello']);
  });

  it('check 5: with one attempt a failure is told to the room and is not tried again', async () => {
    await started(() => Promise.reject(new Error('no luck')), {
      sessionConfig: new SessionConfig({ maxMessageRetries: 1 }),
    });
    const roomId = await person.createRoom([ECHO.id]);
    const messageId = await person.post(roomId, 'hello', [ECHO.id]);
    const delivery = await person.delivery(messageId, ECHO.id, 'failed');
    expect(delivery.attempts.map(({ status }) => status)).toEqual(['failed']);
    await person.event(roomId, 'error');
    const later = await person.post(roomId, 'later', [ECHO.id]);
    await person.delivery(later, ECHO.id, 'failed');
    expect(runs).toEqual(['hello', 'later']);
  });

  it('check 5: with two attempts a second one that succeeds ends in processed', async () => {
    let failures = 1;
    const flaky: GenericCallback = async (turn) => {
      if (failures-- > 0) throw new Error('no luck');
      await answer(turn);
    };
    await started(flaky, { sessionConfig: new SessionConfig({ maxMessageRetries: 2 }) });
    const roomId = await person.createRoom([ECHO.id]);
    const messageId = await person.post(roomId, 'hello', [ECHO.id]);
    const delivery = await person.delivery(messageId, ECHO.id, 'processed');
    expect(delivery.attempts.map(({ status }) => status)).toEqual(['failed', 'success']);
    expect(runs).toEqual(['hello', 'hello']);
  });

  it('check 6: after a dropped socket the agent comes back, joins again and finds what was posted meanwhile', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    await started();
    sandbox.dev.faultUpgrades({ mode: 'hold', principalId: ECHO.id });
    expect(sandbox.dev.closeSockets(ECHO.id, 1006)).toBe(1);
    await expect.poll(() => agentTopics()).toEqual([]);
    const messageId = await person.post(roomId, 'hello', [ECHO.id]);
    sandbox.dev.clearFaults();
    await person.delivery(messageId, ECHO.id, 'processed');
    expect(runs).toEqual(['hello']);
    expect(agentTopics()).toEqual(expect.arrayContaining([`chat_room:${roomId}`, `room_participants:${roomId}`]));
  });

  it('check 6: a sandbox restarted on its data folder is found again, with what was posted meanwhile', async () => {
    const dataDir = await tempFolder();
    await sandbox.close();
    sandbox = await startSandbox({ port: 0, dataDir });
    person = await sandboxPerson(sandbox);
    const roomId = await person.createRoom([ECHO.id]);
    await started();
    await person.post(roomId, 'one', [ECHO.id]);
    await person.reply(roomId, ECHO.id);
    const { port } = sandbox;
    await sandbox.close();
    sandbox = await startSandbox({ port, dataDir });
    person = await sandboxPerson(sandbox);
    const messageId = await person.post(roomId, 'two', [ECHO.id]);
    await person.listen(roomId);
    await expect
      .poll(async () => (await person.messages(roomId)).find(({ id }) => id === messageId)?.metadata.delivery_status, {
        timeout: 10_000,
      })
      .toMatchObject({ [ECHO.id]: { status: 'processed' } });
    expect(runs).toEqual(['one', 'two']);
  });

  it('check 7: a second connection takes over, and the first does not come back', async () => {
    const first = await started();
    const ended = expect(first.runForever({ installSignalHandlers: false })).rejects.toThrow();
    const second = await started();
    await ended;
    const roomId = await person.createRoom([ECHO.id]);
    await person.post(roomId, 'hello', [ECHO.id]);
    await person.reply(roomId, ECHO.id);
    expect(sandbox.dev.state().sockets.filter(({ kind }) => kind === 'Agent')).toHaveLength(1);
    expect([first.runtime.linkState?.kind, second.runtime.linkState?.kind]).toEqual(['closed', 'connected']);
  });

  it('check 7: with reject a second connection is refused, and the first goes on undisturbed', async () => {
    const first = await started();
    const second = agentOf(answer, { config: { conflictPolicy: ConflictPolicy.REJECT } });
    await expect(second.start()).rejects.toBeInstanceOf(AgentAlreadyRunningError);
    const roomId = await person.createRoom([ECHO.id]);
    await person.post(roomId, 'hello', [ECHO.id]);
    await person.reply(roomId, ECHO.id);
    expect(first.runtime.linkState?.kind).toBe('connected');
  });

  it('check 8: after a stop in mid-run, play runs the interrupted message first and then the new one', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    await started(async (turn) => {
      if (runs.length === 1) await aborted(turn.signal);
      else await answer(turn);
    });
    const first = await person.post(roomId, 'one', [ECHO.id]);
    await person.delivery(first, ECHO.id, 'processing');
    await expect.poll(() => runs).toEqual(['one']);
    await person.stop(roomId);
    const second = await person.post(roomId, 'two', [ECHO.id]);
    await person.play(roomId);
    await person.delivery(second, ECHO.id, 'processed');
    expect(runs).toEqual(['one', 'one', 'two']);
    expect((await byAgent(roomId)).map(({ content }) => spoken(content))).toEqual(['answer to two', 'answer to one']);
  });

  it('check 9: stopped while it is away, the agent stays quiet until it is played, though the signal was lost', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    const messageId = await person.post(roomId, 'hello', [ECHO.id]);
    await person.stop(roomId);
    const path = `/chats/${roomId}`;
    expect((await agentCall('GET', `${path}/messages/next`)).status).toBe(204);
    for (const mark of ['processing', 'processed', 'failed']) {
      const marked = await agentCall('POST', `${path}/messages/${messageId}/${mark}`, { error: 'x' });
      expect([marked.status, marked.text]).toEqual([204, '']);
    }
    const event = { event: { content: 'hm', message_type: 'thought' } };
    const refused = await agentCall('POST', `${path}/events`, event);
    expect(verdictOf(refused)).toBe('403 forbidden');
    expect(refused.body).toMatchObject({ error: { message: 'Agent execution is stopped; cannot post events' } });

    sandbox.dev.faultPushes({ mode: 'drop', principalId: ECHO.id, event: 'agent.control', times: 100 });
    await started(answer, { sessionConfig: new SessionConfig({ idleResyncSeconds: 0.3, stoppedResyncSeconds: 0.3 }) });
    await expect.poll(() => calls.filter((call) => call.endsWith('/messages/next')).length).toBeGreaterThan(2);
    expect(runs).toEqual([]);
    await person.play(roomId);
    await person.delivery(messageId, ECHO.id, 'processed');
    expect(runs).toEqual(['hello']);
  });

  it('check 10: an interrupted message is processed without a reply', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    await started(async ({ signal, tools, message }) => {
      await aborted(signal);
      await tools.sendMessage('too late', [{ id: message.senderId }]);
    });
    const messageId = await person.post(roomId, 'hello', [ECHO.id]);
    await expect.poll(() => runs).toEqual(['hello']);
    await person.interrupt(roomId, ECHO.id);
    await person.delivery(messageId, ECHO.id, 'processed');
    expect(await byAgent(roomId)).toEqual([]);
  });

  it('check 11: added while it runs, the agent joins and answers; removed, it leaves and hears no more', async () => {
    await started();
    const roomId = await person.createRoom([ECHO.id]);
    await person.post(roomId, 'hello', [ECHO.id]);
    await person.reply(roomId, ECHO.id);
    const topics = [`chat_room:${roomId}`, `room_participants:${roomId}`];
    expect(agentTopics()).toEqual(expect.arrayContaining(topics));
    await person.remove(roomId, ECHO.id);
    await expect.poll(() => agentTopics().filter((topic) => topics.includes(topic))).toEqual([]);
    const late = await person.call('POST', `/chats/${roomId}/messages`, {
      message: { content: 'are you there?', mentions: [{ id: ECHO.id }] },
    });
    expect(verdictOf(late)).toBe('422 mentioned_participant_not_in_room');
    expect(runs).toEqual(['hello']);
  });

  it('check 12: a deleted room is left and cleaned up', async () => {
    const cleaned: string[] = [];
    const adapter = new GenericAdapter(answer);
    adapter.onCleanup = (roomId) => {
      cleaned.push(roomId);
      return Promise.resolve();
    };
    const agent = sandboxAgent(sandbox, { adapter });
    agents.push(agent);
    await agent.start();
    const roomId = await person.createRoom([ECHO.id]);
    await person.post(roomId, 'hello', [ECHO.id]);
    await person.reply(roomId, ECHO.id);
    await person.call('DELETE', `/chats/${roomId}`);
    await expect.poll(() => cleaned).toEqual([roomId]);
    await expect.poll(() => agentTopics().some((topic) => topic.endsWith(roomId))).toBe(false);
  });

  it('check 13: each mention code, blank content and an oversized event are 422; the largest event is 201', async () => {
    const roomId = await person.createRoom([ECHO.id]);
    const path = `/chats/${roomId}`;
    const post = async (mentions: unknown[], content = 'hi') =>
      verdictOf(await agentCall('POST', `${path}/messages`, { message: { content, mentions } }));
    const owner = { id: DEMO.user.id };
    expect(await post([])).toBe('422 mentions_required');
    expect(await post([{ id: ECHO.id }])).toBe('422 cannot_mention_self');
    expect(await post([owner, owner])).toBe('422 duplicate_mentions');
    expect(await post([{ id: DICE.id }])).toBe('422 mentioned_participant_not_in_room');
    expect(await post([{ ...owner, kind: null }])).toBe('422 invalid_mention_kind');
    expect(await post([{ handle: 'nobody' }])).toBe('422 handle_not_found');
    expect(await post([{ name: 'Demo Person' }])).toBe('422 mention_missing_identifier');
    expect(await post([owner], ' \u200b')).toBe('422 validation_error');
    expect(await post([owner])).toBe('201');
    const event = async (length: number) =>
      verdictOf(
        await agentCall('POST', `${path}/events`, { event: { content: 'x'.repeat(length), message_type: 'thought' } }),
      );
    expect(await event(16_384)).toBe('201');
    expect(await event(16_385)).toBe('422 validation_error');
  });

  it('check 14: an agent that is not mentioned learns nothing by socket, list, next or context', async () => {
    const roomId = await person.createRoom([ECHO.id, DICE.id]);
    const socket = await openRawSocket(`${sandbox.wsUrl}?api_key=${DICE.apiKey}&vsn=2.0.0`);
    onTestFinished(() => {
      socket.drop();
    });
    await socket.join(`chat_room:${roomId}`);
    await started(async (turn) => {
      await turn.tools.sendEvent('thinking', 'thought');
      await answer(turn);
    });
    const messageId = await person.post(roomId, 'hello', [ECHO.id]);
    await person.delivery(messageId, ECHO.id, 'processed');
    await socket.settled();
    expect(socket.received.map(([, , , event]) => event)).toEqual(['phx_reply', 'phx_reply']);
    const seen = async (path: string) => agentCall('GET', `/chats/${roomId}${path}`, undefined, DICE.apiKey);
    expect((await seen('/messages/next')).status).toBe(204);
    expect((await seen('/messages?status=all')).body).toMatchObject({ data: [] });
    expect((await seen('/context')).body).toMatchObject({ data: [] });
    expect(await byAgent(roomId)).toHaveLength(2);
  });

  it('check 15: the A2A bridge finds all of 250 peers, in pages of 100', async () => {
    for (let n = 0; n < 245; n += 1) {
      sandbox.dev.addAgent({ ownerHandle: 'demo', name: `Peer ${n}`, description: 'one of many' });
    }
    const adapter = new A2AGatewayAdapter({ port: 0, store: 'memory', auth: { anonymous: 'loopback' } });
    const gateway = sandboxAgent(sandbox, { adapter, agentId: DEMO.gateway.id, apiKey: DEMO.gateway.apiKey });
    agents.push(gateway);
    await gateway.start();
    const count = async () => {
      const { body } = await callRest(String(adapter.url).replace('localhost', '127.0.0.1'), 'GET', '/peers', null);
      return (body as { count: number }).count;
    };
    // Its siblings; the owner is a person, whom the bridge does not publish.
    await expect.poll(count).toBe(249);
    const pages = calls.filter((call) => call.startsWith('GET /api/v1/agent/peers'));
    expect(pages.slice(0, 3).map((call) => /page=\d/.exec(call)?.[0])).toEqual(['page=1', 'page=2', 'page=3']);
    expect(pages.every((call) => call.includes('page_size=100'))).toBe(true);
  });
});

/** Text without the mentions in front of it. */
const spoken = (content: string): string => content.replace(/^(@\S+\s*)+/, '');

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });

import { Agent as Dispatcher } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiError, RoomExecutionStoppedError, ValueError } from '../../src/base/band-errors.js';
import { Roster } from '../../src/core/participants.js';
import { Turn } from '../../src/core/turn.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import { createRestClient } from '../../src/platform/rest/rest-client.js';
import { AgentTools } from '../../src/runtime/tools/agent-tools.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { FakeAgentTools, refusal } from '../../src/testing/index.js';
import { callRest } from '../support/rest-call.js';

const USER = { id: DEMO.user.id, name: 'Demo Person', type: 'User', handle: 'demo' };
const SELF = { id: DEMO.gateway.id, name: 'Gateway', type: 'Agent', handle: 'demo/gateway' };
const ECHO = {
  id: DEMO.echo.id,
  name: 'Echo',
  type: 'Agent',
  handle: 'demo/echo',
  description: 'Repeats what it is told',
};
const DICE = {
  id: DEMO.dice.id,
  name: 'Dice',
  type: 'Agent',
  handle: 'demo/dice',
  description: 'Rolls dice, for example 2d6',
};

/** A room with the person and the agent in it, and the agent's tools for one turn there. */
interface Opened {
  readonly tools: AgentTools;
  /** The platform stops the agent in the room. */
  stop(): Promise<void>;
}

let sandbox: Sandbox;
let dispatcher: Dispatcher;
let rest: BandRest;

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  dispatcher = new Dispatcher();
  rest = createRestClient({ restUrl: sandbox.restUrl, apiKey: DEMO.gateway.apiKey, dispatcher });
});
afterAll(async () => {
  await dispatcher.close();
  await sandbox.close();
});

const platforms: [string, () => Promise<Opened>][] = [
  [
    'the platform in memory',
    async () => {
      const tools = new FakeAgentTools({
        agentId: SELF.id,
        participants: [USER],
        peers: [USER, ECHO, DICE],
      });
      return {
        tools,
        async stop() {
          await Promise.resolve();
          for (const method of ['postMessage', 'postEvent']) tools.failNext(method, refusal(403, 'BAND_ROOM_STOPPED'));
        },
      };
    },
  ],
  [
    'the sandbox over HTTP',
    async () => {
      const me = (path: string, body?: unknown) =>
        callRest(sandbox.restUrl, 'POST', `/api/v1/me${path}`, DEMO.user.apiKey, body);
      const made = await me('/chats', { chat: {} });
      const roomId = (made.body as { data: { id: string } }).data.id;
      await me(`/chats/${roomId}/participants`, { participant: { participant_id: SELF.id, role: 'admin' } });
      const roster = new Roster();
      roster.replace(await rest.listParticipants(roomId));
      return {
        tools: new AgentTools({ rest, roomId, agentId: SELF.id, roster, turn: new Turn() }),
        async stop() {
          await me(`/chats/${roomId}/agents/stop`);
        },
      };
    },
  ],
];

describe.each(platforms)('agent tools on %s', (_name, open) => {
  const written = async ({ tools }: Opened) =>
    (await tools.fetchRoomContext({ roomId: tools.roomId })).data.map(({ message_type, content, metadata }) => ({
      message_type,
      content: content.replace(/^(@\[\[[^\]]+\]\]\s*)+/, ''),
      mentioned: ((metadata?.['mentions'] ?? []) as { id: string }[]).map(({ id }) => id),
    }));

  it('a message reaches whom it mentions and is found in the room’s context', async () => {
    const room = await open();
    expect(room.tools.availableMentionHandles()).toEqual(['@demo']);
    expect(await room.tools.sendMessage('good morning', ['Demo Person'])).toMatchObject({ success: true });
    expect(await written(room)).toEqual([{ message_type: 'text', content: 'good morning', mentioned: [USER.id] }]);
  });

  it('R-267 R-268 events and failures are taken as they are sent, the longest as well', async () => {
    const room = await open();
    await room.tools.sendEvent('thinking', 'thought', { step: 1 });
    await room.tools.sendEvent('x'.repeat(40_000), 'tool_result');
    await room.tools.sendFailure({ provider: 'model', message: 'overloaded', detail: { big: 'y'.repeat(100_000) } });
    const { data } = await room.tools.fetchRoomContext({ roomId: room.tools.roomId });
    expect(data.map(({ message_type, content }) => [message_type, content.length])).toEqual([
      ['thought', 8],
      ['tool_result', 16_384],
      ['error', 10],
    ]);
    expect(data[0]?.metadata).toMatchObject({ step: 1 });
    expect(data[2]?.metadata).toMatchObject({ failure: { provider: 'model', message: 'overloaded', detail: null } });
  });

  it('R-253 R-270 a peer is found, added once, mentioned and removed', async () => {
    const { tools } = await open();
    expect((await tools.lookupPeers()).data.map(({ handle }) => handle)).toEqual(
      expect.arrayContaining(['demo/echo', 'demo/dice']),
    );
    expect(await tools.addParticipant('@demo/echo')).toEqual({
      id: ECHO.id,
      name: 'Echo',
      role: 'member',
      status: 'added',
    });
    expect(await tools.addParticipant('Echo')).toEqual({ id: ECHO.id, name: 'Echo', status: 'already_in_room' });
    expect((await tools.lookupPeers()).data.map(({ id }) => id)).not.toContain(ECHO.id);
    expect(tools.availableMentionHandles()).toEqual(['@demo', '@demo/echo']);
    expect(tools.participants.find(({ id }) => id === ECHO.id)?.description).toBe(ECHO.description);
    await tools.sendMessage('and you?', ['@demo/echo', USER]);
    expect(await tools.removeParticipant(ECHO.id)).toEqual({ id: ECHO.id, name: 'Echo', status: 'removed' });
    expect((await tools.getParticipants()).map(({ id }) => id).sort()).toEqual([SELF.id, USER.id].sort());
    await expect(tools.sendMessage('still there?', ['@demo/echo'])).rejects.toThrow(ValueError);
    await expect(tools.removeParticipant('@demo/echo')).rejects.toThrow(ValueError);
  });

  it('a stranger is nobody’s peer', async () => {
    const { tools } = await open();
    await expect(tools.addParticipant('@no/body')).rejects.toThrow(/band_lookup_peers/);
  });

  it('a new room has an id of its own', async () => {
    const { tools } = await open();
    const roomId = await tools.createChatroom();
    expect(roomId).toMatch(/^[0-9a-f-]{36}$/);
    expect(roomId).not.toBe(tools.roomId);
  });

  it('R-224 in a room where the agent is stopped a post says so', async () => {
    const room = await open();
    await room.stop();
    await expect(room.tools.sendMessage('anyone?', ['@demo'])).rejects.toThrow(RoomExecutionStoppedError);
    await expect(room.tools.sendEvent('hm', 'thought')).rejects.toThrow(RoomExecutionStoppedError);
    expect(room.tools.turn.complete).toBe(false);
  });

  it('R-279 a turn ends with what its tools did', async () => {
    const { tools } = await open();
    await tools.getParticipants();
    await tools.sendNotice('one moment', ['@demo']);
    expect(tools.turn.complete).toBe(false);
    await tools.executeToolCall('band_send_message', { content: 'done', mentions: ['@demo'] });
    expect(tools.turn.replied).toBe(true);
  });
});

describe('agent tools on the sandbox alone', () => {
  it('R-272 memory tools without the plan, and a room the agent is not in, surface with their status', async () => {
    const tools = new AgentTools({ rest, roomId: '00000000-0000-4000-8000-00000000dead', agentId: SELF.id });
    const memory = tools.listMemories().catch((error: unknown) => error);
    expect(await memory).toBeInstanceOf(ApiError);
    expect(await memory).toMatchObject({ statusCode: 403 });
    await expect(tools.sendMessage('hi', [{ id: USER.id }])).rejects.toMatchObject({
      name: 'ApiError',
      statusCode: 404,
    });
    expect(await tools.executeToolCallStructured('band_list_memories', {})).toMatchObject({
      ok: false,
      errorMessage: expect.stringContaining('403 Forbidden') as string,
    });
  });

  it('contact tools are answered by the platform', async () => {
    const tools = new AgentTools({ rest, roomId: 'none', agentId: SELF.id });
    expect(await tools.listContacts()).toMatchObject({ data: [] });
    expect((await tools.listContactRequests()).data).toMatchObject({ received: [], sent: [] });
    await expect(tools.addContact('@no/body')).rejects.toMatchObject({ name: 'ApiError', statusCode: 404 });
  });
});

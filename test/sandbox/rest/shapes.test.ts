import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { idOf, sandboxLab } from '../../support/sandbox-lab.js';
import * as shape from '../../support/wire-shapes.js';

describe('answers of the agent API', () => {
  it('have the fields that Band describes, and no others', async () => {
    const { echo, dice, room, say } = await sandboxLab();
    shape.oneShape(shape.agentMeShape).parse((await echo.get('/me')).body);
    shape.listShape(shape.peerShape, shape.pageMetadataShape).parse((await echo.get('/peers')).body);

    const created = await echo.post('/chats', { chat: {} });
    expect(created.status).toBe(201);
    shape.oneShape(shape.chatRoomShape).parse(created.body);
    const own = idOf(created);
    shape.oneShape(shape.chatRoomShape).parse((await echo.get(`/chats/${own}`)).body);
    shape.oneShape(shape.chatRoomShape).parse((await echo.patch(`/chats/${own}`, { chat: { title: 'New' } })).body);
    shape.listShape(shape.chatRoomShape, shape.pageMetadataShape).parse((await echo.get('/chats')).body);

    const roomId = await room(DEMO.echo.id, DEMO.dice.id);
    const messageId = await say(roomId, 'hello', DEMO.echo.id);
    const path = `/chats/${roomId}`;
    shape.oneShape(shape.textMessageShape).parse((await echo.get(`${path}/messages/next`)).body);
    for (const [mark, body] of [
      ['processing', undefined],
      ['failed', { error: 'went wrong' }],
      ['processing', undefined],
      ['processed', undefined],
    ] as const) {
      const marked = await echo.post(`${path}/messages/${messageId}/${mark}`, body);
      expect(marked.status).toBe(200);
      shape.oneShape(shape.messageStatusShape).parse(marked.body);
    }
    const work = await echo.get(`${path}/messages?status=all`);
    shape.listShape(shape.textMessageShape, shape.workMetadataShape).parse(work.body);

    const sent = await dice.post(`${path}/messages`, { message: { content: 'hi', mentions: [{ id: DEMO.echo.id }] } });
    expect(sent.status).toBe(201);
    shape.oneShape(shape.messageSentShape).parse(sent.body);
    const event = await dice.post(`${path}/events`, { event: { content: 'hm', message_type: 'thought' } });
    expect(event.status).toBe(201);
    shape.oneShape(shape.eventCreatedShape).parse(event.body);

    shape.oneShape(shape.participantShape.array()).parse((await echo.get(`${path}/participants`)).body);
    const context = (await dice.get(`${path}/context`)).body as { data: unknown; metadata: unknown; meta: unknown };
    shape.chatMessageShape.array().parse(context.data);
    shape.bothMetadataShape.parse(context.metadata);
    expect(context.meta).toEqual(context.metadata);
    expect((await echo.post(`${path}/activity`, { working: true })).body).toEqual({ data: { working: true } });

    const participant = { participant_id: DEMO.gateway.id, role: 'member' };
    shape.oneShape(shape.participantShape).parse((await echo.post(`${path}/participants`, { participant })).body);
    const left = await echo.delete(`${path}/participants/${DEMO.echo.id}`);
    expect(left.status).toBe(200);
    expect(shape.oneShape(shape.participantShape).parse(left.body).data.status).toBe('removed');
  });
});

describe('answers of the human API', () => {
  it('have the fields that Band describes, and no others', async () => {
    const { user, echo, room, say } = await sandboxLab();
    shape.oneShape(shape.profileShape).parse((await user.get('/profile')).body);
    const renamed = await user.put('/profile', { user: { first_name: 'Ada', last_name: 'L' } });
    expect(shape.oneShape(shape.profileShape).parse(renamed.body).data).toMatchObject({
      first_name: 'Ada',
      last_name: 'L',
    });
    shape.listShape(shape.peerShape, shape.pageMetadataShape).parse((await user.get('/peers')).body);

    const roomId = await room(DEMO.echo.id);
    await say(roomId, 'hello', DEMO.echo.id);
    await echo.post(`/chats/${roomId}/events`, {
      event: { content: 'hm', message_type: 'thought', metadata: { a: 1 } },
    });
    const path = `/chats/${roomId}`;
    shape.oneShape(shape.meChatRoomShape).parse((await user.get(path)).body);
    shape.listShape(shape.meChatRoomShape, shape.bothMetadataShape).parse((await user.get('/chats')).body);
    shape.listShape(shape.chatMessageShape, shape.bothMetadataShape).parse((await user.get(`${path}/messages`)).body);
    shape
      .listShape(shape.participantDetailsShape, shape.bothMetadataShape)
      .parse((await user.get(`${path}/participants`)).body);
    shape.oneShape(shape.executionShape.array()).parse((await user.get(`/agents/${DEMO.echo.id}/executions`)).body);
    shape.oneShape(shape.meChatRoomShape).parse((await user.delete(path)).body);
  });

  it('list a person’s own agents with what they can be filtered and sorted by', async () => {
    const { user } = await sandboxLab();
    const { body } = await user.get('/agents?name=ECH&sort=name&order=asc');
    const { data, metadata } = body as { data: unknown[]; metadata: Record<string, unknown> };
    shape.myAgentShape.array().length(1).parse(data);
    expect(Object.keys(metadata).sort()).toEqual([
      'available_filters',
      'has_more',
      'limit',
      'next_cursor',
      'page',
      'page_size',
      'sortable_fields',
      'total_count',
      'total_pages',
    ]);
  });

  it('register an agent whose key works, and delete it with everything it has', async () => {
    const { user, agent, room } = await sandboxLab();
    const registered = await user.post('/agents/register', { agent: { name: 'Echo', description: 'another one' } });
    expect(registered.status).toBe(201);
    const { data } = registered.body as {
      data: { agent: Record<string, string>; credentials: { api_key: string } };
    };
    expect(Object.keys(data.agent).sort()).toEqual(['description', 'id', 'inserted_at', 'name', 'owner_id']);
    expect(data.credentials.api_key).toMatch(/^band_a_/);
    const id = String(data.agent['id']);
    const second = agent(data.credentials.api_key);
    expect((await second.get('/me')).body).toMatchObject({ data: { handle: 'demo/echo-2' } });

    await room(id);
    expect((await user.delete(`/agents/${id}`)).status).toBe(422);
    const socket = await second.socket();
    const deleted = await user.delete(`/agents/${id}?force=true`);
    expect(deleted.body).toEqual({
      data: { id, name: 'Echo', description: 'another one', executions_deleted: 1 },
    });
    await socket.closed;
    expect((await second.get('/me')).status).toBe(401);
    expect((await user.delete(`/agents/${id}`)).status).toBe(404);
  });
});

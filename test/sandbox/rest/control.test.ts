import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { idOf, rowsOf, sandboxLab, verdictOf, type Json } from '../../support/sandbox-lab.js';
import { controlShape } from '../../support/wire-shapes.js';

const { echo: ECHO, dice: DICE } = DEMO;

describe('a stopped agent', () => {
  it('gets no work, cannot mark or post, and may do all the rest', async () => {
    const { user, echo, dice, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const messageId = await say(roomId, 'hello', ECHO.id);
    const path = `/chats/${roomId}`;
    await echo.post(`${path}/messages/${messageId}/processing`);
    expect((await user.post(`${path}/agents/${ECHO.id}/stop`)).body).toEqual({
      data: { success: true, agents: [ECHO.id] },
    });

    const next = await echo.get(`${path}/messages/next`);
    expect([next.status, next.text]).toEqual([204, '']);
    for (const mark of ['processing', 'processed', 'failed']) {
      const marked = await echo.post(`${path}/messages/${messageId}/${mark}`, { error: 'x' });
      expect([marked.status, marked.text]).toEqual([204, '']);
    }
    const message = { content: 'hi', mentions: [{ id: DICE.id }] };
    const posted = await echo.post(`${path}/messages`, { message });
    expect(verdictOf(posted)).toBe('403 forbidden');
    expect(posted.body).toMatchObject({ error: { message: 'Agent execution is stopped; cannot post messages' } });
    const event = await echo.post(`${path}/events`, { event: { content: 'hm', message_type: 'thought' } });
    expect(verdictOf(event)).toBe('403 forbidden');
    expect(event.body).toMatchObject({ error: { message: 'Agent execution is stopped; cannot post events' } });

    expect(rowsOf(await echo.get(`${path}/messages`))).toHaveLength(1);
    expect(rowsOf(await echo.get(`${path}/context`))).toHaveLength(1);
    expect(rowsOf(await echo.get(`${path}/participants`))).toHaveLength(3);
    // The echo of `working` tells an agent that missed the signal.
    expect((await echo.post(`${path}/activity`, { working: true })).body).toEqual({ data: { working: false } });
    const before = rowsOf(await user.get(`${path}/messages`))[0]?.['metadata'] as Json;
    expect(before['delivery_status']).toMatchObject({ [ECHO.id]: { status: 'processing', current_attempt: 1 } });
    expect(
      verdictOf(await dice.post(`${path}/messages`, { message: { ...message, mentions: [{ id: ECHO.id }] } })),
    ).toBe('201');
  });

  it('gets what it was working on first after play, then what came meanwhile', async () => {
    const { user, echo, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const path = `/chats/${roomId}`;
    const first = await say(roomId, 'one', ECHO.id);
    await echo.post(`${path}/messages/${first}/processing`);
    await user.post(`${path}/agents/stop`);
    const second = await say(roomId, 'two', ECHO.id);
    await user.post(`${path}/agents/play`);
    expect(idOf(await echo.get(`${path}/messages/next`))).toBe(first);
    await echo.post(`${path}/messages/${first}/processing`);
    await echo.post(`${path}/messages/${first}/processed`);
    expect(idOf(await echo.get(`${path}/messages/next`))).toBe(second);
  });
});

describe('control signals', () => {
  it('reach every agent of the room, each with the same id of the action', async () => {
    const { user, echo, dice, room } = await sandboxLab();
    const sockets = await Promise.all([echo.socket(), dice.socket()]);
    await sockets[0]?.join(`agent_control:${ECHO.id}`);
    await sockets[1]?.join(`agent_control:${DICE.id}`);
    const roomId = await room(ECHO.id, DICE.id);
    for (const mode of ['stop', 'play', 'interrupt']) {
      expect((await user.post(`/chats/${roomId}/agents/${mode}`)).body).toEqual({
        data: { success: true, agents: [ECHO.id, DICE.id] },
      });
      const signals = await Promise.all(
        sockets.map((socket) => socket.push('agent.control', (payload) => payload['mode'] === mode)),
      );
      for (const [index, signal] of signals.entries()) {
        expect(controlShape.parse(signal)).toMatchObject({
          scope: 'room',
          room_id: roomId,
          agent_id: [ECHO.id, DICE.id][index],
        });
      }
      expect(signals[0]?.['correlation_id']).toBe(signals[1]?.['correlation_id']);
    }
    const ids = sockets[0]?.received
      .filter((frame) => frame[3] === 'agent.control')
      .map((frame) => frame[4]['correlation_id']);
    expect(new Set(ids).size).toBe(3);
  });

  it('for an agent in all rooms name no room', async () => {
    const { user, echo, room } = await sandboxLab();
    const socket = await echo.socket();
    await socket.join(`agent_control:${ECHO.id}`);
    const rooms = [await room(ECHO.id), await room(ECHO.id)];
    const executions = rowsOf(await user.get(`/agents/${ECHO.id}/executions`));
    expect(executions.map((one) => one['chat_room_id'])).toEqual(rooms);
    const executionId = String(executions[1]?.['id']);
    expect((await user.post(`/agents/${ECHO.id}/executions/${executionId}/interrupt`)).status).toBe(200);
    expect(controlShape.parse(await socket.push('agent.control'))).toMatchObject({
      mode: 'interrupt',
      scope: 'agent',
      room_id: null,
      execution_id: executionId,
    });

    await user.post(`/agents/${ECHO.id}/stop`);
    const stopped = rowsOf(await user.get(`/agents/${ECHO.id}/executions`));
    expect(stopped.map(({ status }) => status)).toEqual(['stopped', 'stopped']);
    expect((await echo.get(`/chats/${String(rooms[0])}/messages/next`)).status).toBe(204);
    await user.post(`/agents/${ECHO.id}/play`);
    const active = rowsOf(await user.get(`/agents/${ECHO.id}/executions`));
    expect(active.map(({ status }) => status)).toEqual(['active', 'active']);
  });

  it('may be repeated: stop and play change nothing the second time', async () => {
    const { user, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    for (const mode of ['stop', 'stop', 'play', 'play']) {
      expect((await user.post(`/chats/${roomId}/agents/${mode}`)).status).toBe(200);
    }
  });

  it('are for owners: of the room, and of the agent', async () => {
    const { sandbox, user, person, echo, room } = await sandboxLab();
    const bob = sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const stranger = sandbox.dev.addUser({ handle: 'eve', name: 'Eve' });
    const roomId = await room(ECHO.id, bob.id);
    for (const path of ['/agents/stop', `/agents/${ECHO.id}/interrupt`]) {
      expect(verdictOf(await person(bob.apiKey).post(`/chats/${roomId}${path}`))).toBe('403 forbidden');
      expect(verdictOf(await person(stranger.apiKey).post(`/chats/${roomId}${path}`))).toBe('404 not_found');
    }
    expect(verdictOf(await person(bob.apiKey).get(`/agents/${ECHO.id}/executions`))).toBe('403 forbidden');
    expect(verdictOf(await person(bob.apiKey).post(`/agents/${ECHO.id}/stop`))).toBe('403 forbidden');
    expect(verdictOf(await user.post(`/chats/${roomId}/agents/${DICE.id}/stop`))).toBe('404 not_found');
    expect(verdictOf(await user.post(`/agents/${bob.id}/stop`))).toBe('404 not_found');
    expect(verdictOf(await user.post(`/agents/${ECHO.id}/executions/${roomId}/interrupt`))).toBe('404 not_found');
    // Owning the agent is not owning the room that the agent made.
    const own = idOf(await echo.post('/chats', {}));
    await echo.post(`/chats/${own}/participants`, { participant: { participant_id: DEMO.user.id } });
    expect(verdictOf(await user.post(`/chats/${own}/agents/stop`))).toBe('403 forbidden');
  });
});

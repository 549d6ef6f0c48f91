import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { openRawSocket } from '../../support/raw-socket.js';
import { sandboxLab } from '../../support/sandbox-lab.js';
import * as shape from '../../support/wire-shapes.js';

const { echo: ECHO, dice: DICE, user: DEMO_USER } = DEMO;
const UNKNOWN = '12345678-1234-4234-8234-123456789abc';
const CONTROL = `agent_control:${ECHO.id}`;
const ok = { status: 'ok', response: {} };
const refused = (reason: string) => ({ status: 'error', response: { reason } });

describe('a channel', () => {
  it('is joined and left as Phoenix does it', async () => {
    const { echo } = await sandboxLab();
    const socket = await echo.socket();
    socket.send('1', '1', CONTROL, 'phx_join', {});
    socket.send('1', '9', CONTROL, 'phx_leave', {});
    socket.send(null, '10', 'phoenix', 'heartbeat', {});
    await socket.frame((frame) => frame[1] === '10');
    expect(socket.received).toEqual([
      ['1', '1', CONTROL, 'phx_reply', ok],
      ['1', '9', CONTROL, 'phx_reply', ok],
      ['1', '1', CONTROL, 'phx_close', {}],
      [null, '10', 'phoenix', 'phx_reply', ok],
    ]);
  });

  it('that is joined again ends and begins anew', async () => {
    const { user, echo, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    socket.send('1', '1', CONTROL, 'phx_join', {});
    socket.send('2', '2', CONTROL, 'phx_join', {});
    await user.post(`/chats/${roomId}/agents/stop`);
    const [joinRef] = await socket.frame((frame) => frame[3] === 'agent.control');
    expect(joinRef).toBe('2');
    expect(socket.received.slice(0, 3)).toEqual([
      ['1', '1', CONTROL, 'phx_reply', ok],
      ['1', '1', CONTROL, 'phx_close', {}],
      ['2', '2', CONTROL, 'phx_reply', ok],
    ]);
  });

  it('is not ended by a leave that names its predecessor', async () => {
    const { sandbox, echo } = await sandboxLab();
    const socket = await echo.socket();
    socket.send('1', '1', CONTROL, 'phx_join', {});
    socket.send('2', '2', CONTROL, 'phx_join', {});
    socket.send('1', '3', CONTROL, 'phx_leave', {});
    await socket.settled();
    expect(sandbox.dev.state().sockets[0]?.topics).toEqual([CONTROL]);
  });

  it('that is not joined can be left, and takes nothing else', async () => {
    const { echo } = await sandboxLab();
    const socket = await echo.socket();
    expect(await socket.leave(CONTROL)).toEqual(ok);
    socket.send(null, '7', CONTROL, 'message', {});
    expect((await socket.frame((frame) => frame[1] === '7'))[4]).toEqual(refused('unmatched topic'));
    await socket.settled();
    expect(socket.received.some(([, , , event]) => event === 'phx_close')).toBe(false);
  });

  it('is for reading only', async () => {
    const { echo } = await sandboxLab();
    const socket = await echo.socket();
    await socket.join(CONTROL);
    socket.send('1', '8', CONTROL, 'agent.control', { mode: 'stop' });
    expect((await socket.frame((frame) => frame[1] === '8'))[4]).toEqual(refused('unsupported event'));
  });

  it('that crashed can be joined again on the same socket', async () => {
    const { sandbox, user, echo, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    await socket.join(CONTROL);
    expect(sandbox.dev.crashChannel(ECHO.id, CONTROL)).toBe(1);
    expect(await socket.frame((frame) => frame[3] === 'phx_error')).toEqual(['1', '1', CONTROL, 'phx_error', {}]);
    await user.post(`/chats/${roomId}/agents/stop`);
    expect(await socket.join(CONTROL)).toEqual(ok);
    await user.post(`/chats/${roomId}/agents/play`);
    expect(await socket.push('agent.control')).toMatchObject({ mode: 'play' });
  });

  it.each([
    [`agent_control:${ECHO.id}`, ok],
    [`agent_rooms:${ECHO.id}`, ok],
    [`agent_contacts:${ECHO.id}`, ok],
    ['chat_room:ROOM', ok],
    ['room_participants:ROOM', ok],
    [`agent_control:${DICE.id}`, refused('unauthorized')],
    [`agent_rooms:${DICE.id}`, refused('unauthorized')],
    [`user_rooms:${DEMO_USER.id}`, refused('unauthorized')],
    [`user_contacts:${DEMO_USER.id}`, refused('unauthorized')],
    [`user_rooms:${ECHO.id}`, refused('unauthorized')],
    [`chat_room:${UNKNOWN}`, refused('unauthorized')],
    [`room_participants:${UNKNOWN}`, refused('unauthorized')],
    ['chat_room:OTHER', refused('unauthorized')],
    [`tasks:${DEMO_USER.id}`, refused('unmatched topic')],
    [`agent_dreams:${ECHO.id}`, refused('unmatched topic')],
    ['phoenix', refused('unmatched topic')],
    ['chat_room', refused('unmatched topic')],
  ])('of an agent on %s is answered', async (topic, answer) => {
    const { echo, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const other = await room(DICE.id);
    const socket = await echo.socket();
    expect(await socket.join(topic.replace('ROOM', roomId).replace('OTHER', other))).toEqual(answer);
  });

  it.each([
    [`user_rooms:${DEMO_USER.id}`, ok],
    [`user_contacts:${DEMO_USER.id}`, ok],
    ['chat_room:ROOM', ok],
    [`agent_control:${ECHO.id}`, refused('unauthorized')],
    [`agent_rooms:${DEMO_USER.id}`, refused('unauthorized')],
    [`user_rooms:${ECHO.id}`, refused('unauthorized')],
  ])('of a person on %s is answered', async (topic, answer) => {
    const { user, room } = await sandboxLab();
    const roomId = await room();
    const socket = await user.socket();
    expect(await socket.join(topic.replace('ROOM', roomId))).toEqual(answer);
  });
});

describe('pushes', () => {
  it('carry the join_ref of their channel and no ref', async () => {
    const { echo, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    socket.send('17', '17', `chat_room:${roomId}`, 'phx_join', {});
    await socket.settled();
    await say(roomId, 'hello', ECHO.id);
    const frame = await socket.frame(({ 3: event }) => event === 'message_created');
    expect(frame.slice(0, 3)).toEqual(['17', null, `chat_room:${roomId}`]);
    shape.messagePayloadShape.parse(frame[4]);
  });

  it('of a message go to the agents it mentions and to all people, the sender included', async () => {
    const { user, echo, dice, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const sockets = { user: await user.socket(), echo: await echo.socket(), dice: await dice.socket() };
    for (const socket of Object.values(sockets)) await socket.join(`chat_room:${roomId}`);
    const messageId = await say(roomId, 'hello', ECHO.id);
    await echo.post(`/chats/${roomId}/messages/${messageId}/processing`);
    await echo.post(`/chats/${roomId}/events`, { event: { content: 'hm', message_type: 'thought' } });
    const mentions = [{ id: DICE.id, kind: 'reference' }, { id: DEMO_USER.id }];
    await echo.post(`/chats/${roomId}/messages`, { message: { content: 'about dice', mentions } });
    await echo.post(`/chats/${roomId}/messages/${messageId}/processed`);
    for (const socket of Object.values(sockets)) await socket.settled();

    const events = (name: keyof typeof sockets) =>
      sockets[name].received.filter(([, ref]) => ref === null).map(([, , , event]) => event);
    expect(events('user')).toEqual([
      'message_created',
      'message_updated',
      'message_updated',
      'event_created',
      'message_created',
      'message_updated',
    ]);
    expect(events('echo')).toEqual(['message_created']);
    expect(events('dice')).toEqual([]);
    const states = sockets.user.received
      .filter(([, , , event]) => event === 'message_updated')
      .map(([, , , , payload]) => shape.messagePayloadShape.parse(payload).metadata.delivery_status?.[ECHO.id]?.status);
    expect(states).toEqual(['delivered', 'processing', 'processed']);
    shape.eventPayloadShape.parse(await sockets.user.push('event_created'));
  });

  it('tell of rooms, participants and deletion, the newcomer first', async () => {
    const { user, echo, dice, room } = await sandboxLab();
    const sockets = { user: await user.socket(), echo: await echo.socket(), dice: await dice.socket() };
    await sockets.user.join(`user_rooms:${DEMO_USER.id}`);
    await sockets.echo.join(`agent_rooms:${ECHO.id}`);
    await sockets.dice.join(`agent_rooms:${DICE.id}`);
    const roomId = await room(ECHO.id);
    expect(shape.roomAddedShape.parse(await sockets.user.push('room_added'))).toMatchObject({
      participant_role: 'owner',
      title: 'New chat',
    });
    expect(shape.roomAddedShape.parse(await sockets.echo.push('room_added'))).toMatchObject({
      id: roomId,
      owner: { id: DEMO_USER.id },
      participant_role: 'member',
    });
    for (const socket of [sockets.user, sockets.echo]) await socket.join(`room_participants:${roomId}`);

    await user.post(`/chats/${roomId}/participants`, { participant: { participant_id: DICE.id } });
    await sockets.dice.push('room_added');
    for (const socket of [sockets.user, sockets.echo]) {
      const added = shape.participantAddedShape.parse(await socket.push('participant_added'));
      expect(added).toMatchObject({ id: DICE.id, is_external: true, is_remote: true });
    }
    await user.delete(`/chats/${roomId}/participants/${DICE.id}`);
    expect(shape.roomRemovedShape.parse(await sockets.dice.push('room_removed')).id).toBe(roomId);
    const left = shape.participantRemovedShape.parse(await sockets.echo.push('participant_removed'));
    expect(left).toEqual({ id: DICE.id, name: 'Dice', type: 'Agent', handle: 'demo/dice' });

    await user.delete(`/chats/${roomId}`);
    for (const socket of [sockets.user, sockets.echo]) {
      expect(await socket.push('room_deleted')).toEqual({ id: roomId });
      shape.roomRemovedShape.parse(await socket.push('room_removed'));
      const events = socket.received.map(([, , , event]) => event);
      expect(events.indexOf('room_deleted')).toBeLessThan(events.lastIndexOf('room_removed'));
    }
  });

  it('stop with the membership, though the channel stays joined', async () => {
    const { user, echo, dice, room } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const socket = await echo.socket();
    await socket.join(`chat_room:${roomId}`);
    await socket.join(`room_participants:${roomId}`);
    await user.delete(`/chats/${roomId}/participants/${ECHO.id}`);
    const before = socket.received.length;
    await user.delete(`/chats/${roomId}/participants/${DICE.id}`);
    await user.post(`/chats/${roomId}/participants`, { participant: { participant_id: DICE.id } });
    await dice.post(`/chats/${roomId}/messages`, { message: { content: 'hi', mentions: [{ id: DEMO_USER.id }] } });
    await socket.settled();
    expect(socket.received.slice(before).map(([, , , event]) => event)).toEqual(['phx_reply']);
  });

  it('that were withheld are checked against the membership when they are sent', async () => {
    const { sandbox, user, echo, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    await socket.join(`chat_room:${roomId}`);
    sandbox.dev.faultPushes({ mode: 'withhold', principalId: ECHO.id, event: 'message_created', times: 2 });
    await say(roomId, 'one', ECHO.id);
    expect(sandbox.dev.releasePushes()).toBe(1);
    await say(roomId, 'two', ECHO.id);
    await user.delete(`/chats/${roomId}/participants/${ECHO.id}`);
    expect(sandbox.dev.releasePushes()).toBe(0);
    await socket.settled();
    expect(socket.received.filter(([, , , event]) => event === 'message_created')).toHaveLength(1);
  });

  it('of messages are not made to a stopped agent, and are not repeated after play', async () => {
    const { user, echo, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    await socket.join(`chat_room:${roomId}`);
    await user.post(`/chats/${roomId}/agents/stop`);
    const messageId = await say(roomId, 'hello', ECHO.id);
    await user.post(`/chats/${roomId}/agents/play`);
    await socket.settled();
    expect(socket.received.some(([, , , event]) => event === 'message_created')).toBe(false);
    expect((await echo.get(`/chats/${roomId}/messages/next`)).body).toMatchObject({ data: { id: messageId } });
  });

  it('are queued before the call that caused them is answered', async () => {
    const { echo } = await sandboxLab();
    const socket = await echo.socket();
    await socket.join(`agent_rooms:${ECHO.id}`);
    for (let n = 0; n < 20; n += 1) {
      await echo.post('/chats', {});
      await socket.settled();
      expect(socket.received.filter(([, , , event]) => event === 'room_added')).toHaveLength(n + 1);
    }
  });

  it('stay under 1 MiB, the limit of common readers, for the longest message that is accepted', async () => {
    const { user, room, sandbox } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const socket = await openRawSocket(`${sandbox.wsUrl}?api_key=${ECHO.apiKey}&vsn=2.0.0`);
    await socket.join(`chat_room:${roomId}`);
    const post = async (length: number) =>
      (
        await user.post(`/chats/${roomId}/messages`, {
          // JSON writes each of these as two bytes.
          message: { content: '"'.repeat(length), mentions: [{ id: ECHO.id }] },
        })
      ).status;
    let longest = 400_000;
    for (let step = 80_000; step >= 1; step = Math.floor(step / 2)) {
      if ((await post(longest + step)) === 201) longest += step;
    }
    expect(longest).toBeGreaterThan(500_000);
    const bytes = socket.received.map((frame) => Buffer.byteLength(JSON.stringify(frame)));
    expect(Math.max(...bytes)).toBeGreaterThan(2 * longest);
    expect(Math.max(...bytes)).toBeLessThan(1024 * 1024);
    await socket.close();
  });

  it('come in the order of insertion within a room', async () => {
    const { echo, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    await socket.join(`chat_room:${roomId}`);
    const posted = await Promise.all(Array.from({ length: 50 }, (_, n) => say(roomId, `message ${n}`, ECHO.id)));
    await socket.settled();
    const frames = socket.received.filter(([, , , event]) => event === 'message_created').map(([, , , , it]) => it);
    const times = frames.map(({ inserted_at: at }) => String(at));
    expect([...times].sort()).toEqual(times);
    expect(new Set(frames.map(({ id }) => id))).toEqual(new Set(posted));
  });
});

describe('a connection', () => {
  it('that is silent for 45 seconds is dropped without a close frame', async () => {
    const clock = createManualClock();
    const { sandbox, echo } = await sandboxLab({ clock });
    const socket = await echo.socket();
    await clock.advance(30_000);
    await socket.settled();
    await clock.advance(44_999);
    await socket.settled();
    await clock.advance(45_000);
    expect(await socket.closed).toBe(1006);
    expect(sandbox.dev.state().sockets).toEqual([]);
  });

  it('is kept alive by protocol pings, which are answered', async () => {
    const clock = createManualClock();
    const { echo } = await sandboxLab({ clock });
    const socket = await echo.socket();
    for (let n = 0; n < 3; n += 1) {
      const answered = new Promise((resolve) => socket.socket.once('pong', resolve));
      socket.socket.ping();
      await answered;
      await clock.advance(40_000);
    }
    await socket.settled();
  });

  it.each([
    ['{"topic":"phoenix"}'],
    ['[1,2,3]'],
    ['["1","1","phoenix","heartbeat",{},"more"]'],
    ['["1","1","","phx_join",{}]'],
    ['["1","1","phoenix","",{}]'],
    ['[1,"1","phoenix","heartbeat",{}]'],
    ['not json'],
    [''],
    ['null'],
  ])('that sends %j is closed with 1011', async (text) => {
    const { echo, user } = await sandboxLab();
    const socket = await echo.socket();
    socket.sendText(text);
    expect(await socket.closed).toBe(1011);
    expect((await user.get('/profile')).status).toBe(200);
  });

  it('never takes the platform down, whatever frames it sends', async () => {
    const { echo, user, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const text = fc.oneof(
      fc.constantFrom(CONTROL, `chat_room:${roomId}`, 'phoenix', 'phx_join', 'phx_leave', 'heartbeat', 'phx_close', ''),
      fc.string(),
    );
    const ref = fc.oneof(fc.constantFrom('1', '2', null), fc.string());
    const frame = fc.oneof(fc.tuple(ref, ref, text, text, fc.jsonValue()), fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 12 }), async (frames) => {
        const socket = await echo.socket();
        for (const one of frames) socket.sendText(JSON.stringify(one));
        socket.socket.close();
        expect([1000, 1011]).toContain(await socket.closed);
      }),
      { numRuns: 60 },
    );
    expect((await user.get('/profile')).status).toBe(200);
  });

  it('that sends bytes is closed with 1003, and more than 1 MiB with 1009', async () => {
    const { echo } = await sandboxLab();
    const bytes = await echo.socket();
    bytes.socket.send(Buffer.from('[]'));
    expect(await bytes.closed).toBe(1003);
    const large = await echo.socket();
    large.sendText('x'.repeat(1024 * 1024 + 1));
    expect(await large.closed).toBe(1009);
  });

  it('that a client closes is confirmed with 1000, whatever code it gave', async () => {
    const { sandbox, echo } = await sandboxLab();
    const socket = await echo.socket();
    socket.socket.close(4000, 'heartbeat');
    expect(await socket.closed).toBe(1000);
    await expect.poll(() => sandbox.dev.state().sockets.length).toBe(0);
  });

  it('that does not read is cut off before its backlog grows without bound', async () => {
    const { sandbox, echo, room, say } = await sandboxLab({ slowReaderBytes: 1024 * 1024 });
    const roomId = await room(ECHO.id);
    const socket = await echo.socket();
    await socket.join(`chat_room:${roomId}`);
    socket.socket.pause();
    for (let n = 0; n < 60 && sandbox.dev.state().sockets.length > 0; n += 1) {
      await say(roomId, 'x'.repeat(400_000), ECHO.id);
    }
    await expect.poll(() => sandbox.dev.state().sockets.length).toBe(0);
  });

  it('is told to come back with 1012 when the sandbox ends', async () => {
    const { sandbox, echo, user } = await sandboxLab();
    const sockets = [await echo.socket(), await user.socket()];
    const start = performance.now();
    await sandbox.close();
    expect(await Promise.all(sockets.map(({ closed }) => closed))).toEqual([1012, 1012]);
    expect(performance.now() - start).toBeLessThan(1_000);
  });
});

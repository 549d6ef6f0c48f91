import { afterEach, describe, expect, it } from 'vitest';
import { createHash } from 'node:crypto';
import { blockersOf } from '../../../bridges/a2a/bridge.js';
import { message } from '../../support/a2a/client.js';
import type { FakeRooms } from '../../support/a2a/fake-rooms.js';
import { GATEWAY, HELPER, JANE, refused, WEATHER } from '../../support/a2a/fake-rooms.js';
import { a2aLab, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';

let lab: A2ALab;
afterEach(() => lab.close());

describe('a send', () => {
  it('A-140 makes the calls of the exchange on the Band side, in order and byte for byte', async () => {
    lab = await a2aLab();
    const sent = lab.client.rpc('helper', 'SendMessage', message('Weather in Riga?', { messageId: 'm-1' }));
    await lab.posted(1);
    await lab.reply('21 °C and dry.');
    const { task } = (await sent).body.result;
    const owner = createHash('sha256').update('key:alpha').digest('hex').slice(0, 16);
    expect(lab.rooms.writes).toEqual([
      { call: 'POST /chats', body: { chat: {} } },
      {
        call: `POST /chats/${lab.roomId}/participants`,
        body: { participant: { participant_id: HELPER.id, role: 'member' } },
      },
      {
        call: `POST /chats/${lab.roomId}/events`,
        body: {
          event: {
            content: 'A2A gateway context',
            message_type: 'task',
            metadata: {
              gateway_context_id: task.contextId,
              gateway_room_id: lab.roomId,
              gateway_v: 1,
              gateway_task_id: task.id,
              gateway_message_id: 'm-1',
              gateway_peer_id: HELPER.id,
              gateway_owner: owner,
            },
          },
        },
      },
      {
        call: `POST /chats/${lab.roomId}/messages`,
        body: { message: { content: '@Helper Weather in Riga?', mentions: [{ id: HELPER.id, name: 'Helper' }] } },
      },
    ]);
  });

  it('A-141 answers at the first terminal or interrupted state, with all artifacts', async () => {
    lab = await a2aLab({ options: { completion: 'settle' } });
    const sent = lab.client.rpc('helper', 'SendMessage', message('two parts, please'));
    await lab.posted(1);
    await lab.reply('one');
    await lab.reply('two');
    await lab.clock.advance(300);
    const { task } = (await sent).body.result;
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.artifacts?.map(({ name, parts }) => [name, parts[0]?.text])).toEqual([
      ['reply', 'one'],
      ['reply-2', 'two'],
    ]);

    const asked = lab.client.rpc('helper', 'SendMessage', message('pay'));
    await lab.posted(2);
    await lab.reply('Which account?\n```a2a\n{"state":"input-required"}\n```');
    expect((await asked).body.result.task.status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { role: 'ROLE_AGENT', parts: [{ text: 'Which account?' }] },
    });
  });

  it('A-142 answers at once when asked to, however slow Band is', async () => {
    lab = await a2aLab();
    const release = lab.rooms.hold('createChat');
    const answer = await lab.client.rpc('helper', 'SendMessage', message('hi', {}, { returnImmediately: true }));
    expect(answer.body.result.task.status.state).toBe('TASK_STATE_SUBMITTED');
    release();
    await lab.posted(1);
  });

  it('A-143 opens a room per context, keeps a chosen context, and brings further peers into the same room', async () => {
    lab = await a2aLab();
    const contextOf = async (taskId: string, peer?: string) => (await lab.get(taskId, peer)).contextId;
    const first = await lab.submit('one', { contextId: 'trip-7' });
    await lab.posted(1);
    await lab.reply('ok');
    await lab.submit('two', { contextId: 'trip-7' });
    await lab.posted(2);
    expect(lab.rooms.rooms.size).toBe(1);
    expect(lab.rooms.countOf(/participants$/)).toBe(1);
    await lab.submit('three', { contextId: 'trip-7' }, 'weather-bot');
    await lab.posted(3);
    expect(lab.rooms.rooms.size).toBe(1);
    expect([...(lab.rooms.rooms.get(lab.roomId)?.members ?? [])]).toEqual([GATEWAY.id, HELPER.id, WEATHER.id]);
    const other = await lab.submit('four');
    await lab.posted(4);
    expect(lab.rooms.rooms.size).toBe(2);
    expect(await contextOf(first)).toBe('trip-7');
    expect(await contextOf(other)).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('A-156 titles a new room by its template, in one line of at most 120 characters', async () => {
    lab = await a2aLab({ options: { roomTitle: '{peer}: {context} {peer} {other}' } });
    await lab.submit('hi', { contextId: 'trip 7' });
    await lab.posted(1);
    await lab.submit('hi', { contextId: '😀'.repeat(150) });
    await lab.posted(2);
    lab.rooms.peers = [{ ...HELPER, name: 'Help\r\ner\u0000' }];
    await lab.clock.advance(60_000);
    await lab.submit('hi', { contextId: 'c' });
    await lab.posted(3);
    const titles = lab.rooms.writes
      .filter(({ call }) => call === 'POST /chats')
      .map(({ body }) => (body as { chat: { title: string } }).chat.title);
    expect(titles).toEqual([
      'Helper: trip 7 Helper {other}',
      `Helper: ${'😀'.repeat(112)}`,
      'Help er : c Help er  {other}',
    ]);
  });

  it('A-144 two first messages of one new context make one room', async () => {
    lab = await a2aLab();
    await Promise.all([lab.submit('a', { contextId: 'c' }), lab.submit('b', { contextId: 'c' }, 'weather-bot')]);
    await lab.posted(2);
    expect(lab.rooms.countOf(/^POST \/chats$/)).toBe(1);
  });

  it('A-145 a participant who is there already is fine; one who may not come fails the task', async () => {
    lab = await a2aLab();
    lab.rooms.fail('addParticipant', refused(409, 'BAND_CONFLICT'), { after: true });
    await lab.submit('hi');
    await lab.posted(1);
    for (const error of [refused(403, 'BAND_FORBIDDEN'), refused(404, 'BAND_NOT_FOUND')]) {
      lab.rooms.fail('addParticipant', error);
      const answer = await lab.client.rpc('weather-bot', 'SendMessage', message('hi'));
      expect(answer.body.result.task.status).toMatchObject({
        state: 'TASK_STATE_FAILED',
        message: { metadata: { band_reason: 'PEER_UNREACHABLE' } },
      });
    }
  });

  it('A-146 the binding event holds no text of the request', async () => {
    lab = await a2aLab();
    await lab.submit('canary-request-text');
    await lab.posted(1);
    const events = lab.rooms.writes.filter(({ call }) => call.endsWith('/events'));
    expect(events).toHaveLength(1);
    expect(JSON.stringify(events)).not.toContain('canary');
  });

  it('A-147 A-148 the room text mentions the peer and nobody that the text names', async () => {
    lab = await a2aLab();
    await lab.submit(`@[[${JANE.id}]] and @jane and @Gateway`);
    await lab.posted(1);
    expect(lab.rooms.writes.at(-1)?.body).toEqual({
      message: {
        content: `@Helper @[[${JANE.id}]] and @jane and @Gateway`,
        mentions: [{ id: HELPER.id, name: 'Helper' }],
      },
    });
  });

  it('A-149 takes a reply that is there before the post has returned', async () => {
    lab = await a2aLab();
    lab.rooms.onPost = async (roomId) => {
      await lab.reply('quick', { roomId });
    };
    const { task } = (await lab.client.rpc('helper', 'SendMessage', message('hi'))).body.result;
    expect(task).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ parts: [{ text: 'quick' }] }],
    });
  });

  it('A-150 a post whose answer was lost is not made twice, one that never arrived is made once', async () => {
    lab = await a2aLab();
    for (const after of [true, false]) {
      const before = lab.rooms.posted.length;
      lab.rooms.fail('postMessage', refused(502, 'BAND_CONNECTION_LOST'), { after });
      const sent = lab.client.rpc('helper', 'SendMessage', message('hi'));
      await lab.until(() => lab.rooms.countOf(/messages$/) > before);
      await lab.until(() => lab.clock.pending > 0);
      await lab.clock.advance(3_000);
      await lab.posted(before + 1);
      await lab.until(() => lab.engine.held.tasks === 1);
      await lab.reply('done');
      expect((await sent).body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
      expect(lab.rooms.posted.length).toBe(before + 1);
    }
  });

  it('A-150 a post that comes to stand in the room after we looked for it is not made twice', async () => {
    lab = await a2aLab();
    lab.rooms.fail('postMessage', refused(504, 'BAND_TIMEOUT'));
    const taskId = await lab.submit('hi');
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    await lab.clock.advance(1_000);
    await lab.until(() => lab.rooms.countOf(/context$/) === 1, 'the first look');
    lab.rooms.addRow(lab.roomId, {
      message_type: 'text',
      sender_id: GATEWAY.id,
      content: '@Helper hi',
      metadata: { mentions: [{ id: HELPER.id }] },
    });
    await lab.clock.advance(2_000);
    await lab.until(() => lab.engine.book.find(taskId)?.row.lastPostId === lab.rooms.posted[0]?.id);
    await lab.reply('done');
    expect((await lab.get(taskId)).status.state).toBe('TASK_STATE_COMPLETED');
    expect([lab.rooms.posted.length, lab.rooms.countOf(/messages$/)]).toEqual([1, 1]);
  });

  it('A-150 a marker whose answer was lost is not written twice', async () => {
    lab = await a2aLab();
    lab.rooms.fail('postEvent', refused(502, 'BAND_CONNECTION_LOST'), { after: true });
    await lab.submit('hi');
    await lab.until(() => lab.rooms.countOf(/events$/) === 1);
    await lab.clock.advance(1_000);
    await lab.posted(1);
    expect(lab.rooms.countOf(/events$/)).toBe(1);
  });

  it('A-151 waits as long as Band asks, then tries once more', async () => {
    lab = await a2aLab();
    lab.rooms.fail('postMessage', refused(429, 'BAND_RATE_LIMITED', 2_000));
    await lab.submit('hi');
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    await lab.clock.advance(1_999);
    expect(lab.rooms.countOf(/messages$/)).toBe(1);
    await lab.clock.advance(1);
    await lab.posted(1);
    expect(lab.rooms.countOf(/messages$/)).toBe(2);
  });

  it.each([
    ['BAND_INVALID', 422, 'BAND_REJECTED', 'postMessage'],
    ['BAND_ROOM_STOPPED', 403, 'GATEWAY_STOPPED', 'postEvent'],
    ['ROOM_LIMIT', 403, 'BAND_QUOTA', 'createChat'],
    ['BAND_UNAUTHORIZED', 401, 'BAND_UNAUTHORIZED', 'createChat'],
    ['BAND_NOT_FOUND', 404, 'ROOM_CLOSED', 'postMessage'],
  ] as const)(
    'A-151 A-158 %s ends the task with a fixed sentence and its reason',
    async (code, status, reason, method) => {
      lab = await a2aLab();
      lab.rooms.fail(method, refused(status, code), { times: 9 });
      const answer = await lab.client.rpc('helper', 'SendMessage', message('hi'));
      expect(answer.body.result.task.status).toMatchObject({
        state: 'TASK_STATE_FAILED',
        message: { metadata: { band_reason: reason } },
      });
      expect(answer.text).not.toContain('canary');
    },
  );

  it('A-151 Band out of order until the deadline ends the task as unavailable', async () => {
    lab = await a2aLab();
    lab.rooms.fail('postMessage', refused(503, 'BAND_UNAVAILABLE'), { times: 1_000 });
    const sent = lab.client.rpc('helper', 'SendMessage', message('hi'));
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    await lab.clock.advance(30_000);
    expect((await sent).body.result.task.status.message?.metadata).toEqual({ band_reason: 'BAND_UNAVAILABLE' });
  });

  it('A-153 refuses new work while Band has been away for 30 s, keeps reads, and recovers by itself', async () => {
    lab = await a2aLab({ options: { peers: { refreshSeconds: 5 } } });
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    lab.rooms.fail('listPeers', refused(503, 'BAND_UNREACHABLE'), { times: 1_000 });
    lab.rooms.fail('listChats', refused(503, 'BAND_UNREACHABLE'), { times: 1_000 });
    for (let i = 0; i < 8; i += 1) await lab.clock.advance(5_000);
    const refusedSend = await lab.client.rpc('helper', 'SendMessage', message('again'));
    expect(refusedSend.status).toBe(503);
    expect(refusedSend.headers.get('retry-after')).toBe('5');
    expect(refusedSend.body.error.data[0]?.reason).toBe('BAND_UNAVAILABLE');
    expect((await lab.get(taskId)).status.state).toBe('TASK_STATE_WORKING');
    expect((await lab.client.rpc('helper', 'ListTasks', {})).body.result.totalSize).toBe(1);
    lab.rooms.clearFaults();
    await lab.clock.advance(5_000);
    await lab.submit('once more');
    await lab.posted(2);
  });

  it('A-153 refuses new work 30 s after the socket was lost, though calls still work, and takes it again once it is back', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    lab.adapter.onConnection(false);
    await lab.clock.advance(20_000);
    lab.adapter.onConnection(false);
    await lab.clock.advance(9_999);
    await lab.submit('still');
    await lab.posted(2);
    await lab.clock.advance(1);
    const away = await lab.client.rpc('helper', 'SendMessage', message('again', { messageId: 'm-away' }));
    expect([away.status, away.headers.get('retry-after'), away.body.error.data[0]?.reason]).toEqual([
      503,
      '5',
      'BAND_UNAVAILABLE',
    ]);
    expect(lab.engine.held.tasks).toBe(2);
    expect((await lab.get(taskId)).status.state).toBe('TASK_STATE_WORKING');
    const since = lab.clock.now() - 30_000;
    expect(blockersOf(lab.adapter, lab.clock, 0)).toMatchObject([{ name: 'a2a.band', since }]);
    lab.adapter.onConnection(true);
    expect(blockersOf(lab.adapter, lab.clock, 0)).toEqual([]);
    await lab.submit('again', { messageId: 'm-away' });
    await lab.posted(3);
  });

  it('A-153 a platform that asks to slow down is not away', async () => {
    lab = await a2aLab({ options: { peers: { refreshSeconds: 5 } } });
    lab.rooms.fail('listPeers', refused(429, 'BAND_RATE_LIMITED'), { times: 1_000 });
    for (let i = 0; i < 8; i += 1) await lab.clock.advance(5_000);
    await lab.submit('hi');
    await lab.posted(1);
  });

  it('A-154 a room that is gone fails its open tasks, and the context gets another', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi', { contextId: 'c' });
    await lab.posted(1);
    const gone = lab.roomId;
    await lab.adapter.onCleanup(gone, { reason: 'room_deleted' });
    expect((await lab.get(taskId)).status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { metadata: { band_reason: 'ROOM_CLOSED' } },
    });
    await lab.submit('again', { contextId: 'c' });
    await lab.posted(2);
    expect(lab.roomId).not.toBe(gone);
  });

  it('A-155 a peer taken out of the room fails its running task and is added again by the next', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi', { contextId: 'c' });
    await lab.posted(1);
    await lab.until(async () => (await lab.get(taskId)).status.state === 'TASK_STATE_WORKING');
    lab.rooms.rooms.get(lab.roomId)?.members.delete(HELPER.id);
    await lab.adapter.onParticipants(lab.roomId, { kind: 'removed', id: HELPER.id });
    expect((await lab.get(taskId)).status.message?.metadata).toEqual({ band_reason: 'PEER_LEFT' });
    await lab.submit('again', { contextId: 'c' });
    await lab.posted(2);
    expect(lab.rooms.countOf(/participants$/)).toBe(2);
  });

  it('A-155 a peer that is taken out while the message is on its way fails the task too', async () => {
    lab = await a2aLab();
    await lab.submit('hi', { contextId: 'c' });
    await lab.posted(1);
    await lab.reply('ok');
    lab.rooms.onPost = (roomId) => lab.adapter.onParticipants(roomId, { kind: 'removed', id: HELPER.id });
    const sent = await lab.client.rpc('helper', 'SendMessage', message('again', { contextId: 'c' }));
    expect(sent.body.result.task.status.message?.metadata).toEqual({ band_reason: 'PEER_LEFT' });
    lab.rooms.onPost = null;
    await lab.submit('once more', { contextId: 'c' });
    await lab.posted(3);
    expect(lab.rooms.countOf(/participants$/)).toBe(2);
  });

  it('A-155 a peer whose leaving nobody saw is brought back before the next post', async () => {
    lab = await a2aLab();
    await lab.submit('hi', { contextId: 'c' });
    await lab.posted(1);
    await lab.reply('ok');
    lab.rooms.rooms.get(lab.roomId)?.members.delete(HELPER.id);
    await lab.submit('again', { contextId: 'c' });
    await lab.posted(2);
    expect(lab.rooms.countOf(/participants$/)).toBe(2);
  });
});

describe('a repeated messageId', () => {
  const waitFor = async (rooms: FakeRooms, count: number) => {
    await lab.until(() => rooms.posted.length === count);
  };

  it('A-224 finds the first task during and after it, in every way of asking, and posts once', async () => {
    lab = await a2aLab();
    const params = message('create the invoice', { messageId: 'm-idem' });
    const first = lab.client.rpc('helper', 'SendMessage', params);
    await waitFor(lab.rooms, 1);
    const second = lab.client.rpc('helper', 'SendMessage', params);
    const third = await lab.client.rpc('helper', 'SendMessage', {
      ...params,
      configuration: { returnImmediately: true },
    });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', params);
    const legacy = lab.client.rpc(
      'helper',
      'message/send',
      {
        message: {
          kind: 'message',
          messageId: 'm-idem',
          role: 'user',
          parts: [{ kind: 'text', text: 'create the invoice' }],
        },
      },
      { version: null },
    );
    const rest = lab.client.request('POST', '/agents/helper/message:send', params);
    await lab.until(() => (lab.engine.book.find(third.body.result.task.id)?.watchers.size ?? 0) >= 5);
    await lab.reply('invoice 7 created');
    const id = third.body.result.task.id;
    expect((await first).body.result.task.id).toBe(id);
    expect((await second).body.result.task).toMatchObject({
      id,
      artifacts: [{ parts: [{ text: 'invoice 7 created' }] }],
    });
    expect((await legacy).body.result).toMatchObject({ kind: 'task', id });
    expect((await rest).body.task.id).toBe(id);
    expect((await stream.rest()).map((event) => Object.keys(event.result)[0])).toEqual([
      'task',
      'artifactUpdate',
      'statusUpdate',
    ]);
    const after = await lab.client.rpc('helper', 'SendMessage', params);
    expect(after.body.result.task.id).toBe(id);
    const again = await lab.restarted();
    expect((await again.client.rpc('helper', 'SendMessage', params)).body.result.task.id).toBe(id);
    await again.close();
    expect(lab.rooms.posted).toHaveLength(1);
    expect(lab.rooms.rooms.size).toBe(1);
  });

  it('A-225 other content under the same id is refused; other principals and peers are independent', async () => {
    lab = await a2aLab();
    await lab.submit('one', { messageId: 'm-1' });
    await waitFor(lab.rooms, 1);
    const refusedRpc = await lab.client.rpc('helper', 'SendMessage', message('two', { messageId: 'm-1' }));
    expect(refusedRpc.body.error).toMatchObject({
      code: -32602,
      message: 'This messageId was already used for a different message',
      data: [{ reason: 'MESSAGE_ID_REUSED', domain: 'band-gateway', metadata: { messageId: 'm-1' } }],
    });
    const rest = await lab.client.request('POST', '/agents/helper/message:send', message('two', { messageId: 'm-1' }));
    expect(rest.status).toBe(409);
    const other = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    const now = { returnImmediately: true };
    await other.rpc('helper', 'SendMessage', message('two', { messageId: 'm-1' }, now));
    await lab.submit('two', { messageId: 'm-1' }, 'weather-bot');
    await waitFor(lab.rooms, 3);
    expect(lab.rooms.rooms.size).toBe(3);
  });

  it('A-226 fifty copies at once make one task', async () => {
    lab = await a2aLab();
    const params = message('once', { messageId: 'm-50' }, { returnImmediately: true });
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => lab.client.rpc('helper', 'SendMessage', params)),
    );
    expect(new Set(answers.map(({ body }) => body.result.task.id)).size).toBe(1);
    await waitFor(lab.rooms, 1);
    expect(lab.engine.held.tasks).toBe(1);
  });

  it('A-227 after the window the id is free again', async () => {
    lab = await a2aLab({ options: { idempotency: { windowSeconds: 60 } } });
    const first = await lab.submit('hi', { messageId: 'm-1' });
    await waitFor(lab.rooms, 1);
    await lab.reply('ok');
    await lab.clock.advance(60_000);
    expect(await lab.submit('hi', { messageId: 'm-1' })).not.toBe(first);
  });

  it('A-229 a send that was refused leaves no trace', async () => {
    lab = await a2aLab();
    const refusedSend = await lab.client.rpc('helper', 'SendMessage', message('  ', { messageId: 'm-1' }));
    expect(refusedSend.body.error.code).toBe(-32602);
    await lab.submit('other text', { messageId: 'm-1' });
    await waitFor(lab.rooms, 1);
  });
});

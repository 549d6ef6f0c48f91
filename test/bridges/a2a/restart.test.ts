import { afterEach, describe, expect, it } from 'vitest';
import { ownerTag } from '../../../bridges/a2a/engine/records.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { message } from '../../support/a2a/client.js';
import { FakeRooms, GATEWAY, HELPER } from '../../support/a2a/fake-rooms.js';
import { a2aLab, KEY, type A2ALab } from '../../support/a2a/lab.js';

const ASK = '\n```a2a\n{"state":"input-required"}\n```';
const ROOM = 'cccccccc-cccc-4ccc-8ccc-cccccccccccc';

describe('a gateway that starts on the store of an earlier one', () => {
  const labs: A2ALab[] = [];
  afterEach(async () => {
    for (const lab of labs.splice(0)) {
      const closed = lab.close();
      for (let n = 0; n < 12; n += 1) await lab.clock.advance(1_000);
      await closed;
    }
  });
  const open = async (options: Parameters<typeof a2aLab>[0] = {}) => {
    const lab = await a2aLab(options);
    labs.push(lab);
    return lab;
  };
  const restart = async (lab: A2ALab, options: Parameters<A2ALab['restarted']>[0] = {}) => {
    await lab.close();
    labs.splice(labs.indexOf(lab), 1);
    const again = await lab.restarted(options);
    labs.push(again);
    return again;
  };
  const state = async (lab: A2ALab, taskId: string) => (await lab.get(taskId)).status.state;

  it('A-320 reads every task as it was, and each open one goes on to its end', async () => {
    const options = { options: { onTimeout: 'park', responseTimeoutMs: 60_000 } } as const;
    let lab = await open(options);
    const ended = await lab.submit('ended', { contextId: 'e' });
    await lab.posted(1);
    await lab.reply('done');
    const parked = await lab.submit('parked', { contextId: 'p' });
    await lab.posted(2);
    await lab.until(async () => (await state(lab, parked)) === 'TASK_STATE_WORKING');
    await lab.clock.advance(60_000);
    await lab.until(async () => (await state(lab, parked)) === 'TASK_STATE_INPUT_REQUIRED');
    const asked = await lab.submit('asked', { contextId: 'a' });
    await lab.posted(3);
    await lab.reply(`Which?${ASK}`, { roomId: lab.rooms.posted.at(-1)!.roomId });
    const posted = await lab.submit('posted', { contextId: 'w' });
    await lab.posted(4);
    await lab.until(async () => (await state(lab, posted)) === 'TASK_STATE_WORKING');
    const queued = await lab.submit('queued', { contextId: 'w' });
    const all = [ended, parked, asked, posted, queued];
    const before = await Promise.all(all.map((id) => lab.get(id)));
    lab = await restart(lab);
    expect(await Promise.all(all.map((id) => lab.get(id)))).toEqual(before);
    const rooms = new Map(lab.rooms.posted.map(({ content, roomId }) => [content.replace('@Helper ', ''), roomId]));
    await lab.reply('posted done', { roomId: rooms.get('posted')! });
    await lab.posted(5);
    await lab.reply('queued done', { roomId: rooms.get('posted')! });
    await lab.reply('parked done', { roomId: rooms.get('parked')! });
    await lab.submit('this one', { taskId: asked });
    await lab.posted(6);
    await lab.until(() => lab.engine.book.find(asked)?.row.posted === 2);
    await lab.reply('asked done', { roomId: rooms.get('asked')! });
    for (const id of all) expect(await state(lab, id)).toBe('TASK_STATE_COMPLETED');
    expect(lab.rooms.posted).toHaveLength(6);
  });

  /** A process that ends in the middle of its post: Band's answer never reaches it. */
  const cutOff = async () => {
    const lab = await open();
    lab.rooms.hold('postMessage');
    const taskId = await lab.submit('x', { contextId: 'c' });
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    return { lab, taskId };
  };
  const successor = async (lab: A2ALab) => {
    const again = await lab.restarted({ rooms: lab.rooms.reborn() });
    labs.push(again);
    return again;
  };

  it('A-321 a request that Band took before the record of it was kept is not posted again', async () => {
    const { lab, taskId } = await cutOff();
    lab.rooms.addRow(lab.roomId, {
      message_type: 'text',
      sender_id: GATEWAY.id,
      content: '@Helper x',
      metadata: { mentions: [{ id: HELPER.id }] },
    });
    const again = await successor(lab);
    await again.until(async () => (await state(again, taskId)) === 'TASK_STATE_WORKING');
    expect(again.rooms.writes).toEqual([]);
    await again.reply('done');
    expect(await state(again, taskId)).toBe('TASK_STATE_COMPLETED');
  });

  it('A-321 a request whose marker stands in the room without its text is posted once, without a second marker', async () => {
    const { lab, taskId } = await cutOff();
    const again = await successor(lab);
    await again.posted(1);
    expect(again.rooms.writes.map(({ call }) => call)).toEqual([
      // Whether the peer is there was not on record yet; that it is, is fine.
      `POST /chats/${again.roomId}/participants`,
      `POST /chats/${again.roomId}/messages`,
    ]);
    await again.reply('done');
    expect(await state(again, taskId)).toBe('TASK_STATE_COMPLETED');
  });

  it('A-322 a reply that was written while nobody was there is taken', async () => {
    let lab = await open();
    const taskId = await lab.submit('x');
    await lab.posted(1);
    lab = await restart(lab);
    await lab.reply('while you were away');
    expect((await lab.get(taskId)).artifacts?.[0]?.parts[0]?.text).toBe('while you were away');
  });

  it('A-173 a reply that is delivered again after the restart makes no second artifact, and is no answer to the next', async () => {
    let lab = await open();
    const first = await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    const id = await lab.reply('answer one');
    const second = await lab.submit('two', { contextId: 'c' });
    await lab.posted(2);
    lab = await restart(lab);
    await lab.reply('answer one', { id });
    expect((await lab.get(first)).artifacts).toHaveLength(1);
    expect((await lab.get(second)).artifacts).toBeUndefined();
    await lab.reply('answer two');
    expect((await lab.get(second)).artifacts?.[0]?.parts[0]?.text).toBe('answer two');
  });

  it('A-181 what a lane owes is remembered', async () => {
    let lab = await open({ options: { cancelNotice: 'none' } });
    const first = await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    await lab.until(async () => (await state(lab, first)) === 'TASK_STATE_WORKING');
    await lab.client.rpc('helper', 'CancelTask', { id: first });
    const second = await lab.submit('two', { contextId: 'c' });
    lab = await restart(lab);
    await lab.reply('late answer to one');
    expect(await state(lab, second)).toBe('TASK_STATE_SUBMITTED');
    await lab.clock.advance(5_000);
    await lab.posted(2);
  });

  it('A-324 a context whose task waits for longer than ended tasks are kept keeps its room', async () => {
    const options = { options: { tasks: { ttlSeconds: 100_000, retentionSeconds: 10 }, responseTimeoutMs: null } };
    let lab = await open(options);
    const asked = await lab.submit('pay', { contextId: 'c' });
    await lab.posted(1);
    await lab.reply(`Which?${ASK}`);
    for (let n = 0; n < 3; n += 1) await lab.clock.advance(60_000);
    lab = await restart(lab);
    await lab.submit('the main one', { taskId: asked });
    await lab.posted(2);
    expect(lab.rooms.rooms.size).toBe(1);
  });

  it('A-323 timers go on from stored times', async () => {
    let lab = await open({ options: { responseTimeoutMs: 60_000 } });
    const taskId = await lab.submit('x');
    await lab.posted(1);
    await lab.until(async () => (await state(lab, taskId)) === 'TASK_STATE_WORKING');
    await lab.clock.advance(50_000);
    lab = await restart(lab);
    await lab.clock.advance(9_999);
    expect(await state(lab, taskId)).toBe('TASK_STATE_WORKING');
    await lab.clock.advance(1);
    await lab.until(async () => (await state(lab, taskId)) === 'TASK_STATE_FAILED');
  });

  it('A-324 a context keeps its room; with the store gone it is found again by its binding, for its owner alone', async () => {
    let lab = await open();
    await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    await lab.reply('ok');
    lab = await restart(lab);
    await lab.submit('two', { contextId: 'c' });
    await lab.posted(2);
    await lab.reply('ok');
    expect(lab.rooms.rooms.size).toBe(1);
    lab = await restart(lab, { store: createMemoryStore(lab.clock) });
    await lab.submit('three', { contextId: 'c' });
    await lab.posted(3);
    expect(lab.rooms.rooms.size).toBe(1);
    const beta = lab.client.as({ headers: { 'x-api-key': 'test-token-beta' } });
    await beta.rpc('helper', 'SendMessage', message('x', { contextId: 'c' }, { returnImmediately: true }));
    await lab.posted(4);
    expect(lab.rooms.rooms.size).toBe(2);
  });

  it('A-324 a send for an unknown context waits for the search of the rooms, and opens none when it takes too long', async () => {
    const rooms = new FakeRooms();
    rooms.addRoom(ROOM);
    rooms.hold('listChats');
    const lab = await open({ rooms });
    const sent = lab.client.rpc('helper', 'SendMessage', message('x', { contextId: 'c' }));
    const fresh = await lab.submit('no context');
    expect(fresh).toBeDefined();
    await lab.until(() => lab.clock.pending > 3);
    for (let n = 0; n < 31; n += 1) await lab.clock.advance(1_000);
    const answer = await sent;
    expect([answer.status, answer.body.error.data[0]?.reason]).toEqual([503, 'NOT_READY']);
  });

  const boundBy = (metadata: Record<string, unknown>, sender: string = GATEWAY.id) => {
    const rooms = new FakeRooms();
    rooms.addRoom(ROOM, [HELPER.id]);
    rooms.addRow(ROOM, { message_type: 'task', sender_id: sender, content: 'A2A gateway context', metadata });
    return rooms;
  };
  const reference = { gateway_context_id: 'c', gateway_room_id: ROOM };
  const single = { apiKeys: [{ name: 'alpha', key: KEY }] };

  it.each([
    ['of the reference, with one principal', boundBy(reference), single, true],
    ['of the reference, with several', boundBy(reference), undefined, false],
    ['with this owner', boundBy({ ...reference, gateway_owner: ownerTag('key:alpha') }), undefined, true],
    ['with another owner', boundBy({ ...reference, gateway_owner: ownerTag('key:beta') }), single, false],
    ['that somebody else wrote', boundBy(reference, HELPER.id), single, false],
    ['that names another room', boundBy({ ...reference, gateway_room_id: 'elsewhere' }), single, false],
  ])('A-325 a binding %s', async (_name, rooms, auth, isFound) => {
    const lab = await open({ rooms, options: { ...(auth && { auth }) } });
    await lab.submit('x', { contextId: 'c' });
    await lab.posted(1);
    expect(lab.rooms.posted[0]?.roomId === ROOM).toBe(isFound);
  });

  it('a person who answers hours after a restart ends the task', async () => {
    let lab = await open({ options: { responseTimeoutMs: null } });
    const taskId = await lab.submit('approve this');
    await lab.posted(1);
    lab = await restart(lab);
    const stream = await lab.client.stream('helper', 'SubscribeToTask', { id: taskId });
    await stream.next();
    await lab.clock.advance(5 * 3_600_000 - 1);
    await lab.until(() => (lab.engine.book.find(taskId)?.watchers.size ?? 0) <= 1);
    await lab.reply('approved');
    expect(await state(lab, taskId)).toBe('TASK_STATE_COMPLETED');
  });
});

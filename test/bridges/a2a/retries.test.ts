import { afterEach, describe, expect, it } from 'vitest';
import { sweep } from '../../../bridges/a2a/engine/sweep.js';
import { recordKeys } from '../../../bridges/a2a/engine/records.js';
import { GatewayError } from '../../../src/base/errors.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore, StoreChange } from '../../../src/store/port.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { message } from '../../support/a2a/client.js';
import { GATEWAY, refused } from '../../support/a2a/fake-rooms.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const NOW = { returnImmediately: true };
const ASK = '\n```a2a\n{"state":"input-required"}\n```';
const DOWN = refused(503, 'BAND_UNAVAILABLE');

let lab: A2ALab;
afterEach(() => lab.close());

const state = async (taskId: string, at = lab) => (await at.get(taskId)).status.state;
const reason = async (taskId: string) => (await lab.get(taskId)).status.message?.metadata?.['band_reason'];
const failed = (taskId: string) => lab.until(async () => (await state(taskId)) === 'TASK_STATE_FAILED', 'the failure');
const working = (taskId: string) => lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING', 'the post');

describe('a request that Band did not take', () => {
  it('A-224 gives its messageId back when nothing of it can stand in a room: the repeat is a new try, posted once', async () => {
    lab = await a2aLab();
    for (const method of ['createChat', 'listChats'] as const) lab.rooms.fail(method, DOWN, { times: 1_000 });
    const first = await lab.submit('pay invoice 7', { messageId: 'm-1' });
    await lab.until(() => lab.rooms.countOf(/^POST \/chats$/) === 1);
    await lab.clock.advance(30_000);
    await failed(first);
    expect(await reason(first)).toBe('BAND_UNAVAILABLE');
    lab.rooms.clearFaults();
    // Who is sent away because Band was gone for long has the gateway look whether it is back.
    const away = await lab.client.rpc('helper', 'SendMessage', message('something else', {}, NOW));
    expect(away.body.error.data[0]?.reason).toBe('BAND_UNAVAILABLE');
    await lab.until(() => !lab.adapter.gateway.health.refuses);
    const copies = await Promise.all(
      Array.from({ length: 20 }, () =>
        lab.client.rpc('helper', 'SendMessage', message('pay invoice 7', { messageId: 'm-1' }, NOW)),
      ),
    );
    const [second, ...others] = new Set(copies.map(({ body }) => body.result.task.id));
    expect(others).toEqual([]);
    expect(second).not.toBe(first);
    await lab.posted(1);
    await lab.reply('paid');
    expect(await state(second!)).toBe('TASK_STATE_COMPLETED');
    expect(await state(first)).toBe('TASK_STATE_FAILED');
    const again = await lab.client.rpc('helper', 'SendMessage', message('pay invoice 7', { messageId: 'm-1' }));
    expect(again.body.result.task.id).toBe(second);
    expect(lab.rooms.posted).toHaveLength(1);
  });

  it('A-224 takes the new try with the same words only', async () => {
    lab = await a2aLab();
    lab.rooms.fail('createChat', refused(403, 'ROOM_LIMIT'));
    const first = await lab.submit('one', { messageId: 'm-1' });
    await failed(first);
    const other = await lab.client.rpc('helper', 'SendMessage', message('two', { messageId: 'm-1' }, NOW));
    expect(other.body.error.data[0]?.reason).toBe('MESSAGE_ID_REUSED');
    expect(await lab.submit('one', { messageId: 'm-1' })).not.toBe(first);
    await lab.posted(1);
  });

  it('A-224 keeps its messageId when the post may have arrived, so that nothing runs twice', async () => {
    lab = await a2aLab();
    lab.rooms.fail('postMessage', refused(502, 'BAND_CONNECTION_LOST'), { after: true });
    lab.rooms.fail('getContext', DOWN, { times: 1_000 });
    const first = await lab.submit('pay', { messageId: 'm-1' });
    await lab.posted(1);
    await lab.until(() => lab.clock.pending > 3);
    await lab.clock.advance(30_000);
    await failed(first);
    lab.rooms.clearFaults();
    expect(await lab.submit('pay', { messageId: 'm-1' })).toBe(first);
    expect(lab.rooms.posted).toHaveLength(1);
  });

  it('A-224 A-321 keeps it too when an earlier process may have posted it and nobody could look', async () => {
    lab = await a2aLab();
    lab.rooms.hold('postMessage');
    const first = await lab.submit('pay', { messageId: 'm-1', contextId: 'c' });
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    const dead = lab;
    const rooms = dead.rooms.reborn();
    rooms.fail('getContext', DOWN, { times: 1_000 });
    lab = await dead.restarted({ rooms, clock: createManualClock(dead.clock.now()) });
    await lab.until(() => lab.rooms.countOf(/context/) > 0);
    await lab.clock.advance(30_000);
    await failed(first);
    lab.rooms.clearFaults();
    expect(await lab.submit('pay', { messageId: 'm-1', contextId: 'c' })).toBe(first);
    expect(lab.rooms.posted).toHaveLength(0);
    const stopped = dead.close();
    await dead.clock.advance(10_000);
    await stopped;
  });

  it('A-181 owes the answer to a post that may have arrived: it is not taken for the next one’s', async () => {
    lab = await a2aLab();
    lab.rooms.fail('postMessage', refused(502, 'BAND_CONNECTION_LOST'), { after: true });
    lab.rooms.fail('getContext', DOWN, { times: 1_000 });
    const first = await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    const second = await lab.submit('two', { contextId: 'c' });
    await lab.until(() => lab.clock.pending > 3);
    await lab.clock.advance(30_000);
    await failed(first);
    lab.rooms.clearFaults();
    await lab.reply('answer to one');
    expect(await state(second)).toBe('TASK_STATE_SUBMITTED');
    await lab.clock.advance(5_000);
    await lab.posted(2);
    await lab.reply('answer to two');
    expect((await lab.get(second)).artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(['answer to two']);
  });

  it('A-224 keeps its messageId when the room closes while the post is under way, and gives it back when it only waits', async () => {
    lab = await a2aLab();
    lab.rooms.hold('postMessage');
    const under = await lab.submit('one', { messageId: 'm-1', contextId: 'c' });
    const waits = await lab.submit('two', { messageId: 'm-2', contextId: 'c' });
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    await lab.adapter.onCleanup(lab.roomId, { reason: 'room_deleted' });
    expect([await reason(under), await reason(waits)]).toEqual(['ROOM_CLOSED', 'ROOM_CLOSED']);
    expect(await lab.submit('one', { messageId: 'm-1', contextId: 'c' })).toBe(under);
    expect(await lab.submit('two', { messageId: 'm-2', contextId: 'c' })).not.toBe(waits);
    const stopped = lab.close();
    await lab.clock.advance(10_000);
    await stopped;
  });

  it('A-321 a look that fails after a restart is made again, and the request goes on', async () => {
    lab = await a2aLab();
    lab.rooms.hold('postMessage');
    const taskId = await lab.submit('pay', { contextId: 'c' });
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    const dead = lab;
    const rooms = dead.rooms.reborn();
    rooms.fail('getContext', DOWN);
    lab = await dead.restarted({ rooms, clock: createManualClock(dead.clock.now()) });
    await lab.until(() => lab.rooms.countOf(/context/) > 0);
    await lab.clock.advance(1_000);
    await lab.posted(1);
    await lab.reply('paid');
    expect(await state(taskId)).toBe('TASK_STATE_COMPLETED');
    const stopped = dead.close();
    await dead.clock.advance(10_000);
    await stopped;
  });

  it('A-149 A-321 an answer that comes before that look is taken, and the request is not posted again', async () => {
    lab = await a2aLab();
    const release = lab.rooms.hold('postMessage');
    const taskId = await lab.submit('pay', { contextId: 'c' });
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    const dead = lab;
    const rooms = dead.rooms.reborn();
    const look = rooms.hold('getContext');
    lab = await dead.restarted({ rooms, clock: createManualClock(dead.clock.now()) });
    await lab.until(() => lab.rooms.countOf(/context/) > 0);
    await lab.reply('paid', { roomId: dead.roomId });
    expect(await state(taskId)).toBe('TASK_STATE_COMPLETED');
    look();
    await lab.until(() => lab.engine.held.lanes === 0);
    expect(lab.rooms.posted).toEqual([]);
    const stopped = dead.close();
    await dead.clock.advance(10_000);
    await stopped;
    release();
  });

  it('A-210 is not posted any more once it was cancelled while Band made it wait', async () => {
    lab = await a2aLab();
    lab.rooms.fail('postMessage', refused(429, 'BAND_RATE_LIMITED', 2_000));
    const taskId = await lab.submit('pay', { contextId: 'c' });
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    await lab.client.rpc('helper', 'CancelTask', { id: taskId });
    await lab.clock.advance(5_000);
    expect(await state(taskId)).toBe('TASK_STATE_CANCELED');
    const next = await lab.submit('another', { contextId: 'c' });
    await lab.posted(1);
    expect(lab.rooms.posted.map(({ content }) => content)).toEqual(['@Helper another']);
    await lab.reply('done');
    expect(await state(next)).toBe('TASK_STATE_COMPLETED');
  });

  it('A-227 of fifty copies after the window one makes a task, and clearing up old claims leaves the new one', async () => {
    lab = await a2aLab({ options: { idempotency: { windowSeconds: 30 } } });
    const first = await lab.submit('hi', { messageId: 'm-1' });
    await lab.posted(1);
    await lab.reply('ok');
    await lab.clock.advance(30_000);
    const copies = await Promise.all(
      Array.from({ length: 50 }, () =>
        lab.client.rpc('helper', 'SendMessage', message('hi', { messageId: 'm-1' }, NOW)),
      ),
    );
    const ids = new Set(copies.map(({ body }) => body.result.task.id));
    expect([ids.size, ids.has(first)]).toEqual([1, false]);
    await lab.posted(2);
    // The old claim's time is over, the new one's is not.
    await lab.clock.advance(1);
    await sweep({
      store: lab.store,
      keys: recordKeys(`a2a/${GATEWAY.id}/`),
      book: lab.engine.book,
      clock: lab.clock,
      log: { warn: () => undefined } as never,
      retentionMs: 604_800_000,
      windowMs: 30_000,
    });
    expect(ids.has(await lab.submit('hi', { messageId: 'm-1' }))).toBe(true);
    expect(lab.rooms.posted).toHaveLength(2);
  });
});

describe('a room that is found closed by a post', () => {
  it('A-154 fails all that was asked in it, and a context that has another room by then keeps it', async () => {
    lab = await a2aLab();
    const asked = await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    await working(asked);
    lab.rooms.rooms.delete(lab.roomId);
    const found = await lab.submit('two', { contextId: 'c' }, 'weather-bot');
    await lab.until(async () => (await lab.get(found, 'weather-bot')).status.state === 'TASK_STATE_FAILED');
    await failed(asked);
    expect(await reason(asked)).toBe('ROOM_CLOSED');
    const next = await lab.submit('three', { contextId: 'c' });
    await lab.posted(1);
    await lab.adapter.onCleanup('cccccccc-0000-4000-8000-000000000001', { reason: 'room_deleted' });
    await lab.reply('still here');
    expect(await state(next)).toBe('TASK_STATE_COMPLETED');
  });

  it('A-154 a late word of the old room does not take the new one away from a running task', async () => {
    lab = await a2aLab();
    await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    await lab.reply('ok');
    const old = lab.roomId;
    const release = lab.rooms.hold('postMessage');
    const late = await lab.submit('two', { contextId: 'c' }, 'weather-bot');
    await lab.until(() => lab.rooms.countOf(/messages$/) === 2);
    await lab.adapter.onCleanup(old, { reason: 'room_deleted' });
    lab.rooms.rooms.delete(old);
    expect((await lab.get(late, 'weather-bot')).status.state).toBe('TASK_STATE_FAILED');
    const next = await lab.submit('three', { contextId: 'c' });
    await lab.until(() => lab.rooms.countOf(/messages$/) === 3);
    release();
    await lab.posted(1);
    await working(next);
    await lab.reply('done', { roomId: lab.roomId });
    expect(await state(next)).toBe('TASK_STATE_COMPLETED');
    expect(lab.roomId).not.toBe(old);
  });
});

describe('a write that failed and reached the disk all the same', () => {
  /** A store that carries out the batches that `isLie` picks, and says that it did not. */
  const lying = () => {
    const store = createMemoryStore();
    const lie: { about: ((changes: readonly StoreChange[]) => boolean) | null } = { about: null };
    const guarded: StateStore = {
      ...store,
      batch: async (changes) => {
        const revision = await store.batch(changes);
        if (!lie.about?.(changes)) return revision;
        lie.about = null;
        throw new GatewayError('STORE_IO');
      },
    };
    return { lie, guarded };
  };
  const isNewTask = (changes: readonly StoreChange[]) => changes.some(({ key }) => key.includes('/o/'));
  const isClaim = (changes: readonly StoreChange[]) => changes.some(({ key }) => key.includes('/i/'));

  it('A-229 a new task is found and goes on; the client’s repeat waits for it', async () => {
    const { lie, guarded } = lying();
    lab = await a2aLab({ store: guarded });
    lie.about = isNewTask;
    const told = await lab.client.rpc('helper', 'SendMessage', message('pay', { messageId: 'm-1' }));
    expect([told.status, told.body.error.data[0]?.reason]).toEqual([503, 'STORE_UNAVAILABLE']);
    const repeat = lab.client.rpc('helper', 'SendMessage', message('pay', { messageId: 'm-1' }));
    await lab.posted(1);
    await lab.until(() => [...lab.engine.book.openTasks()].some(({ watchers }) => watchers.size > 0));
    await lab.reply('paid');
    expect((await repeat).body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(lab.rooms.posted).toHaveLength(1);
    expect(lab.engine.held.tasks).toBe(0);
  });

  it('A-220 a further message is found and posted', async () => {
    const { lie, guarded } = lying();
    lab = await a2aLab({ store: guarded });
    const taskId = await lab.submit('pay');
    await lab.posted(1);
    await lab.reply(`Which account?${ASK}`);
    lie.about = isClaim;
    const answer = message('the main one', { taskId, messageId: 'm-2' });
    expect((await lab.client.rpc('helper', 'SendMessage', answer)).status).toBe(503);
    const repeat = lab.client.rpc('helper', 'SendMessage', answer);
    await lab.posted(2);
    await lab.until(() => lab.engine.book.find(taskId)?.row.posted === 2);
    await lab.reply('Paid.');
    expect((await repeat).body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(lab.rooms.posted).toHaveLength(2);
  });

  const isReply = (changes: readonly StoreChange[]) => changes.some(({ key }) => key.includes('/l/'));

  it('A-173 A-201 a reply is found: it shows once, and the quiet after it still ends the answer', async () => {
    const { lie, guarded } = lying();
    lab = await a2aLab({ store: guarded, options: { completion: 'settle' } });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('pay'));
    await stream.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    lie.about = isReply;
    const taken = lab.reply('paid');
    await lab.until(() => lab.lines.some(({ msg }) => String(msg).includes('the store refused a step')));
    await lab.clock.advance(100);
    await taken;
    await lab.clock.advance(300);
    const events = await stream.rest();
    expect(
      events.map(({ result }) => result.artifactUpdate?.artifact.name ?? result.statusUpdate.status.state),
    ).toEqual(['reply', 'TASK_STATE_COMPLETED']);
  });

  it('A-201 A-205 a question is found: the lane goes on with the next task', async () => {
    const { lie, guarded } = lying();
    lab = await a2aLab({ store: guarded });
    const asked = await lab.submit('pay', { contextId: 'c' });
    await lab.posted(1);
    await working(asked);
    const next = await lab.submit('the weather?', { contextId: 'c' });
    lie.about = isReply;
    const taken = lab.reply(`Which?${ASK}`);
    await lab.until(() => lab.lines.some(({ msg }) => String(msg).includes('the store refused a step')));
    await lab.clock.advance(100);
    await taken;
    expect(await state(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
    await lab.posted(2);
    await lab.reply('sunny');
    expect([await state(next), await state(asked)]).toEqual(['TASK_STATE_COMPLETED', 'TASK_STATE_INPUT_REQUIRED']);
    expect((await lab.get(asked)).history).toHaveLength(1);
  });

  it('A-207 a cancel is found, and whoever waits is told', async () => {
    const { lie, guarded } = lying();
    lab = await a2aLab({ store: guarded });
    const blocked = lab.client.rpc('helper', 'SendMessage', message('pay'));
    await lab.posted(1);
    const [task] = [...lab.engine.book.openTasks()];
    lie.about = (changes) => changes.some(({ key }) => key.includes('/d/'));
    expect((await lab.client.rpc('helper', 'CancelTask', { id: task!.row.id })).status).toBe(503);
    expect((await blocked).body.result.task.status.state).toBe('TASK_STATE_CANCELED');
  });
});

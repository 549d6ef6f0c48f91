import { afterEach, describe, expect, it } from 'vitest';
import { GatewayError } from '../../../src/base/errors.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore } from '../../../src/store/port.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { FakeRooms, GATEWAY, HELPER, JANE, refused } from '../../support/a2a/fake-rooms.js';
import { a2aLab, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';

const LOST = refused(502, 'BAND_CONNECTION_LOST');

let lab: A2ALab;
afterEach(() => lab.close());

const made = () => lab.rooms.countOf(/^POST \/chats$/);
const roomOf = (text: string) => lab.rooms.posted.find(({ content }) => content === `@Helper ${text}`)?.roomId;

/** Whose answer to a call was lost looks before it calls again: a room counts for ever, and nothing deletes one. */
describe('a room whose making was not answered', () => {
  it('A-150 is found and used', async () => {
    lab = await a2aLab();
    lab.rooms.fail('createChat', LOST, { after: true });
    await lab.submit('hi', { contextId: 'c' });
    await lab.until(() => made() === 1);
    await lab.clock.advance(1_000);
    await lab.posted(1);
    await lab.reply('done');
    await lab.submit('again', { contextId: 'c' });
    await lab.posted(2);
    expect([made(), lab.rooms.rooms.size, roomOf('again')]).toEqual([1, 1, roomOf('hi')]);
  });

  it('A-150 is made again when there is none', async () => {
    lab = await a2aLab();
    lab.rooms.fail('createChat', LOST);
    await lab.submit('hi');
    await lab.until(() => made() === 1);
    await lab.clock.advance(1_000);
    await lab.posted(1);
    expect([made(), lab.rooms.rooms.size]).toEqual([2, 1]);
  });

  it('A-150 is not looked for where Band said that it made none', async () => {
    lab = await a2aLab();
    lab.rooms.addRoom('cccccccc-0000-4000-8000-00000000000a');
    lab.rooms.fail('createChat', refused(429, 'BAND_RATE_LIMITED'));
    await lab.submit('hi');
    await lab.until(() => made() === 1);
    await lab.clock.advance(1_000);
    await lab.posted(1);
    expect([made(), lab.rooms.countOf(/participants$/)]).toEqual([2, 1]);
  });

  it('A-087 A-150 is no room with somebody in it, with a word in it, of another day, or of another context', async () => {
    const rooms = new FakeRooms();
    const clock = createManualClock();
    rooms.now = () => clock.now();
    rooms.addRoom('cccccccc-0000-4000-8000-00000000000a');
    await clock.advance(600_000);
    lab = await a2aLab({ rooms, clock });
    rooms.addRoom('cccccccc-0000-4000-8000-00000000000b', [JANE.id]);
    rooms.addRow('cccccccc-0000-4000-8000-00000000000c', { message_type: 'task', sender_id: GATEWAY.id });
    // Another principal's room is bound and still empty.
    const release = rooms.hold('addParticipant');
    const beta = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    await beta.rpc('helper', 'SendMessage', {
      message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'of beta' }] },
      configuration: { returnImmediately: true },
    });
    await lab.until(() => rooms.countOf(/^POST .*participants$/) === 1);
    const before = [...rooms.rooms.keys()];
    rooms.fail('createChat', LOST);
    await lab.submit('of alpha');
    await lab.until(() => made() === 2);
    await lab.clock.advance(1_000);
    await lab.until(() => made() === 3);
    release();
    await lab.posted(2);
    expect(before).not.toContain(roomOf('of alpha'));
    expect(roomOf('of beta')).toBe(before.at(-1));
  });

  it('A-087 A-150 is none that another context is about to be told of', async () => {
    const rooms = new FakeRooms();
    let answer = (): void => undefined;
    const rest = {
      ...rooms.rest,
      createChat: async (...asked: Parameters<typeof rooms.rest.createChat>) => {
        const room = await rooms.rest.createChat(...asked);
        if (made() === 2) await new Promise<void>((resolve) => (answer = resolve));
        return room;
      },
    };
    lab = await a2aLab({ rooms, ports: { rest } });
    rooms.fail('createChat', LOST);
    await lab.submit('one');
    await lab.until(() => made() === 1);
    await lab.submit('two');
    await lab.until(() => rooms.rooms.size === 1);
    await lab.clock.advance(1_000);
    await lab.until(() => rooms.countOf(/^GET .*participants$/) === 1, 'the look at the other room');
    answer();
    await lab.posted(2);
    expect([made(), rooms.rooms.size, roomOf('one') === roomOf('two')]).toEqual([3, 2, false]);
  });

  it('A-150 two that look at the same time do not take the same one', async () => {
    lab = await a2aLab();
    lab.rooms.fail('createChat', LOST, { after: true, times: 2 });
    await Promise.all([lab.submit('one'), lab.submit('two')]);
    await lab.until(() => made() === 2);
    const release = lab.rooms.hold('listParticipants');
    await lab.clock.advance(1_000);
    await lab.until(() => lab.rooms.countOf(/^GET .*participants$/) > 0);
    release();
    await lab.posted(2);
    expect([made(), lab.rooms.rooms.size, roomOf('one') === roomOf('two')]).toEqual([2, 2, false]);
  });

  it('A-321 A-327 is found by the next process, when this one stopped dead before it heard of it', async () => {
    const rooms = new FakeRooms();
    const rest = {
      ...rooms.rest,
      createChat: async (...asked: Parameters<typeof rooms.rest.createChat>) => {
        await rooms.rest.createChat(...asked);
        return new Promise<never>(() => undefined);
      },
    };
    lab = await a2aLab({ rooms, ports: { rest } });
    const taskId = await lab.submit('hi');
    await lab.until(() => rooms.rooms.size === 1);
    const dead = lab;
    lab = await dead.restarted({ rooms: rooms.reborn(), clock: createManualClock(dead.clock.now()), ports: {} });
    await lab.posted(1);
    await lab.reply('done', { roomId: dead.roomId, from: HELPER.id });
    expect((await lab.get(taskId)).status.state).toBe('TASK_STATE_COMPLETED');
    expect([made(), lab.rooms.rooms.size]).toEqual([0, 1]);
    const stopped = dead.close();
    for (let n = 0; n < 4; n += 1) await dead.clock.advance(10_000);
    await stopped;
  });

  it('A-153 is bound once the store takes writes again, and the task goes on', async () => {
    const store = createMemoryStore();
    let isFull = false;
    const guarded: StateStore = {
      ...store,
      batch: (changes) => (isFull ? Promise.reject(new GatewayError('STORE_TRIPPED')) : store.batch(changes)),
    };
    lab = await a2aLab({ store: guarded });
    const release = lab.rooms.hold('createChat');
    await lab.submit('hi', { contextId: 'c' });
    await lab.until(() => made() === 1);
    isFull = true;
    release();
    await lab.until(() => lab.lines.some(({ msg }) => String(msg).includes('the store refused a step')));
    isFull = false;
    await lab.clock.advance(1_000);
    await lab.posted(1);
    expect(lab.rooms.rooms.size).toBe(1);
  });
});

import { Agent } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Bindings, type ThreadFacts } from '../../../../bridges/slack/inbound/bindings.js';
import { boundThread, scanRooms } from '../../../../bridges/slack/inbound/room-scan.js';
import { deferred } from '../../../../src/base/async.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { systemClock, type Clock } from '../../../../src/base/clock.js';
import { silentLogger } from '../../../../src/base/log.js';
import type { BandRest } from '../../../../src/platform/rest/band-rest.js';
import { createRestClient } from '../../../../src/platform/rest/rest-client.js';
import { DEMO, startSandbox } from '../../../../src/sandbox/index.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import type { StateStore } from '../../../../src/store/port.js';

const signal = new AbortController().signal;
const thread = (more: Partial<ThreadFacts> = {}): ThreadFacts => ({
  slug: 'main',
  team: 'T1',
  channel: 'C1',
  threadTs: '1.1',
  enterpriseId: null,
  channelType: 'channel',
  userId: 'U1',
  askedAt: Date.now(),
  ...more,
});

const setUp = async () => {
  const sandbox = await startSandbox({ port: 0 });
  onTestFinished(() => sandbox.close());
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.close());
  const rest = createRestClient({ restUrl: sandbox.restUrl, apiKey: DEMO.helpdesk.apiKey, dispatcher });
  const store = createMemoryStore();
  const open = (more: { store?: StateStore; rest?: BandRest; rescan?: boolean; clock?: Clock } = {}) =>
    Bindings.open({
      prefix: 'slack/x/bindings',
      clock: systemClock,
      log: silentLogger,
      store,
      rest,
      rescan: false,
      closing: signal,
      ...more,
    });
  const rooms = async () => (await rest.listChats({ pageSize: 100 })).data.length;
  return { rest, store, open, rooms };
};

describe('Bindings', () => {
  it('S-073 a scan goes through as many rooms as there are, four at a time', async () => {
    const count = 5_230;
    const listed: number[] = [];
    const rest = {
      listChats: ({ page = 1 } = {}) => {
        listed.push(page);
        const ids = Array.from({ length: 100 }, (_, index) => (page - 1) * 100 + index).filter((id) => id < count);
        const data = ids.map((id) => ({ id: `room-${id}`, inserted_at: new Date(id * 1_000).toISOString() }));
        return Promise.resolve({ data, page, pageSize: 100, totalPages: Math.ceil(count / 100), totalCount: count });
      },
      getContext: (room: string) =>
        Promise.resolve({
          data: [
            {
              message_type: 'task',
              metadata: { slack_app_slug: 'main', slack_channel_id: 'C1', slack_thread_ts: `${room.slice(5)}.1` },
            },
          ],
          hasMore: false,
          nextCursor: null,
        }),
    } as unknown as BandRest;
    let read = 0;
    const found: string[] = [];
    for await (const { roomId } of scanRooms(rest, signal, { onRead: (rooms) => (read += rooms) })) found.push(roomId);
    expect([listed.length, read, found.length, found[0], found.at(-1)]).toEqual([
      53,
      count,
      count,
      'room-5229',
      'room-0',
    ]);
  });

  it('S-073 a room that goes while it is looked for hides no other', async () => {
    const { open, rest } = await setUp();
    const made = await open();
    await made.open(thread(), signal);
    const { binding } = await made.open(thread({ threadTs: '2.2' }), signal);
    const without = {
      ...rest,
      getContext: (room: string, options?: object) =>
        room === binding.roomId ? Promise.reject(new GatewayError('BAND_NOT_FOUND')) : rest.getContext(room, options),
    };
    const again = await open({ store: createMemoryStore(), rest: without });
    expect(await again.look(thread(), signal)).not.toBeNull();
    expect(again.size).toBe(1);
  });

  it('S-105 a channel that is out of reach is known as such, also after a restart, until something comes from it', async () => {
    const { open, store } = await setUp();
    const bindings = await open();
    await bindings.open(thread(), signal);
    await bindings.open(thread({ threadTs: '2.2' }), signal);
    await bindings.markUnreachable(thread());
    await bindings.markUnreachable(thread({ threadTs: '2.2' }));
    expect(bindings.unreachable()).toMatchObject([{ slug: 'main', channel: 'C1' }]);
    const again = await open({ store });
    expect(again.unreachable()).toHaveLength(1);
    expect(again.find(thread())).not.toBeNull();
    await again.markReached(thread());
    await again.markReached(thread({ threadTs: '2.2' }));
    expect(again.unreachable()).toEqual([]);
    expect((await open({ store })).unreachable()).toEqual([]);
  });

  it('S-074 opens a room with an event that names the thread, in the reference’s keys and ours', async () => {
    const { open, rest } = await setUp();
    const { binding, isNew } = await (await open()).open(thread(), signal);
    expect(isNew).toBe(true);
    const [row] = (await rest.getContext(binding.roomId)).data;
    expect(row).toMatchObject({ message_type: 'task', content: 'Slack thread context' });
    expect(row?.metadata).toEqual({
      slack_app_slug: 'main',
      slack_channel_id: 'C1',
      slack_thread_ts: '1.1',
      slack_user_id: 'U1',
      slack_room_id: binding.roomId,
      slack_team_id: 'T1',
      slack_enterprise_id: null,
      slack_channel_type: 'channel',
      slack_binding_version: 1,
    });
  });

  it('S-073 goes on looking for bound rooms when one who waits for it gives up', async () => {
    const { open, rest } = await setUp();
    const { binding } = await (await open()).open(thread(), signal);
    const gate = deferred();
    let listings = 0;
    const slow: BandRest = {
      ...rest,
      async listChats(options) {
        listings += 1;
        await Promise.race([gate.promise, new Promise((_ok, no) => options?.signal?.addEventListener('abort', no))]);
        return await rest.listChats(options);
      },
    };
    const bindings = await open({ store: createMemoryStore(), rest: slow });
    const hasty = new AbortController();
    const first = bindings.open(thread(), hasty.signal);
    const second = bindings.open(thread(), signal);
    hasty.abort(new Error('too slow'));
    await expect(first).rejects.toThrow('too slow');
    gate.resolve();
    expect((await second).binding.roomId).toBe(binding.roomId);
    expect(listings).toBe(1);
  });

  it('S-076 makes one room for the concurrent first messages of a thread, and two for one thread id on two apps', async () => {
    const { open, rooms } = await setUp();
    const bindings = await open();
    const opened = await Promise.all(Array.from({ length: 8 }, () => bindings.open(thread(), signal)));
    expect(new Set(opened.map(({ binding }) => binding.roomId)).size).toBe(1);
    expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1);
    await bindings.open(thread({ slug: 'other' }), signal);
    await bindings.open(thread({ team: 'T2' }), signal);
    expect(await rooms()).toBe(3);
  });

  it('S-072 finds the room of a known thread after a restart', async () => {
    const { open, rooms } = await setUp();
    const { binding } = await (await open()).open(thread(), signal);
    const again = await open();
    expect((await again.open(thread(), signal)).binding.roomId).toBe(binding.roomId);
    expect(again.ofRoom(binding.roomId)?.thread).toMatchObject({ channel: 'C1', threadTs: '1.1' });
    expect(await rooms()).toBe(1);
  });

  it('S-073 finds it with an empty data directory too, before the first message is answered', async () => {
    const { open, rooms } = await setUp();
    const first = await open();
    const { binding } = await first.open(thread(), signal);
    for (let i = 0; i < 6; i += 1) await first.open(thread({ threadTs: `2.${i}` }), signal);
    const cold = await open({ store: createMemoryStore() });
    expect((await cold.open(thread(), signal)).binding.roomId).toBe(binding.roomId);
    expect(cold.size).toBe(7);
    expect(await rooms()).toBe(7);
  });

  it.each([
    ['createChat', 'right', 0],
    ['postEvent', 'right', 0],
    ['createChat', 'an hour fast', 3_600_000],
    ['postEvent', 'an hour fast', 3_600_000],
  ] as const)(
    'S-075 has one bound room for a thread when %s was the last thing before a crash, by a clock that is %s',
    async (step, _how, aheadMs) => {
      const { rest, rooms, ...lab } = await setUp();
      const clock = { ...systemClock, now: () => Date.now() + aheadMs };
      const open = (more: { rest?: BandRest } = {}) => lab.open({ clock, ...more });
      const crashing: BandRest = {
        ...rest,
        [step]: async (...args: unknown[]) => {
          await (rest[step] as (...all: unknown[]) => Promise<unknown>)(...args);
          throw new Error('the process died here');
        },
      };
      await expect((await open({ rest: crashing })).open(thread(), signal)).rejects.toThrow('died here');
      const again = await open();
      const { binding } = await again.open(thread(), signal);
      const bound = [];
      for await (const found of scanRooms(rest, signal)) bound.push(found.roomId);
      expect(bound).toEqual([binding.roomId]);
      expect(await rooms()).toBe(step === 'createChat' ? 2 : 1);
    },
  );

  it('S-041 goes on where a failed opening ended', async () => {
    const { open, rest, rooms } = await setUp();
    let failures = 3;
    const flaky: BandRest = {
      ...rest,
      createChat: (...args) => (failures-- > 0 ? Promise.reject(new Error('down')) : rest.createChat(...args)),
    };
    const bindings = await open({ rest: flaky });
    for (let i = 0; i < 3; i += 1) await expect(bindings.open(thread(), signal)).rejects.toThrow('down');
    await bindings.open(thread(), signal);
    expect(await rooms()).toBe(1);
  });

  it('S-079 takes over a room that the reference opened, whatever the team, and never replaces a live binding', async () => {
    const { open, rest } = await setUp();
    const reference = { slack_app_slug: 'main', slack_channel_id: 'C1', slack_thread_ts: '1.1', slack_user_id: 'U1' };
    const { id: roomId } = await rest.createChat();
    const write = (metadata: Record<string, unknown>, messageType: 'task' | 'thought' = 'task') =>
      rest.postEvent(roomId, { content: 'x', messageType, metadata });
    await write({ ...reference, slack_thread_ts: '0.1' });
    await write(reference);
    await write({ ...reference, slack_thread_ts: '9.9' }, 'thought');
    const bindings = await open();
    expect((await bindings.open(thread(), signal)).binding.roomId).toBe(roomId);
    await bindings.rehydrate({ roomId, thread: { slug: 'main', team: 'T1', channel: 'C9', threadTs: '9.9' } });
    expect(bindings.ofRoom(roomId)?.thread).toMatchObject({ channel: 'C1' });
  });

  it('makes a new room for a thread whose room is gone', async () => {
    const { open, rooms } = await setUp();
    const bindings = await open();
    const { binding } = await bindings.open(thread(), signal);
    await bindings.forget(binding);
    expect(bindings.ofRoom(binding.roomId)).toBeNull();
    expect(bindings.find(thread())).toBeNull();
    // It is still a thread of the agent, also after a restart, and no other is.
    for (const some of [bindings, await open()]) {
      expect(some.isBound(thread())).toBe(true);
      expect(some.isBound({ ...thread(), threadTs: '7.7' })).toBe(false);
    }
    expect((await bindings.open(thread(), signal)).binding.roomId).not.toBe(binding.roomId);
    expect(await rooms()).toBe(2);
  });
});

describe('boundThread', () => {
  it('S-079 reads tasks only, and the last that names a thread', () => {
    expect(boundThread([{ messageType: 'thought', metadata: { slack_app_slug: 'a' } }])).toBeNull();
    expect(boundThread([{ messageType: 'task', metadata: null }])).toBeNull();
    expect(boundThread([])).toBeNull();
  });
});

import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../src/base/errors.js';
import { topics } from '../../src/platform/topics.js';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';

const ROOM = 'room-1';
const wire = (id: string) => ({ id, inserted_at: '', updated_at: '' });

async function started(rooms: readonly string[], options: AgentLabOptions = {}): Promise<AgentLab> {
  const lab = agentLab(options);
  for (const room of rooms) lab.band.addRoom(room);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

const live = (lab: AgentLab) => [...(lab.agent.runtime.rooms?.rooms.keys() ?? [])];

describe('rooms at the start', () => {
  it('R-163 R-090 every room is joined that the agent is already in, whatever autoSubscribeExistingRooms says', async () => {
    const lab = await started(['a', 'b'], { agent: { config: { autoSubscribeExistingRooms: false } } });
    expect(live(lab)).toEqual(['a', 'b']);
    for (const room of ['a', 'b']) {
      expect(lab.band.link.joined.has(topics.chatRoom(room))).toBe(true);
      expect(lab.band.link.joined.has(topics.participants(room))).toBe(true);
    }
  });

  it('R-164 reads the listing a hundred rooms at a time and merges it by id', async () => {
    const lab = await started(Array.from({ length: 230 }, (_, n) => `room-${n}`));
    expect(live(lab)).toHaveLength(230);
    expect(lab.band.called('listChats').map(({ body }) => body)).toEqual([1, 2, 3]);
  });

  it('R-164 reads fifty pages at most', async () => {
    const lab = agentLab();
    let pages = 0;
    lab.band.rest.listChats = (options) => {
      pages += 1;
      const page = options?.page ?? 1;
      return Promise.resolve({ data: [], page, pageSize: 100, totalCount: 10_000, totalPages: 100 });
    };
    await lab.agent.start();
    expect(pages).toBe(50);
  });

  it('a listing that fails is repeated in the background and does not fail the start', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    lab.band.fail('listChats');
    await lab.agent.start();
    await lab.settle();
    expect(live(lab)).toEqual([]);
    await lab.clock.advance(2_000);
    await lab.settle();
    expect(live(lab)).toEqual([ROOM]);
  });

  it('R-165 a room named by listing and room_added is joined once and gets one session', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    const starting = lab.agent.start();
    const listing = lab.band.hold('listChats');
    await listing.met;
    lab.band.link.push({ kind: 'room_added', roomId: ROOM, room: wire(ROOM) });
    await lab.settle();
    listing.release();
    await starting;
    await lab.settle();
    expect(lab.band.link.joins.filter((topic) => topic === topics.chatRoom(ROOM))).toHaveLength(1);
    expect(lab.band.called('nextMessage')).toHaveLength(1);
  });
});

describe('rooms that come and go', () => {
  it('R-166 room_added joins the room, and what waits there is answered', async () => {
    const lab = await started([]);
    lab.band.addRoom('new');
    lab.band.post('new', 'waiting', { push: false });
    lab.band.link.push({ kind: 'room_added', roomId: 'new', room: wire('new') });
    await lab.settle();
    expect(lab.handled).toEqual(['waiting']);
  });

  for (const kind of ['room_removed', 'room_deleted'] as const) {
    it(`R-167 ${kind} leaves both channels, ends the running cycle at once and cleans up`, async () => {
      const cleaned: unknown[] = [];
      const lab = agentLab({
        onTurn: ({ signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              reject(signal.reason as Error);
            });
          }),
      });
      lab.adapter.onCleanup = (roomId, context) => {
        cleaned.push([roomId, context?.reason]);
        return Promise.resolve();
      };
      lab.band.addRoom(ROOM);
      await lab.agent.start();
      const id = lab.band.post(ROOM, 'slow');
      await lab.settle();
      lab.band.link.push(kind === 'room_removed' ? { kind, roomId: ROOM, room: wire(ROOM) } : { kind, roomId: ROOM });
      await lab.settle();
      expect(lab.turns[0]!.signal.aborted).toBe(true);
      expect(cleaned).toEqual([[ROOM, kind]]);
      expect(lab.band.link.leaves).toEqual([topics.chatRoom(ROOM), topics.participants(ROOM)]);
      expect(live(lab)).toEqual([]);
      expect(lab.band.state(ROOM, id)).toBe('processing');
    });
  }

  it('R-167 both events for one room clean up once', async () => {
    let cleaned = 0;
    const lab = await started([ROOM]);
    lab.adapter.onCleanup = () => {
      cleaned += 1;
      return Promise.resolve();
    };
    lab.band.link.push({ kind: 'room_deleted', roomId: ROOM });
    lab.band.link.push({ kind: 'room_removed', roomId: ROOM, room: wire(ROOM) });
    await lab.settle();
    expect(cleaned).toBe(1);
  });

  it('R-167 a room that is taken away while it is being joined gets no session, and its channels are left', async () => {
    const lab = await started([]);
    lab.band.addRoom('brief');
    lab.band.link.push({ kind: 'room_added', roomId: 'brief', room: wire('brief') });
    lab.band.link.push({ kind: 'room_removed', roomId: 'brief', room: wire('brief') });
    await lab.settle();
    expect(live(lab)).toEqual([]);
    expect(lab.band.called('nextMessage')).toEqual([]);
    expect(lab.band.link.joined.has(topics.chatRoom('brief'))).toBe(false);
    expect(lab.band.link.joined.has(topics.participants('brief'))).toBe(false);
  });

  it('R-170 events of rooms that are not joined are ignored', async () => {
    const lab = await started([]);
    lab.band.addRoom('elsewhere');
    lab.band.link.push({
      kind: 'participant_added',
      roomId: 'elsewhere',
      participant: { id: 'p', name: 'P', type: 'User' },
    });
    lab.band.link.push({ kind: 'room_removed', roomId: 'elsewhere', room: wire('elsewhere') });
    await lab.settle();
    expect(lab.lines.filter(({ level }) => level >= 40)).toEqual([]);
  });

  it('a room whose removal was never told is left once the platform does not know it any more', async () => {
    const lab = await started([ROOM, 'other']);
    lab.band.rooms.delete(ROOM);
    await lab.clock.advance(61_000);
    await lab.settle();
    expect(live(lab)).toEqual(['other']);
    expect(lab.band.link.leaves).toContain(topics.chatRoom(ROOM));
  });

  it('an outage is one line in the log, however many rooms meet it, and its end another', async () => {
    const lab = await started(Array.from({ length: 50 }, (_, n) => `room-${n}`));
    lab.band.fail('nextMessage', { times: 50 });
    await lab.clock.advance(60_000);
    expect(lab.lines.filter(({ level }) => level === 40)).toHaveLength(1);
    await lab.clock.advance(60_000);
    expect(lab.lines.filter(({ msg }) => msg.includes('can be asked for missed messages again'))).toHaveLength(1);
  });

  it('R-168 R-169 a room that cannot be joined is retried and does not disturb the others', async () => {
    const lab = agentLab();
    lab.band.addRoom('bad');
    lab.band.addRoom('good');
    const createLink = lab.band.createLink.bind(lab.band);
    lab.band.createLink = () => {
      const link = createLink();
      link.refuse(topics.participants('bad'), 2);
      return link;
    };
    await lab.agent.start();
    await lab.settle();
    expect(live(lab)).toEqual(['good']);
    expect(lab.band.link.leaves).toContain(topics.chatRoom('bad'));
    lab.band.post('bad', 'unheard');
    await lab.clock.advance(5_000);
    await lab.settle();
    expect(live(lab)).toEqual(['good', 'bad']);
    expect(lab.handled).toEqual(['unheard']);
  });

  it('R-169 a room that refuses the join because it is gone is forgotten', async () => {
    const lab = await started([]);
    const link = lab.band.link;
    link.refuse(
      topics.chatRoom('gone'),
      9,
      new GatewayError('BAND_JOIN_REFUSED', { details: { reason: 'unauthorized' } }),
    );
    link.push({ kind: 'room_added', roomId: 'gone', room: wire('gone') });
    await lab.settle();
    await lab.clock.advance(600_000);
    expect(link.joins.filter((topic) => topic === topics.chatRoom('gone'))).toHaveLength(1);
  });

  it('R-174 a rejoin waits for the end of the session before', async () => {
    const order: string[] = [];
    let cleanedUp!: () => void;
    const lab = await started([ROOM]);
    lab.adapter.onCleanup = async () => {
      order.push('cleanup begins');
      await new Promise<void>((resolve) => (cleanedUp = resolve));
      order.push('cleanup ends');
    };
    lab.band.link.push({ kind: 'room_removed', roomId: ROOM, room: wire(ROOM) });
    lab.band.link.push({ kind: 'room_added', roomId: ROOM, room: wire(ROOM) });
    lab.band.post(ROOM, 'hello', { push: false });
    await lab.settle();
    expect(lab.handled).toEqual([]);
    cleanedUp();
    await lab.settle();
    expect(order).toEqual(['cleanup begins', 'cleanup ends']);
    expect(lab.handled).toEqual(['hello']);
  });

  it('R-175 a failed cleanup is repeated without stopping the session again', async () => {
    let calls = 0;
    const lab = await started([ROOM]);
    lab.adapter.onCleanup = () => {
      calls += 1;
      return calls === 1 ? Promise.reject(new Error('not yet')) : Promise.resolve();
    };
    lab.band.link.push({ kind: 'room_removed', roomId: ROOM, room: wire(ROOM) });
    await lab.settle();
    expect(calls).toBe(1);
    lab.band.link.push({ kind: 'room_added', roomId: ROOM, room: wire(ROOM) });
    await lab.settle();
    expect(calls).toBe(2);
    expect(live(lab)).toEqual([ROOM]);
  });
});

describe('after a reconnect', () => {
  it('R-171 vanished rooms are left, new ones joined, surviving ones resynchronised', async () => {
    const lab = await started(['stays', 'vanishes']);
    lab.band.link.drop();
    lab.band.rooms.delete('vanishes');
    lab.band.addRoom('arrives');
    lab.band.post('stays', 'missed', { push: false });
    lab.band.link.reconnect();
    await lab.settle();
    expect(live(lab).sort()).toEqual(['arrives', 'stays']);
    expect(lab.handled).toEqual(['missed']);
    expect(lab.band.link.leaves).toContain(topics.chatRoom('vanishes'));
  });

  it('R-171 a room that the listing skipped is not left', async () => {
    const lab = await started(['a', 'b']);
    const listChats = lab.band.rest.listChats.bind(lab.band.rest);
    lab.band.rest.listChats = async (options) => {
      const page = await listChats(options);
      return { ...page, data: page.data.filter(({ id }) => id !== 'b') };
    };
    lab.band.link.drop();
    lab.band.link.reconnect();
    await lab.settle();
    expect(live(lab)).toEqual(['a', 'b']);
  });

  it('R-172 every live room resynchronises even when the listing fails', async () => {
    const lab = await started(['a', 'b']);
    lab.band.fail('listChats');
    lab.band.link.drop();
    lab.band.post('a', 'one', { push: false });
    lab.band.post('b', 'two', { push: false });
    lab.band.link.reconnect();
    await lab.settle();
    expect([...lab.handled].sort()).toEqual(['one', 'two']);
  });

  it('R-173 makes one look per room, and not all at the same time', async () => {
    const rooms = Array.from({ length: 200 }, (_, n) => `room-${n}`);
    const lab = await started(rooms);
    let open = 0;
    let most = 0;
    const nextMessage = lab.band.rest.nextMessage.bind(lab.band.rest);
    lab.band.rest.nextMessage = async (roomId, options) => {
      open += 1;
      most = Math.max(most, open);
      await new Promise((resolve) => setImmediate(resolve));
      open -= 1;
      return nextMessage(roomId, options);
    };
    lab.band.calls.length = 0;
    lab.band.link.drop();
    lab.band.link.reconnect();
    for (let turn = 0; turn < 5; turn += 1) await lab.settle();
    expect(lab.band.called('nextMessage')).toHaveLength(200);
    expect(most).toBeLessThanOrEqual(64);
    expect(lab.band.calls.filter(({ method }) => method !== 'nextMessage' && method !== 'listChats')).toEqual([]);
  });

  it('a channel that the link gave up is joined again, and the room looks for what it missed', async () => {
    const lab = await started([ROOM]);
    lab.band.link.joined.delete(topics.chatRoom(ROOM));
    lab.band.post(ROOM, 'missed');
    lab.band.link.push({
      kind: 'topic_lost',
      topic: topics.chatRoom(ROOM),
      roomId: ROOM,
      error: new GatewayError('BAND_JOIN_REFUSED'),
    });
    await lab.clock.advance(2_000);
    await lab.settle();
    expect(lab.handled).toEqual(['missed']);
    expect(lab.band.link.joined.has(topics.chatRoom(ROOM))).toBe(true);
  });

  it("the agent's own channel is joined again, and the rooms are listed", async () => {
    const lab = await started([]);
    const topic = topics.rooms(lab.agent.runtime.agentId);
    lab.band.link.joined.delete(topic);
    lab.band.addRoom('arrived meanwhile');
    lab.band.link.push({ kind: 'topic_lost', topic, roomId: null, error: new GatewayError('BAND_JOIN_REFUSED') });
    await lab.clock.advance(2_000);
    await lab.settle();
    expect(lab.band.link.joined.has(topic)).toBe(true);
    expect(live(lab)).toEqual(['arrived meanwhile']);
  });

  it('an overflow of the link makes the room look for itself', async () => {
    const lab = await started([ROOM]);
    lab.band.post(ROOM, 'dropped', { push: false });
    lab.band.link.push({ kind: 'resync', roomId: ROOM, why: 'overflow' });
    await lab.settle();
    expect(lab.handled).toEqual(['dropped']);
  });
});

describe('order', () => {
  it('R-177 messages of one room run one after the other, in platform order', async () => {
    let running = 0;
    const lab = await started([ROOM], {
      onTurn: async ({ tools }) => {
        running += 1;
        expect(running).toBe(1);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        await tools.noReply();
      },
    });
    const sent = Array.from({ length: 20 }, (_, n) => `m${n}`);
    for (const text of sent) lab.band.post(ROOM, text);
    for (let turn = 0; turn < 10; turn += 1) await lab.settle();
    expect(lab.handled).toEqual(sent);
  });

  it('R-178 different rooms run side by side', async () => {
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const lab = await started(['a', 'b', 'c'], {
      onTurn: async ({ tools }) => {
        await gate;
        await tools.noReply();
      },
    });
    for (const room of ['a', 'b', 'c']) lab.band.post(room, room);
    await lab.settle();
    expect(lab.handled).toEqual(['a', 'b', 'c']);
    open();
    await lab.settle();
    expect(lab.band.called('markProcessed')).toHaveLength(3);
  });

  it('R-179 R-286 messages left in processing come first at the start, oldest first', async () => {
    const lab = agentLab();
    const room = lab.band.addRoom(ROOM);
    for (const text of ['untouched', 'stuck one', 'stuck two']) lab.band.post(ROOM, text);
    for (const message of room.messages.slice(1)) {
      message.state = 'processing';
      message.attempts.push({ status: 'processing' });
    }
    await lab.agent.start();
    await lab.settle();
    expect(lab.handled).toEqual(['stuck one', 'stuck two', 'untouched']);
    expect(lab.band.called('listMessages')[0]?.body).toBe('processing');
  });

  it('R-180 socket messages wait until the startup synchronisation succeeded', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    lab.band.post(ROOM, 'older');
    lab.band.fail('nextMessage');
    await lab.agent.start();
    await lab.settle();
    lab.band.post(ROOM, 'newer');
    await lab.settle();
    expect(lab.handled).toEqual([]);
    await lab.clock.advance(60_000);
    expect(lab.handled).toEqual(['older', 'newer']);
  });
});

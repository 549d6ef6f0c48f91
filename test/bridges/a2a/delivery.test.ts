import { describe, expect, it } from 'vitest';
import type { BandCalls } from '../../../bridges/a2a/band.js';
import type { Context } from '../../../bridges/a2a/engine/contexts.js';
import { DeliveryStates } from '../../../bridges/a2a/engine/delivery.js';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';

const ROOM = 'room';
const SELF = 'gateway';
const { signal } = new AbortController();

/** A room that is read in pages, with a task's three rows for each turn, and what was read of it. */
function longRoom() {
  const rows: ChatMessage[] = [];
  const row = (id: string, sender_id: string, metadata: Record<string, unknown>): ChatMessage =>
    ({
      id,
      sender_id,
      content: '',
      message_type: 'text',
      metadata,
      inserted_at: '2026-01-01T00:00:00Z',
    }) as ChatMessage;
  let read = { calls: 0, rows: 0 };
  const rest: Pick<BandCalls, 'getContext'> = {
    getContext(_roomId, { cursor, limit = 50 } = {}) {
      const from = Number(cursor ?? 0);
      const data = rows.slice(from, from + limit);
      const hasMore = from + limit < rows.length;
      read = { calls: read.calls + 1, rows: read.rows + data.length };
      return Promise.resolve({ data, hasMore, nextCursor: hasMore ? String(from + limit) : null });
    },
  };
  const record = {
    owner: 'me',
    contextId: 'c',
    roomId: ROOM,
    peers: [],
    addressed: [],
    cursor: null,
    lastUsedAt: 0,
  };
  const context: Context = { key: 'me/c', record, saved: record };
  return {
    rest,
    context,
    /** A request to a peer that has been answered. */
    turn(name: string, peerId = 'peer') {
      const delivery_status = { [peerId]: { status: 'processed' } };
      rows.push(
        { ...row(`${name}-marker`, SELF, {}), message_type: 'task' },
        row(`${name}-post`, SELF, { mentions: [{ id: peerId }], delivery_status }),
        row(`${name}-reply`, peerId, { mentions: [{ id: SELF }] }),
      );
    },
    /** What was read since this was asked last. */
    readSince() {
      const since = read;
      read = { calls: 0, rows: 0 };
      return since;
    },
  };
}

describe('looks at deliveries in a long room', () => {
  it('A-175 a look goes on where the last post stood, also after a rest: a short page or two, however long the room is', async () => {
    const room = longRoom();
    const states = new DeliveryStates(room.rest);
    for (let turn = 0; turn < 300; turn += 1) room.turn(`old-${turn}`);
    await states.lookWhole(room.context, 'old-299-post', 'peer', true, signal);
    room.turn('first');
    await states.lookWhole(room.context, 'first-post', 'peer', true, signal);
    room.readSince();

    room.turn('next');
    const readAgain: Context = { ...room.context };
    const seen = await states.lookWhole(readAgain, 'next-post', 'peer', true, signal);

    expect(seen).toMatchObject({ look: 'processed', lastReplyId: 'next-reply' });
    const { calls, rows } = room.readSince();
    expect(calls).toBeLessThanOrEqual(2);
    expect(rows).toBeLessThanOrEqual(40);
  });

  it('A-175 a post from before the last one is found all the same', async () => {
    const room = longRoom();
    const states = new DeliveryStates(room.rest);
    room.turn('slow', 'slow-peer');
    for (let turn = 0; turn < 30; turn += 1) {
      room.turn(`quick-${turn}`);
      await states.lookWhole(room.context, `quick-${turn}-post`, 'peer', true, signal);
    }

    const seen = await states.lookWhole(room.context, 'slow-post', 'slow-peer', true, signal);

    expect(seen).toMatchObject({ look: 'processed', lastReplyId: 'slow-reply' });
  });

  it('A-175 the stored place follows, so that another process does not read the room from its beginning', async () => {
    const room = longRoom();
    const states = new DeliveryStates(room.rest);
    for (let turn = 0; turn < 400; turn += 1) {
      room.turn(`t${turn}`);
      await states.lookWhole(room.context, `t${turn}-post`, 'peer', true, signal);
    }
    room.readSince();

    await new DeliveryStates(room.rest).lookWhole(room.context, 't399-post', 'peer', true, signal);

    expect(room.readSince().rows).toBeLessThanOrEqual(600);
  });

  it('A-175 a look that does not move the stored place leaves the record as it is, so that nothing is written', async () => {
    const room = longRoom();
    const states = new DeliveryStates(room.rest);
    const { record } = room.context;
    for (let turn = 0; turn < 60; turn += 1) room.turn(`t${turn}`);

    await states.lookWhole(room.context, 't59-post', 'peer', true, signal);

    expect(room.context.record).toBe(record);
  });
});

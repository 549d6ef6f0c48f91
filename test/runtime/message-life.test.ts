import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../src/base/errors.js';
import { deferred } from '../../src/base/async.js';
import { agentLab } from '../support/agent-lab.js';
import { AGENT_ID } from '../support/fake-band.js';

const ROOM = 'room-1';

describe('one message', () => {
  it('R-184 marks a message processing before the adapter runs', async () => {
    const lab = agentLab({
      onTurn: async ({ message, tools }) => {
        expect(lab.band.state(ROOM, message.id)).toBe('processing');
        await tools.noReply();
      },
    });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.handled).toEqual(['hello']);
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('R-184 does not run the adapter when the claim is not accepted', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.fail('markProcessing');
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.handled).toEqual([]);
  });

  it('R-185 a failed claim does not use up the only attempt', async () => {
    const lab = agentLab({ session: { maxMessageRetries: 1 } });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.fail('markProcessing', { times: 2 });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    await lab.clock.advance(60_000);
    expect(lab.handled).toEqual([]);
    await lab.clock.advance(60_000);
    expect(lab.handled).toEqual(['hello']);
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('R-186 marks a message processed after the adapter succeeded, and not before', async () => {
    let finish!: () => void;
    const lab = agentLab({
      onTurn: ({ tools }) =>
        new Promise((resolve) => {
          finish = () => {
            void tools.noReply();
            resolve();
          };
        }),
    });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.called('markProcessed')).toHaveLength(0);
    finish();
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('R-187 a failing processed mark is repeated without running the adapter again', async () => {
    const lab = agentLab({ session: { maxMessageRetries: 3 } });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.fail('markProcessed', { times: 2 });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processing');
    await lab.clock.advance(60_000);
    expect(lab.band.state(ROOM, id)).toBe('processing');
    await lab.clock.advance(60_000);
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.handled).toEqual(['hello']);
  });

  it('R-187 an outstanding mark survives that the agent leaves the room and comes back', async () => {
    const lab = agentLab();
    const room = lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.fail('markProcessed');
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    lab.band.link.push({ kind: 'room_removed', roomId: ROOM, room: { id: ROOM, inserted_at: '', updated_at: '' } });
    await lab.settle();
    lab.band.link.push({ kind: 'room_added', roomId: room.id, room: { id: ROOM, inserted_at: '', updated_at: '' } });
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.handled).toEqual(['hello']);
    expect(lab.band.called('markProcessing')).toHaveLength(1);
  });

  it('R-188 skips a message whose delivery status for this agent is processed', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.post(ROOM, 'done elsewhere', {
      row: { metadata: { mentions: [{ id: AGENT_ID }], delivery_status: { [AGENT_ID]: { status: 'processed' } } } },
    });
    await lab.settle();
    expect(lab.handled).toEqual([]);
    expect(lab.band.called('markProcessing')).toHaveLength(0);
  });

  it('R-188 skips a message that the history told to be processed', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    const old = lab.band.remember(ROOM, 'long ago', {
      metadata: { delivery_status: { [AGENT_ID]: { status: 'processed' } } },
    });
    await lab.agent.start();
    lab.band.post(ROOM, 'now');
    await lab.settle();
    lab.band.push(ROOM, old);
    await lab.settle();
    expect(lab.handled).toEqual(['now']);
    expect(lab.band.called('markProcessing').map(({ messageId }) => messageId)).not.toContain(old);
  });

  it("R-183 skips the agent's own messages", async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.post(ROOM, 'mine', { row: { sender_id: AGENT_ID, sender_type: 'Agent' } });
    await lab.settle();
    expect(lab.handled).toEqual([]);
    expect(lab.band.called('markProcessing')).toHaveLength(0);
  });

  it('R-176 ignores a pushed message that does not mention the agent', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    const id = lab.band.remember(ROOM, 'for somebody else', { metadata: { mentions: [{ id: 'somebody' }] } });
    lab.band.push(ROOM, id);
    const reference = lab.band.remember(ROOM, 'about the agent', {
      metadata: { mentions: [{ id: AGENT_ID, kind: 'reference' }] },
    });
    lab.band.push(ROOM, reference);
    await lab.settle();
    expect(lab.handled).toEqual([]);
  });

  it('R-181 runs a message once that comes by socket and by the work list', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    const id = lab.band.post(ROOM, 'hello');
    lab.band.push(ROOM, id);
    lab.band.link.reconnect();
    await lab.settle();
    lab.band.push(ROOM, id);
    await lab.settle();
    expect(lab.handled).toEqual(['hello']);
    expect(lab.band.attempts(ROOM, id)).toEqual([{ status: 'success' }]);
  });

  it('R-181 runs a message once whose push comes back after six hundred others (BND-01)', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    const first = lab.band.post(ROOM, 'first words');
    await lab.settle();
    for (let n = 0; n < 600; n += 1) lab.band.post(ROOM, `other ${n}`);
    await lab.settle();
    while (lab.handled.length < 601) await lab.settle();
    lab.band.push(ROOM, first);
    await lab.settle();
    expect(lab.handled.filter((text) => text === 'first words')).toHaveLength(1);
    expect(lab.band.attempts(ROOM, first)).toHaveLength(1);
  });

  it('BND-01 R-187 a message that comes by every way there is, over rejoins and a failed mark, is worked once', async () => {
    const { promise: shown, resolve: show } = deferred();
    const lab = agentLab({
      onTurn: async ({ message, tools }) => {
        if (message.content === 'first words') await shown;
        await tools.noReply();
      },
    });
    lab.band.addRoom(ROOM);
    const first = lab.band.post(ROOM, 'first words', { push: false });
    const room = { id: ROOM, inserted_at: '', updated_at: '' };
    await lab.agent.start();
    await lab.settle();
    lab.band.push(ROOM, first); // while the copy of the work list is in hand
    lab.band.fail('markProcessed', { code: 'BAND_UNAVAILABLE', statusCode: 500, times: 3 });
    show();
    await lab.settle();
    lab.band.push(ROOM, first);
    lab.band.link.drop();
    lab.band.link.reconnect();
    await lab.settle();
    lab.band.link.push({ kind: 'room_removed', roomId: ROOM, room });
    await lab.settle();
    lab.band.link.push({ kind: 'room_added', roomId: ROOM, room });
    await lab.settle();
    await lab.clock.advance(200_000);
    await lab.settle();
    for (let n = 0; n < 600; n += 1) lab.band.post(ROOM, `other ${n}`);
    while (lab.handled.length < 601) await lab.settle();
    lab.band.push(ROOM, first);
    await lab.settle();
    expect(lab.handled.filter((text) => text === 'first words')).toHaveLength(1);
    expect(lab.band.state(ROOM, first)).toBe('processed');
    await lab.agent.stop();
  });

  it('R-224 a claim that the platform refuses leaves the message as it is and uses up nothing', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.rooms.get(ROOM)!.stopped = true;
    const id = lab.band.post(ROOM, 'hello');
    lab.band.push(ROOM, id);
    await lab.settle();
    expect(lab.handled).toEqual([]);
    expect(lab.band.state(ROOM, id)).toBe('pending');
    expect(lab.band.called('markFailed')).toHaveLength(0);
    lab.band.setStopped(ROOM, false);
    await lab.settle();
    expect(lab.handled).toEqual(['hello']);
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('R-224 a post that the platform refuses defers the message without failing it', async () => {
    const lab = agentLab({
      onTurn: async ({ tools }) => {
        lab.band.rooms.get(ROOM)!.stopped = lab.handled.length === 1;
        await tools.sendMessage('answer', [{ id: 'somebody' }]);
      },
    });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processing');
    expect(lab.band.called('markFailed')).toHaveLength(0);
    lab.band.setStopped(ROOM, false);
    await lab.settle();
    expect(lab.handled).toEqual(['hello', 'hello']);
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('BND-02 a refused mark is logged with the request id of the answer', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.fail('markProcessing');
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    const line = lab.lines.find(({ msg }) => msg.includes('could not be claimed'));
    expect(JSON.stringify(line)).toContain('req-1');
  });

  it('an error that nobody foresaw leaves the room alive', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    lab.band.fail('markProcessing', { error: () => new GatewayError('BAND_BAD_ANSWER') });
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    await lab.clock.advance(60_000);
    expect(lab.handled).toEqual(['hello']);
  });
});

describe('a mark whose answer was lost', () => {
  it('R-187 is not made again once the platform says that no attempt is open', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    const markProcessed = lab.band.rest.markProcessed.bind(lab.band.rest);
    lab.band.rest.markProcessed = async (roomId, messageId, options) => {
      await markProcessed(roomId, messageId, options);
      return markProcessed(roomId, messageId, options); // what a client does that did not get the first answer
    };
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    await lab.clock.advance(200_000);
    expect(lab.band.attempts(ROOM, id)).toEqual([{ status: 'success' }]);
    expect(lab.band.called('markProcessed')).toHaveLength(2);
  });

  it('R-187 is made with a new attempt when the platform hands the message out all the same', async () => {
    const lab = agentLab();
    const room = lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    room.messages[0]!.state = 'failed';
    await lab.clock.advance(61_000);
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.handled).toEqual(['hello']);
  });
});

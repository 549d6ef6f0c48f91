import { describe, expect, it } from 'vitest';
import { deferred } from '../../src/base/async.js';
import { RoomExecutionStoppedError } from '../../src/base/band-errors.js';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';
import { AGENT_ID } from '../support/fake-band.js';

const ROOM = 'room-1';

/** An adapter that works until it is told to end, unless the text says `quick`. */
async function started(options: AgentLabOptions = {}): Promise<AgentLab> {
  const lab = agentLab({
    onTurn: async ({ message, tools, signal }) => {
      if (!message.content.startsWith('quick')) {
        await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        });
      }
      await tools.sendMessage('answer', [{ id: 'somebody' }]);
    },
    ...options,
  });
  lab.band.addRoom(ROOM);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

describe('interrupt', () => {
  it('R-210 ends the running cycle; the message is consumed and nothing is sent', async () => {
    const lab = await started();
    const id = lab.band.post(ROOM, 'slow');
    lab.band.post(ROOM, 'quick');
    await lab.settle();
    lab.band.signal('interrupt', ROOM);
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.handled).toEqual(['slow', 'quick']);
    expect(lab.band.written(ROOM)).toHaveLength(1);
  });

  it('R-213 while idle has no effect on the next message', async () => {
    const lab = await started();
    lab.band.signal('interrupt', ROOM);
    lab.band.post(ROOM, 'quick');
    await lab.settle();
    expect(lab.handled).toEqual(['quick']);
    expect(lab.band.written(ROOM)).toHaveLength(1);
  });

  it('R-214 between claim and cycle prevents the cycle and consumes the message', async () => {
    const lab = await started();
    const loading = lab.band.hold('listParticipants');
    const id = lab.band.post(ROOM, 'quick');
    await loading.met;
    lab.band.signal('interrupt', ROOM);
    loading.release();
    await lab.settle();
    expect(lab.handled).toEqual([]);
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('R-214 while the claim is under way prevents the cycle as well', async () => {
    const lab = await started();
    const claim = lab.band.hold('markProcessing');
    const id = lab.band.post(ROOM, 'quick');
    await claim.met;
    lab.band.signal('interrupt', ROOM);
    claim.release();
    await lab.settle();
    expect(lab.handled).toEqual([]);
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('R-215 does not use up an attempt of a message that is handed out again', async () => {
    const lab = await started({ session: { maxMessageRetries: 1 } });
    lab.band.post(ROOM, 'slow');
    await lab.settle();
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    lab.band.setStopped(ROOM, false);
    await lab.settle();
    expect(lab.handled).toEqual(['slow', 'slow']);
  });
});

describe('stop and play', () => {
  it('R-211 stop ends the running cycle and pauses the room; the message stays actionable', async () => {
    const lab = await started();
    const id = lab.band.post(ROOM, 'slow');
    await lab.settle();
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processing');
    lab.band.post(ROOM, 'quick later');
    await lab.settle();
    expect(lab.handled).toEqual(['slow']);
  });

  it('R-212 play resumes at once, with the interrupted message first', async () => {
    let calls = 0;
    const lab = await started({
      onTurn: async ({ tools, signal }) => {
        calls += 1;
        if (calls === 1)
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
        else await tools.noReply();
      },
    });
    lab.band.post(ROOM, 'slow');
    await lab.settle();
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    lab.band.post(ROOM, 'later');
    lab.band.setStopped(ROOM, false);
    await lab.settle();
    expect(lab.handled).toEqual(['slow', 'slow', 'later']);
  });

  it('R-214 stop between claim and cycle leaves the message as it is', async () => {
    const lab = await started();
    const loading = lab.band.hold('listParticipants');
    const id = lab.band.post(ROOM, 'quick');
    await loading.met;
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    expect(lab.handled).toEqual([]);
    expect(lab.band.state(ROOM, id)).toBe('processing');
    lab.band.setStopped(ROOM, false);
    await lab.settle();
    expect(lab.handled).toEqual(['quick']);
  });

  it('R-214 stop while the claim is under way keeps the room paused, whatever the claim answers', async () => {
    const lab = await started();
    const claim = lab.band.hold('markProcessing');
    const id = lab.band.post(ROOM, 'quick');
    await claim.met;
    lab.band.signal('stop', ROOM);
    claim.release();
    await lab.settle();
    expect(lab.handled).toEqual([]);
    expect(lab.band.state(ROOM, id)).toBe('processing');
    expect(lab.agent.runtime.rooms?.rooms.get(ROOM)?.paused).toBe(true);
    lab.band.post(ROOM, 'quick later');
    await lab.settle();
    expect(lab.handled).toEqual([]);
  });

  it('R-211 stop while the room looks for work leaves what it finds alone', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'quick', { push: false });
    const look = lab.band.hold('nextMessage');
    await lab.clock.advance(60_000);
    await look.met;
    lab.band.signal('stop', ROOM);
    look.release();
    await lab.settle();
    expect(lab.band.called('markProcessing')).toHaveLength(0);
    lab.band.signal('play', ROOM);
    await lab.settle();
    expect(lab.handled).toEqual(['quick']);
  });

  it('R-218 R-219 R-220 polls a paused room at the fixed interval, and finds a missed play by it', async () => {
    const lab = await started({ session: { stoppedResyncSeconds: 20 } });
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    const begun = lab.clock.now();
    await lab.clock.advance(61_000);
    const polls = lab.band.called('nextMessage').map(({ at }) => (at - begun) / 1_000);
    expect(polls.filter((at) => at > 0)).toEqual([20, 40, 60]);
    lab.band.setStopped(ROOM, false, false);
    lab.band.post(ROOM, 'quick', { push: false });
    await lab.settle();
    expect(lab.handled).toEqual([]);
    await lab.clock.advance(20_000);
    expect(lab.handled).toEqual(['quick']);
    lab.band.post(ROOM, 'quick again');
    await lab.settle();
    expect(lab.handled).toEqual(['quick', 'quick again']);
  });

  it('R-218 uses idleResyncSeconds for a paused room when nothing else is set', async () => {
    const lab = await started({ session: { idleResyncSeconds: 30, idleResyncMaxSeconds: 300 } });
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    const begun = lab.clock.now();
    await lab.clock.advance(91_000);
    expect(
      lab.band
        .called('nextMessage')
        .map(({ at }) => (at - begun) / 1_000)
        .filter((at) => at > 0),
    ).toEqual([30, 60, 90]);
  });

  it('R-221 the pause ends only when a claim is accepted', async () => {
    const lab = await started({ session: { stoppedResyncSeconds: 10 } });
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    lab.band.setStopped(ROOM, false, false);
    const id = lab.band.post(ROOM, 'quick', { push: false });
    lab.band.fail('markProcessing');
    await lab.clock.advance(10_000);
    expect(lab.agent.runtime.rooms?.rooms.get(ROOM)?.paused).toBe(true);
    await lab.clock.advance(10_000);
    expect(lab.agent.runtime.rooms?.rooms.get(ROOM)?.paused).toBe(false);
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('R-221 a newer stop voids a probe: nothing is claimed from its answer', async () => {
    const lab = await started({ session: { stoppedResyncSeconds: 10 } });
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    lab.band.setStopped(ROOM, false, false);
    lab.band.post(ROOM, 'quick', { push: false });
    const probe = lab.band.hold('nextMessage');
    await lab.clock.advance(10_000);
    await probe.met;
    lab.band.signal('stop', ROOM);
    probe.release();
    await lab.settle();
    expect(lab.band.called('markProcessing')).toHaveLength(0);
  });

  it('R-221 a newer stop while a probe claims keeps the pause, although the claim is accepted', async () => {
    const lab = await started({ session: { stoppedResyncSeconds: 10 } });
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    lab.band.setStopped(ROOM, false, false);
    const id = lab.band.post(ROOM, 'quick', { push: false });
    const claim = lab.band.hold('markProcessing');
    await lab.clock.advance(10_000);
    await claim.met;
    lab.band.signal('stop', ROOM);
    claim.release();
    await lab.settle();
    expect(lab.agent.runtime.rooms?.rooms.get(ROOM)?.paused).toBe(true);
    lab.band.post(ROOM, 'quick later');
    await lab.settle();
    expect([lab.handled, lab.band.state(ROOM, id)]).toEqual([[], 'processing']);
    lab.band.signal('play', ROOM);
    await lab.settle();
    expect(lab.handled).toEqual(['quick', 'quick later']);
  });

  it.each(['markProcessing', 'markProcessed'] as const)(
    'R-212 R-224 a play that overtakes the refusal of a call (%s) is not undone by it',
    async (method) => {
      const lab = await started();
      const carryOut = lab.band.rest[method].bind(lab.band.rest);
      const answered = deferred();
      const overtaken = deferred();
      lab.band.rest[method] = async (...args) => {
        const answer = await carryOut(...args);
        answered.resolve();
        await overtaken.promise;
        return answer;
      };
      const call = lab.band.hold(method);
      const id = lab.band.post(ROOM, 'quick');
      await call.met;
      lab.band.setStopped(ROOM, true, false);
      call.release();
      await answered.promise;
      lab.band.setStopped(ROOM, false);
      overtaken.resolve();
      await lab.settle();
      expect(lab.agent.runtime.rooms?.rooms.get(ROOM)?.paused).toBe(false);
      expect([lab.handled, lab.band.state(ROOM, id)]).toEqual([['quick'], 'processed']);
    },
  );

  it('R-177 a room left during a stop and joined again works in order, although nobody told of the play', async () => {
    const lab = await started();
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    lab.band.post(ROOM, 'quick one');
    lab.band.link.push({ kind: 'room_removed', roomId: ROOM, room: { id: ROOM, inserted_at: '', updated_at: '' } });
    await lab.settle();
    lab.band.link.push({ kind: 'room_added', roomId: ROOM, room: { id: ROOM, inserted_at: '', updated_at: '' } });
    await lab.settle();
    expect(lab.handled).toEqual([]);
    lab.band.setStopped(ROOM, false, false);
    lab.band.post(ROOM, 'quick two');
    await lab.settle();
    expect(lab.handled).toEqual(['quick one', 'quick two']);
  });

  it('R-222 a reconnect probes a paused room once', async () => {
    const lab = await started({ session: { stoppedResyncSeconds: 500 } });
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    const before = lab.band.called('nextMessage').length;
    lab.band.link.drop();
    await lab.settle();
    lab.band.link.reconnect();
    await lab.settle();
    expect(lab.band.called('nextMessage').length - before).toBe(1);
  });

  it('R-223 a stop brings a longer wait down to the stopped interval, and leaves a shorter one', async () => {
    const lab = await started({ session: { stoppedResyncSeconds: 15 } });
    await lab.clock.advance(61_000); // next at 180
    lab.band.setStopped(ROOM, true);
    await lab.settle();
    const begun = lab.clock.now();
    await lab.clock.advance(16_000);
    expect(lab.band.called('nextMessage').at(-1)!.at - begun).toBe(15_000);
  });

  it('does not list stuck messages while it is paused before its startup synchronisation succeeded', async () => {
    const lab = agentLab({ session: { stoppedResyncSeconds: 10 } });
    lab.band.addRoom(ROOM);
    lab.band.fail('nextMessage');
    await lab.agent.start();
    await lab.settle();
    lab.band.setStopped(ROOM, true);
    const listed = lab.band.called('listMessages').length;
    const looked = lab.band.called('nextMessage').length;
    await lab.clock.advance(25_000);
    expect(lab.band.called('listMessages')).toHaveLength(listed);
    expect(lab.band.called('nextMessage')).toHaveLength(looked + 2);
    lab.band.setStopped(ROOM, false);
    await lab.settle();
    expect(lab.band.called('listMessages')).toHaveLength(listed + 1);
    await lab.agent.stop();
  });

  it('recovers nothing from the list of stuck messages while it is paused at its start', async () => {
    const lab = agentLab();
    const room = lab.band.addRoom(ROOM);
    const listing = lab.band.hold('listMessages');
    await lab.agent.start();
    await listing.met;
    room.stopped = true;
    lab.band.post(ROOM, 'stuck');
    room.messages[0]!.state = 'processing';
    lab.band.signal('stop', ROOM);
    listing.release();
    await lab.settle();
    expect(lab.band.called('markProcessing')).toHaveLength(0);
    lab.band.setStopped(ROOM, false);
    await lab.settle();
    expect(lab.handled).toEqual(['stuck']);
  });
});

describe('a stop that only an error tells of', () => {
  it.each([
    [ROOM, { paused: true, state: 'processing' }],
    ['another-room', { paused: false, state: 'failed' }],
  ])('R-224 a refusal that names %s holds up its own room only', async (named, expected) => {
    const lab = await started({ onTurn: () => Promise.reject(new RoomExecutionStoppedError(named)) });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    const { paused } = lab.agent.runtime.rooms!.rooms.get(ROOM)!;
    expect({ paused, state: lab.band.state(ROOM, id) }).toEqual(expected);
    await lab.agent.stop();
  });
});

describe('who is meant', () => {
  it('R-216 a signal with a correlation id counts once, one without counts each time', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'slow');
    lab.band.post(ROOM, 'slow too');
    await lab.settle();
    lab.band.signal('interrupt', ROOM, 'c-1');
    await lab.settle();
    lab.band.signal('interrupt', ROOM, 'c-1');
    await lab.settle();
    expect(lab.handled).toEqual(['slow', 'slow too']);
    expect(lab.band.called('markProcessed')).toHaveLength(1);
    lab.band.signal('interrupt', ROOM);
    await lab.settle();
    expect(lab.band.called('markProcessed')).toHaveLength(2);
  });

  it('R-217 a signal for the agent reaches all rooms, one for an unknown room nobody, one without a room is told', async () => {
    const lab = await started();
    lab.band.addRoom('room-2');
    lab.band.link.push({
      kind: 'room_added',
      roomId: 'room-2',
      room: { id: 'room-2', inserted_at: '', updated_at: '' },
    });
    await lab.settle();
    lab.band.post(ROOM, 'slow');
    lab.band.post('room-2', 'slow too');
    await lab.settle();
    lab.band.signal('interrupt', 'no-such-room');
    await lab.settle();
    expect(lab.band.called('markProcessed')).toHaveLength(0);
    lab.band.signal('interrupt', null);
    await lab.settle();
    expect(lab.band.called('markProcessed')).toHaveLength(2);
    lab.band.link.control({ mode: 'stop', scope: 'room', agent_id: AGENT_ID, room_id: null });
    expect(lab.lines.some(({ msg, level }) => level === 40 && msg.includes('names no room'))).toBe(true);
  });
});

describe('an adapter that ignores the abort', () => {
  it('R-225 is left behind after one second and cannot touch later cycles', async () => {
    let finish!: () => void;
    const lab = await started({
      onTurn: async ({ message, tools }) => {
        if (message.content === 'deaf') await new Promise<void>((resolve) => (finish = resolve));
        await tools.sendMessage(`answer to ${message.content}`, [{ id: 'somebody' }]);
      },
    });
    const id = lab.band.post(ROOM, 'deaf');
    lab.band.post(ROOM, 'next');
    await lab.settle();
    lab.band.signal('interrupt', ROOM);
    await lab.clock.advance(999);
    expect(lab.handled).toEqual(['deaf']);
    await lab.clock.advance(1);
    await lab.settle();
    expect(lab.handled).toEqual(['deaf', 'next']);
    expect(lab.band.state(ROOM, id)).toBe('processed');
    finish();
    await lab.settle();
    expect(lab.band.written(ROOM).map(({ content }) => content)).toEqual(['answer to next']);
    expect(lab.lines.some(({ msg }) => msg.includes('left behind'))).toBe(true);
  });
});

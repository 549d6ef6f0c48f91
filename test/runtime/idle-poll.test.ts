import { describe, expect, it } from 'vitest';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';
import { USER_ID } from '../support/fake-band.js';

const ROOM = 'room-1';

async function started(options: AgentLabOptions = {}): Promise<AgentLab & { polls(): number[] }> {
  const lab = agentLab(options);
  lab.band.addRoom(ROOM);
  const begun = lab.clock.now();
  await lab.agent.start();
  await lab.settle();
  return { ...lab, polls: () => lab.band.called('nextMessage', ROOM).map(({ at }) => (at - begun) / 1_000) };
}

describe('the look for missed messages', () => {
  it('R-198 R-199 comes after idleResyncSeconds and then at doubled intervals up to the maximum', async () => {
    const lab = await started();
    await lab.clock.advance(301_000);
    expect(lab.polls()).toEqual([0, 60, 180, 300]);
  });

  it('R-198 finds a message that was never pushed', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'silent', { push: false });
    await lab.clock.advance(60_000);
    expect(lab.handled).toEqual(['silent']);
  });

  it('R-200 a maximum equal to the base keeps the interval', async () => {
    const lab = await started({ session: { idleResyncSeconds: 10, idleResyncMaxSeconds: 10 } });
    await lab.clock.advance(41_000);
    expect(lab.polls()).toEqual([0, 10, 20, 30, 40]);
  });

  it('R-201 a maximum below the base keeps the base', async () => {
    const lab = await started({ session: { idleResyncSeconds: 30, idleResyncMaxSeconds: 5 } });
    await lab.clock.advance(91_000);
    expect(lab.polls()).toEqual([0, 30, 60, 90]);
  });

  it('R-202 a failed poll returns the interval to the base', async () => {
    const lab = await started();
    lab.band.fail('nextMessage');
    await lab.clock.advance(241_000);
    expect(lab.polls()).toEqual([0, 60, 120, 240]);
  });

  it('R-202 work found returns the interval to the base', async () => {
    const lab = await started();
    await lab.clock.advance(61_000);
    lab.band.post(ROOM, 'silent', { push: false });
    await lab.clock.advance(180_000);
    // 0 and 60 empty; 180 finds one and asks again; 240 follows at the base.
    expect(lab.polls()).toEqual([0, 60, 180, 180, 240]);
  });

  it('R-203 new socket work brings the poll back to the base, a duplicate and participant traffic do not', async () => {
    const lab = await started({ session: { idleResyncMaxSeconds: 1_000 } });
    await lab.clock.advance(61_000);
    const id = lab.band.post(ROOM, 'pushed');
    await lab.settle();
    await lab.clock.advance(30_000);
    lab.band.push(ROOM, id);
    lab.band.link.push({
      kind: 'participant_added',
      roomId: ROOM,
      participant: { id: USER_ID, name: 'Jane', type: 'User' },
    });
    await lab.clock.advance(30_000);
    // Next would have been 180; the push at 61 makes it 121, and nothing after that moves it.
    expect(lab.polls()).toEqual([0, 60, 121]);
  });

  it('R-204 unrelated traffic cannot postpone a due poll', async () => {
    const lab = await started();
    const id = lab.band.post(ROOM, 'pushed');
    for (let second = 0; second < 60; second += 1) {
      lab.band.push(ROOM, id);
      await lab.clock.advance(1_000);
    }
    expect(lab.polls()).toEqual([0, 60]);
  });

  it('R-205 only the first poll is spread at random, within one base interval', async () => {
    const lab = await started({ random: () => 0.25 });
    await lab.clock.advance(256_000);
    expect(lab.polls()).toEqual([0, 15, 135, 255]);
  });

  it('R-206 a due poll waits for the running cycle, and one follows, not several', async () => {
    let finish!: () => void;
    const lab = await started({
      onTurn: async ({ tools }) => {
        await new Promise<void>((resolve) => (finish = resolve));
        await tools.noReply();
      },
    });
    lab.band.post(ROOM, 'slow');
    await lab.clock.advance(400_000);
    expect(lab.polls()).toEqual([0]);
    finish();
    await lab.settle();
    expect(lab.polls()).toEqual([0, 400]);
    await lab.clock.advance(59_000);
    expect(lab.polls()).toEqual([0, 400]);
  });

  it('R-182 an answer of none ends the look, any other failure is met again after the base interval', async () => {
    const lab = agentLab();
    lab.band.addRoom(ROOM);
    lab.band.fail('nextMessage', { times: 2 });
    const begun = lab.clock.now();
    await lab.agent.start();
    await lab.settle();
    lab.band.post(ROOM, 'waiting');
    await lab.settle();
    expect(lab.handled).toEqual([]);
    await lab.clock.advance(120_000);
    expect(lab.handled).toEqual(['waiting']);
    expect(lab.band.called('nextMessage').map(({ at }) => (at - begun) / 1_000)).toEqual([0, 60, 120, 120]);
  });

  it('R-207 a failed synchronisation is repeated after idleResyncSeconds', async () => {
    const lab = agentLab({ session: { idleResyncSeconds: 7 } });
    lab.band.addRoom(ROOM);
    lab.band.fail('listMessages', { times: 2 });
    const begun = lab.clock.now();
    await lab.agent.start();
    await lab.settle();
    await lab.clock.advance(14_000);
    const listed = lab.band.called('listMessages').map(({ at }) => (at - begun) / 1_000);
    expect(listed).toEqual([0, 7, 14]);
    expect(lab.band.called('nextMessage')).toHaveLength(1);
  });

  it('R-208 a flood over the bound of the queue loses nothing and keeps the order', async () => {
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const lab = await started({
      onTurn: async ({ tools }) => {
        await gate;
        await tools.noReply();
      },
    });
    const texts = Array.from({ length: 2_500 }, (_, n) => `message ${n}`);
    for (const text of texts) {
      lab.band.post(ROOM, text);
      if (Number(text.slice(8)) % 500 === 0) await lab.settle();
    }
    await lab.settle();
    expect(lab.handled).toHaveLength(1);
    open();
    for (let turn = 0; turn < 200 && lab.handled.length < texts.length; turn += 1) await lab.settle();
    expect(lab.handled).toEqual(texts);
    expect(lab.band.called('markProcessing')).toHaveLength(texts.length);
  });

  it('finds what was pushed late, in front of what is already done, through the work list (PHX-04)', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'gap', { push: false, id: 'gap' });
    lab.band.post(ROOM, 'live');
    await lab.settle();
    expect(lab.handled).toEqual(['live']);
    lab.band.push(ROOM, 'gap');
    await lab.settle();
    expect(lab.handled).toEqual(['live', 'gap']);
    lab.band.push(ROOM, 'gap');
    await lab.settle();
    expect(lab.handled).toEqual(['live', 'gap']);
  });

  it('PHX-04 shows what came in a gap before what is pushed right after the join', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'before');
    await lab.settle();
    lab.band.link.drop();
    await lab.settle();
    lab.band.post(ROOM, 'gap one', { push: false });
    lab.band.post(ROOM, 'gap two', { push: false });
    lab.band.post(ROOM, 'edge', { push: false });
    lab.band.link.isUp = true; // the room is joined again, other rooms are not yet
    lab.band.post(ROOM, 'live');
    await lab.settle();
    expect(lab.handled).toEqual(['before']);
    lab.band.link.reconnect();
    await lab.settle();
    lab.band.push(ROOM, 'm3');
    await lab.settle();
    expect(lab.handled).toEqual(['before', 'gap one', 'gap two', 'edge', 'live']);
  });

  it('PHX-04 a look that was under way when the connection broke does not let later pushes pass what was missed', async () => {
    const lab = await started();
    const look = lab.band.hold('nextMessage');
    await lab.clock.advance(60_000);
    await look.met;
    lab.band.link.drop();
    await lab.settle();
    look.release();
    await lab.settle();
    lab.band.post(ROOM, 'gap', { push: false });
    lab.band.link.isUp = true;
    lab.band.post(ROOM, 'live');
    await lab.settle();
    expect(lab.handled).toEqual([]);
    lab.band.link.reconnect();
    await lab.settle();
    expect(lab.handled).toEqual(['gap', 'live']);
  });
});

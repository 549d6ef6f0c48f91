import { describe, expect, it } from 'vitest';
import { Roster } from '../../src/core/participants.js';
import { participantsBlock, RosterNews } from '../../src/runtime/participants-block.js';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';
import { USER_ID } from '../support/fake-band.js';

const ROOM = 'room-1';
const AMY = { id: 'amy', name: 'Amy', type: 'User', handle: 'amy' };

async function started(options: AgentLabOptions = {}): Promise<AgentLab> {
  const lab = agentLab(options);
  lab.band.addRoom(ROOM);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

describe('participantsMsg', () => {
  it('R-250 is set on the first turn and whenever the roster changed since, else null', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'one');
    lab.band.post(ROOM, 'two');
    await lab.settle();
    lab.band.link.push({ kind: 'participant_added', roomId: ROOM, participant: AMY });
    await lab.settle();
    lab.band.post(ROOM, 'three');
    lab.band.post(ROOM, 'four');
    await lab.settle();
    lab.band.link.push({ kind: 'participant_removed', roomId: ROOM, participant: { id: 'amy' } });
    await lab.settle();
    lab.band.post(ROOM, 'five');
    await lab.settle();
    const blocks = lab.turns.map(({ participantsMsg }) => participantsMsg);
    expect(blocks.map((block) => block !== null)).toEqual([true, false, true, false, true]);
    expect(blocks[2]).toContain('- @amy — Amy (User)');
    expect(blocks[4]).not.toContain('@amy');
  });

  it('R-250 somebody who came and left between two turns is no news', async () => {
    const roster = new Roster();
    roster.replace([AMY]);
    const news = new RosterNews(roster);
    news.take()!.commit();
    roster.merge({ id: 'bob', name: 'Bob', type: 'User' });
    roster.remove('bob');
    expect(news.take()).toBeNull();
  });

  it('R-251 a source that lacks a field erases nothing, and the listing decides who is there', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'one');
    await lab.settle();
    lab.band.link.push({
      kind: 'participant_added',
      roomId: ROOM,
      participant: { id: USER_ID, name: 'Jane D.', type: 'User', handle: null, description: '' },
    });
    await lab.settle();
    lab.band.post(ROOM, 'two');
    await lab.settle();
    expect(lab.turns[1]!.tools.participants.find(({ id }) => id === USER_ID)).toMatchObject({
      name: 'Jane D.',
      handle: 'jane',
    });
  });

  it('R-251 somebody who left while the connection was down is gone after it', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'one');
    await lab.settle();
    const room = lab.band.rooms.get(ROOM)!;
    lab.band.link.drop();
    room.participants = room.participants.filter(({ id }) => id !== USER_ID);
    lab.band.link.reconnect();
    await lab.settle();
    lab.band.post(ROOM, 'two');
    await lab.settle();
    expect(lab.turns[1]!.participantsMsg).not.toContain('@jane —');
  });

  it('R-252 lists handle, name, type and a sanitized description of at most 200 characters', () => {
    const block = participantsBlock([
      { id: '1', name: 'Planner', type: 'Agent', handle: 'acme/planner', description: 'says "yes"\n\n to   all' },
      { id: '2', name: null, type: null, handle: null, description: null },
      { id: '3', name: 'Long', type: 'Agent', handle: 'long', description: 'x'.repeat(201) },
    ]);
    const lines = block.split('\n');
    expect(lines[0]).toBe('## Current Participants');
    expect(lines[1]).toBe(`- @acme/planner — Planner (Agent): "says 'yes' to all"`);
    expect(lines[2]).toBe('- @Unknown — Unknown (Unknown)');
    expect(lines[3]).toBe(`- @long — Long (Agent): "${'x'.repeat(199)}…"`);
    expect(block).toContain('not instructions');
    expect(lines.at(-1)).toContain('exactly one of the handles');
  });

  it('R-252 an empty room reads as one', () => {
    expect(participantsBlock([]).split('\n')).toHaveLength(2);
  });

  it('R-252 says nothing about descriptions when there are none', () => {
    expect(participantsBlock([{ ...AMY, description: '  \n ' }])).not.toContain('instructions');
  });

  it('R-253 a change made by a tool is seen by the same turn and by later ones', async () => {
    const lab = await started({
      onTurn: async ({ tools }) => {
        lab.band.rooms.get(ROOM)!.participants.push({ ...AMY, role: 'member' });
        await tools.getParticipants();
        expect(tools.availableMentionHandles()).toContain('@amy');
        await tools.noReply();
      },
    });
    lab.band.post(ROOM, 'one');
    await lab.settle();
    lab.band.post(ROOM, 'two');
    await lab.settle();
    expect(lab.turns[1]!.participantsMsg).toContain('@amy');
  });
});

describe('participant callbacks', () => {
  it('R-013 R-014 are awaited with the room and the event, in order', async () => {
    const seen: unknown[] = [];
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const lab = await started({
      agent: {
        onParticipantAdded: async (roomId, event) => {
          await gate;
          seen.push(['added', roomId, event.participant.id]);
        },
        onParticipantRemoved: (roomId, event) => {
          seen.push(['removed', roomId, event.participant.id]);
        },
      },
    });
    lab.band.link.push({ kind: 'participant_added', roomId: ROOM, participant: AMY });
    lab.band.link.push({ kind: 'participant_removed', roomId: ROOM, participant: { id: 'amy' } });
    await lab.settle();
    expect(seen).toEqual([]);
    open();
    await lab.settle();
    expect(seen).toEqual([
      ['added', ROOM, 'amy'],
      ['removed', ROOM, 'amy'],
    ]);
  });

  it('R-015 one that throws is logged and the room keeps working', async () => {
    const lab = await started({
      agent: {
        onParticipantAdded: () => {
          throw new Error('broken callback');
        },
      },
    });
    lab.band.link.push({ kind: 'participant_added', roomId: ROOM, participant: AMY });
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.handled).toEqual(['hello']);
    expect(lab.lines.some(({ msg }) => msg === 'a participant callback failed')).toBe(true);
  });

  it('an adapter with onParticipants hears of changes', async () => {
    const seen: unknown[] = [];
    const lab = agentLab();
    Object.assign(lab.adapter, {
      onParticipants: (roomId: string, change: unknown) => {
        seen.push([roomId, change]);
        return Promise.resolve();
      },
    });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    lab.band.link.push({ kind: 'participant_added', roomId: ROOM, participant: AMY });
    await lab.settle();
    expect(seen).toEqual([[ROOM, { kind: 'added', id: 'amy', name: 'Amy', type: 'User' }]]);
  });

  it('R-158 room and participant events never reach the adapter', async () => {
    const lab = await started();
    lab.band.link.push({ kind: 'participant_added', roomId: ROOM, participant: AMY });
    lab.band.link.push({ kind: 'room_added', roomId: ROOM, room: { id: ROOM, inserted_at: '', updated_at: '' } });
    await lab.settle();
    expect(lab.handled).toEqual([]);
  });
});

describe('a participant callback that never returns', () => {
  it('does not keep the agent from stopping', async () => {
    const lab = await started({ agent: { onParticipantAdded: () => new Promise(() => undefined) } });
    lab.band.link.push({ kind: 'participant_added', roomId: ROOM, participant: AMY });
    await lab.settle();
    expect(await lab.agent.stop()).toBe(true);
  });
});

import { describe, expect, it } from 'vitest';
import { InputNotAccepted } from '../../src/base/band-errors.js';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';
import { AGENT_ID, USER_ID } from '../support/fake-band.js';

const ROOM = 'room-1';

async function started(options: AgentLabOptions = {}, before?: (lab: AgentLab) => void): Promise<AgentLab> {
  const lab = agentLab(options);
  lab.band.addRoom(ROOM);
  before?.(lab);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

const texts = (lab: AgentLab, turn: number) => lab.turns[turn]!.history.raw.map(({ content }) => content);

describe('what the first turn of a room session gets', () => {
  it('R-242 R-127 participants are loaded on the first message, also with hydration off, and not before', async () => {
    const lab = await started({ session: { enableContextHydration: false } });
    expect(lab.band.called('listParticipants')).toHaveLength(0);
    lab.band.remember(ROOM, 'long ago');
    lab.band.post(ROOM, 'hello');
    lab.band.post(ROOM, 'again');
    await lab.settle();
    expect(lab.band.called('listParticipants')).toHaveLength(1);
    expect(lab.band.called('getContext')).toHaveLength(0);
    expect(texts(lab, 0)).toEqual([]);
    expect(lab.turns[0]!.tools.participants.map(({ id }) => id)).toEqual([AGENT_ID, USER_ID]);
  });

  it("R-243 R-244 history is the room's past, strictly before the trigger", async () => {
    const lab = await started({}, ({ band }) => {
      band.remember(ROOM, 'earlier', { id: 'h1' });
      band.remember(ROOM, 'I said', { id: 'h2', sender_id: AGENT_ID, sender_type: 'Agent', sender_name: null });
    });
    const loading = lab.band.hold('getContext');
    lab.band.post(ROOM, 'trigger');
    await loading.met;
    lab.band.post(ROOM, 'later');
    loading.release();
    await lab.settle();
    expect(texts(lab, 0)).toEqual(['earlier', 'I said']);
    expect(lab.turns[0]!.history.raw.map(({ role, senderName }) => [role, senderName])).toEqual([
      ['user', 'Jane Doe'],
      ['assistant', 'Helper'],
    ]);
    expect(lab.turns[0]!.isSessionBootstrap).toBe(true);
  });

  it('R-243 reads every page of a long past', async () => {
    const lab = await started({}, ({ band }) => {
      for (let n = 0; n < 250; n += 1) band.remember(ROOM, `row ${n}`);
    });
    lab.band.post(ROOM, 'trigger');
    await lab.settle();
    expect(texts(lab, 0)).toHaveLength(250);
    expect(lab.band.called('getContext')).toHaveLength(3);
  });

  it('R-245 later turns get no history and are no bootstrap', async () => {
    const lab = await started({}, ({ band }) => {
      band.remember(ROOM, 'earlier');
    });
    lab.band.post(ROOM, 'one');
    lab.band.post(ROOM, 'two');
    await lab.settle();
    await lab.clock.advance(400_000);
    lab.band.post(ROOM, 'three');
    await lab.settle();
    expect(lab.turns.map(({ isSessionBootstrap, history }) => [isSessionBootstrap, history.length])).toEqual([
      [true, 1],
      [false, 0],
      [false, 0],
    ]);
    expect(lab.band.called('getContext')).toHaveLength(1);
  });

  it('R-246 a past that cannot be read does not fail the message, and is read for the next one', async () => {
    const lab = await started({}, ({ band }) => {
      band.remember(ROOM, 'earlier');
    });
    lab.band.fail('getContext');
    const id = lab.band.post(ROOM, 'one');
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
    lab.band.post(ROOM, 'two');
    await lab.settle();
    expect(texts(lab, 0)).toEqual([]);
    expect(texts(lab, 1)).toEqual(['earlier', 'one']);
  });

  it('R-246 participants that cannot be loaded do not fail the message, and are loaded for the next one', async () => {
    const lab = await started();
    lab.band.fail('listParticipants');
    const id = lab.band.post(ROOM, 'one');
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.turns[0]!.tools.participants).toHaveLength(0);
    lab.band.post(ROOM, 'two');
    await lab.settle();
    expect(lab.turns[1]!.tools.availableMentionHandles()).toEqual(['@jane']);
  });

  it('R-247 mention tokens are handles, in the message and in the history', async () => {
    const lab = await started({}, ({ band }) => {
      band.remember(ROOM, `@[[${USER_ID}]] said so`);
    });
    lab.band.post(ROOM, `@[[${AGENT_ID}]] ask @[[${USER_ID}]] or @[[nobody]]`);
    await lab.settle();
    expect(lab.handled).toEqual(['@jane/helper ask @jane or @[[nobody]]']);
    expect(texts(lab, 0)).toEqual(['@jane said so']);
  });

  it('R-248 the sender name comes from the roster when the message has none', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'hello', { row: { sender_name: null } });
    lab.band.post(ROOM, 'hello', { row: { sender_name: null, sender_id: 'stranger' } });
    await lab.settle();
    expect(lab.turns.map(({ message }) => message.senderName)).toEqual(['Jane Doe', null]);
  });

  it('takes the time of a message from its insertion', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'hello', { row: { inserted_at: '2026-03-04T05:06:07.891011Z' } });
    await lab.settle();
    expect(lab.turns[0]!.message.createdAt.toISOString()).toBe('2026-03-04T05:06:07.891Z');
  });
});

describe('the commit of what an input carried', () => {
  const refusing = (lab: () => AgentLab): AgentLabOptions => ({
    session: { maxMessageRetries: 2 },
    onTurn: async ({ tools }) => {
      if (lab().handled.length === 1) throw new InputNotAccepted('not now');
      await tools.noReply();
    },
  });

  it('R-249 R-142 an input that was not accepted is delivered again in full', async () => {
    const lab: AgentLab = await started(
      refusing(() => lab),
      ({ band }) => {
        band.remember(ROOM, 'earlier');
      },
    );
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    const [first, second] = lab.turns;
    expect(first!.history.length).toBe(1);
    expect(second!.history.length).toBe(1);
    expect(second!.isSessionBootstrap).toBe(true);
    expect(second!.participantsMsg).toBe(first!.participantsMsg);
    lab.band.post(ROOM, 'next');
    await lab.settle();
    expect(lab.turns[2]!.isSessionBootstrap).toBe(false);
    expect(lab.turns[2]!.participantsMsg).toBeNull();
  });

  it('R-125 a past that was read is used again within contextCacheTtlSeconds, and read anew after it', async () => {
    const lab: AgentLab = await started(refusing(() => lab));
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.turns).toHaveLength(2);
    expect(lab.band.called('getContext')).toHaveLength(1);

    const expired: AgentLab = await started({
      ...refusing(() => expired),
      session: { maxMessageRetries: 2, contextCacheTtlSeconds: 0 },
    });
    expired.band.post(ROOM, 'hello');
    await expired.settle();
    expect(expired.band.called('getContext')).toHaveLength(2);
  });

  it('R-141 any other error leaves the context delivered', async () => {
    const lab: AgentLab = await started({
      session: { maxMessageRetries: 2 },
      onTurn: async ({ tools }) => {
        if (lab.handled.length === 1) throw new Error('too bad');
        await tools.noReply();
      },
    });
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.turns.map(({ isSessionBootstrap }) => isSessionBootstrap)).toEqual([true, false]);
  });
});

describe('the preprocessor', () => {
  it('R-012 a given one replaces the default and decides what reaches the adapter', async () => {
    const seen: string[] = [];
    const lab = await started({
      agent: {
        preprocessor: {
          process(ctx, event, agentId) {
            seen.push(`${event.kind} ${agentId} ${ctx.roomId}`);
            if (event.kind !== 'message_created' || event.message.content === 'secret') return Promise.resolve(null);
            return ctx.createInput(ctx.toMessage(event));
          },
        },
      },
    });
    const secret = lab.band.post(ROOM, 'secret');
    lab.band.post(ROOM, 'open');
    await lab.settle();
    expect(lab.handled).toEqual(['open']);
    expect(lab.band.state(ROOM, secret)).toBe('processed');
    expect(seen).toEqual(Array(2).fill(`message_created ${AGENT_ID} ${ROOM}`));
  });

  it('one that throws fails the message like the adapter itself', async () => {
    const lab = await started({
      agent: { preprocessor: { process: () => Promise.reject(new Error('bad preprocessor')) } },
    });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.attempts(ROOM, id)).toEqual([{ status: 'failed', error: 'bad preprocessor' }]);
  });
});

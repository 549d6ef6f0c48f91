import type { GenericCallback } from '../../src/adapters/generic.js';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../src/base/errors.js';
import { TurnResultAlreadyReported } from '../../src/base/band-errors.js';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';

const ROOM = 'room-1';

async function started(options: AgentLabOptions): Promise<AgentLab> {
  const lab = agentLab(options);
  lab.band.addRoom(ROOM);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

const failing = (text = 'no luck') => ({
  onTurn: () => Promise.reject(new Error(text)),
});

describe('a message that fails', () => {
  it('R-126 R-189 is tried as often as maxMessageRetries says, and then no more', async () => {
    const lab = await started({ ...failing(), session: { maxMessageRetries: 3 } });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.handled).toHaveLength(3);
    expect(lab.band.attempts(ROOM, id).map(({ status }) => status)).toEqual(['failed', 'failed', 'failed']);
    await lab.clock.advance(600_000);
    expect(lab.handled).toHaveLength(3);
  });

  it('R-189 succeeds on a later attempt', async () => {
    const lab = await started({
      session: { maxMessageRetries: 2 },
      onTurn: async ({ tools }) => {
        if (lab.handled.length === 1) throw new Error('first time');
        await tools.noReply();
      },
    });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.attempts(ROOM, id).map(({ status }) => status)).toEqual(['failed', 'success']);
    expect(lab.band.written(ROOM, 'error')).toEqual([]);
  });

  it('is not charged for a store that takes nothing for now, and runs again before anything newer', async () => {
    let tripped = true;
    const lab = await started({
      session: { maxMessageRetries: 1, idleResyncSeconds: 10 },
      onTurn: async ({ tools }) => {
        if (tripped) throw new GatewayError('STORE_TRIPPED');
        await tools.noReply();
      },
    });
    const id = lab.band.post(ROOM, 'an answer');
    lab.band.post(ROOM, 'a newer one');
    await lab.settle();
    expect(lab.handled).toEqual(['an answer']);
    expect(lab.band.attempts(ROOM, id).map(({ status }) => status)).toEqual(['processing']);
    tripped = false;
    await lab.clock.advance(10_000);
    await lab.settle();
    expect(lab.handled).toEqual(['an answer', 'an answer', 'a newer one']);
    expect(lab.band.attempts(ROOM, id).at(-1)?.status).toBe('success');
  });

  it('R-190 carries the error text on its mark', async () => {
    const lab = await started(failing('  the model said no  '));
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.attempts(ROOM, id)[0]?.error).toBe('the model said no');
  });

  it('R-190 carries the class name when the error has no text', async () => {
    class ModelExhausted extends Error {}
    const lab = await started({ onTurn: () => Promise.reject(new ModelExhausted()) });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.attempts(ROOM, id)[0]?.error).toBe('ModelExhausted');
  });

  it('R-162 hides secrets in the text of its mark', async () => {
    const lab = await started(failing('key band_a_lab refused, token xoxb-1-2-3'));
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.attempts(ROOM, id)[0]?.error).toBe('key [redacted] refused, token [redacted]');
  });

  it('R-191 tells the room once, after the final attempt, without the raw error', async () => {
    const lab = await started({ ...failing('stack and secrets'), session: { maxMessageRetries: 2 } });
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    const events = lab.band.written(ROOM, 'error');
    expect(events).toHaveLength(1);
    expect(events[0]!.content).toBe('The agent could not finish this message.');
    expect(events[0]!.metadata).toEqual({
      failure: { provider: 'band-runtime', code: null, message: events[0]!.content, detail: null },
    });
  });

  it('R-191 adds no report when the adapter reported the failure itself', async () => {
    const lab = await started({
      onTurn: async ({ tools }) => {
        await tools.sendFailure({ provider: 'model', message: 'out of credit' });
        throw new TurnResultAlreadyReported('out of credit');
      },
    });
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.written(ROOM, 'error').map(({ content }) => content)).toEqual(['out of credit']);
  });

  it('R-192 posts no report when reportTurnFailuresToRoom is false', async () => {
    const lab = await started({ ...failing(), session: { reportTurnFailuresToRoom: false } });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('failed');
    expect(lab.band.written(ROOM, 'error')).toEqual([]);
  });

  it('R-193 reports itself when the report of the adapter did not reach the room', async () => {
    const lab = await started({
      onTurn: async ({ tools }) => {
        lab.band.fail('postEvent');
        await tools.sendFailure({ provider: 'model', message: 'out of credit' });
      },
    });
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.written(ROOM, 'error').map(({ content }) => content)).toEqual([
      'The agent could not finish this message.',
    ]);
  });

  it('R-193 is marked failed even when the report cannot be posted', async () => {
    const lab = await started(failing());
    lab.band.fail('postEvent', { times: 9 });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('failed');
  });

  it('R-194 is retried in the same drain, before anything newer', async () => {
    const lab = await started({
      session: { maxMessageRetries: 2 },
      onTurn: async ({ tools }) => {
        if (lab.handled.length === 1) throw new Error('once');
        await tools.noReply();
      },
    });
    lab.band.post(ROOM, 'one');
    lab.band.post(ROOM, 'two');
    await lab.settle();
    expect(lab.handled).toEqual(['one', 'one', 'two']);
  });

  it('R-195 does not block newer messages once it failed for good, however they came', async () => {
    const lab = await started({
      onTurn: async ({ message, tools }) => {
        if (message.content === 'bad') throw new Error('always');
        await tools.noReply();
      },
    });
    lab.band.post(ROOM, 'bad');
    lab.band.post(ROOM, 'pushed');
    await lab.settle();
    lab.band.post(ROOM, 'never pushed', { push: false });
    await lab.clock.advance(60_000);
    expect(lab.handled).toEqual(['bad', 'pushed', 'never pushed']);
    expect(lab.band.called('markProcessing')).toHaveLength(3);
  });

  it('R-196 a head that cannot advance ends the pass without spinning', async () => {
    const lab = await started(failing());
    lab.band.post(ROOM, 'bad');
    await lab.settle();
    const before = lab.band.called('nextMessage').length;
    await lab.clock.advance(60_000);
    expect(lab.band.called('nextMessage').length - before).toBe(1);
    expect(lab.band.called('listMessages').length).toBeGreaterThan(0);
  });

  it('R-196 a platform that hands out what is done again and again ends the pass', async () => {
    const lab = await started({});
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    const row = lab.band.rooms.get(ROOM)!.messages.find((message) => message.row.id === id)!.row;
    let asked = 0;
    lab.band.rest.nextMessage = () => {
      asked += 1;
      return Promise.resolve(row);
    };
    await lab.clock.advance(60_000);
    expect(asked).toBeLessThanOrEqual(2);
    expect(lab.handled).toEqual(['hello']);
  });

  it('R-197 a message that could not be claimed keeps its place before newer ones', async () => {
    const lab = await started({});
    lab.band.fail('markProcessing', { times: 1 });
    lab.band.post(ROOM, 'one');
    lab.band.post(ROOM, 'two');
    await lab.settle();
    lab.band.post(ROOM, 'three');
    await lab.settle();
    expect(lab.handled).toEqual([]);
    await lab.clock.advance(60_000);
    expect(lab.handled).toEqual(['one', 'two', 'three']);
  });

  it('R-274 R-276 R-283 a missing reply is final, told to the room once, and not retried', async () => {
    const lab = await started({ onTurn: async () => undefined, session: { maxMessageRetries: 5 } });
    const id = lab.band.post(ROOM, 'hello');
    lab.band.post(ROOM, 'next');
    await lab.settle();
    expect(lab.handled).toEqual(['hello', 'next']);
    expect(lab.band.attempts(ROOM, id)).toHaveLength(1);
    expect(lab.band.state(ROOM, id)).toBe('failed');
    expect(lab.band.written(ROOM, 'error').map(({ content }) => content)).toEqual(
      Array(2).fill('The agent ended its turn without replying or calling band_no_reply, so nothing reached the room.'),
    );
  });

  it('R-276 a missing reply that could not be told is reported by the runtime once', async () => {
    const lab = await started({ onTurn: async () => undefined });
    lab.band.fail('postEvent');
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.called('postEvent')).toHaveLength(2);
    expect(lab.band.written(ROOM, 'error')).toHaveLength(1);
  });

  it('BND-02 marks each message processing and then processed or failed, never the second without the first', async () => {
    const lab = await started({
      onTurn: async ({ message, tools }) => {
        if (message.content === 'two') throw new Error('channel_not_found');
        await tools.noReply();
      },
    });
    lab.band.fail('markProcessing');
    const one = lab.band.post(ROOM, 'one');
    const two = lab.band.post(ROOM, 'two');
    await lab.settle();
    await lab.clock.advance(60_000);
    const three = lab.band.post(ROOM, 'three');
    await lab.settle();
    expect(lab.handled).toEqual(['one', 'two', 'three']);
    for (const id of [one, two, three]) {
      const marks = lab.band.calls.filter(({ messageId }) => messageId === id).map(({ method }) => method);
      expect(marks.at(-2)).toBe('markProcessing');
      expect(marks.at(-1)).toBe(id === two ? 'markFailed' : 'markProcessed');
    }
    expect(lab.band.attempts(ROOM, two)).toEqual([{ status: 'failed', error: 'channel_not_found' }]);
  });

  it('BND-02 R-195 after a restart a message that failed for good is tried within its budget, and holds up nobody', async () => {
    const refused = 'channel_not_found';
    const onTurn: GenericCallback = async ({ message, tools }) => {
      if (message.content === 'two') throw new Error(refused);
      await tools.noReply();
    };
    const before = await started({ onTurn });
    const one = before.band.post(ROOM, 'one');
    const two = before.band.post(ROOM, 'two');
    await before.settle();
    await before.agent.stop();
    const three = before.band.post(ROOM, 'three', { push: false });
    const after = agentLab({ band: before.band, clock: before.clock, onTurn });
    await after.agent.start();
    await after.clock.advance(600_000);
    await after.settle();
    expect([before.handled, after.handled]).toEqual([
      ['one', 'two'],
      ['two', 'three'],
    ]);
    expect([one, two, three].map((id) => after.band.state(ROOM, id))).toEqual(['processed', 'failed', 'processed']);
    expect(after.band.attempts(ROOM, two).map(({ error }) => error)).toEqual([refused, refused]);
    await after.agent.stop();
  });
});

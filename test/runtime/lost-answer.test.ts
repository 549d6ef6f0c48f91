import { describe, expect, it } from 'vitest';
import type { GenericCallback } from '../../src/adapters/generic.js';
import type { Participant } from '../../src/core/participants.js';
import { isSentEvent, isSentText } from '../../src/runtime/tools/lost-answer.js';
import { agentLab, type AgentLab } from '../support/agent-lab.js';
import { USER_ID } from '../support/fake-band.js';

const ROOM = 'room-1';
const JANE = [{ id: USER_ID, handle: 'jane' }];

/** One agent in one room, on a platform that stores messages as the real one does. */
async function inRoom(onTurn: GenericCallback, session: { maxMessageRetries?: number } = {}): Promise<AgentLab> {
  const lab = agentLab({ onTurn, session });
  lab.band.storesTokens = true;
  lab.band.addRoom(ROOM);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

const texts = ({ band }: AgentLab) => band.written(ROOM, 'text').map(({ content }) => content.split(' ').at(-1));
const later = async (lab: AgentLab) => {
  await lab.clock.advance(10_000);
  await lab.settle();
};

describe('a post whose answer is lost', () => {
  it('is found in the room: the turn goes on with its id, and nothing is posted twice', async () => {
    const sent: unknown[] = [];
    const lab = await inRoom(async ({ tools }) => {
      sent.push(await tools.sendMessage('@jane answer', JANE));
    });
    lab.band.lose('postMessage');
    const id = lab.band.post(ROOM, 'question');
    await later(lab);
    expect(texts(lab)).toEqual(['answer']);
    expect(sent).toMatchObject([{ id: lab.band.written(ROOM)[0]?.id, success: true, recipients: [{ id: USER_ID }] }]);
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.handled).toEqual(['question']);
    await lab.agent.stop();
  });

  it.each(['BAND_CONNECTION_LOST', 'BAND_UNAVAILABLE', 'BAND_BAD_ANSWER'] as const)(
    'is found likewise after %s',
    async (code) => {
      const lab = await inRoom(async ({ tools }) => {
        await tools.sendMessage('answer', JANE);
      });
      lab.band.lose('postMessage', code);
      lab.band.post(ROOM, 'question');
      await later(lab);
      expect([texts(lab), lab.handled]).toEqual([['answer'], ['question']]);
      await lab.agent.stop();
    },
  );

  it('is made again when the room shows that it did not arrive', async () => {
    const lab = await inRoom(async ({ tools }) => {
      await tools.sendMessage('answer', JANE);
    });
    lab.band.fail('postMessage', { code: 'BAND_TIMEOUT', statusCode: 408, times: 2 });
    lab.band.post(ROOM, 'question');
    await later(lab);
    expect([texts(lab), lab.handled]).toEqual([['answer'], ['question']]);
    expect(lab.band.called('postMessage')).toHaveLength(3);
    await lab.agent.stop();
  });

  it('is given up after three tries, with the error of the last', async () => {
    const lab = await inRoom(async ({ tools }) => {
      await tools.sendMessage('answer', JANE);
    });
    lab.band.fail('postMessage', { code: 'BAND_TIMEOUT', statusCode: 408, times: 9 });
    const id = lab.band.post(ROOM, 'question');
    await later(lab);
    expect(lab.band.called('postMessage')).toHaveLength(3);
    expect(lab.band.attempts(ROOM, id)).toMatchObject([{ status: 'failed' }]);
    await lab.agent.stop();
  });

  it.each([
    ['503', { code: 'BAND_UNAVAILABLE', statusCode: 503 }],
    ['refused', { code: 'BAND_FORBIDDEN', statusCode: 403 }],
    ['never sent', { code: 'BAND_UNREACHABLE', statusCode: 0 }],
    ['too fast', { code: 'BAND_RATE_LIMITED', statusCode: 429 }],
  ] as const)('is not looked for where nothing can have arrived: %s', async (_name, fault) => {
    const lab = await inRoom(async ({ tools }) => {
      await tools.sendMessage('answer', JANE);
    });
    lab.band.post(ROOM, 'first');
    await later(lab);
    const looks = lab.band.called('getContext').length;
    lab.band.fail('postMessage', fault);
    lab.band.post(ROOM, 'second');
    await later(lab);
    expect(lab.band.called('getContext')).toHaveLength(looks);
    expect(lab.band.called('postMessage')).toHaveLength(2);
    await lab.agent.stop();
  });

  it('is not taken for the same words of an earlier turn, of the turn itself, or of somebody else', async () => {
    const lab = await inRoom(async ({ tools, message }) => {
      await tools.sendMessage('ok', JANE);
      if (message.content === 'two') {
        lab.band.fail('postMessage', { code: 'BAND_TIMEOUT', statusCode: 408 });
        await tools.sendMessage('ok', JANE);
      }
    });
    const held = lab.band.hold('postMessage');
    lab.band.post(ROOM, 'one');
    await held.met;
    // The answer to the first message stands behind the second one.
    lab.band.post(ROOM, 'two');
    lab.band.remember(ROOM, 'ok', { sender_id: 'other-agent', sender_type: 'Agent' });
    held.release();
    await later(lab);
    expect(texts(lab)).toEqual(['ok', 'ok', 'ok']);
    await lab.agent.stop();
  });

  it('is not repeated when the room cannot be looked at', async () => {
    const lab = await inRoom(async ({ tools }) => {
      lab.band.fail('getContext', { times: 9 });
      await tools.sendMessage('answer', JANE);
    });
    lab.band.lose('postMessage');
    const id = lab.band.post(ROOM, 'question');
    await later(lab);
    expect(lab.band.called('postMessage')).toHaveLength(1);
    expect(lab.band.attempts(ROOM, id)).toMatchObject([{ status: 'failed' }]);
    await lab.agent.stop();
  });

  it('is left alone by a turn that is ended meanwhile', async () => {
    const lab = await inRoom(async ({ tools }) => {
      await tools.sendMessage('answer', JANE);
    });
    lab.band.fail('postMessage', { code: 'BAND_TIMEOUT', statusCode: 408 });
    const id = lab.band.post(ROOM, 'question');
    await lab.settle();
    lab.band.signal('interrupt', ROOM);
    await later(lab);
    expect(lab.band.called('postMessage')).toHaveLength(1);
    expect(lab.band.state(ROOM, id)).toBe('processed');
    await lab.agent.stop();
  });

  it('R-193 counts as the report of a failure once it is found, so that the runtime adds none', async () => {
    const lab = await inRoom(async ({ tools }) => {
      await tools.sendFailure({ provider: 'model', message: 'out of tokens', code: 'x' });
      throw new Error('out of tokens');
    });
    lab.band.lose('postEvent');
    lab.band.post(ROOM, 'question');
    await later(lab);
    expect(lab.band.written(ROOM, 'error').map(({ content }) => content)).toEqual(['out of tokens']);
    await lab.agent.stop();
  });
});

describe('what a stored row is compared by', () => {
  const row = (content: string, more: object = {}) => ({
    id: 'm',
    content,
    message_type: 'text',
    sender_id: 'a',
    sender_type: 'Agent',
    ...more,
  });
  const people: Participant[] = [
    { id: 'p', name: 'Ann Lee', type: 'User', handle: 'ann', description: null },
    { id: 'q', name: 'Bot', type: 'Agent', handle: 'ann/bot', description: null },
  ];

  it.each([
    ['hello', '@[[p]] hello'],
    ['@ann hello', '@[[p]] hello'],
    ['hello @Ann Lee, and bye', 'hello @[[p]], and bye'],
    ['  hello\n', '@[[p]]   hello\n'],
    ['ask @ann/bot now', 'ask @[[p]]/bot now'],
  ])('%j is stored as %j', (sent, stored) => {
    expect(isSentText(row(stored), sent, [{ id: 'p' }, { id: 'q' }], people)).toBe(true);
  });

  it.each([
    ['hello', '@[[p]] hello there'],
    ['hello', ''],
    ['ann', '@[[p]]'],
  ])('%j is not %j', (sent, stored) => {
    expect(isSentText(row(stored), sent, [{ id: 'p' }], people)).toBe(false);
    expect(isSentText(row(stored, { message_type: 'thought' }), sent, [{ id: 'p' }], people)).toBe(false);
  });

  it('an event by its type, its text and the metadata that was given', () => {
    const stored = row('done', { message_type: 'task', metadata: { kept: { by: 'us' }, added: 'by the platform' } });
    expect(isSentEvent(stored, 'done', 'task', { kept: { by: 'us' } })).toBe(true);
    expect(isSentEvent(stored, 'done', 'task', null)).toBe(true);
    expect(isSentEvent(stored, 'done', 'thought', null)).toBe(false);
    expect(isSentEvent(stored, 'done', 'task', { kept: { by: 'others' } })).toBe(false);
    expect(isSentEvent(stored, 'undone', 'task', null)).toBe(false);
  });
});

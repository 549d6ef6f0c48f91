import { afterEach, describe, expect, it } from 'vitest';
import { deferred } from '../../../src/base/async.js';
import { person } from '../../support/acp/fake-band.js';
import { createLab, type EditorEnd, type Lab, type LabOptions } from '../../support/acp/lab.js';

const codex = person('codex');
const labs: Lab[] = [];
afterEach(async () => {
  for (const one of labs.splice(0)) await one.close();
});
async function open(options: LabOptions = {}): Promise<Lab & { ed: EditorEnd; session: string }> {
  const made = await createLab({
    peers: [codex],
    ...options,
    options: { peers: ['codex'], deliveryPoll: 'off', ...options.options },
  });
  labs.push(made);
  const ed = await made.editor();
  return { ...made, ed, session: await ed.newSession() };
}
const posts = (lab: Lab) => lab.band.of('postMessage').length;
const cancel = (lab: { ed: EditorEnd; session: string }) => {
  lab.ed.notify('session/cancel', { sessionId: lab.session });
};

describe('session/cancel', () => {
  it('P-090 ends a waiting turn at once with cancelled; a later answer is marked late', async () => {
    const lab = await open();
    const id = lab.ed.prompt(lab.session, 'rewrite everything');
    await lab.ed.settle();
    cancel(lab);
    await lab.ed.settle();
    expect(lab.ed.answerTo(id)?.result).toMatchObject({
      stopReason: 'cancelled',
      _meta: { 'band.ai': { delivered: true, recipients: ['ana/codex'], replied: [], pending: ['ana/codex'] } },
    });
    await lab.band.say(lab.band.onlyRoom, codex, 'rewritten');
    expect(lab.ed.updates('agent_message_chunk').map((update) => update._meta['band.ai'].late)).toEqual([true]);
  });

  it('P-091 covers prompts that came before it and none after, even written in one go', async () => {
    const lab = await open();
    const first = lab.ed.prompt(lab.session, 'one');
    const second = lab.ed.prompt(lab.session, 'two');
    cancel(lab);
    const third = lab.ed.prompt(lab.session, 'three');
    await lab.ed.settle();
    expect(lab.ed.answerTo(first)?.result?.stopReason).toBe('cancelled');
    expect(lab.ed.answerTo(second)?.result?.stopReason).toBe('cancelled');
    expect(lab.ed.answerTo(third)).toBeUndefined();
    await lab.band.say(lab.band.onlyRoom, codex, 'ok');
    await lab.clock.advance(10_000);
    expect(lab.ed.answerTo(third)?.result?.stopReason).toBe('end_turn');
  });

  it('P-092 does nothing when idle, for an unknown session, twice, or after the answer', async () => {
    const lab = await open();
    cancel(lab);
    lab.ed.notify('session/cancel', { sessionId: 'nope' });
    lab.ed.notify('session/cancel', {});
    await lab.ed.settle();
    const before = lab.ed.frames.length;
    const id = lab.ed.prompt(lab.session, 'one');
    await lab.ed.settle();
    await lab.band.say(lab.band.onlyRoom, codex, 'ok');
    await lab.clock.advance(300);
    expect(lab.ed.answerTo(id)?.result?.stopReason).toBe('end_turn');
    await lab.ed.settle();
    const after = lab.ed.frames.length;
    cancel(lab);
    cancel(lab);
    await lab.ed.settle();
    expect(lab.ed.frames).toHaveLength(after);
    expect(after).toBeGreaterThan(before);
  });

  it('P-093 before posting, nothing is posted', async () => {
    const lab = await open();
    const gate = deferred();
    lab.band.hooks.push((call) => (call.method === 'listParticipants' ? gate.promise : undefined));
    const id = lab.ed.prompt(lab.session, 'one');
    await lab.ed.settle();
    cancel(lab);
    gate.resolve();
    await lab.ed.settle();
    expect(lab.ed.answerTo(id)?.result).toEqual({
      stopReason: 'cancelled',
      _meta: { 'band.ai': { delivered: false, recipients: [], replied: [], pending: [] } },
    });
    expect(posts(lab)).toBe(0);
  });

  it('P-093 while posting, the answer that may come is owed', async () => {
    const lab = await open();
    const gate = deferred();
    lab.band.hooks.push((call) => (call.method === 'postMessage' ? gate.promise : undefined));
    const id = lab.ed.prompt(lab.session, 'one');
    await lab.ed.settle();
    cancel(lab);
    gate.resolve();
    await lab.ed.settle();
    expect(lab.ed.answerTo(id)?.result?.stopReason).toBe('cancelled');
    await lab.band.say(lab.band.onlyRoom, codex, 'oh, that one');
    expect(lab.ed.updates('agent_message_chunk')[0]!._meta['band.ai'].late).toBe(true);
  });

  it('P-095 a late answer does not complete the next turn by itself', async () => {
    const lab = await open();
    lab.ed.prompt(lab.session, 'one');
    await lab.ed.settle();
    cancel(lab);
    const second = lab.ed.prompt(lab.session, 'two');
    await lab.ed.settle();
    await lab.band.say(lab.band.onlyRoom, codex, 'answer to one');
    await lab.clock.advance(5_000);
    expect(lab.ed.answerTo(second)).toBeUndefined();
    await lab.band.say(lab.band.onlyRoom, codex, 'answer to two');
    await lab.clock.advance(300);
    expect(lab.ed.answerTo(second)?.result?._meta['band.ai']).toMatchObject({ replied: ['ana/codex'], pending: [] });
  });

  it('P-094 $/cancel_request ends that prompt only, with cancelled', async () => {
    const lab = await open();
    const first = lab.ed.prompt(lab.session, 'one');
    const second = lab.ed.prompt(lab.session, 'two');
    await lab.ed.settle();
    lab.ed.notify('$/cancel_request', { requestId: first });
    lab.ed.notify('$/cancel_request', { requestId: 'unknown' });
    await lab.ed.settle();
    expect(lab.ed.answerTo(first)?.result?.stopReason).toBe('cancelled');
    expect(posts(lab)).toBe(2);
    await lab.band.say(lab.band.onlyRoom, codex, 'ok');
    await lab.clock.advance(10_000);
    expect(lab.ed.answerTo(second)?.result?.stopReason).toBe('end_turn');
  });

  it('P-094 $/cancel_request of a prompt that waits takes it out of the queue', async () => {
    const lab = await open();
    lab.ed.prompt(lab.session, 'one');
    const second = lab.ed.prompt(lab.session, 'two');
    await lab.ed.settle();
    lab.ed.notify('$/cancel_request', { requestId: second });
    await lab.ed.settle();
    expect(lab.ed.answerTo(second)?.result?.stopReason).toBe('cancelled');
    await lab.band.say(lab.band.onlyRoom, codex, 'ok');
    await lab.clock.advance(300);
    await lab.ed.settle();
    expect(posts(lab)).toBe(1);
  });

  it('P-094 $/cancel_request is ignored for a session that is being made', async () => {
    const lab = await open();
    const gate = deferred();
    lab.band.hooks.push((call) => (call.method === 'createChat' ? gate.promise : undefined));
    const id = lab.ed.ask('session/new', { cwd: '/x', mcpServers: [] });
    await lab.ed.settle();
    lab.ed.notify('$/cancel_request', { requestId: id });
    gate.resolve();
    await lab.ed.settle();
    expect(lab.ed.answerTo(id)?.result?.sessionId).toBeDefined();
  });

  it('session/cancel as a request is no method', async () => {
    const lab = await open();
    expect((await lab.ed.request('session/cancel', { sessionId: lab.session })).error?.code).toBe(-32_601);
  });

  it('cancelNotice: message tells the peers', async () => {
    const lab = await open({ options: { cancelNotice: 'message' } });
    lab.ed.prompt(lab.session, 'one');
    await lab.ed.settle();
    cancel(lab);
    await lab.ed.settle();
    expect(posts(lab)).toBe(2);
    expect((lab.band.of('postMessage')[1]?.args as { content: string }).content).toContain('cancelled');
  });

  it('P-137 closing in a turn cancels it; the session loads again; an unknown one closes too', async () => {
    const lab = await open();
    const id = lab.ed.prompt(lab.session, 'one');
    await lab.ed.settle();
    expect((await lab.ed.request('session/close', { sessionId: lab.session })).result).toEqual({});
    expect(lab.ed.answerTo(id)?.result?.stopReason).toBe('cancelled');
    expect(lab.server.sessions.size).toBe(0);
    expect((await lab.ed.request('session/close', { sessionId: 'nope' })).result).toEqual({});
    const loaded = await lab.ed.request('session/load', {
      sessionId: lab.session,
      cwd: '/home/ana/shop',
      mcpServers: [],
    });
    expect(loaded.result?._meta['band.ai'].roomId).toBe(lab.session);
  });

  it.each(['closes it', 'hangs up'])(
    'P-137 P-141 one of two editors %s in its turn: its prompts end, the prompt of the other one runs',
    async (how) => {
      const lab = await open();
      const other = await lab.editor();
      const params = { sessionId: lab.session, cwd: '/home/ana/shop', mcpServers: [] };
      await other.request('session/resume', params);
      const mine = [lab.ed.prompt(lab.session, 'one'), lab.ed.prompt(lab.session, 'two')];
      await lab.ed.settle();
      const theirs = other.prompt(lab.session, 'three');
      await other.settle();
      if (how === 'hangs up') lab.ed.hangUp();
      else expect((await lab.ed.request('session/close', { sessionId: lab.session })).result).toEqual({});
      await other.settle();
      if (how === 'closes it') {
        expect(mine.map((id) => lab.ed.answerTo(id)?.result?.stopReason)).toEqual(['cancelled', 'cancelled']);
      }
      expect(lab.band.of('postMessage')).toHaveLength(2);
      // The answer to the prompt that was cut off is still owed, and comes first.
      await lab.band.say(lab.band.onlyRoom, codex, 'to one');
      await lab.band.say(lab.band.onlyRoom, codex, 'to three');
      await lab.clock.advance(300);
      expect(other.answerTo(theirs)?.result?.stopReason).toBe('end_turn');
    },
  );

  it('P-009 the end of a connection ends its turns and writes nothing more', async () => {
    const lab = await open();
    lab.ed.prompt(lab.session, 'one');
    await lab.ed.settle();
    lab.ed.hangUp();
    await lab.ed.settle();
    const frames = lab.ed.frames.length;
    await lab.band.say(lab.band.onlyRoom, codex, 'ok');
    await lab.clock.advance(1_000);
    expect(lab.ed.frames).toHaveLength(frames);
    expect(lab.server.sessions.openPrompts).toBe(0);
    expect(lab.server.connections).toBe(0);
  });
});

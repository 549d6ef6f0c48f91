import { afterEach, describe, expect, it } from 'vitest';
import { person } from '../../support/acp/fake-band.js';
import { createLab, resultOf, type EditorEnd, type Lab } from '../../support/acp/lab.js';

const echo = person('echo');
const labs: Lab[] = [];
afterEach(async () => {
  for (const one of labs.splice(0)) await one.close();
});

/** An editor whose only peer answers at once. */
async function open(): Promise<
  Lab & { ed: EditorEnd; session: string; turn: (text: unknown[] | string) => Promise<string> }
> {
  const made = await createLab({
    peers: [echo],
    options: { peers: ['echo'], contextPreamble: 'never', deliveryPoll: 'off' },
  });
  labs.push(made);
  made.band.onPrompt = (room, row) => {
    if (!row.content.includes('hold')) void made.band.say(room, echo, `echo: ${row.content.replace(/^\S+ /, '')}`);
  };
  const ed = await made.editor();
  const session = await ed.newSession();
  return {
    ...made,
    ed,
    session,
    async turn(text) {
      const id = ed.prompt(session, text);
      await made.clock.advance(400);
      await ed.settle();
      return resultOf(ed.answerTo(id)!).stopReason;
    },
  };
}

describe('P-171 the core of the protocol, as clients check it', () => {
  it('P-171 single and multi turn', async () => {
    const lab = await open();
    expect(await lab.turn('one')).toBe('end_turn');
    expect(await lab.turn('two')).toBe('end_turn');
    expect(lab.ed.said()).toEqual(['echo: one', 'echo: two']);
  });

  it('P-171 a cancel in flight, one when idle, and a prompt after each', async () => {
    const lab = await open();
    const held = lab.ed.prompt(lab.session, 'hold this');
    await lab.ed.settle();
    lab.ed.notify('session/cancel', { sessionId: lab.session });
    await lab.ed.settle();
    expect(resultOf(lab.ed.answerTo(held)!).stopReason).toBe('cancelled');
    lab.ed.notify('session/cancel', { sessionId: lab.session });
    const next = lab.ed.prompt(lab.session, 'after');
    await lab.clock.advance(11_000);
    expect(resultOf(lab.ed.answerTo(next)!).stopReason).toBe('end_turn');
  });

  it('P-171 a null folder, a session of the wrong type and an unknown session are refused', async () => {
    const lab = await open();
    expect((await lab.ed.request('session/new', { cwd: null, mcpServers: [] })).error?.code).toBe(-32_602);
    const prompt = [{ type: 'text', text: 'x' }];
    expect((await lab.ed.request('session/prompt', { sessionId: 7, prompt })).error?.code).toBe(-32_602);
    expect((await lab.ed.request('session/prompt', { sessionId: 'none', prompt })).error?.code).toBe(-32_002);
  });

  it('P-171 structured blocks travel', async () => {
    const lab = await open();
    expect(
      await lab.turn([
        { type: 'text', text: 'look' },
        { type: 'resource_link', uri: 'file:///a.md', name: 'a.md' },
      ]),
    ).toBe('end_turn');
    expect(lab.ed.said()[0]).toContain('[a.md](file:///a.md)');
  });

  it('P-171 work that completes in the background is shown without a turn', async () => {
    const lab = await open();
    await lab.turn('start');
    await lab.band.say(lab.band.onlyRoom, echo, 'and done');
    await lab.ed.settle();
    expect(lab.ed.said().at(-1)).toBe('and done');
  });
});

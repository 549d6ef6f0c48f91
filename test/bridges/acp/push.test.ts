import { afterEach, describe, expect, it } from 'vitest';
import { deferred } from '../../../src/base/async.js';
import { person } from '../../support/acp/fake-band.js';
import { createLab, updateOf, type EditorEnd, type Lab, type LabOptions, type Update } from '../../support/acp/lab.js';

/** What the fake platform was asked to post. */
interface PostedArgs {
  readonly content: string;
  readonly mentions: readonly { readonly handle: string }[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

const codex = person('codex');
const reviewer = person('reviewer');
const labs: Lab[] = [];
afterEach(async () => {
  for (const one of labs.splice(0)) await one.close();
});
async function open(options: LabOptions = {}, notices = false): Promise<Lab & { ed: EditorEnd; session: string }> {
  const made = await createLab({
    peers: [codex, reviewer],
    ...options,
    options: { peers: ['codex'], deliveryPoll: 'off', ...options.options },
  });
  labs.push(made);
  const ed = await made.editor({ notices });
  return { ...made, ed, session: await ed.newSession() };
}
const room = (lab: { band: Lab['band']; session: string }) => lab.band.room(lab.session);

describe('messages of the room', () => {
  it('P-100 carry the message id and their sender; long ones come in pieces with one id', async () => {
    const lab = await open();
    const text = '🧭ż'.repeat(20_000);
    const first = await lab.band.say(room(lab), codex, text);
    const second = await lab.band.say(room(lab), codex, 'short');
    await lab.ed.settle();
    const chunks = lab.ed.updates('agent_message_chunk');
    expect(new Set(chunks.map(({ messageId }) => messageId))).toEqual(new Set([first.id, second.id]));
    const long = chunks.filter(({ messageId }) => messageId === first.id);
    expect(long).toHaveLength(2);
    expect(long.map(({ content }) => content.text).join('')).toBe(`**@ana/codex:** ${text}`);
    expect(chunks.at(-1)!._meta['band.ai'].sender).toEqual({
      id: codex.id,
      type: 'Agent',
      handle: 'ana/codex',
      name: 'Codex',
    });
  });

  it.each([
    ['always', '**@ana/codex:** hi'],
    ['never', 'hi'],
    ['auto', 'hi'],
  ] as const)(
    'P-101 with attribution %s an asked peer alone in the room is shown as %s',
    async (attribution, shown) => {
      const lab = await open({ options: { attribution } });
      lab.ed.prompt(lab.session, 'hello');
      await lab.ed.settle();
      await lab.band.say(room(lab), codex, 'hi');
      await lab.ed.settle();
      expect(lab.ed.said()).toEqual([shown]);
    },
  );

  it('P-103 come once, however often Band hands them over', async () => {
    const lab = await open();
    const row = await lab.band.say(room(lab), codex, 'hi');
    await lab.band.deliver(row, lab.session);
    await lab.band.deliver({ ...row }, lab.session.toUpperCase());
    await lab.ed.settle();
    expect(lab.ed.said()).toHaveLength(1);
  });

  it('P-104 always: shown at once', async () => {
    const lab = await open();
    await lab.band.say(room(lab), codex, 'news');
    await lab.ed.settle();
    expect(lab.ed.said()).toHaveLength(1);
  });

  it('P-104 next-turn: kept, the last hundred, and shown before the next prompt is posted', async () => {
    const lab = await open({ options: { push: 'next-turn' } });
    for (let i = 0; i < 103; i += 1) await lab.band.say(room(lab), codex, `news ${i}`);
    expect(lab.ed.said()).toEqual([]);
    let shownAtPost = 0;
    lab.band.hooks.push((call) => {
      if (call.method === 'postMessage') shownAtPost = lab.ed.said().length;
    });
    lab.ed.prompt(lab.session, 'hi');
    await lab.ed.settle();
    expect(lab.ed.said()).toHaveLength(100);
    expect(lab.ed.said()[0]).toBe('**@ana/codex:** news 3');
    expect(shownAtPost).toBe(100);
  });

  it('P-104 never: not shown, but found by load', async () => {
    const lab = await open({ options: { push: 'never' } });
    await lab.band.say(room(lab), codex, 'news');
    await lab.ed.settle();
    expect(lab.ed.said()).toEqual([]);
    await lab.ed.request('session/load', { sessionId: lab.session, cwd: '/x', mcpServers: [] });
    expect(lab.ed.said()).toEqual(['news']);
  });

  it('P-105 without an editor are acknowledged, and shown by the next load', async () => {
    const lab = await open();
    lab.ed.hangUp();
    await lab.ed.settle();
    await lab.band.say(room(lab), codex, 'while you were away');
    const again = await lab.editor();
    await again.request('session/load', { sessionId: lab.session, cwd: '/x', mcpServers: [] });
    expect(again.said()).toEqual(['while you were away']);
  });

  it('a message for a room without session is acknowledged', async () => {
    const lab = await open();
    const other = lab.band.addRoom();
    await lab.band.say(other, codex, 'hello?');
    await lab.ed.settle();
    expect(lab.ed.said()).toEqual([]);
  });

  it('P-110 an editor that stops reading holds up its own sessions only', async () => {
    const lab = await open();
    const other = await lab.editor();
    const otherSession = await other.newSession();
    const sibling = await lab.ed.newSession();
    const gate = deferred();
    lab.ed.blocked = gate.promise;
    let acknowledged = 0;
    const flood = (async () => {
      for (let i = 0; i < 20; i += 1) {
        await lab.band.say(room(lab), codex, 'x'.repeat(30_000));
        acknowledged += 1;
      }
    })();
    await lab.ed.settle();
    expect(acknowledged).toBeGreaterThan(0);
    expect(acknowledged).toBeLessThan(20);
    await lab.band.say(lab.band.room(otherSession), codex, 'hi');
    await other.settle();
    expect(other.said()).toHaveLength(1);
    // Another room of the same editor is still acknowledged: what waits for it is little.
    await lab.band.say(lab.band.room(sibling), codex, 'hi');
    gate.resolve();
    await lab.ed.settle();
    await flood;
    await lab.ed.settle();
    expect(lab.ed.said(lab.session)).toHaveLength(20);
    expect(lab.ed.said(sibling)).toHaveLength(1);
  });

  it('P-111 somebody joins or leaves: commands and targets follow, editors with notices are told', async () => {
    const lab = await open({ options: { rosterCommands: true }, peers: [codex] }, true);
    const carl = person('carl');
    const asked = lab.ed.updates('available_commands_update').length;
    lab.server.sessions.participantsChanged(lab.session, {
      kind: 'added',
      person: { id: carl.id, name: carl.name, handle: carl.handle, type: 'Agent', description: null },
    });
    await lab.ed.settle();
    expect(lab.ed.updates('available_commands_update').length).toBe(asked + 1);
    const targets = lab.ed
      .updates('config_option_update')
      .at(-1)!
      .configOptions[1]!.options.map((one) => one.value);
    expect(targets).toContain('ana/carl');
    expect(lab.ed.updates('notice').map(({ title }) => title)).toEqual(['@ana/carl joined the room']);
    lab.server.sessions.participantsChanged(lab.session, {
      kind: 'removed',
      person: { id: carl.id, name: carl.name, handle: carl.handle, type: 'Agent', description: null },
    });
    await lab.ed.settle();
    expect(
      lab.ed
        .updates('config_option_update')
        .at(-1)!
        .configOptions[1]!.options.map((one) => one.value),
    ).not.toContain('ana/carl');
  });

  it('P-109 notices go only to editors that show them', async () => {
    const lab = await open();
    lab.server.sessions.participantsChanged(lab.session, {
      kind: 'added',
      person: { id: reviewer.id, name: reviewer.name, handle: null, type: 'Agent', description: null },
    });
    await lab.ed.settle();
    expect(lab.ed.updates('notice')).toEqual([]);
    expect(lab.ed.updates('agent_thought_chunk')).toEqual([]);
  });

  it('an error event of a peer is shown and counts as failed', async () => {
    const lab = await open();
    const id = lab.ed.prompt(lab.session, 'do it');
    await lab.ed.settle();
    await lab.band.say(room(lab), codex, 'out of tokens', { message_type: 'error' });
    await lab.clock.advance(250);
    expect(lab.ed.said()).toEqual(['⚠ out of tokens']);
    expect(lab.ed.answerTo(id)?.error?.data.reason).toBe('turn_failed');
  });
});

describe('two editors on one session', () => {
  it('P-141 both see everything, a prompt of one is echoed to the other, one may leave', async () => {
    const lab = await open();
    const other = await lab.editor();
    await other.request('session/resume', { sessionId: lab.session, cwd: '/home/ana/shop', mcpServers: [] });
    await other.settle();
    const id = lab.ed.prompt(lab.session, 'hello');
    await lab.ed.settle();
    expect(other.updates('user_message_chunk')).toEqual([
      expect.objectContaining({ content: { type: 'text', text: 'hello' }, _meta: { 'band.ai': { echo: true } } }),
    ]);
    expect(lab.ed.updates('user_message_chunk')).toEqual([]);
    await lab.band.say(room(lab), codex, 'hi');
    await lab.clock.advance(300);
    expect(lab.ed.answerTo(id)?.result?.stopReason).toBe('end_turn');
    expect(other.said()).toEqual(['hi']);
    other.hangUp();
    await lab.ed.settle();
    await lab.band.say(room(lab), codex, 'still there?');
    await lab.ed.settle();
    expect(lab.ed.said()).toEqual(['hi', 'still there?']);
  });
});

describe('modes and options', () => {
  const modes = [
    { id: 'code', peer: 'codex' },
    { id: 'review', peer: 'reviewer' },
  ];
  const current = (update: Pick<Update, 'configOptions'> | undefined) =>
    update?.configOptions.map((option) => option.currentValue);

  it('P-120 set_mode answers, then sends the whole list of options', async () => {
    const lab = await open({ options: { modes } });
    const answer = await lab.ed.request('session/set_mode', { sessionId: lab.session, modeId: 'review' });
    expect(answer.result).toEqual({});
    await lab.ed.settle();
    expect(current(lab.ed.updates('config_option_update').at(-1))).toEqual(['review', 'auto']);
    const at = lab.ed.indexOf((frame) => updateOf(frame)?.sessionUpdate === 'config_option_update');
    expect(at).toBeGreaterThan(lab.ed.frames.indexOf(answer));
  });

  it('P-120 set_config_option answers the whole list, then tells of a changed mode', async () => {
    const lab = await open({ options: { modes } });
    const target = await lab.ed.request('session/set_config_option', {
      sessionId: lab.session,
      configId: 'target',
      value: 'all',
    });
    expect(current(target.result)).toEqual(['code', 'all']);
    await lab.ed.settle();
    expect(lab.ed.updates('current_mode_update')).toEqual([]);
    const mode = await lab.ed.request('session/set_config_option', {
      sessionId: lab.session,
      configId: 'mode',
      value: 'review',
    });
    expect(current(mode.result)).toEqual(['review', 'all']);
    await lab.ed.settle();
    expect(lab.ed.updates('current_mode_update')).toEqual([
      { sessionUpdate: 'current_mode_update', currentModeId: 'review' },
    ]);
  });

  it('P-121 refuses unknown modes, options and values, and changes nothing', async () => {
    const lab = await open({ options: { modes } });
    const { session } = lab;
    for (const [method, params, code, reason] of [
      ['session/set_mode', { sessionId: session, modeId: 'nope' }, -32_602, 'unknown_mode'],
      ['session/set_mode', { sessionId: 'nope', modeId: 'code' }, -32_002, 'unknown_session'],
      ['session/set_config_option', { sessionId: session, configId: 'nope', value: 'x' }, -32_602, 'unknown_option'],
      ['session/set_config_option', { sessionId: session, configId: 'mode', value: 'x' }, -32_602, 'invalid_value'],
      [
        'session/set_config_option',
        { sessionId: session, configId: 'target', value: 'ana/nobody' },
        -32_602,
        'invalid_value',
      ],
      [
        'session/set_config_option',
        { sessionId: session, configId: 'mode', type: 'boolean', value: true },
        -32_602,
        'invalid_value',
      ],
      ['session/set_config_option', { sessionId: 'nope', configId: 'mode', value: 'code' }, -32_002, 'unknown_session'],
    ] as const) {
      expect((await lab.ed.request(method, params)).error).toMatchObject({ code, data: { reason } });
    }
    const answer = await lab.ed.request('session/set_config_option', {
      sessionId: session,
      configId: 'target',
      value: 'auto',
    });
    expect(current(answer.result)).toEqual(['code', 'auto']);
  });

  it('P-123 a change in a turn is for the next prompt', async () => {
    const lab = await open({ options: { modes } });
    lab.ed.prompt(lab.session, 'one');
    await lab.ed.settle();
    lab.ed.prompt(lab.session, 'two');
    await lab.ed.request('session/set_mode', { sessionId: lab.session, modeId: 'review' });
    await lab.band.say(room(lab), codex, 'ok');
    await lab.clock.advance(300);
    await lab.ed.settle();
    const to = lab.band.of('postMessage').map(({ args }) => (args as PostedArgs).mentions[0]!.handle);
    expect(to).toEqual(['ana/codex', 'ana/reviewer']);
  });

  it('P-122 mode and target stand in a new marker, posted at most once in two seconds, and come back with load', async () => {
    const lab = await open({ options: { modes } });
    await lab.clock.advance(2_000);
    for (const modeId of ['review', 'code', 'review']) {
      await lab.ed.request('session/set_mode', { sessionId: lab.session, modeId });
    }
    await lab.ed.request('session/set_config_option', {
      sessionId: lab.session,
      configId: 'target',
      value: 'ana/codex',
    });
    await lab.clock.advance(2_000);
    const markers = lab.band.of('postEvent').map(({ args }) => (args as PostedArgs).metadata);
    expect(markers.length).toBeLessThanOrEqual(3);
    expect(markers.at(-1)).toMatchObject({ acp_mode: 'review', acp_target: 'ana/codex' });
    const fresh = await createLab({ band: lab.band, options: { modes } });
    labs.push(fresh);
    const again = await fresh.editor();
    const { result } = await again.request('session/resume', {
      sessionId: lab.session,
      cwd: '/home/ana/shop',
      mcpServers: [],
    });
    expect(result!.modes.currentModeId).toBe('review');
    expect(current(result)).toEqual(['review', 'ana/codex']);
  });
});

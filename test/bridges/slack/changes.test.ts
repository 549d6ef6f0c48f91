import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { callRest } from '../../support/rest-call.js';
import { startBridge, say, type BridgeLab, type SlackTurn } from '../../support/slack/bridge-lab.js';

const gate = () => {
  let open = (): void => undefined;
  const closed = new Promise<void>((resolve) => (open = resolve));
  return { closed, open };
};

/** A brain that stands still until it is told to go on, and says why it was cut. */
async function held(settings: Parameters<typeof startBridge>[0] = {}) {
  const { closed, open } = gate();
  const cut: string[] = [];
  const lab = await startBridge({
    ...settings,
    onTurn: async (turn: SlackTurn) => {
      await new Promise<void>((resolve) => {
        turn.signal.addEventListener('abort', () => {
          cut.push(turn.message.content);
          resolve();
        });
        void closed.then(resolve);
      });
      if (!turn.signal.aborted) await say(turn, `done ${turn.message.content}`);
    },
  });
  return { lab, open, cut };
}
const heard = (lab: BridgeLab, text: string) =>
  lab.slack.until(() => lab.heard.includes(text), `the brain hears ${text}`);
/** A message of another thread has reached the brain: so would have one that came before it and does not wait. */
const othersGoOn = async (lab: BridgeLab) => {
  lab.bob.says('#rooms', '@gateway meanwhile');
  await heard(lab, 'meanwhile');
};

describe('edits', () => {
  it('S-150 an edit of a message that waits replaces it', async () => {
    const { lab, open } = await held();
    const said = lab.alice.says('#general', '@gateway first');
    await heard(lab, 'first');
    const second = lab.alice.replies(said, 'sekond');
    await lab.slack.settled();
    lab.alice.edits(second, 'second');
    await lab.slack.settled();
    open();
    expect(await lab.answered(said, 2)).toEqual(['done first', 'done second']);
  });

  it('S-150 an edit of a message in work lets the turn go on; with rerun it starts again', async () => {
    for (const edits of ['history', 'rerun'] as const) {
      const { lab, open, cut } = await held({ settings: { edits } });
      const said = lab.alice.says('#general', '@gateway draft');
      await heard(lab, 'draft');
      lab.alice.edits(said, '@gateway final');
      await lab.slack.settled();
      if (edits === 'rerun') await heard(lab, 'final');
      open();
      await lab.answered(said);
      await lab.idle();
      expect(lab.heard).toEqual(edits === 'rerun' ? ['draft', 'final'] : ['draft']);
      expect(cut).toEqual(edits === 'rerun' ? ['draft'] : []);
      await lab.stop();
    }
  });

  it('S-150 a change that is no edit of the words does nothing', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway https://e.com');
    await lab.answered(said);
    const message = lab.slack.raw(lab.general, said.ts)!;
    lab.slack.emitEvent(lab.app, lab.team.id, { type: 'app_mention' });
    const changed = {
      type: 'message',
      subtype: 'message_changed',
      channel: lab.general.id,
      channel_type: 'channel',
      message: { ...message, attachments: [{ from_url: 'https://e.com' }] },
      previous_message: message,
      ts: '9.9',
      event_ts: '9.9',
    };
    lab.slack.deliverRaw(lab.app, {
      type: 'event_callback',
      event_id: 'EvUnfurl',
      team_id: lab.team.id,
      event: changed,
      authorizations: [{ team_id: lab.team.id, user_id: lab.bot.botUserId, is_bot: true }],
    });
    await lab.idle();
    expect(lab.heard).toHaveLength(1);
    expect(lab.answers(said)).toHaveLength(1);
  });

  it('S-151 a mention that an edit adds starts one turn', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', 'hello');
    await lab.slack.settled();
    lab.alice.edits(said, '@gateway hello');
    await lab.answered(said);
    lab.alice.edits(said, '@gateway hello again');
    await lab.idle();
    expect(lab.heard).toEqual(['hello']);
  });

  it('S-063 SLK-19 edits and echoes of our own posts start nothing, and a person who writes the same words is heard', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway hi');
    await lab.answered(said);
    lab.bob.replies(said, 'echo: hi');
    await lab.answered(said, 2);
    await lab.idle();
    expect(lab.heard).toEqual(['hi', 'echo: hi']);
  });
});

describe('deletions', () => {
  it('S-152 a message that waits and is deleted never reaches the brain', async () => {
    const { lab, open } = await held();
    const said = lab.alice.says('#general', '@gateway first');
    await heard(lab, 'first');
    // Two events of one message, since it names the bot.
    const second = lab.alice.replies(said, '@gateway second');
    const third = lab.alice.replies(said, 'third');
    await lab.slack.settled();
    lab.alice.deletes(second);
    await lab.slack.settled();
    open();
    expect(await lab.answered(said, 2)).toEqual(['done first', 'done third']);
    expect(third.threadTs).toBe(said.ts);
  });

  it('S-152 deleting a message in work interrupts its turn', async () => {
    const { lab, open, cut } = await held();
    const said = lab.alice.says('#general', '@gateway first');
    lab.bob.replies(said, 'keeps the thread alive');
    await heard(lab, 'first');
    lab.alice.deletes(said);
    await expect.poll(() => cut).toEqual(['first']);
    open();
    await lab.slack.settled();
  });

  it('S-153 deleting the root keeps the conversation going', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway one');
    await lab.answered(said);
    lab.alice.deletes(said);
    await lab.slack.settled();
    lab.bob.replies(said, 'two');
    expect(await lab.answered(said, 2)).toEqual(['echo: one', 'echo: two']);
    expect(new Set(lab.turns.map((turn) => turn.roomId)).size).toBe(1);
  });
});

describe('controls', () => {
  const toolTurn = async (turn: SlackTurn) => {
    await turn.tools.executeToolCall('band_get_participants', {});
  };
  /** A turn that has shown its progress, with buttons, and waits. */
  async function working() {
    const { closed, open } = gate();
    const cut: string[] = [];
    const lab = await startBridge({
      onTurn: async (turn) => {
        await toolTurn(turn);
        await new Promise<void>((resolve) => {
          turn.signal.addEventListener('abort', () => {
            cut.push(turn.message.content);
            resolve();
          });
          void closed.then(resolve);
        });
        if (!turn.signal.aborted) await say(turn, `done ${turn.message.content}`);
      },
    });
    const said = lab.alice.says('#general', '@gateway work');
    const where = { channel: lab.general.id, threadTs: said.ts };
    await lab.slack.until(
      () => lab.slack.botMessages(lab.general, said.ts).some((one) => one.buttons.includes('Stop')),
      'a Stop button',
    );
    return { lab, open, cut, said, where };
  }

  it('S-165 Interrupt cuts the turn and the next message starts', async () => {
    const { lab, open, cut, where, said } = await working();
    lab.alice.replies(said, 'next');
    lab.alice.clicks('Interrupt', where);
    await expect.poll(() => cut).toEqual(['work']);
    await lab.slack.until(() => lab.heard.includes('next'));
    open();
    await lab.slack.until(() => lab.answers(said).includes('done next'));
  });

  it('S-165 S-081 a press is heard while as many turns run as may, and the next one waits for its place', async () => {
    const { lab, open, cut } = await held({ settings: { maxConcurrentTurns: 1, showToolProgress: false } });
    const said = lab.alice.says('#general', '@gateway work');
    await heard(lab, 'work');
    const other = lab.bob.says('#general', '@gateway other');
    await lab.slack.settled();
    expect(lab.heard).toEqual(['work']);
    lab.alice.stopsAgent(said);
    await expect.poll(() => cut).toEqual(['work']);
    await heard(lab, 'other');
    open();
    expect(await lab.answered(other)).toEqual(['done other']);
  });

  it('S-216 a stop does not wait for messages that wait for a place', async () => {
    const { lab, cut } = await held({ settings: { maxConcurrentTurns: 1 } });
    lab.alice.says('#general', '@gateway work');
    await heard(lab, 'work');
    const other = lab.bob.says('#general', '@gateway other');
    await lab.slack.settled();
    await lab.stop();
    expect(cut).toEqual(['work']);
    expect(lab.heard).toEqual(['work']);
    const { store, sandbox, dataDir } = lab;
    const next = await startBridge({ world: lab, store, sandbox, dataDir });
    await next.slack.until(() => next.heard.includes('other'), 'what waited');
    expect(await next.answered(other)).toEqual(['echo: other']);
  });

  it('S-165 S-070 Stop pauses the thread, keeps what comes, and Resume hands it over in order', async () => {
    const { lab, open, cut, where, said } = await working();
    lab.alice.clicks('Stop', where);
    await expect.poll(() => cut).toEqual(['work']);
    await lab.slack.settled();
    lab.alice.replies(said, 'one');
    lab.alice.replies(said, 'two');
    await othersGoOn(lab);
    expect(lab.heard).toEqual(['work', 'meanwhile']);
    open();
    await lab.slack.until(
      () => lab.slack.messages(lab.general, said.ts, lab.alice.id).some((one) => one.buttons.includes('Resume')),
      'a Resume button',
    );
    lab.alice.clicks('Resume', where);
    await lab.slack.until(() => lab.answers(said).includes('done two'), 'the second kept message');
    const order = lab.heard.filter((text) => text === 'one' || text === 'two');
    expect(order).toEqual(['one', 'two']);
  });

  it('S-165 only the asker, controllers and administrators may press; others are told so', async () => {
    const { lab, open, cut, where } = await working();
    lab.bob.clicks('Stop', where);
    await lab.slack.until(() => lab.slack.ephemerals(lab.general, lab.bob.id).length === 1, 'a refusal');
    expect(cut).toEqual([]);
    lab.carol.clicks('Interrupt', where);
    await expect.poll(() => cut).toEqual(['work']);
    open();
  });

  it('S-165 a button that was used already, or was never ours, is answered politely', async () => {
    const { lab, open, cut, where } = await working();
    const pressed = lab.alice.clicks('Interrupt', where);
    await expect.poll(() => cut).toEqual(['work']);
    open();
    const again = {
      ...pressed.delivery!.body,
      trigger_id: 'again',
      actions: [{ ...(pressed.delivery!.body['actions'] as object[])[0], value: 'unknown' }],
    };
    const delivery = lab.slack.deliverRaw(lab.app, again, 'interactive');
    await lab.slack.until(() => delivery?.state === 'acked');
    await lab.slack.until(() => lab.slack.ephemerals(lab.general, lab.alice.id).length >= 1, 'an answer');
  });

  it('S-166 a stop from Band cuts the turn and pauses the thread, a play from Band resumes it', async () => {
    const { lab, open, cut, said } = await working();
    const band = (mode: string) =>
      callRest(lab.sandbox.restUrl, 'POST', `/api/v1/me/agents/${DEMO.helpdesk.id}/${mode}`, DEMO.user.apiKey, {});
    expect((await band('stop')).status).toBeLessThan(300);
    await expect.poll(() => cut).toEqual(['work']);
    await lab.slack.until(
      () => lab.slack.messages(lab.general, said.ts).some((one) => one.buttons.includes('Resume')),
      'the notice that it is paused',
    );
    lab.alice.replies(said, 'waits');
    await othersGoOn(lab);
    expect(lab.heard).toEqual(['work', 'meanwhile']);
    open();
    expect((await band('play')).status).toBeLessThan(300);
    await lab.slack.until(() => lab.answers(said).includes('done waits'), 'what waited');
  });

  it('S-136 Slack’s own stop control interrupts that thread’s turn and takes the status back', async () => {
    const { lab, open, cut, said } = await working();
    lab.alice.stopsAgent(said);
    await expect.poll(() => cut).toEqual(['work']);
    open();
    await lab.slack.until(() => lab.slack.status(lab.general.id, said.ts) === null, 'no status');
  });
});

import { describe, expect, it } from 'vitest';
import { openOut, recordedMetrics, type OutLab } from './lab.js';

const STOP = [{ action: 'stop', value: 'v' }] as const;
const progressMessages = (lab: OutLab) =>
  lab.slack
    .botMessages(lab.general, lab.thread.threadTs)
    .filter((one) => one.text === 'Done' || one.text === 'Working on it…');
const writes = (lab: OutLab) =>
  lab.slack.calls().filter(({ method }) => method === 'chat.update' || method === 'chat.postMessage');

describe('a turn’s progress', () => {
  it('S-123 is posted with the first tool and edited with the later ones', async () => {
    const lab = await openOut();
    const turn = lab.out.progress(lab.thread, 'turn', STOP);
    await lab.pass(2_000);
    expect(writes(lab)).toEqual([]);
    turn.toolStarted('1', 'weather');
    await lab.pass(2_000);
    expect(progressMessages(lab)).toMatchObject([{ text: 'Working on it…', buttons: ['Stop'] }]);
    turn.toolEnded('1');
    turn.toolStarted('2', 'band_send_message');
    await lab.pass(2_000);
    turn.toolEnded('2', 'it broke');
    await Promise.all([turn.finish(), lab.pass(2_000)]);
    expect(progressMessages(lab)).toMatchObject([{ text: 'Done', edited: true, buttons: [] }]);
    expect(progressMessages(lab)[0]!.shown).toBe('*⚠️ Done with errors*\n✅ Weather\n❌ ✏️ *Send message*\n_it broke_');
  });

  it('S-123 the reply tool is no task', async () => {
    const lab = await openOut();
    const turn = lab.out.progress(lab.thread, 'turn');
    turn.toolStarted('1', 'slack_send_message');
    turn.toolEnded('1');
    await Promise.all([turn.finish(), lab.pass(2_000)]);
    expect(writes(lab)).toEqual([]);
  });

  it('S-123 posts again with the next tool when the first post failed, and disturbs nobody meanwhile', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'status', status: 503 } });
    const turn = lab.out.progress(lab.thread, 'turn');
    turn.toolStarted('1', 'weather');
    await lab.pass(2_000);
    expect(progressMessages(lab)).toEqual([]);
    turn.toolEnded('1');
    await lab.pass(2_000);
    expect(progressMessages(lab)).toHaveLength(1);
    await Promise.all([turn.finish(), lab.pass(2_000)]);
  });

  it('S-123 finds a first post whose answer was lost', async () => {
    const figures = recordedMetrics();
    const lab = await openOut({ metrics: figures.metrics });
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: true } });
    const turn = lab.out.progress(lab.thread, 'turn');
    turn.toolStarted('1', 'weather');
    await lab.pass(2_000);
    turn.toolEnded('1');
    await lab.pass(2_000);
    expect(progressMessages(lab)).toHaveLength(1);
    expect(figures.of('slack_outbox_ambiguous_total')).toMatchObject([{ labels: { resolution: 'found' } }]);
    await Promise.all([turn.finish(), lab.pass(2_000)]);
  });

  it('S-103 gives up drawing when nobody can tell whether the first post is there', async () => {
    const figures = recordedMetrics();
    const lab = await openOut({ metrics: figures.metrics });
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: true } });
    lab.slack.fault({ method: 'conversations.replies', effect: { kind: 'error', error: 'missing_scope' } });
    const turn = lab.out.progress(lab.thread, 'turn');
    turn.toolStarted('1', 'weather');
    await lab.pass(2_000);
    turn.toolEnded('1');
    await Promise.all([turn.finish(), lab.pass(2_000)]);
    expect(progressMessages(lab)).toHaveLength(1);
    expect(figures.of('slack_outbox_ambiguous_total')).toMatchObject([{ labels: { resolution: 'gave_up' } }]);
  });

  it.each(['message_not_found', 'cant_update_message', 'edit_window_closed'])(
    'S-105 %s ends the drawing for this turn',
    async (word) => {
      const lab = await openOut();
      const turn = lab.out.progress(lab.thread, 'turn');
      turn.toolStarted('1', 'weather');
      await lab.pass(2_000);
      lab.slack.fault({ method: 'chat.update', effect: { kind: 'error', error: word } });
      turn.toolEnded('1');
      await lab.pass(2_000);
      turn.toolStarted('2', 'more');
      await Promise.all([turn.finish(), lab.pass(2_000)]);
      expect(lab.slack.calls('chat.update')).toHaveLength(1);
    },
  );

  it('S-124 writes nothing where it is switched off', async () => {
    const lab = await openOut({ settings: { showToolProgress: false } });
    const turn = lab.out.progress(lab.thread, 'turn', STOP);
    turn.toolStarted('1', 'weather');
    turn.toolEnded('1', 'failed');
    await Promise.all([turn.finish(), lab.pass(130_000, 10_000)]);
    expect(writes(lab)).toEqual([]);
  });

  it('S-095 a hundred tool events in ten seconds make at most nine writes, and the last state is shown', async () => {
    const lab = await openOut();
    const turn = lab.out.progress(lab.thread, 'turn');
    for (let index = 0; index < 50; index += 1) {
      turn.toolStarted(`${index}`, `tool_${index}`);
      await lab.pass(100, 100);
      turn.toolEnded(`${index}`);
      await lab.pass(100, 100);
    }
    await Promise.all([turn.finish(), lab.pass(3_000)]);
    expect(writes(lab).length).toBeLessThanOrEqual(9);
    const shown = progressMessages(lab)[0]!.shown;
    expect(shown).toContain('*✅ Done*');
    expect(shown).toContain('…and 3 more');
  });

  it('S-126 twenty busy turns stay within 40 edits a minute and workspace', async () => {
    const lab = await openOut();
    const turns = Array.from({ length: 20 }, (_, index) => {
      const said = lab.alice.says('#general', `question ${index}`);
      return lab.out.progress({ ...lab.thread, threadTs: said.ts }, `turn-${index}`);
    });
    for (let second = 0; second < 90; second += 1) {
      for (const turn of turns) turn.toolStarted(`${second}`, `tool_${second}`);
      await lab.pass(1_000, 500);
    }
    const at = lab.slack.calls('chat.update').map((call) => call.at);
    expect(at.length).toBeGreaterThan(30);
    for (const from of at)
      expect(at.filter((one) => one >= from && one < from + 60_000).length).toBeLessThanOrEqual(40);
    expect(lab.slack.calls().some(({ outcome }) => outcome === '429')).toBe(false);
    await Promise.all([...turns.map((turn) => turn.finish()), lab.pass(120_000, 1_000)]);
    expect(lab.slack.calls().some(({ outcome }) => outcome === '429')).toBe(false);
  }, 20_000);

  it('gives way to replies that wait for the same channel', async () => {
    const lab = await openOut();
    for (let index = 0; index < 6; index += 1) await lab.reply(`message ${index}`);
    const turn = lab.out.progress(lab.thread, 'turn');
    turn.toolStarted('1', 'weather');
    await lab.pass(8_000);
    expect(lab.slack.botMessages(lab.general, lab.thread.threadTs).at(-1)!.text).toBe('Working on it…');
    await Promise.all([turn.finish(), lab.pass(2_000)]);
  });

  it('says how long a slow turn takes, and shows that even where no tool was called', async () => {
    const lab = await openOut();
    const turn = lab.out.progress(lab.thread, 'turn', STOP);
    await lab.pass(121_000, 1_000);
    expect(progressMessages(lab)[0]!.shown).toContain('Working for 2 minutes');
    await lab.pass(60_000, 1_000);
    expect(progressMessages(lab)[0]!.shown).toContain('Working for 3 minutes');
    await Promise.all([turn.finish(), lab.pass(2_000)]);
    expect(progressMessages(lab)[0]!.shown).not.toContain('Working');
  });

  it('S-166 takes other buttons and a line that says who acted', async () => {
    const lab = await openOut();
    const turn = lab.out.progress(lab.thread, 'turn', STOP);
    turn.toolStarted('1', 'weather');
    await lab.pass(2_000);
    turn.controls([{ action: 'resume', value: 'r' }], 'Stopped by Alice');
    await lab.pass(2_000);
    expect(progressMessages(lab)).toMatchObject([{ buttons: ['Resume'] }]);
    expect(progressMessages(lab)[0]!.shown).toContain('Stopped by Alice');
    await Promise.all([turn.finish(), lab.pass(2_000)]);
  });

  it('leaves running turns alone when the token is found to work again', async () => {
    const lab = await openOut();
    const turn = lab.out.progress(lab.thread, 'turn', STOP);
    turn.toolStarted('1', 'weather');
    await lab.pass(2_000);
    await lab.out.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await lab.pass(2_000);
    expect(progressMessages(lab)).toMatchObject([{ text: 'Working on it…', buttons: ['Stop'] }]);
    await Promise.all([turn.finish(), lab.pass(2_000)]);
  });

  it('closes after a restart what an ended process left as running', async () => {
    const lab = await openOut();
    lab.out.progress(lab.thread, 'turn', STOP).toolStarted('1', 'weather');
    await lab.pass(2_000);
    await lab.out.stop(0);
    const second = await lab.reopen();
    await second.start();
    await second.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await lab.pass(1_000);
    expect(lab.slack.botMessages(lab.general, lab.thread.threadTs)).toMatchObject([
      { text: 'Interrupted by a restart', buttons: [] },
    ]);
    expect(await lab.store.range({ from: 'slack/test/progress/', to: 'slack/test/progress0' })).toEqual([]);
  });
});

import { describe, expect, it } from 'vitest';
import { startBridge, type BridgeLab } from '../../support/slack/bridge-lab.js';

const both = [['http'], ['socket']] as const;
const modal = async (lab: BridgeLab, who = lab.alice) => {
  await lab.slack.until(() => lab.slack.modals(who.id).length > 0, 'a form');
};
const start = async (options: Parameters<typeof startBridge>[0] = {}) => {
  const lab = await startBridge(options);
  lab.slack.expectPing(lab.alice.id);
  return lab;
};

describe('the message shortcut', () => {
  it.each(both)(
    'S-170 opens a form and starts a turn in that message’s thread, with it quoted (%s)',
    async (transport) => {
      const lab = await start({ transport });
      const said = lab.bob.says('#general', 'The build is *red* since 9 <o’clock>');
      await lab.slack.settled();
      lab.alice.uses('band_ask', said);
      await modal(lab);
      const submitted = lab.alice.submits('Why & since <when>?');
      await lab.slack.until(() => submitted?.state === 'acked');
      expect(lab.slack.modals(lab.alice.id)).toEqual([]);
      const answers = await lab.answered(said, 2);
      expect(answers[0]).toContain(`<@${lab.alice.id}> asks:`);
      expect(answers[0]).toContain('Why & since');
      expect(lab.heard).toHaveLength(1);
      expect(lab.heard[0]).toMatch(/^Why & since \\<when>\?\n\n> The build is \*\*red\*\* since 9/);
      expect(lab.turns[0]!.message.metadata).toMatchObject({ slack_thread_ts: said.ts, slack_user_id: lab.alice.id });
      lab.bob.replies(said, 'good question');
      await lab.answered(said, 3);
      expect(await lab.rooms_()).toHaveLength(1);
      lab.slack.check();
    },
  );

  it('S-170 a reply’s shortcut stays in the reply’s thread', async () => {
    const lab = await start();
    const said = lab.bob.says('#general', 'root');
    const reply = lab.bob.replies(said, 'a reply');
    await lab.slack.settled();
    lab.alice.uses('band_ask', reply);
    await modal(lab);
    lab.alice.submits('what does that mean?');
    await lab.answered(said, 2);
    expect(lab.heard).toEqual(['what does that mean?\n\n> a reply']);
  });

  it('S-170 S-171 a submission that comes twice asks once; a form is good for one question', async () => {
    const lab = await start();
    const said = lab.bob.says('#general', 'news');
    lab.alice.uses('band_ask', said);
    await modal(lab);
    const first = lab.alice.submits('once?')!;
    await lab.answered(said, 2);
    const again = lab.slack.deliverRaw(lab.app, first.body, 'interactive')!;
    await lab.slack.until(() => again.state === 'acked');
    const later = { ...first.body, view: { ...(first.body['view'] as object), hash: 'other' } };
    lab.slack.deliverRaw(lab.app, later, 'interactive');
    await lab.slack.until(() => lab.slack.ephemerals(lab.general, lab.alice.id).length === 1, 'word of an old form');
    expect(lab.slack.ephemerals(lab.general, lab.alice.id)[0]!.shown).toContain('This form is too old');
    await lab.idle();
    expect(lab.heard).toHaveLength(1);
  });

  it.each([
    'expired_trigger_id',
    'exchanged_trigger_id',
    'invalid_trigger_id',
    'view_too_large',
    'duplicate_external_id',
  ])('S-105 S-170 %s: the person is asked to try again, by a button that opens the form', async (error) => {
    const lab = await start();
    const said = lab.bob.says('#general', 'news');
    lab.slack.fault({ method: 'views.open', times: 1, effect: { kind: 'error', error } });
    lab.alice.uses('band_ask', said);
    await lab.slack.until(() => lab.slack.ephemerals(lab.general, lab.alice.id).length === 1, 'a second chance');
    const [told] = lab.slack.ephemerals(lab.general, lab.alice.id);
    expect(told!.shown).toContain('Please try again');
    expect(told!.buttons).toEqual(['Ask']);
    lab.alice.clicks('Ask', { channel: lab.general.id });
    await modal(lab);
    lab.alice.submits('late but there?');
    await lab.answered(said, 2);
    expect(lab.heard[0]).toContain('late but there?');
    lab.slack.check();
  });

  it('S-170 where the bot is no member the person is told', async () => {
    const lab = await start();
    const said = lab.bob.says('#outside', 'news');
    lab.alice.uses('band_ask', said);
    await modal(lab);
    lab.alice.submits('may I?');
    await lab.slack.until(() => lab.slack.ephemerals(lab.outside, lab.alice.id).length === 1, 'an explanation');
    expect(lab.slack.ephemerals(lab.outside, lab.alice.id)[0]!.shown).toContain('I am not in this channel');
    expect(lab.heard).toEqual([]);
    lab.slack.check();
  });

  it('S-170 S-068 who is refused sees no form', async () => {
    const lab = await start({ settings: { deny: ['U07MEMBER01'] } });
    lab.alice.uses('band_ask', lab.bob.says('#general', 'news'));
    await lab.slack.until(() => lab.slack.ephemerals(lab.general, lab.alice.id).length === 1, 'a refusal');
    expect(lab.slack.modals(lab.alice.id)).toEqual([]);
  });

  it('S-170 switched off, or another shortcut of the same app, does nothing', async () => {
    const off = await start({ settings: { messageShortcut: false } });
    off.alice.uses('band_ask', off.bob.says('#general', 'news'));
    await off.idle();
    expect(off.slack.calls('views.open')).toEqual([]);
    const lab = await start({ acme: { app: { shortcuts: ['other'] } } });
    lab.alice.uses('other', lab.bob.says('#general', 'news'));
    await lab.idle();
    expect(lab.slack.calls('views.open')).toEqual([]);
  });

  it('S-170 a form that was opened before a restart still asks after it', async () => {
    const lab = await start();
    const said = lab.bob.says('#general', 'news');
    lab.alice.uses('band_ask', said);
    await modal(lab);
    await lab.stop();
    const { slack, store, sandbox, dataDir } = lab;
    const next = await startBridge({ world: lab, store, sandbox, dataDir });
    lab.alice.submits('still there?');
    await slack.until(() => next.heard.length === 1, 'the question');
    expect(next.heard[0]).toContain('still there?');
  });
});

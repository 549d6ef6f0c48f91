import { describe, expect, it } from 'vitest';
import { openOut, type OutLab } from './lab.js';

const error = (word: string) => ({ kind: 'error', error: word }) as const;
const direct = (lab: OutLab) =>
  lab.slack
    .calls('chat.postMessage')
    .filter(({ args, outcome }) => args['channel'] === lab.alice.id && outcome === 'ok')
    .map(({ args }) => args['text']);

describe('what one person sees', () => {
  it('S-068 stands in the thread, for that person only', async () => {
    const lab = await openOut();
    await lab.out.ephemeral(lab.thread, lab.alice.id, {
      id: 'e',
      text: 'only you',
      buttons: [{ action: 'resume', value: 'v' }],
    });
    await lab.pass(1_000);
    expect(lab.slack.ephemerals(lab.general, lab.alice.id)).toMatchObject([
      { shown: 'only you', threadTs: lab.thread.threadTs, buttons: ['Resume'] },
    ]);
    expect(lab.slack.ephemerals(lab.general, lab.bob.id)).toEqual([]);
  });

  it.each([
    'user_not_in_channel',
    'not_in_channel',
    'channel_not_found',
    'is_archived',
    'restricted_action',
    'no_permission',
  ])('S-105 falls back to a direct message on %s', async (word) => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postEphemeral', effect: error(word) });
    await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text: 'only you' });
    await lab.pass(1_000);
    expect(direct(lab)).toEqual(['only you']);
    expect(lab.out.parks()).toEqual([]);
  });

  it('S-105 leaves the thread first when the thread is gone', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postEphemeral', effect: error('thread_not_found') });
    await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text: 'only you' });
    await lab.pass(1_000);
    expect(lab.slack.ephemerals(lab.general, lab.alice.id)).toMatchObject([{ threadTs: null }]);
    expect(direct(lab)).toEqual([]);
  });

  it('waits out an outage, and is sent once per id', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postEphemeral', times: 3, effect: { kind: 'status', status: 503 } });
    for (let repeat = 0; repeat < 3; repeat += 1) {
      await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text: 'only you' });
    }
    await lab.pass(12_000, 1_000);
    expect(lab.slack.ephemerals(lab.general, lab.alice.id)).toHaveLength(1);
  });

  it('that cannot reach anybody becomes a dead letter and tells nobody in a circle', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postEphemeral', effect: error('user_not_in_channel') });
    lab.slack.fault({ method: 'chat.postMessage', effect: error('channel_not_found') });
    await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text: 'only you' });
    await lab.pass(5_000);
    expect(await lab.out.deadLetters.list()).toMatchObject([{ id: 'e', code: 'channel_not_found' }]);
    expect(lab.slack.calls('chat.postEphemeral')).toHaveLength(1);
  });
});

describe('a reaction', () => {
  const names = (lab: OutLab) =>
    lab.general.messages.find(({ ts }) => ts === lab.thread.threadTs)!.reactions.map(({ name }) => name);

  it('S-155 is put on and taken off, in that order', async () => {
    const lab = await openOut();
    await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', true);
    await lab.pass(1_000);
    expect(names(lab)).toEqual(['eyes']);
    await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', false);
    await lab.pass(1_000);
    expect(names(lab)).toEqual([]);
  });

  it('S-155 is taken off after a restart', async () => {
    const lab = await openOut();
    await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', true);
    await lab.pass(1_000);
    lab.slack.fault({ method: 'reactions.remove', effect: { kind: 'status', status: 503 } });
    await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', false);
    await lab.pass(250);
    await lab.out.stop(0);
    const second = await lab.reopen();
    await second.start();
    await lab.pass(3_000);
    expect(names(lab)).toEqual([]);
  });

  it.each(['too_many_emoji', 'too_many_reactions', 'invalid_name', 'not_reactable', 'bad_timestamp'])(
    'S-105 after %s no such reaction is tried again in that thread',
    async (word) => {
      const lab = await openOut();
      lab.slack.fault({ method: 'reactions.add', effect: error(word) });
      for (const on of [true, false, true]) {
        await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', on);
        await lab.pass(1_000);
      }
      expect(lab.slack.calls().filter(({ method }) => method.startsWith('reactions.'))).toHaveLength(1);
      const other = lab.alice.says('#general', 'another thread');
      await lab.out.react({ ...lab.thread, threadTs: other.ts }, other.ts, 'eyes', true);
      await lab.pass(1_000);
      expect(lab.slack.calls('reactions.add')).toHaveLength(2);
    },
  );

  it.each([
    'already_reacted',
    'no_reaction',
    'too_many_emoji',
    'too_many_reactions',
    'invalid_name',
    'not_reactable',
    'bad_timestamp',
    'message_not_found',
    'missing_scope',
    'not_in_channel',
  ])('S-105 %s is no matter for anybody', async (word) => {
    const lab = await openOut();
    lab.slack.fault({ method: 'reactions.add', effect: error(word) });
    await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', true);
    await lab.pass(2_000);
    expect(lab.out.queues()).toEqual([{ name: 'outbox', depth: 0, dead: 0 }]);
    expect(lab.out.parks()).toEqual([]);
  });
});

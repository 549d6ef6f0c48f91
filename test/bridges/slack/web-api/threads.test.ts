import { describe, expect, it } from 'vitest';
import { say, startBridge } from '../../../support/slack/bridge-lab.js';
import { openOut, type OutLab } from '../outbound/lab.js';
import { callsInGeneral, deadCodes, error, told, toldDirectly, upload, WRITES } from './writes.js';

const inChannel = (lab: OutLab) => lab.slack.messages(lab.general).filter(({ fromBot }) => fromBot);
/** Refuses the next post in #general. */
const refuse = (lab: OutLab, word: string) =>
  lab.slack.fault({ method: 'chat.postMessage', channel: lab.general.id, effect: error(word) });
const GONE = ['thread_not_found', 'message_not_found', 'invalid_thread_ts'];

describe('a channel that takes no replies in threads', () => {
  it.each(['restricted_action_non_threadable_channel', 'cannot_reply_to_message'])(
    'S-105 %s: the reply goes to the channel with a link to what it answers, and so do the next ones at once, also after a restart',
    async (word) => {
      const lab = await openOut();
      refuse(lab, word);
      await lab.reply('hello');
      await lab.reply('and more');
      await lab.pass(2_000);
      await lab.out.stop(0);
      const second = await lab.reopen();
      await second.start();
      await second.reply(lab.thread, { id: 'later', markdown: 'and still', kind: 'reply' });
      await lab.pass(2_000);
      const link = `https://acme.slack.com/archives/${lab.general.id}/p${lab.thread.threadTs.replace('.', '')}`;
      expect(inChannel(lab).map(({ shown, threadTs }) => [threadTs, shown])).toEqual(
        ['hello', 'and more', 'and still'].map((text) => [null, `[In reply to this message](${link})\n\n${text}`]),
      );
      expect(callsInGeneral(lab, 'chat.postMessage').map(({ outcome }) => outcome)).toEqual([word, 'ok', 'ok', 'ok']);
    },
  );

  it('S-105 by the channel’s own rule, with a file as well', async () => {
    const lab = await openOut();
    lab.general.nonThreadable = true;
    await lab.reply('hello');
    await lab.pass(1_000);
    await upload(lab, { comment: 'see' });
    await lab.pass(1_000);
    const [, file] = inChannel(lab);
    expect(file).toMatchObject({ threadTs: null, files: ['notes.txt'] });
    expect(file!.text).toMatch(/^<https:\/\/acme\.slack\.com\/archives\/.*\|In reply to this message>\n\nsee$/);
  });

  it('S-105 a refused file goes to the channel with the link', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'files.completeUploadExternal', effect: error('cannot_reply_to_message') });
    await upload(lab);
    await lab.pass(1_000);
    expect(inChannel(lab)).toMatchObject([
      { files: ['notes.txt'], text: expect.stringContaining('In reply') as string },
    ]);
  });
});

describe('a channel that takes posts in threads alone', () => {
  it('S-105 restricted_action_thread_only_channel sends what went to the channel into the thread', async () => {
    const lab = await openOut();
    refuse(lab, 'cannot_reply_to_message');
    refuse(lab, 'restricted_action_thread_only_channel');
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['hello']);
    expect(inChannel(lab)).toEqual([]);
  });

  it('S-105 a reply that was to stand in the channel too stands in its thread', async () => {
    const lab = await openOut();
    lab.slack.fault({
      method: 'chat.postMessage',
      when: (args) => args['reply_broadcast'] === 'true',
      effect: error('restricted_action_thread_only_channel'),
    });
    await lab.reply('hello', { broadcast: true });
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['hello']);
    expect(inChannel(lab)).toEqual([]);
  });
});

describe('a thread that is locked', () => {
  it.each(['restricted_action_thread_locked', 'thread_locked'])(
    'S-105 %s: a reply is given up, the room and the asker hear why, the latter by direct message',
    async (word) => {
      const lab = await openOut();
      refuse(lab, word);
      const sent = lab.reply('hello', { waitMs: 2_000 });
      await lab.pass(2_000);
      expect(await sent).toMatchObject({ state: 'failed', error: word });
      expect(await deadCodes(lab)).toEqual([word]);
      expect(lab.roomErrors).toMatchObject([{ slackError: word }]);
      expect(toldDirectly(lab)).toEqual([expect.stringMatching(/^That thread is locked.*reference/)]);
      expect(told(lab)).toEqual([]);
    },
  );

  it.each(['reactions.add', 'reactions.remove'] as const)(
    'S-105 thread_locked from %s says the same, and is told once together with the reply',
    async (method) => {
      const lab = await openOut();
      lab.slack.fault({ method, effect: error('thread_locked') });
      refuse(lab, 'thread_locked');
      await WRITES[method](lab);
      await lab.reply('hello');
      await lab.pass(2_000);
      expect(await deadCodes(lab)).toEqual(['thread_locked', 'thread_locked']);
      expect(toldDirectly(lab)).toHaveLength(1);
    },
  );

  it('S-105 by the thread’s own rule', async () => {
    const lab = await openOut();
    lab.general.lockedThreads.add(lab.thread.threadTs);
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(await deadCodes(lab)).toEqual(['restricted_action_thread_locked']);
    expect(toldDirectly(lab)).toHaveLength(1);
  });
});

describe('a thread whose first message is gone', () => {
  it.each(GONE)(
    'S-105 S-153 %s: it goes on under a new first message that mentions the asker, and the conversation moves there',
    async (word) => {
      const lab = await openOut();
      refuse(lab, word);
      lab.slack.expectPing(lab.alice.id);
      await lab.reply('hello');
      await lab.reply('and more');
      await lab.pass(3_000);
      const [root] = inChannel(lab);
      expect(root!.shown).toBe(`<@${lab.alice.id}>\n\nhello`);
      expect(lab.moved).toMatchObject([{ thread: lab.thread, newTs: root!.ts }]);
      expect(lab.slack.botMessages(lab.general, root!.ts).map(({ shown }) => shown)).toEqual([root!.shown, 'and more']);
    },
  );

  it.each(GONE)(
    'S-105 %s: it goes on under the oldest reply that is known and still there, and the conversation moves there',
    async (word) => {
      const known: string[] = [];
      const lab = await openOut({ hooks: { replies: () => Promise.resolve(known) } });
      const [first, second, third] = ['one', 'two', 'three'].map((text) => lab.bob.replies(asSaid(lab), text));
      known.push(third!.ts, first!.ts, second!.ts);
      lab.bob.deletes(first!);
      refuse(lab, word);
      await lab.reply('hello');
      await lab.reply('and more');
      await lab.pass(3_000);
      const under = lab.general.messages.filter(({ threadTs }) => threadTs === second!.ts).map(({ text }) => text);
      expect(under).toEqual(['hello', 'and more']);
      expect(lab.moved).toMatchObject([{ thread: lab.thread, newTs: second!.ts }]);
      expect(inChannel(lab)).toEqual([]);
    },
  );

  it('S-105 one of our own posts carries on where nobody else has written', async () => {
    const lab = await openOut();
    await lab.reply('an answer');
    await lab.pass(1_000);
    const [own] = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    refuse(lab, 'thread_not_found');
    await lab.reply('hello');
    await lab.pass(2_000);
    expect(lab.moved).toMatchObject([{ newTs: own!.ts }]);
  });

  it('S-105 where Slack does not say whether a reply is there, a new first message is made', async () => {
    const lab = await openOut({ hooks: { replies: () => Promise.resolve(['1700000000.000100']) } });
    lab.slack.fault({ method: 'conversations.replies', effect: { kind: 'status', status: 503 } });
    lab.slack.expectPing(lab.alice.id);
    refuse(lab, 'thread_not_found');
    await lab.reply('hello');
    await lab.pass(2_000);
    expect(inChannel(lab)).toHaveLength(1);
  });

  it.each(GONE.slice(0, 1))(
    'S-105 %s of a file: it stands in the channel, mentions the asker, and the conversation moves there',
    async (word) => {
      const lab = await openOut();
      lab.slack.fault({ method: 'files.completeUploadExternal', effect: error(word) });
      lab.slack.expectPing(lab.alice.id);
      await upload(lab, { comment: 'see' });
      await lab.reply('and more');
      await lab.pass(2_000);
      const [root] = inChannel(lab);
      expect(root).toMatchObject({ files: ['notes.txt'], text: `<@${lab.alice.id}>\n\nsee` });
      expect(lab.moved).toMatchObject([{ newTs: root!.ts }]);
      expect(lab.slack.botMessages(lab.general, root!.ts).map(({ shown }) => shown)).toContain('and more');
    },
  );

  it('S-105 of what one person sees: it stands outside of the thread', async () => {
    for (const word of GONE) {
      const lab = await openOut();
      lab.slack.fault({ method: 'chat.postEphemeral', effect: error(word) });
      await WRITES['chat.postEphemeral'](lab);
      await lab.pass(1_000);
      expect(lab.slack.ephemerals(lab.general, lab.alice.id)).toMatchObject([{ threadTs: null }]);
      expect(toldDirectly(lab)).toEqual([]);
    }
  });

  it.each(GONE)('S-105 %s of a status is the matter of its thread alone', async (word) => {
    const lab = await openOut();
    lab.slack.fault({ method: 'assistant.threads.setStatus', times: 4, effect: error(word) });
    for (let turn = 0; turn < 4; turn += 1) {
      lab.out.status(lab.thread).set();
      await lab.pass(2_000, 1_000);
      lab.out.status(lab.thread).clear();
      await lab.pass(2_000, 1_000);
    }
    const other = { ...lab.thread, threadTs: lab.alice.says('#general', '@gateway and here?').ts };
    lab.out.status(other).set();
    await lab.pass(2_000, 1_000);
    expect(lab.slack.status(lab.general.id, other.threadTs)).toBe('is thinking…');
    lab.out.status(other).clear();
    await lab.pass(2_000, 1_000);
  });

  it('S-105 S-153 in the whole bridge the room is told by a second opening event, and the conversation goes on in it', async () => {
    const lab = await startBridge();
    lab.slack.expectPing(lab.alice.id);
    lab.slack.fault({ method: 'chat.postMessage', effect: error('thread_not_found') });
    const said = lab.alice.says('#general', '@gateway hello');
    const posted = () => lab.slack.messages(lab.general).filter(({ fromBot }) => fromBot);
    await lab.slack.until(() => posted().length === 1, 'a new first message');
    const [root] = posted();
    const [room] = await lab.rooms_();
    const openings = async () =>
      (await lab.roomRows(String(room!['id'])))
        .filter((row) => row['message_type'] === 'task')
        .map((row) => (row['metadata'] as Record<string, unknown>)['slack_thread_ts']);
    await expect.poll(openings).toEqual([said.ts, root!.ts]);
    lab.alice.replies({ channel: lab.general.id, ts: root!.ts, threadTs: root!.ts }, 'still there?');
    await lab.slack.until(() => lab.heard.length === 2, 'the follow-up');
    expect(await lab.rooms_()).toHaveLength(1);
  });

  it('S-105 in the whole bridge people’s replies are known, and the oldest that is left carries on', async () => {
    let turns = 0;
    const lab = await startBridge({
      onTurn: async (turn) => {
        turns += 1;
        if (turns > 2) await say(turn, 'here');
        else await turn.tools.executeToolCall('slack_no_reply', {});
      },
    });
    const said = lab.alice.says('#general', '@gateway hello');
    await expect.poll(() => turns).toBe(1);
    const first = lab.alice.replies(said, 'one');
    await expect.poll(() => turns).toBe(2);
    lab.slack.fault({ method: 'chat.postMessage', effect: error('thread_not_found') });
    lab.alice.replies(said, 'two');
    await lab.slack.until(() =>
      lab.general.messages.some(({ threadTs, text }) => threadTs === first.ts && text === 'here'),
    );
  });
});

const asSaid = ({ thread }: OutLab) => ({ channel: thread.channel, ts: thread.threadTs, threadTs: thread.threadTs });

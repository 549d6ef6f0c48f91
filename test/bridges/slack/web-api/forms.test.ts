import { describe, expect, it } from 'vitest';
import { createLogger } from '../../../../src/base/log.js';
import { openOut, recordedMetrics, type OutLab } from '../outbound/lab.js';
import { callsInGeneral, deadCodes, error, ownMessage, told, toldDirectly } from './writes.js';

const BLOCKS = [
  'msg_blocks_too_long',
  'msg_blocks_too_many',
  'invalid_blocks',
  'invalid_blocks_format',
  'invalid_attachments',
];
const PLAIN = ['markdown_text_conflict', 'no_text'];
const METADATA = [
  'metadata_too_large',
  'invalid_metadata_format',
  'invalid_metadata_schema',
  'metadata_must_be_sent_from_app',
];
const RETRY = [{ action: 'retry', value: 'v' }] as const;

/** Refuses calls in #general with one word. */
async function refused(word: string, times = 1, more: Parameters<typeof openOut>[0] = {}, method = 'chat.postMessage') {
  const lab = await openOut(more);
  if (method === 'chat.update') await ownMessage(lab);
  lab.slack.fault({ method, channel: lab.general.id, times, effect: error(word) });
  return lab;
}
const posts = (lab: OutLab) => lab.slack.botMessages(lab.general, lab.thread.threadTs);
const recorded = () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ destination: { write: (line) => void lines.push(JSON.parse(line) as never) } });
  return { lines, log };
};

describe('a text that Slack finds too long', () => {
  it('S-105 msg_too_long: its parts are halved three times, then it is a file, and nothing of it is lost', async () => {
    const lab = await refused('msg_too_long', 4);
    await lab.reply('word '.repeat(2_000));
    await lab.pass(20_000, 1_000);
    const sizes = callsInGeneral(lab, 'chat.postMessage')
      .slice(0, 4)
      .map(({ args }) => (JSON.parse(String(args['blocks'])) as { text: string }[])[0]!.text.length);
    for (const [halvings, size] of sizes.entries()) expect(size).toBeLessThanOrEqual(11_500 / 2 ** halvings);
    expect(sizes[3]).toBeGreaterThan(1_000);
    const [file] = lab.slack.files();
    expect(file!.name).toBe('reply.md');
    const shown = posts(lab);
    expect(shown.filter(({ files }) => files.length > 0)).toHaveLength(1);
    const words = shown.flatMap(
      (one) => (one.files.length > 0 ? file!.bytes.toString() : one.shown).match(/word/g) ?? [],
    );
    expect(words).toHaveLength(2_000);
  });

  it('S-105 msg_too_long once: it is cut in halves', async () => {
    const lab = await refused('msg_too_long');
    await lab.reply('word '.repeat(2_000));
    await lab.pass(5_000, 1_000);
    expect(lab.shown().map((text) => text.length <= 5_750)).toEqual([true, true]);
  });

  it.each([1, 2, 3])(
    'S-105 msg_too_long of what one person sees, %d times: it is cut so often, and its buttons stand below',
    async (times) => {
      const lab = await refused('msg_too_long', times, {}, 'chat.postEphemeral');
      const text = Array.from({ length: 60 }, (_, line) => `line ${line} ${'word '.repeat(10)}`).join('\n\n');
      await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text, buttons: RETRY });
      await lab.pass(10_000, 1_000);
      const seen = lab.slack.ephemerals(lab.general, lab.alice.id);
      expect(seen.flatMap((one) => one.text.match(/word/g) ?? [])).toHaveLength(600);
      expect(seen.slice(0, -1).every((one) => one.text.length <= 3_900 / 2 ** times)).toBe(true);
      expect(seen.at(-1)!.buttons).toEqual(['Retry']);
      expect([toldDirectly(lab), await deadCodes(lab)]).toEqual([[], []]);
    },
  );

  it('S-105 msg_too_long of an edit: what it was to say is posted, in as many messages as it takes', async () => {
    const lab = await refused('msg_too_long', 1, {}, 'chat.update');
    lab.slack.fault({ method: 'chat.postMessage', channel: lab.general.id, effect: error('msg_too_long') });
    await lab.out.edit(lab.thread, await ownMessage(lab), { id: 'e', markdown: 'word '.repeat(700) });
    await lab.pass(4_000, 1_000);
    expect(
      posts(lab)
        .slice(1)
        .flatMap(({ shown }) => shown.match(/word/g) ?? []),
    ).toHaveLength(700);
    expect(await deadCodes(lab)).toEqual([]);
  });
});

describe('blocks that Slack does not take', () => {
  it.each(BLOCKS)(
    'S-105 S-113 %s: mrkdwn without blocks, once, the buttons in a post of their own, Slack’s reasons in the log',
    async (word) => {
      const figures = recordedMetrics();
      const { lines, log } = recorded();
      const lab = await openOut({ metrics: figures.metrics, log });
      const extra = { response_metadata: { messages: ['[ERROR] invalid thing [json-pointer:/blocks/0]'] } };
      lab.slack.fault({ method: 'chat.postMessage', channel: lab.general.id, effect: error(word, extra) });
      await lab.reply('**hello**', { buttons: RETRY });
      await lab.pass(2_000);
      const [text, controls] = posts(lab);
      expect(text).toMatchObject({ text: '*hello*', buttons: [] });
      expect(callsInGeneral(lab, 'chat.postMessage')[1]!.args['blocks']).toBeUndefined();
      expect(controls).toMatchObject({ buttons: ['Retry'] });
      expect(figures.of('slack_render_fallback_total')).toMatchObject([
        { labels: { from: 'markdown', to: 'mrkdwn', cause: word } },
      ]);
      expect(lines.filter(({ messages }) => messages !== undefined)).toMatchObject([
        { slackError: word, messages: ['[ERROR] invalid thing [json-pointer:/blocks/0]'] },
      ]);
    },
  );

  it('S-113 a part that is refused in both forms is given up', async () => {
    const lab = await refused('invalid_blocks', 2);
    await lab.reply('hello');
    await lab.pass(2_000);
    expect(await deadCodes(lab)).toEqual(['invalid_blocks']);
    expect(told(lab)).toHaveLength(1);
  });

  it.each([...BLOCKS, ...PLAIN])(
    'S-105 %s of an edit: text without blocks, the buttons in a post of their own',
    async (word) => {
      const lab = await refused(word, 1, {}, 'chat.update');
      const ts = await ownMessage(lab);
      await lab.out.edit(lab.thread, ts, { id: 'e', markdown: '**Done**', buttons: RETRY });
      await lab.pass(3_000, 1_000);
      const [edited, controls] = posts(lab);
      expect(edited).toMatchObject({ ts, text: '*Done*', blocks: [], buttons: [] });
      expect(controls).toMatchObject({ buttons: ['Retry'], threadTs: lab.thread.threadTs });
      expect(await deadCodes(lab)).toEqual([]);
    },
  );

  it.each([...BLOCKS, ...PLAIN])('S-105 %s of what one person sees: the text, then its buttons', async (word) => {
    const lab = await refused(word, 1, {}, 'chat.postEphemeral');
    await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text: '**only** you', buttons: RETRY });
    await lab.pass(1_000);
    const seen = lab.slack.ephemerals(lab.general, lab.alice.id);
    expect(seen.map(({ text, buttons }) => [text, buttons])).toEqual([
      ['*only* you', []],
      [expect.any(String), ['Retry']],
    ]);
    expect(toldDirectly(lab)).toEqual([]);
  });

  it('S-105 invalid_blocks of what one person sees, also of the buttons alone: the text stands, and nobody is told twice', async () => {
    const lab = await refused('invalid_blocks', 1, {}, 'chat.postEphemeral');
    lab.slack.fault({ method: 'chat.postEphemeral', after: 1, effect: error('invalid_blocks') });
    await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text: 'only you', buttons: RETRY });
    await lab.pass(1_000);
    expect(told(lab)).toEqual(['only you']);
    expect([toldDirectly(lab), await deadCodes(lab)]).toEqual([[], []]);
  });

  it.each(BLOCKS)(
    'S-105 %s of a progress message: it is drawn as text, its buttons stand below while there are any',
    async (word) => {
      const lab = await refused(word);
      const turn = lab.out.progress(lab.thread, 'turn', [{ action: 'stop', value: 'v' }]);
      const shown = () => posts(lab).map(({ text, buttons }) => [text, buttons]);
      turn.toolStarted('1', 'weather');
      await lab.pass(2_000);
      expect(shown()).toEqual([
        ['*🤖 Working on it…*\n⏳ Weather', []],
        ['Controls for the message above', ['Stop']],
      ]);
      turn.controls([{ action: 'resume', value: 'r' }]);
      await lab.pass(2_000);
      expect(shown()[1]).toEqual(['Controls for the message above', ['Resume']]);
      turn.toolEnded('1');
      await Promise.all([turn.finish(), lab.pass(3_000)]);
      expect(shown()).toEqual([['*✅ Done*\n✅ Weather', []]]);
    },
  );

  it('S-105 invalid_blocks of a progress message, also of its buttons alone: it is drawn without them', async () => {
    const lab = await refused('invalid_blocks');
    lab.slack.fault({ method: 'chat.postMessage', after: 1, effect: error('invalid_blocks') });
    const turn = lab.out.progress(lab.thread, 'turn', [{ action: 'stop', value: 'v' }]);
    turn.toolStarted('1', 'weather');
    await lab.pass(2_000);
    turn.toolEnded('1');
    await Promise.all([turn.finish(), lab.pass(3_000)]);
    expect(posts(lab).map(({ text }) => text)).toEqual(['*✅ Done*\n✅ Weather']);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(3);
  });

  it.each(PLAIN)('S-105 %s: it is sent as plain text', async (word) => {
    const lab = await refused(word);
    await lab.reply('**hello**');
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['*hello*']);
    expect(callsInGeneral(lab, 'chat.postMessage')[1]!.args['blocks']).toBeUndefined();
  });

  it('S-114 what a guard of the renderer keeps plain is counted once per reply, by the guard', async () => {
    const figures = recordedMetrics();
    const lab = await openOut({ metrics: figures.metrics });
    const deep = `${'> '.repeat(40)}too deep`;
    await lab.reply(`*a* ${'word '.repeat(1_000)}\n\n${deep}\n\n${deep}`);
    await lab.reply('*short*');
    await lab.pass(3_000);
    const counted = figures.of('slack_render_fallback_total').map(({ labels }) => labels);
    expect(counted).toEqual([
      { from: 'markdown', to: 'plain', cause: 'length' },
      { from: 'markdown', to: 'plain', cause: 'nesting' },
    ]);
  });
});

describe('metadata that Slack does not take', () => {
  it.each(METADATA)('S-105 %s: it is sent without, and found by its text when its outcome is unknown', async (word) => {
    const lab = await refused(word);
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: true } });
    await lab.reply('hello');
    await lab.pass(3_000);
    expect(posts(lab)).toMatchObject([{ shown: 'hello', metadata: null }]);
  });

  it('S-105 the same text of long ago is not taken for it', async () => {
    const lab = await openOut();
    await lab.reply('hello');
    await lab.pass(10 * 60_000, 60_000);
    lab.slack.fault({ method: 'chat.postMessage', effect: error('metadata_too_large') });
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: false } });
    await lab.reply('hello');
    await lab.pass(60_000, 1_000);
    expect(lab.shown()).toEqual(['hello', 'hello']);
  });

  it.each(METADATA)('S-105 %s of a direct message: it is sent without', async (word) => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postEphemeral', effect: error('user_not_in_channel') });
    lab.slack.fault({ method: 'chat.postMessage', effect: error(word) });
    await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text: 'only you' });
    await lab.pass(1_000);
    expect(toldDirectly(lab)).toEqual(['only you']);
    expect(lab.slack.calls('chat.postMessage').map(({ args }) => 'metadata' in args)).toEqual([true, false]);
  });

  it.each(METADATA)('S-105 %s of a progress message: it is drawn without', async (word) => {
    const lab = await refused(word);
    const turn = lab.out.progress(lab.thread, 'turn');
    turn.toolStarted('1', 'weather');
    await lab.pass(2_000);
    expect(posts(lab)).toMatchObject([{ text: 'Working on it…', metadata: null }]);
    await Promise.all([turn.finish(), lab.pass(2_000)]);
  });
});

describe('attachments that Slack does not take', () => {
  it.each(['too_many_attachments', 'too_many_contact_cards', 'attachment_payload_limit_exceeded'])(
    'S-105 %s: it is sent once more without any',
    async (word) => {
      const lab = await refused(word);
      await lab.reply('hello');
      await lab.pass(1_000);
      expect(lab.shown()).toEqual(['hello']);
      expect(callsInGeneral(lab, 'chat.postMessage').every(({ args }) => args['attachments'] === undefined)).toBe(true);
    },
  );
});

describe('a name of its own that Slack does not take', () => {
  it.each([
    ['reserved_username', {}],
    ['missing_scope', { needed: 'chat:write.customize', provided: 'chat:write' }],
  ])(
    'S-105 %s: it is sent under the bot’s own, and so is all that follows in the workspace, with one warning',
    async (word, extra) => {
      const { lines, log } = recorded();
      const lab = await openOut({ persona: { name: 'Slackbot', icon: ':tools:' }, log });
      lab.slack.fault({ method: 'chat.postMessage', effect: error(word, extra) });
      await lab.reply('hello');
      await lab.pass(1_000);
      const other = { ...lab.thread, channel: lab.rooms.id, threadTs: lab.alice.says('#rooms', 'hi').ts };
      await lab.out.reply(other, { id: 'other', markdown: 'there', kind: 'reply' });
      await lab.pass(2_000);
      expect(
        [...posts(lab), ...lab.slack.botMessages(lab.rooms, other.threadTs)].map(({ who, shown }) => [who, shown]),
      ).toEqual([
        ['gateway', 'hello'],
        ['gateway', 'there'],
      ]);
      expect(lab.slack.calls('chat.postMessage').map(({ args }) => [args['username'], args['icon_emoji']])).toEqual([
        ['Slackbot', ':tools:'],
        [undefined, undefined],
        [undefined, undefined],
      ]);
      expect(lines.filter(({ msg }) => msg === 'names and icons of posts are refused')).toHaveLength(1);
      expect(lab.out.parks()).toEqual([]);
    },
  );
});

describe('an edit that Slack does not take', () => {
  it.each(['message_not_found', 'cant_update_message', 'edit_window_closed'])(
    'S-105 %s: it is posted anew in its thread, with its buttons, once',
    async (word) => {
      const lab = await refused(word, 1, {}, 'chat.update');
      lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: true } });
      await lab.out.edit(lab.thread, await ownMessage(lab), { id: 'e', markdown: 'edited', buttons: RETRY });
      await lab.pass(4_000, 1_000);
      expect(posts(lab).map(({ shown, buttons }) => [shown, buttons])).toEqual([
        ['to be edited', []],
        ['edited', ['Retry']],
      ]);
    },
  );

  it.each([
    ['', null],
    [', where it cannot be deleted', 'cant_delete_message'],
    [', where it is gone already', 'message_not_found'],
    [', after an outage', 'internal_error'],
  ])('S-105 block_mismatch: it is deleted and posted anew%s', async (_where, word) => {
    const lab = await refused('block_mismatch', 1, {}, 'chat.update');
    if (word !== null) lab.slack.fault({ method: 'chat.delete', effect: error(word) });
    await lab.out.edit(lab.thread, await ownMessage(lab), { id: 'e', markdown: 'edited' });
    await lab.pass(4_000, 1_000);
    const stays = word === 'cant_delete_message' || word === 'message_not_found';
    expect(lab.shown()).toEqual([...(stays ? ['to be edited'] : []), 'edited']);
    expect(await deadCodes(lab)).toEqual([]);
  });

  it.each([
    'streaming_state_conflict',
    'message_not_in_streaming_state',
    'message_not_owned_by_app',
    'stopped_by_user',
  ])('S-105 %s, of which nothing here can come: it is given up and told', async (word) => {
    const lab = await refused(word, 1, {}, 'chat.update');
    await lab.out.edit(lab.thread, await ownMessage(lab), { id: 'e', markdown: 'edited' });
    await lab.pass(2_000);
    expect(await deadCodes(lab)).toEqual([word]);
    expect(told(lab)).toHaveLength(1);
  });
});

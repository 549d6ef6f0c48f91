import { describe, expect, it } from 'vitest';
import { NOBODY } from '../../../../bridges/slack/outbound/jobs.js';
import { openOut } from './lab.js';

describe('a reply', () => {
  it('S-112 is posted once as a Markdown block with a text for notifications, into its thread', async () => {
    const lab = await openOut();
    const sent = await lab.reply('**bold** and `code`', { waitMs: 5_000 });
    const [message] = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    const ts = message!.ts;
    expect(sent).toEqual({
      state: 'sent',
      ts: [ts],
      permalink: `https://acme.slack.com/archives/C07ROOMS001/p${ts.replace('.', '')}?thread_ts=${lab.thread.threadTs}&cid=C07ROOMS001`,
    });
    expect(message!.blocks).toEqual([{ type: 'markdown', text: '**bold** and `code`' }]);
    expect(message!.text).toBe('*bold* and `code`');
  });

  it('S-112 an edit carries blocks and text, and may take its buttons away', async () => {
    const lab = await openOut();
    const sent = await lab.reply('Stopped.', {
      kind: 'control',
      buttons: [{ action: 'resume', value: 'v1' }],
      waitMs: 1_000,
    });
    expect(sent.state).toBe('sent');
    const [before] = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    expect(before!.buttons).toEqual(['Resume']);
    await lab.out.edit(lab.thread, before!.ts, { id: 'edited', markdown: '**Resumed** by Alice' });
    await lab.pass(1_000);
    expect(lab.slack.botMessages(lab.general, lab.thread.threadTs)).toMatchObject([
      { text: '*Resumed* by Alice', shown: '**Resumed** by Alice', buttons: [], edited: true },
    ]);
  });

  it('S-105 an edit of a message that is gone is posted anew, one that mismatches replaces it', async () => {
    const lab = await openOut();
    await lab.reply('one', { waitMs: 1_000 });
    const [one] = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    for (const word of ['cant_update_message', 'edit_window_closed', 'message_not_found', 'block_mismatch']) {
      lab.slack.fault({ method: 'chat.update', effect: { kind: 'error', error: word } });
      await lab.out.edit(lab.thread, one!.ts, { id: `edit-${word}`, markdown: word });
      await lab.pass(2_000);
    }
    expect(lab.shown()).toEqual(['cant_update_message', 'edit_window_closed', 'message_not_found', 'block_mismatch']);
  });

  it.each([
    ['P01 40,000 characters without a space', 'a'.repeat(40_000), 4],
    ['P04 two tables', '| a |\n|---|\n| 1 |\n\n| b |\n|---|\n| 2 |', 2],
    ['P10 12,001 characters in one paragraph', 'word '.repeat(2_400) + 'x', 2],
  ])('S-111 %s goes out in parts that Slack takes, in order', async (_name, markdown, parts) => {
    const lab = await openOut();
    await lab.reply(markdown);
    await lab.pass(6_000);
    const shown = lab.shown();
    expect(shown).toHaveLength(parts);
    expect(shown.join('').replace(/\s/g, '')).toBe(markdown.replace(/\s/g, ''));
    expect(lab.slack.calls('chat.postMessage').every(({ outcome }) => outcome === 'ok')).toBe(true);
  });

  it('S-111 P11 300,000 characters are a first part and the whole as reply.md, in two posts', async () => {
    const lab = await openOut();
    const markdown = 'word '.repeat(60_000);
    await lab.reply(markdown);
    await lab.pass(6_000);
    const posts = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    expect(posts.map(({ files }) => files)).toEqual([[], ['reply.md']]);
    expect(posts[1]!.text).toMatch(/too long/);
    expect(lab.slack.files()[0]!.bytes.toString()).toBe(markdown);
  });

  it('S-111 buttons stand under the last part and the broadcast on the first', async () => {
    const lab = await openOut();
    await lab.reply('a'.repeat(20_000), { buttons: [{ action: 'retry', value: 'v' }], broadcast: true });
    await lab.pass(4_000);
    const posts = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    expect(posts.map(({ buttons }) => buttons)).toEqual([[], ['Retry']]);
    expect(lab.slack.messages(lab.general).filter(({ fromBot }) => fromBot)).toMatchObject([{ ts: posts[0]!.ts }]);
  });

  it('S-115 is mrkdwn alone where the settings say so, and ephemeral texts always are', async () => {
    const lab = await openOut({ settings: { render: 'mrkdwn' } });
    await lab.reply('**bold** <b>');
    await lab.out.ephemeral(lab.thread, lab.alice.id, { id: 'e', text: '**only** you' });
    await lab.pass(1_000);
    expect(lab.slack.calls('chat.postMessage')[0]!.args).toMatchObject({ text: '*bold* &lt;b&gt;' });
    expect(lab.slack.calls('chat.postMessage')[0]!.args['blocks']).toBeUndefined();
    expect(lab.slack.ephemerals(lab.general, lab.alice.id)).toMatchObject([{ text: '*only* you' }]);
  });

  it('S-119 unfurls nothing by default, and what the settings say otherwise', async () => {
    const quiet = await openOut();
    await quiet.reply('https://example.com', { waitMs: 1_000 });
    expect(quiet.slack.calls('chat.postMessage')[0]!.args).toMatchObject({
      unfurl_links: 'false',
      unfurl_media: 'false',
    });
    const open = await openOut({ settings: { unfurlLinks: true, unfurlMedia: true } });
    await open.reply('https://example.com', { waitMs: 1_000 });
    expect(open.slack.calls('chat.postMessage')[0]!.args).toMatchObject({ unfurl_links: 'true', unfurl_media: 'true' });
  });

  it('refuses a text that shows nothing', async () => {
    const lab = await openOut();
    await expect(lab.reply(' \n\u200b')).rejects.toMatchObject({ code: 'SLACK_EMPTY' });
    expect(lab.out.queues()[0]!.depth).toBe(0);
  });

  it('says that it is queued when Slack does not take it in time', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'status', status: 429 } });
    const state = lab.reply('later', { waitMs: 2_000 });
    await lab.pass(3_000);
    expect(await state).toEqual({ state: 'queued' });
    await lab.pass(30_000, 1_000);
    expect(lab.shown()).toEqual(['later']);
  });
});

describe('a persona', () => {
  it('S-121 gives replies the app’s name and icon, and relayed ones the peer’s', async () => {
    const lab = await openOut({ persona: { name: 'Helpdesk', icon: ':tools:' } });
    await lab.reply('mine');
    await lab.reply('theirs', { kind: 'relay', speaker: { name: 'Weather', icon: 'https://example.com/w.png' } });
    await lab.pass(2_000);
    expect(lab.slack.botMessages(lab.general, lab.thread.threadTs).map(({ who, shown }) => [who, shown])).toEqual([
      ['Helpdesk', 'mine'],
      ['Weather', 'theirs'],
    ]);
    expect(lab.slack.calls('chat.postMessage').map(({ args }) => [args['icon_emoji'], args['icon_url']])).toEqual([
      [':tools:', undefined],
      [undefined, 'https://example.com/w.png'],
    ]);
  });

  it('S-121 falls back to the bot’s name and puts the peer’s in front, where the scope is missing', async () => {
    const scopes = ['chat:write', 'channels:history'];
    const lab = await openOut({ persona: { name: 'Helpdesk', icon: null }, install: { scopes }, scopes });
    await lab.reply('mine');
    await lab.reply('- a list', { kind: 'relay', speaker: { name: 'We*ther <!here>', icon: null } });
    await lab.pass(2_000);
    expect(lab.slack.botMessages(lab.general, lab.thread.threadTs).map(({ who, shown }) => [who, shown])).toEqual([
      ['gateway', 'mine'],
      ['gateway', '**We\\*ther \\!here:**\n\n- a list'],
    ]);
    expect(lab.slack.calls('chat.postMessage').every(({ outcome }) => outcome === 'ok')).toBe(true);
  });

  it('S-121 learns from a refusal where Slack has not said which scopes there are', async () => {
    const lab = await openOut({ install: { scopes: ['chat:write', 'channels:history'] }, scopes: null });
    for (const text of ['one', 'two']) {
      await lab.reply(text, { kind: 'relay', speaker: { name: 'Weather', icon: null } });
    }
    await lab.pass(3_000);
    expect(lab.shown()).toEqual(['**Weather:** one', '**Weather:** two']);
    expect(lab.slack.calls('chat.postMessage').map(({ outcome }) => outcome)).toEqual(['missing_scope', 'ok', 'ok']);
  });
});

describe('whom a text pages', () => {
  it('S-117 S-118 only who the rule allows', async () => {
    const lab = await openOut();
    lab.slack.expectPing(lab.alice.id);
    const team = lab.team.id;
    const link = (id: string) => `[@x](slack://user?team=${team}&id=${id})`;
    await lab.reply(`${link(lab.alice.id)} ${link(lab.bob.id)} <@${lab.bob.id}> <!here> <!subteam^S123|@devs>`, {
      mentions: { ...NOBODY, users: [lab.alice.id] },
    });
    await lab.pass(1_000);
    expect(lab.slack.pings().map(({ kind, id }) => `${kind} ${id}`)).toEqual([`user ${lab.alice.id}`]);
  });

  it('S-118 the rule outlives a restart', async () => {
    const lab = await openOut();
    lab.slack.expectPing(lab.alice.id);
    await lab.out.suspend('main', lab.team.id, 'app_uninstalled');
    await lab.reply(`<@${lab.alice.id}> <@${lab.bob.id}>`, { mentions: { ...NOBODY, users: [lab.alice.id] } });
    await lab.out.stop(0);
    const second = await lab.reopen();
    await second.start();
    await second.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await lab.pass(1_000);
    expect(lab.shown()).toEqual([`<@${lab.alice.id}> @${lab.bob.id}`]);
  });

  it('S-118 nobody, whatever a brain, a tool, a file or a peer is called or says (fuzzed, every posting path)', async () => {
    const evil = hostileTexts(40);
    const lab = await openOut({ rates: false, scopes: null });
    for (const [index, text] of evil.entries()) {
      const id = `fuzz-${index}`;
      await lab.reply(text, { id, kind: index % 2 === 0 ? 'relay' : 'reply', speaker: { name: text, icon: null } });
      await lab.out.ephemeral(lab.thread, lab.alice.id, { id: `${id}-e`, text });
      await lab.out.edit(lab.thread, lab.thread.threadTs, { id: `${id}-edit`, markdown: text });
      await lab.out.upload(lab.thread, {
        id: `${id}-f`,
        filename: `${text}.txt`,
        bytes: Buffer.from(text),
        title: text,
        comment: text,
      });
      await lab.pass(4_000, 2_000);
      const progress = lab.out.progress(lab.thread, id, [{ action: 'stop', value: text }]);
      progress.toolStarted('1', text);
      progress.toolEnded('1', text);
      progress.controls([], text);
      await lab.pass(2_000, 1_000);
      await Promise.all([progress.finish(), lab.pass(4_000, 2_000)]);
    }
    await lab.pass(180_000, 3_000);
    const taken = (method: string) => lab.slack.calls(method).filter(({ outcome }) => outcome === 'ok').length;
    // A reply, a progress message, and what an edit of somebody else's message becomes.
    expect(taken('chat.postMessage')).toBe(3 * evil.length);
    expect([taken('chat.postEphemeral'), taken('files.completeUploadExternal')]).toEqual([evil.length, evil.length]);
    expect(lab.slack.pings()).toEqual([]);
  }, 30_000);

  it('S-118 nobody by the preview of a file that Slack refuses, nor in mrkdwn', async () => {
    const lab = await openOut({ settings: { render: 'mrkdwn' }, rates: false });
    lab.slack.fault({
      method: 'files.getUploadURLExternal',
      times: 20,
      effect: { kind: 'error', error: 'file_uploads_disabled' },
    });
    for (const [index, text] of hostileTexts(20).entries()) {
      await lab.out.upload(lab.thread, { id: `p-${index}`, filename: text, bytes: Buffer.from(text) });
      await lab.reply(text, { id: `m-${index}` });
      await lab.pass(2_000, 1_000);
    }
    await lab.pass(5_000, 1_000);
    expect(lab.slack.pings()).toEqual([]);
  });
});

/** Texts made of what pages people and of what could take a sanitiser apart. */
function hostileTexts(count: number): string[] {
  const bits = [
    '<!here>',
    '<!channel>',
    '<!everyone|x>',
    '<@U07MEMBER01>',
    '<@U07MEMBER02|b>',
    '<!subteam^S123|@devs>',
    '<',
    '>',
    '|',
    '@',
    '`',
    '```',
    '\n',
    '*',
    '_',
    '~',
    '[a](slack://user?team=T&id=U07MEMBER01)',
    '[x](<!here>)',
    '\\',
    '<<!he',
    're>>',
    '&lt;!here&gt;',
    '<!<!here>here>',
    '| a | b |\n|---|---|\n| <!here> | 1 |',
    '\u202e',
    '\u0000',
    '.txt',
    '- ',
    '> ',
    '# ',
    '<@U07MEMBER01',
    '!here',
  ];
  let state = 42;
  const next = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % below;
  };
  return Array.from(
    { length: count },
    (_, index) =>
      `${index} ` + Array.from({ length: 2 + next(12) }, () => bits[next(bits.length)]!).join(next(2) === 0 ? '' : ' '),
  );
}

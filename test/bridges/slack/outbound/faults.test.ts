import { describe, expect, it } from 'vitest';
import { FAULT_ROWS } from '../../../../bridges/slack/fault-table.js';
import { createLogger } from '../../../../src/base/log.js';
import { openOut, recordedMetrics, type OutLab } from './lab.js';

const MINUTE_MS = 60_000;
const error = (word: string) => ({ kind: 'error', error: word }) as const;

/** Refuses posts of #general with one word. */
async function refused(word: string, times: number, more: Parameters<typeof openOut>[0] = {}): Promise<OutLab> {
  const lab = await openOut(more);
  lab.slack.fault({ method: 'chat.postMessage', channel: lab.general.id, times, effect: error(word) });
  return lab;
}
const deadCodes = async (lab: OutLab) => (await lab.out.deadLetters.list()).map(({ code }) => code);
const told = (lab: OutLab) => lab.slack.ephemerals(lab.general, lab.alice.id).map(({ text }) => text);
/** Direct messages that Alice got from the bot. */
const direct = (lab: OutLab) =>
  lab.slack
    .calls('chat.postMessage')
    .filter(({ args, outcome }) => args['channel'] === lab.alice.id && outcome === 'ok')
    .map(({ args }) => String(args['text']));

describe('a post that Slack refuses', () => {
  it.each([
    'internal_error',
    'fatal_error',
    'service_unavailable',
    'request_timeout',
    'update_failed',
    'messaging_processing_failed',
    'duplicate_message_not_found',
    'duplicate_channel_not_found',
  ])('S-105 %s is looked for and sent again', async (word) => {
    const lab = await refused(word, 1);
    await lab.reply('hello');
    await lab.pass(3_000, 500);
    expect(lab.shown()).toEqual(['hello']);
    expect(lab.slack.calls('conversations.replies')).toHaveLength(1);
  });

  it('S-105 message_limit_exceeded is tried again after a minute, and given up and told after half an hour', async () => {
    const lab = await refused('message_limit_exceeded', 100);
    await lab.reply('hello');
    await lab.pass(50_000, 10_000);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(1);
    await lab.pass(31 * MINUTE_MS, 15_000);
    expect(await deadCodes(lab)).toEqual(['message_limit_exceeded']);
    expect(told(lab)[0]).toMatch(/reached its message limit/);
  });

  it.each(['team_added_to_org', 'org_login_required', 'external_channel_migrating'])(
    'S-105 %s is tried again every five minutes for a day',
    async (word) => {
      const lab = await refused(word, 1_000);
      await lab.reply('hello');
      await lab.pass(60 * MINUTE_MS, MINUTE_MS);
      const at = lab.slack.calls('chat.postMessage').map((call) => call.at);
      expect(at).toHaveLength(13);
      expect(at[2]! - at[1]!).toBeGreaterThanOrEqual(4 * MINUTE_MS);
      expect(at[2]! - at[1]!).toBeLessThanOrEqual(6 * MINUTE_MS);
      expect(await deadCodes(lab)).toEqual([]);
      await lab.pass(24 * 60 * MINUTE_MS, 5 * MINUTE_MS);
      expect(await deadCodes(lab)).toEqual([word]);
    },
    20_000,
  );

  it('S-105 an outage is waited out on a growing schedule and given up after half an hour', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: '*', times: 1_000, effect: { kind: 'status', status: 503 } });
    await lab.reply('hello');
    await lab.pass(3 * MINUTE_MS, 250);
    await lab.pass(26 * MINUTE_MS, 5_000);
    const tries = [...new Set(lab.slack.calls().map((call) => call.at))];
    const gaps = tries.slice(1).map((time, index) => time - tries[index]!);
    for (const [index, seconds] of [1, 2, 4, 8, 15, 30, 60, 60].entries()) {
      expect(Math.abs(gaps[index]! - seconds * 1_000), `wait ${index + 1}`).toBeLessThanOrEqual(250 + seconds * 200);
    }
    expect(await deadCodes(lab)).toEqual([]);
    await lab.pass(3 * MINUTE_MS, 5_000);
    expect(await deadCodes(lab)).toEqual(['SLACK_UNAVAILABLE']);
  });

  it('S-105 an unknown code is tried three times and named in the log', async () => {
    const lines: string[] = [];
    const log = createLogger({ destination: { write: (line) => void lines.push(line) } });
    const lab = await refused('brand_new_word', 10, { log });
    await lab.reply('hello');
    await lab.pass(30_000, 1_000);
    expect(lab.slack.calls('chat.postMessage').filter(({ args }) => args['channel'] === lab.general.id)).toHaveLength(
      3,
    );
    expect(await deadCodes(lab)).toEqual(['brand_new_word']);
    expect(lines.join('')).toContain('in no list');
  });

  it('S-105 channel_not_found is looked up once, then the binding is out of reach and the asker hears of it', async () => {
    const lab = await refused('channel_not_found', 10);
    await lab.reply('hello');
    await lab.pass(3_000);
    expect(lab.slack.calls('conversations.info')).toHaveLength(1);
    expect(await deadCodes(lab)).toEqual(['channel_not_found']);
    expect(lab.unreachable).toMatchObject([{ channel: lab.general.id }]);
    expect(direct(lab)[0]).toMatch(/can no longer see the channel/);
  });

  it('S-105 channel_not_found of the moment is only looked up', async () => {
    const lab = await refused('channel_not_found', 1);
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['hello']);
  });

  it.each(['not_in_channel', 'no_permission', 'user_not_in_channel'])(
    'S-105 S-107 %s parks the channel, tells by direct message, and goes on when we were invited',
    async (word) => {
      const lab = await refused(word, 1);
      await lab.reply('hello');
      await lab.reply('and more');
      await lab.pass(60 * MINUTE_MS, 5 * MINUTE_MS);
      expect(lab.shown()).toEqual([]);
      expect(lab.out.parks()).toMatchObject([{ channel: lab.general.id, cause: word }]);
      expect(direct(lab)).toEqual([expect.stringMatching(/^I am not in that channel\. Invite me/)]);
      await lab.out.resume({ kind: 'joined', slug: 'main', team: lab.team.id, channel: lab.general.id });
      await lab.pass(2_000);
      expect(lab.shown()).toEqual(['hello', 'and more']);
    },
  );

  it('S-105 not_in_channel of a public channel is joined where that is allowed', async () => {
    const scopes = ['chat:write', 'channels:join', 'channels:history'];
    const lab = await openOut({ settings: { autoJoin: true }, install: { scopes }, scopes });
    const said = lab.alice.says('#outside', 'hello');
    const thread = { ...lab.thread, channel: lab.outside.id, threadTs: said.ts };
    await lab.out.reply(thread, { id: 'joined', markdown: 'here I am', kind: 'reply' });
    await lab.pass(2_000);
    expect(lab.slack.botMessages(lab.outside, said.ts).map(({ text }) => text)).toEqual(['here I am']);
  });

  it.each(['is_archived', 'is_inactive', 'channel_is_limited_access'])(
    'S-105 S-107 %s parks until the channel is opened again',
    async (word) => {
      const lab = await refused(word, 1);
      await lab.reply('hello');
      await lab.pass(2_000);
      expect(lab.out.parks()).toMatchObject([{ cause: word }]);
      await lab.out.resume({ kind: 'unarchived', slug: 'main', team: lab.team.id, channel: lab.general.id });
      await lab.pass(2_000);
      expect(lab.shown()).toEqual(['hello']);
    },
  );

  it('S-105 an archived channel is given up after seven days, and what waited longest dies with it', async () => {
    const lab = await openOut();
    lab.slack.archive(lab.general, true);
    await lab.reply('one');
    await lab.reply('two');
    await lab.pass(7 * 24 * 60 * MINUTE_MS + MINUTE_MS, 60 * MINUTE_MS);
    expect(await deadCodes(lab)).toEqual(['is_archived', 'is_archived']);
  });

  it.each([
    ['restricted_action', /not allowed to post/],
    ['restricted_action_read_only_channel', /not allowed to post/],
    ['posting_to_channel_denied', /not allowed to post/],
    ['restricted_action_thread_locked', /locked/],
    ['thread_locked', /locked/],
    ['ekm_access_denied', /security rules/],
    ['slack_connect_canvas_sharing_blocked', /shared channel/],
    ['invalid_arguments', /defect on my side/],
    ['invalid_arg_name', /defect on my side/],
    ['invalid_array_arg', /defect on my side/],
    ['invalid_form_data', /defect on my side/],
    ['invalid_charset', /defect on my side/],
    ['invalid_post_type', /defect on my side/],
    ['missing_post_type', /defect on my side/],
    ['method_deprecated', /could not post/],
    ['deprecated_endpoint', /could not post/],
    ['unknown_method', /could not post/],
  ])('S-105 %s is given up at once, and the asker hears why', async (word, why) => {
    const lab = await refused(word, 1);
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(await deadCodes(lab)).toEqual([word]);
    expect([...told(lab), ...direct(lab)]).toEqual([expect.stringMatching(why)]);
  });

  it('S-105 msg_too_long halves the parts three times, then sends a file', async () => {
    const lab = await refused('msg_too_long', 4);
    const text = 'word '.repeat(2_000);
    await lab.reply(text);
    await lab.pass(20_000, 1_000);
    const [file] = lab.slack.files();
    expect(file!.name).toBe('reply.md');
    const shown = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    expect(shown.filter((one) => one.files.length > 0)).toHaveLength(1);
    const words = shown.flatMap(
      (one) => (one.files.length > 0 ? file!.bytes.toString() : one.shown).match(/word/g) ?? [],
    );
    expect(words).toHaveLength(2_000);
  });

  it('S-105 msg_too_long once is cut in halves', async () => {
    const lab = await refused('msg_too_long', 1);
    await lab.reply('word '.repeat(2_000));
    await lab.pass(5_000, 1_000);
    expect(lab.shown().map((text) => text.length <= 5_750)).toEqual([true, true]);
  });

  it.each([
    'msg_blocks_too_long',
    'msg_blocks_too_many',
    'invalid_blocks',
    'invalid_blocks_format',
    'invalid_attachments',
  ])('S-105 S-113 %s falls back once to mrkdwn, with the buttons in a post of their own', async (word) => {
    const figures = recordedMetrics();
    const lab = await refused(word, 1, { metrics: figures.metrics });
    await lab.reply('**hello**', { buttons: [{ action: 'retry', value: 'v' }] });
    await lab.pass(2_000);
    const [text, controls] = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    expect(text).toMatchObject({ text: '*hello*', buttons: [] });
    expect(controls).toMatchObject({ buttons: ['Retry'] });
    expect(figures.of('slack_render_fallback_total')).toMatchObject([{ labels: { from: 'markdown', to: 'mrkdwn' } }]);
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

  it('S-113 a part that is refused in both forms is given up', async () => {
    const lab = await refused('invalid_blocks', 2);
    await lab.reply('hello');
    await lab.pass(2_000);
    expect(await deadCodes(lab)).toEqual(['invalid_blocks']);
  });

  it.each(['markdown_text_conflict', 'no_text'])('S-105 %s is sent as plain text', async (word) => {
    const lab = await refused(word, 1);
    await lab.reply('**hello**');
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['*hello*']);
  });

  it.each([
    'metadata_too_large',
    'invalid_metadata_format',
    'invalid_metadata_schema',
    'metadata_must_be_sent_from_app',
  ])('S-105 %s is sent without metadata, and found by its text when its outcome is unknown', async (word) => {
    const lab = await refused(word, 1);
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: true } });
    await lab.reply('hello');
    await lab.pass(3_000);
    expect(lab.slack.botMessages(lab.general, lab.thread.threadTs)).toMatchObject([{ shown: 'hello', metadata: null }]);
  });

  it.each(['too_many_attachments', 'too_many_contact_cards', 'attachment_payload_limit_exceeded'])(
    'S-105 %s is sent without attachments',
    async (word) => {
      const lab = await refused(word, 1);
      await lab.reply('hello');
      await lab.pass(1_000);
      expect(lab.shown()).toEqual(['hello']);
    },
  );

  it('S-105 reserved_username is sent under the bot’s own name', async () => {
    const lab = await refused('reserved_username', 1, { persona: { name: 'Slackbot', icon: null } });
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(lab.slack.botMessages(lab.general, lab.thread.threadTs)).toMatchObject([{ who: 'gateway' }]);
  });

  it('S-105 messages_tab_disabled parks direct messages only, until the app was changed', async () => {
    const lab = await openOut();
    const said = lab.alice.says('dm', 'hello');
    const dm = { ...lab.thread, channel: said.channel, threadTs: said.ts };
    lab.slack.fault({ method: 'chat.postMessage', channel: said.channel, effect: error('messages_tab_disabled') });
    await lab.out.reply(dm, { id: 'dm', markdown: 'psst', kind: 'reply' });
    await lab.reply('hello');
    await lab.pass(2_000);
    expect(lab.shown()).toEqual(['hello']);
    expect(lab.slack.botMessages(said.channel, said.ts)).toEqual([]);
    await lab.out.resume({ kind: 'settings', slug: 'main', team: lab.team.id });
    await lab.pass(2_000);
    expect(lab.slack.botMessages(said.channel, said.ts)).toHaveLength(1);
  });

  it.each([
    'invalid_auth',
    'not_authed',
    'token_expired',
    'token_revoked',
    'account_inactive',
    'team_disabled',
    'user_removed_from_team',
    'two_factor_setup_required',
    'not_allowed_token_type',
    'access_denied',
    'accesslimited',
    'enterprise_is_restricted',
    'missing_scope',
    'team_access_not_granted',
  ])('S-105 %s parks the installation, tells the room once, and goes on with a token that works', async (word) => {
    const lab = await refused(word, 1);
    await lab.reply('hello');
    await lab.reply('more');
    await lab.pass(60 * MINUTE_MS, 5 * MINUTE_MS);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(1);
    expect(lab.out.parks()).toMatchObject([{ channel: null, cause: word }]);
    expect(lab.roomErrors).toMatchObject([{ slackError: word }]);
    await lab.out.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await lab.pass(2_000);
    expect(lab.shown()).toEqual(['hello', 'more']);
  });

  it('S-183 token_expired refreshes a rotated token and sends once more', async () => {
    let refreshed = 0;
    const lab = await refused('token_expired', 1, { hooks: { refresh: () => Promise.resolve((refreshed += 1) > 0) } });
    await lab.reply('hello');
    await lab.pass(1_000);
    expect([lab.shown(), refreshed]).toEqual([['hello'], 1]);
  });

  it('S-105 team_not_found is sent once more with the team of the conversation', async () => {
    const lab = await refused('team_not_found', 1);
    await lab.reply('hello');
    await lab.pass(1_000);
    expect(lab.slack.calls('chat.postMessage').map(({ args }) => args['team_id'])).toEqual([undefined, lab.team.id]);
    expect(lab.shown()).toEqual(['hello']);
  });

  it('S-105 every word of the table ends a post in one of the known ways', async () => {
    const lab = await openOut({ rates: false });
    const words = [...FAULT_ROWS.keys()];
    for (const [index, word] of words.entries()) {
      const said = lab.alice.says('#general', `question ${index}`);
      const before = lab.slack.calls('chat.postMessage').length;
      const fault = lab.slack.fault({
        method: 'chat.postMessage',
        channel: lab.general.id,
        times: 100,
        effect: error(word),
      });
      const thread = { ...lab.thread, threadTs: said.ts, askerId: null };
      await lab.out.reply(thread, { id: `word-${word}`, markdown: 'hello', kind: 'reply' });
      await lab.pass(1_000, 500);
      fault.disarm();
      lab.installation.current = { ...lab.installation.current!, client: lab.freshClient() };
      await lab.out.resume({ kind: 'token', slug: 'main', team: lab.team.id });
      await lab.out.resume({ kind: 'joined', slug: 'main', team: lab.team.id, channel: lab.general.id });
      await lab.out.resume({ kind: 'unarchived', slug: 'main', team: lab.team.id, channel: lab.general.id });
      await lab.pass(10 * MINUTE_MS, 2 * MINUTE_MS);
      const isDead = (await deadCodes(lab)).includes(word);
      const posts = lab.slack
        .calls('chat.postMessage')
        .slice(before)
        .filter(({ outcome }) => outcome === 'ok').length;
      expect([word, isDead ? 0 : 1]).toEqual([word, posts]);
      expect(lab.slack.calls('chat.postMessage').length - before, word).toBeLessThan(60);
      expect([word, lab.out.queues()[0]!.depth]).toEqual([word, 0]);
    }
  }, 60_000);
});

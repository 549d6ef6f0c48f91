import { describe, expect, it, onTestFinished } from 'vitest';
import { createSlackClient } from '../../../bridges/slack/client.js';
import { createGuardedClient } from '../../../bridges/slack/guarded-client.js';
import type { GatewayError } from '../../../src/base/errors.js';
import { createLogger } from '../../../src/base/log.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { startAcme } from '../../support/slack/acme.js';

async function setUp() {
  const clock = createManualClock();
  const acme = await startAcme({ clock, rates: false });
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ destination: { write: (line) => void lines.push(JSON.parse(line) as never) } });
  const refused: GatewayError[] = [];
  const raw = createSlackClient({ token: acme.botToken, slackApiUrl: acme.slack.apiUrl });
  onTestFinished(async () => {
    raw.close();
    await acme.slack.stop();
    acme.slack.check();
  });
  const fresh = () =>
    createGuardedClient(raw, { slug: 'main', clock, log, onRefused: (error) => void refused.push(error) });
  const said = acme.alice.says('#general', 'hello');
  const client = fresh();
  /** Slack's word, or null where it took the call. */
  const wordOf = (method: string, args: Record<string, unknown>, by = client) =>
    by.call(method, args).then(
      () => null,
      (error: unknown) => (error as GatewayError).details['slackError'],
    );
  const fails = (method: string, word: string, extra = {}) =>
    acme.slack.fault({ method, effect: { kind: 'error', error: word, extra } });
  return { ...acme, clock, lines, refused, said, fresh, wordOf, fails };
}

describe('a method that the app may not use', () => {
  it.each([
    ['users.info', { user: 'U07MEMBER01' }],
    ['bots.info', { bot: 'B07GATEBOT1' }],
    ['files.info', { file: 'F1' }],
    ['reactions.add', { channel: 'C07ROOMS001', timestamp: '1.1', name: 'eyes' }],
    ['assistant.threads.setStatus', { channel_id: 'C07ROOMS001', thread_ts: '1.1', status: 'x' }],
  ])(
    'S-105 missing_scope from %s: it is not asked for again for an hour, and the log names the scope',
    async (method, args) => {
      const { slack, clock, lines, wordOf, fails } = await setUp();
      fails(method, 'missing_scope', { needed: 'some:scope', provided: 'chat:write' });
      for (let turn = 0; turn < 3; turn += 1) expect(await wordOf(method, args)).toBe('missing_scope');
      expect(slack.calls(method)).toHaveLength(1);
      expect(lines).toMatchObject([{ app: 'main', method, needed: 'some:scope', provided: 'chat:write' }]);
      await clock.advance(3_599_000);
      await wordOf(method, args);
      expect(slack.calls(method)).toHaveLength(1);
      await clock.advance(1_001);
      await wordOf(method, args);
      expect(slack.calls(method)).toHaveLength(2);
    },
  );

  it.each(['conversations.info', 'conversations.history', 'conversations.replies'])(
    'S-105 missing_scope from %s is about this kind of channel: another channel is asked',
    async (method) => {
      const { slack, said, rooms, wordOf, fails } = await setUp();
      fails(method, 'missing_scope', { needed: 'channels:history' });
      const args = { channel: said.channel, ts: said.ts };
      for (let turn = 0; turn < 2; turn += 1) expect(await wordOf(method, args)).toBe('missing_scope');
      await wordOf(method, { channel: rooms.id, ts: said.ts });
      expect(slack.calls(method).map((call) => call.args['channel'])).toEqual([said.channel, rooms.id]);
    },
  );

  it.each([
    ['method_deprecated', 'users.info'],
    ['deprecated_endpoint', 'assistant.threads.setStatus'],
    ['unknown_method', 'agents.sessions.setStatus'],
    ['method_deprecated', 'chat.postMessage'],
  ])('S-105 %s from %s: it is off until the next start, with an error in the log', async (word, method) => {
    const { slack, clock, lines, said, fresh, wordOf, fails } = await setUp();
    fails(method, word);
    const args = {
      user: 'U07MEMBER01',
      channel: said.channel,
      channel_id: said.channel,
      thread_ts: said.ts,
      text: 'x',
    };
    expect(await wordOf(method, args)).toBe(word);
    await clock.advance(30 * 24 * 3_600_000);
    expect(await wordOf(method, args)).toBe(word);
    expect(slack.calls(method)).toHaveLength(1);
    expect(lines).toMatchObject([{ level: 50, method, slackError: word }]);
    await wordOf(method, args, fresh());
    expect(slack.calls(method)).toHaveLength(2);
  });

  it('S-105 missing_scope of a post is not remembered here: its lane is parked', async () => {
    const { slack, said, wordOf, fails } = await setUp();
    fails('chat.postMessage', 'missing_scope', { needed: 'chat:write' });
    const args = { channel: said.channel, thread_ts: said.ts, text: 'hello' };
    expect([await wordOf('chat.postMessage', args), await wordOf('chat.postMessage', args)]).toEqual([
      'missing_scope',
      null,
    ]);
    expect(slack.calls('chat.postMessage')).toHaveLength(2);
  });
});

describe('a call that Slack calls wrong', () => {
  it.each([
    'invalid_arguments',
    'invalid_arg_name',
    'invalid_array_arg',
    'invalid_form_data',
    'invalid_charset',
    'invalid_post_type',
    'missing_post_type',
  ])('S-105 %s: the log says what it was made of, and nothing of what was written', async (word) => {
    const { said, lines, wordOf, fails } = await setUp();
    fails('chat.postMessage', word, { response_metadata: { messages: ['[ERROR] no such thing'] } });
    const blocks = [{ type: 'markdown', text: 'my secret words' }];
    await wordOf('chat.postMessage', { channel: said.channel, text: 'secret', blocks, metadata: { event_type: 'x' } });
    expect(lines).toMatchObject([
      {
        level: 50,
        method: 'chat.postMessage',
        slackError: word,
        messages: ['[ERROR] no such thing'],
        arguments: { channel: said.channel, text: '6 characters', blocks: ['markdown'], metadata: ['event_type'] },
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });
});

describe('a token that is no good any more', () => {
  it.each([
    'invalid_auth',
    'not_authed',
    'token_expired',
    'token_revoked',
    'account_inactive',
    'team_disabled',
    'user_removed_from_team',
    'two_factor_setup_required',
  ])('S-105 %s is learned from a read as well; a write has its own way', async (word) => {
    const { alice, said, refused, wordOf, fails } = await setUp();
    fails('users.info', word);
    await wordOf('users.info', { user: alice.id });
    expect(refused.map(({ details }) => details['slackError'])).toEqual([word]);
    fails('chat.postMessage', word);
    await wordOf('chat.postMessage', { channel: said.channel, text: 'x' });
    expect(refused).toHaveLength(1);
  });
});

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { App as BoltApp, HTTPReceiver, LogLevel } from '@slack/bolt';
import { SocketModeClient } from '@slack/socket-mode';
import { WebClient, WebAPIRateLimitedError } from '@slack/web-api';
import { afterEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { createSlackClient, mutedLogger } from '../../../bridges/slack/client.js';
import { authTest, channelInfo, readMessages, userInfo } from '../../../bridges/slack/web-methods.js';
import { startAcme, type Acme } from '../../support/slack/acme.js';

const cleanups: (() => Promise<unknown>)[] = [];
const acme = async (options?: Parameters<typeof startAcme>[0]): Promise<Acme> => {
  const started = await startAcme(options);
  cleanups.push(() => started.slack.stop());
  return started;
};
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Opens a port for a request listener and points the app's URLs at it. */
async function listen(world: Acme, listener: Parameters<typeof createServer>[1]): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/slack/events`;
  world.app.urls = { events: url, interactions: url, commands: url };
}

describe('the Slack double with the real packages', () => {
  it('answers the real WebClient: auth, posts, threads, users', async () => {
    const { slack, general, alice, botToken } = await acme();
    const web = new WebClient(botToken, { slackApiUrl: slack.apiUrl, logger: mutedLogger });
    const auth = await web.auth.test();
    expect([auth.team_id, auth.user_id, auth.bot_id]).toEqual(['T07GATE0001', 'U07GATEBOT1', 'B07GATEBOT1']);
    const said = alice.says('#general', 'hello *there*');
    const posted = await web.chat.postMessage({ channel: general.id, thread_ts: said.ts, text: 'hi' });
    expect(slack.messages(general, said.ts).map((one) => [one.who, one.text])).toEqual([
      ['@alice', 'hello *there*'],
      ['gateway', 'hi'],
    ]);
    const thread = await web.conversations.replies({ channel: general.id, ts: said.ts });
    expect(thread.messages?.map((one) => one.ts)).toEqual([said.ts, posted.ts]);
    await expect(web.users.info({ user: 'U0NOBODY' })).rejects.toMatchObject({ data: { error: 'user_not_found' } });
    slack.check();
  });

  it('delivers signed events to a real Bolt App over HTTP and takes its answer', async () => {
    const world = await acme();
    const receiver = new HTTPReceiver({
      signingSecret: world.app.signingSecret,
      logger: mutedLogger,
      logLevel: LogLevel.ERROR,
    });
    const bolt = new BoltApp({
      token: world.botToken,
      receiver,
      clientOptions: { slackApiUrl: world.slack.apiUrl },
      logger: mutedLogger,
    });
    bolt.event('app_mention', async ({ event, say }) => {
      await say({ text: `you said ${event.text}`, thread_ts: event.ts });
    });
    await listen(world, (request, response) => {
      receiver.requestListener(request, response);
    });
    const said = world.alice.says('#general', '@gateway ping');
    await world.slack.until(() => world.slack.botMessages(world.general, said.ts).length === 1);
    expect(world.slack.botMessages(world.general, said.ts)[0]?.text).toBe('you said <@U07GATEBOT1> ping');
    await world.slack.settled();
    expect(world.slack.deliveries().every((delivery) => delivery.state === 'acked')).toBe(true);
  });

  it('delivers envelopes to a real SocketModeClient and sees its acknowledgement', async () => {
    const { slack, app, alice } = await acme({ app: { socketMode: true, events: ['message.channels'] } });
    const client = new SocketModeClient({
      appToken: app.appToken,
      autoReconnectEnabled: false,
      logger: mutedLogger,
      clientOptions: { slackApiUrl: slack.apiUrl },
    });
    const seen: string[] = [];
    client.on('slack_event', ({ ack, body }: { ack: () => Promise<void>; body: { event: { text: string } } }) => {
      seen.push(body.event.text);
      void ack();
    });
    cleanups.push(() => client.disconnect());
    await client.start();
    alice.says('#general', 'over the socket');
    await slack.until(() => slack.deliveries()[0]?.state === 'acked');
    expect(seen).toEqual(['over the socket']);
    slack.check();
  });

  it('repeats an unanswered event at once, after a minute and after five, with Slack’s headers', async () => {
    const clock = createManualClock();
    const world = await acme({ clock, app: { events: ['message.channels'] } });
    const headers: (string | undefined)[][] = [];
    await listen(world, (request, response) => {
      headers.push([
        request.headers['x-slack-retry-num'] as string | undefined,
        request.headers['x-slack-retry-reason'] as string | undefined,
      ]);
      request.resume();
      response.writeHead(headers.length === 4 ? 200 : 500).end();
    });
    world.alice.says('#general', 'hello');
    const attempts = () => world.slack.deliveries()[0]?.attempts ?? [];
    const finished = (count: number) =>
      world.slack.until(() => attempts().length === count && attempts().at(-1)?.outcome !== 'under way');
    await finished(1);
    await clock.advance(0);
    await finished(2);
    await clock.advance(59_000);
    expect(attempts()).toHaveLength(2);
    await clock.advance(1_000);
    await finished(3);
    await clock.advance(300_000);
    await finished(4);
    expect(headers).toEqual([
      [undefined, undefined],
      ['1', 'http_error'],
      ['2', 'http_error'],
      ['3', 'http_error'],
    ]);
    expect(world.slack.deliveries()[0]?.state).toBe('acked');
  });
});

describe('the Slack double’s rules', () => {
  it('counts posts by channel and refuses the one that comes too soon', async () => {
    const clock = createManualClock();
    const { slack, general, rooms, botToken } = await acme({ clock });
    const web = new WebClient(botToken, {
      slackApiUrl: slack.apiUrl,
      logger: mutedLogger,
      rejectRateLimitedCalls: true,
      retryConfig: { retries: 0 },
    });
    for (const text of ['1', '2', '3']) await web.chat.postMessage({ channel: general.id, text });
    await expect(web.chat.postMessage({ channel: general.id, text: '4' })).rejects.toBeInstanceOf(
      WebAPIRateLimitedError,
    );
    await web.chat.postMessage({ channel: rooms.id, text: 'another channel' });
    await clock.advance(1_000);
    await web.chat.postMessage({ channel: general.id, text: '4' });
    expect(slack.violations()).toEqual(['rate: posts: 1 a second and channel']);
    expect(() => {
      slack.check();
    }).toThrow('posts: 1 a second and channel');
  });

  it.each([
    ['a Markdown text over 12,000', [{ type: 'markdown', text: 'x'.repeat(12_001) }], 'msg_too_long'],
    ['an empty Markdown block', [{ type: 'markdown', text: '' }], 'no_text'],
    [
      'blocks over 13,200 in all',
      Array.from({ length: 5 }, () => ({ type: 'section', text: { type: 'mrkdwn', text: 'y'.repeat(2_700) } })),
      'msg_blocks_too_long',
    ],
    ['more than 50 blocks', Array.from({ length: 51 }, () => ({ type: 'divider' })), 'invalid_blocks'],
    ['50 headings after expansion', [{ type: 'markdown', text: '# h\n\n'.repeat(50) }], 'invalid_blocks'],
    [
      'two tables',
      [{ type: 'markdown', text: '| a |\n|---|\n| 1 |\n\ntext\n\n| b |\n|---|\n| 2 |' }],
      'invalid_attachments',
    ],
    ['a table of 101 rows', [{ type: 'markdown', text: `| a |\n|---|\n${'| 1 |\n'.repeat(100)}` }], 'invalid_blocks'],
    [
      'a section over 3,000',
      [{ type: 'section', text: { type: 'mrkdwn', text: 'z'.repeat(3_001) } }],
      'invalid_blocks',
    ],
    ['an unknown block', [{ type: 'hologram' }], 'invalid_blocks'],
    [
      'a button text over 75',
      [
        {
          type: 'actions',
          elements: [{ type: 'button', action_id: 'a', text: { type: 'plain_text', text: 'b'.repeat(76) } }],
        },
      ],
      'invalid_blocks',
    ],
  ])('refuses %s', async (_name, blocks, error) => {
    const { slack, general, botToken } = await acme();
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    await expect(
      client.call('chat.postMessage', { channel: general.id, text: 'fallback', blocks }),
    ).rejects.toMatchObject({ details: { slackError: error } });
  });

  it('knows places: archived, not a member, read-only, thread-only, locked, gone', async () => {
    const { slack, general, outside, rooms, alice, botToken } = await acme({ rates: false });
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    const post = (channel: string, threadTs?: string) =>
      client.call('chat.postMessage', { channel, text: 'x', ...(threadTs ? { thread_ts: threadTs } : {}) }).then(
        () => 'ok',
        (error: unknown) => (error as { details: { slackError: string } }).details.slackError,
      );
    expect(await post(outside.id)).toBe('not_in_channel');
    expect(await post('C0NOWHERE')).toBe('channel_not_found');
    expect(await post(general.id, '1.000001')).toBe('invalid_thread_ts');
    expect(await post(general.id, '1700000000.000001')).toBe('thread_not_found');
    const said = alice.says('#general', 'root');
    expect(await post(general.id, said.ts)).toBe('ok');
    const reply = alice.replies(said, 'a reply');
    const alone = () => readMessages(client, { channel: general.id, ts: reply.ts });
    expect((await alone()).messages).toMatchObject([{ text: 'a reply' }]);
    alice.deletes(reply);
    await expect(alone()).rejects.toMatchObject({ details: { slackError: 'thread_not_found' } });
    general.lockedThreads.add(said.ts);
    expect(await post(general.id, said.ts)).toBe('restricted_action_thread_locked');
    rooms.threadOnly = true;
    expect(await post(rooms.id)).toBe('restricted_action_thread_only_channel');
    general.readOnly = true;
    expect(await post(general.id)).toBe('restricted_action_read_only_channel');
    general.archived = true;
    expect(await post(general.id)).toBe('is_archived');
  });

  it('notices a mention that somebody would be paged by, and an Authorization header on an upload', async () => {
    const { slack, general, botToken, alice } = await acme();
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    await client.call('chat.postMessage', {
      channel: general.id,
      text: `<!here> <@${alice.id}>`,
      blocks: [{ type: 'markdown', text: '<!subteam^S1>' }],
    });
    expect(slack.pings().map((ping) => `${ping.kind} ${ping.id}`)).toEqual([
      'user U07MEMBER01',
      'group S1',
      'broadcast here',
    ]);
    const { upload_url: url } = await client.call('files.getUploadURLExternal', { filename: 'a.txt', length: 2 });
    await fetch(url as string, { method: 'POST', body: 'ab', headers: { authorization: 'Bearer x' } });
    expect(slack.leaks()).toEqual(['Authorization header on an upload request']);
    slack.expectPing(alice.id);
    expect(() => {
      slack.check();
    }).toThrow(/unexpected ping: broadcast here/);
  });

  it('fails a test whose armed fault no call has met', async () => {
    const { slack } = await acme();
    slack.fault({ method: 'chat.update', effect: { kind: 'error', error: 'fatal_error' } });
    expect(() => {
      slack.check();
    }).toThrow('fault never met: chat.update');
  });

  it('offers the ten-connection limit and single-use tickets', async () => {
    const { slack, app } = await acme({ app: { socketMode: true } });
    const clients = Array.from(
      { length: 10 },
      () =>
        new SocketModeClient({
          appToken: app.appToken,
          autoReconnectEnabled: false,
          logger: mutedLogger,
          clientOptions: { slackApiUrl: slack.apiUrl },
        }),
    );
    for (const client of clients) await client.start();
    const reasons: string[] = [];
    const eleventh = new SocketModeClient({
      appToken: app.appToken,
      autoReconnectEnabled: false,
      logger: mutedLogger,
      clientOptions: { slackApiUrl: slack.apiUrl },
    });
    eleventh.on('ws_message', (data: string) => reasons.push(String((JSON.parse(data) as { reason?: string }).reason)));
    await expect(eleventh.start()).rejects.toBeUndefined();
    expect(reasons).toEqual(['too_many_websockets']);
    expect(slack.sockets.open(app)).toHaveLength(10);
    for (const client of clients) await client.disconnect();
  });
});

describe('a Slack client', () => {
  it('reads identity, people, channels and pages of a thread', async () => {
    const { slack, general, alice, bob, botToken } = await acme();
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    const identity = await authTest(client);
    expect(identity).toMatchObject({ teamId: 'T07GATE0001', botUserId: 'U07GATEBOT1', botId: 'B07GATEBOT1' });
    expect(identity.scopes).toContain('chat:write');
    expect(await userInfo(client, bob.id)).toMatchObject({
      name: 'Bob [QA]',
      handle: 'bob',
      isAdmin: false,
      email: null,
    });
    expect(await channelInfo(client, general.id)).toMatchObject({ name: 'general', kind: 'channel', isMember: true });
    const said = alice.says('#general', 'root');
    for (let index = 0; index < 4; index += 1) bob.replies(said, `reply ${index}`);
    const first = await readMessages(client, { channel: general.id, ts: said.ts, limit: 3 });
    expect(first.messages).toHaveLength(3);
    const second = await readMessages(client, { channel: general.id, ts: said.ts, limit: 3, cursor: first.nextCursor });
    expect(second.messages.map((one) => one.text)).toEqual(['reply 2', 'reply 3']);
    expect(second.nextCursor).toBeNull();
  });

  it.each([
    [
      'an answer of 429 with a header',
      { kind: 'status', status: 429, headers: { 'retry-after': '7' } },
      { code: 'SLACK_RATE_LIMITED', retryAfterMs: 7_000 },
    ],
    [
      'S-093 an answer of 429 without a header',
      { kind: 'status', status: 429 },
      { code: 'SLACK_RATE_LIMITED', retryAfterMs: 30_000 },
    ],
    [
      'an answer of 429 with a header that is no number',
      { kind: 'status', status: 429, headers: { 'retry-after': 'soon' } },
      { code: 'SLACK_RATE_LIMITED', retryAfterMs: 30_000 },
    ],
    [
      'S-094 an answer of 200 that says rate_limited',
      { kind: 'error', error: 'rate_limited' },
      { code: 'SLACK_RATE_LIMITED', retryAfterMs: 30_000 },
    ],
    ['an answer of 503', { kind: 'status', status: 503 }, { code: 'SLACK_UNAVAILABLE', undelivered: false }],
    [
      'an internal error',
      { kind: 'error', error: 'internal_error' },
      { code: 'SLACK_UNAVAILABLE', undelivered: false },
    ],
    ['half an answer', { kind: 'truncate' }, { code: 'SLACK_BAD_ANSWER', undelivered: false }],
    ['a page instead of JSON', { kind: 'garbage' }, { code: 'SLACK_BAD_ANSWER', undelivered: false }],
    ['a connection that drops', { kind: 'drop', applied: true }, { code: 'SLACK_CONNECTION_LOST', undelivered: false }],
    ['a revoked token', { kind: 'error', error: 'token_revoked' }, { code: 'SLACK_UNAUTHORIZED', undelivered: true }],
    [
      'a missing scope',
      { kind: 'error', error: 'missing_scope', extra: { needed: 'chat:write', provided: 'im:read' } },
      { code: 'SLACK_REFUSED', details: { needed: 'chat:write', provided: 'im:read' } },
    ],
  ] as const)('names %s', async (_name, effect, expected) => {
    const { slack, general, botToken } = await acme();
    slack.fault({ method: 'chat.postMessage', effect });
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    await expect(client.call('chat.postMessage', { channel: general.id, text: 'x' })).rejects.toMatchObject(expected);
    expect(slack.calls('chat.postMessage')).toHaveLength(1);
    slack.check();
  });

  it('knows that a refused connection delivered nothing', async () => {
    const { slack, botToken } = await acme();
    const url = slack.apiUrl;
    await slack.stop();
    const client = createSlackClient({ token: botToken, slackApiUrl: url });
    await expect(client.call('auth.test', {})).rejects.toMatchObject({ code: 'SLACK_UNREACHABLE', undelivered: true });
  });

  it('gives up after its time limit', async () => {
    const { slack, botToken } = await acme();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    slack.fault({ method: 'auth.test', effect: { kind: 'hold', until: held, apply: 'before' } });
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl, timeoutMs: 50 });
    await expect(client.call('auth.test', {})).rejects.toMatchObject({ code: 'SLACK_TIMEOUT', undelivered: false });
    release();
  });

  it('S-097 every client has headers of its own, so two installations never share a token', async () => {
    const { slack, app } = await acme();
    const other = slack.install(app, slack.team({ id: 'T07OTHER002', name: 'Other' }), {
      botToken: 'xoxb-test-team-two',
    });
    const one = createSlackClient({ token: 'xoxb-test-team-one', slackApiUrl: slack.apiUrl });
    const two = createSlackClient({ token: 'xoxb-test-team-two', slackApiUrl: slack.apiUrl });
    const identities = await Promise.all(
      Array.from({ length: 40 }, (_, index) => authTest(index % 2 === 0 ? one : two)),
    );
    expect(new Set(identities.filter((_, index) => index % 2 === 0).map((id) => id.teamId))).toEqual(
      new Set(['T07GATE0001']),
    );
    expect(new Set(identities.filter((_, index) => index % 2 === 1).map((id) => id.botUserId))).toEqual(
      new Set([other.botUserId]),
    );
  });

  it('S-097 a rate-limited call neither waits nor is repeated, and other calls go on meanwhile', async () => {
    const { slack, general, rooms, botToken } = await acme();
    slack.fault({
      method: 'chat.postMessage',
      channel: general.id,
      effect: { kind: 'status', status: 429, headers: { 'retry-after': '60' } },
    });
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    const begun = performance.now();
    await expect(client.call('chat.postMessage', { channel: general.id, text: 'x' })).rejects.toMatchObject({
      retryAfterMs: 60_000,
    });
    await client.call('chat.postMessage', { channel: rooms.id, text: 'y' });
    expect(performance.now() - begun).toBeLessThan(2_000);
    expect(slack.calls('chat.postMessage')).toHaveLength(2);
  });

  it('fails at once after it was closed', async () => {
    const { slack, botToken } = await acme();
    const client = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    client.close();
    await expect(client.call('auth.test', {})).rejects.toMatchObject({ code: 'SLACK_UNREACHABLE' });
  });
});

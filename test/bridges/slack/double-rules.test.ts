import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSlackClient } from '../../../bridges/slack/client.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { startAcme } from '../../support/slack/acme.js';

async function setUp(options: Parameters<typeof startAcme>[0] = {}) {
  const acme = await startAcme({ rates: false, ...options });
  onTestFinished(() => acme.slack.stop());
  const client = createSlackClient({ token: acme.botToken, slackApiUrl: acme.slack.apiUrl });
  /** Slack's word for a refusal, or `ok`. */
  const outcome = (method: string, args: Record<string, unknown> = {}) =>
    client.call(method, args).then(
      () => 'ok',
      (error: unknown) => (error as { details: { slackError?: string } }).details.slackError ?? 'no word',
    );
  return { ...acme, client, outcome };
}

/** A server that answers every event with this status; returns how often it was asked. */
async function answering(
  acme: Awaited<ReturnType<typeof setUp>>,
  status: number,
  headers: Record<string, string> = {},
) {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    request.resume();
    response.writeHead(status, headers).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  acme.app.urls = { events: url, interactions: url, commands: url };
  return () => asked;
}

describe('what the double takes for Slack’s rules', () => {
  it('a token may expire, be revoked, lack a scope, or be of the wrong kind', async () => {
    const clock = createManualClock();
    const { bot, app, slack, outcome } = await setUp({ clock });
    expect(await outcome('conversations.join', { channel: 'C07ROOMS003' })).toBe('missing_scope');
    expect(await outcome('apps.connections.open')).toBe('not_allowed_token_type');
    const withAppToken = createSlackClient({ token: app.appToken, slackApiUrl: slack.apiUrl });
    await expect(withAppToken.call('auth.test', {})).rejects.toMatchObject({
      details: { slackError: 'not_allowed_token_type' },
    });
    const [token] = bot.tokens;
    token!.expiresAt = clock.now() + 1_000;
    expect(await outcome('auth.test')).toBe('ok');
    await clock.advance(1_000);
    expect(await outcome('auth.test')).toBe('token_expired');
    token!.revoked = true;
    expect(await outcome('auth.test')).toBe('token_revoked');
  });

  it('an ephemeral message is for members, and seen by one person', async () => {
    const { slack, general, alice, bob, outcome } = await setUp();
    expect(await outcome('chat.postEphemeral', { channel: general.id, user: 'U0NOBODY', text: 'x' })).toBe(
      'user_not_in_channel',
    );
    expect(await outcome('chat.postEphemeral', { channel: general.id, user: alice.id, text: 'only you' })).toBe('ok');
    expect(slack.ephemerals(general, alice.id).map((one) => one.text)).toEqual(['only you']);
    expect(slack.ephemerals(general, bob.id)).toEqual([]);
    expect(slack.messages(general)).toEqual([]);
  });

  it('an edit sends blocks and text, keeps 4,000 characters, and only the own message', async () => {
    const { slack, general, alice, client, outcome } = await setUp();
    const posted = await client.call('chat.postMessage', {
      channel: general.id,
      text: 't',
      blocks: [{ type: 'markdown', text: 'm' }],
    });
    const ts = posted['ts'] as string;
    expect(await outcome('chat.update', { channel: general.id, ts, text: 'y'.repeat(4_001) })).toBe('msg_too_long');
    expect(await outcome('chat.update', { channel: general.id, ts: alice.says('#general', 'hi').ts, text: 'x' })).toBe(
      'cant_update_message',
    );
    expect(await outcome('chat.update', { channel: general.id, ts: '1.1', text: 'x' })).toBe('message_not_found');
    await client.call('chat.update', { channel: general.id, ts, text: 'text alone' });
    expect(slack.violations()).toEqual([
      'chat.update: only one of text and blocks was sent, so Slack removes the blocks',
    ]);
  });

  it('long text is split as Slack splits it, and noted', async () => {
    const { slack, general, client } = await setUp();
    await client.call('chat.postMessage', { channel: general.id, text: 'z'.repeat(9_000) });
    expect(slack.messages(general).map((one) => one.text.length)).toEqual([4_000, 4_000, 1_000]);
    expect(slack.violations()).toHaveLength(1);
  });

  it('a status goes after two minutes, and with the app’s next message in the thread', async () => {
    const clock = createManualClock();
    const { slack, general, alice, client } = await setUp({ clock });
    const said = alice.says('#general', 'hi');
    const set = () =>
      client.call('assistant.threads.setStatus', {
        channel_id: general.id,
        thread_ts: said.ts,
        status: 'is thinking…',
      });
    await set();
    expect(slack.status(general.id, said.ts)).toBe('is thinking…');
    await clock.advance(120_000);
    expect(slack.status(general.id, said.ts)).toBeNull();
    await set();
    await client.call('chat.postMessage', { channel: general.id, thread_ts: said.ts, text: 'done' });
    expect(slack.status(general.id, said.ts)).toBeNull();
  });

  it('a trigger opens one view, within three seconds; a response URL serves five times', async () => {
    const clock = createManualClock();
    const world = await setUp({ clock });
    await answering(world, 200);
    const { slack, alice, outcome } = world;
    const { triggerId, responseUrl } = alice.runs('/band status', '#general');
    const text = (words: string) => ({ type: 'plain_text', text: words });
    const blocks = [{ type: 'section', text: text('What?') }];
    const view = JSON.stringify({ type: 'modal', title: text('Ask'), blocks });
    expect(await outcome('views.open', { trigger_id: 'unknown', view })).toBe('invalid_trigger_id');
    expect(await outcome('views.open', { trigger_id: triggerId, view })).toBe('ok');
    expect(await outcome('views.open', { trigger_id: triggerId, view })).toBe('exchanged_trigger_id');
    const late = alice.runs('/band status', '#general').triggerId;
    await clock.advance(3_001);
    expect(await outcome('views.open', { trigger_id: late, view })).toBe('expired_trigger_id');
    for (const wrong of [
      { type: 'modal', title: text('x'.repeat(25)), blocks },
      { type: 'modal', title: text('Ask'), blocks, private_metadata: 'x'.repeat(3_001) },
      { type: 'modal', title: text('Ask'), blocks: [] },
      { type: 'modal', title: text('Ask'), blocks: [{ type: 'input', label: text('Q'), element: {} }] },
    ]) {
      const trigger = alice.runs('/band status', '#general').triggerId;
      const refused = await outcome('views.open', { trigger_id: trigger, view: JSON.stringify(wrong) });
      expect(refused).toBe('invalid_arguments');
    }
    const respond = async () =>
      (await fetch(responseUrl, { method: 'POST', body: JSON.stringify({ text: 'x' }) })).status;
    for (let use = 0; use < 5; use += 1) expect(await respond()).toBe(200);
    expect(await respond()).toBe(404);
    expect(slack.violations()).toHaveLength(1);
  });

  it('a command nobody registered, and one without its scope, are none; a person’s composer escapes for it', async () => {
    const world = await setUp();
    await answering(world, 200);
    const { alice, bot } = world;
    expect(() => alice.runs('/other x', '#general')).toThrow('not a command');
    const { delivery } = alice.runs('/band ask @bob about #general & <x>', '#general');
    expect(delivery!.body['text']).toBe('ask <@U07MEMBER02|bob> about <#C07ROOMS001|general> &amp; &lt;x&gt;');
    bot.scopes.delete('commands');
    expect(() => alice.runs('/band help', '#general')).toThrow('not a command');
  });

  it('prompts with a thread on an agent app succeed and do nothing', async () => {
    const { slack, general, client } = await setUp({ app: { surface: 'agent' } });
    const prompts = [{ title: 'a', message: 'b' }];
    await client.call('assistant.threads.setSuggestedPrompts', { channel_id: general.id, thread_ts: '1.1', prompts });
    expect(slack.world.prompts.size).toBe(0);
    await client.call('assistant.threads.setSuggestedPrompts', { channel_id: general.id, prompts });
    expect(slack.world.prompts.size).toBe(1);
  });

  it('an upload must be as long as announced', async () => {
    const { slack, client, general, outcome } = await setUp();
    const { upload_url: url, file_id: id } = await client.call('files.getUploadURLExternal', {
      filename: 'a.txt',
      length: 3,
    });
    expect((await fetch(url as string, { method: 'POST', body: 'ab' })).status).toBe(400);
    expect(await outcome('files.completeUploadExternal', { files: [{ id }], channel_id: general.id })).toBe(
      'file_not_found',
    );
    expect(slack.violations()).toHaveLength(1);
  });

  it('no repeat follows where the app asks for none', async () => {
    const clock = createManualClock();
    const world = await setUp({ clock, app: { events: ['message.channels'] } });
    const asked = await answering(world, 500, { 'x-slack-no-retry': '1' });
    world.alice.says('#general', 'hi');
    await world.slack.until(() => world.slack.deliveries()[0]?.state === 'given up');
    await clock.advance(600_000);
    expect(asked()).toBe(1);
  });

  it('the subscription goes off when nearly everything fails within an hour', async () => {
    const clock = createManualClock();
    const world = await setUp({ clock, app: { events: ['message.channels'] } });
    await answering(world, 500, { 'x-slack-no-retry': '1' });
    for (let index = 0; index < 20; index += 1) {
      world.alice.says('#general', `hi ${index}`);
      await world.slack.until(() => world.slack.events.inFlight === 0);
    }
    expect(world.app.subscriptionOff).toBe(true);
    world.alice.says('#general', 'unheard');
    expect(world.slack.deliveries().at(-1)).toMatchObject({ state: 'given up', attempts: [] });
  });

  it('strict history limits hold for distributed apps', async () => {
    const { general, alice, outcome } = await setUp({ rates: true, app: { distributed: true } });
    const said = alice.says('#general', 'root');
    expect(await outcome('conversations.replies', { channel: general.id, ts: said.ts })).toBe('ok');
    expect(await outcome('conversations.replies', { channel: general.id, ts: said.ts })).toBe('ratelimited');
  });

  it('an unknown method fails the test unless it was asked for', async () => {
    const { slack, outcome } = await setUp();
    expect(await outcome('chat.teleport')).toBe('unknown_method');
    expect(() => {
      slack.check();
    }).toThrow('unknown method: chat.teleport');
    slack.allow(/chat\.teleport/);
    slack.check();
  });

  it('a foreign token gets the sign-in page instead of a file', async () => {
    const { slack, alice, general } = await setUp();
    const said = alice.uploads('#general', [{ name: 'a.txt', bytes: 'secret' }]);
    const [file] = slack.raw(general, said.ts)!['files'] as { url_private_download: string }[];
    const answer = await fetch(file!.url_private_download, { headers: { authorization: 'Bearer xoxb-somebody-else' } });
    expect(answer.headers.get('content-type')).toContain('text/html');
    expect(await answer.text()).not.toContain('secret');
  });
});

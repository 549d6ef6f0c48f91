import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startAcme, type Acme } from '../../support/slack/acme.js';
import { startBridge } from '../../support/slack/bridge-lab.js';

/** One Web API address for two doubles: the token decides which of them answers. */
async function oneAddress(byToken: ReadonlyMap<string, Acme>): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const token = incoming.headers.authorization?.replace('Bearer ', '') ?? '';
    const double = byToken.get(token);
    if (!double) {
      outgoing.writeHead(500).end();
      return;
    }
    const { method, headers, url } = incoming;
    const onward = forward(`${double.slack.origin}${url ?? ''}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
}

describe('two workspaces with equal ids', () => {
  it('S-188 S-098 never mix rooms, names, tokens or answers', async () => {
    const one = await startAcme({ rates: false, app: { socketMode: true, appToken: 'xapp-one' } });
    const two = await startAcme({
      rates: false,
      team: { id: 'T07OTHER002', name: 'Other', domain: 'other' },
      app: { socketMode: true, appToken: 'xapp-two' },
      install: { botToken: 'xoxb-test-team-two' },
    });
    onTestFinished(async () => {
      await one.slack.stop();
      await two.slack.stop();
    });
    two.alice.user.displayName = 'Alice of the other house';
    two.general.name = 'lobby';
    const slackApiUrl = await oneAddress(
      new Map([
        [one.botToken, one],
        ['xapp-one', one],
        [two.botToken, two],
        ['xapp-two', two],
      ]),
    );
    const lab = await startBridge({
      transport: 'socket',
      world: one,
      settings: {
        slackApiUrl,
        apps: [
          { slug: 'one', botToken: one.botToken, appToken: 'xapp-one' },
          { slug: 'two', botToken: two.botToken, appToken: 'xapp-two' },
        ],
      },
    });
    await two.slack.until(() => two.slack.sockets.open(two.app).some((socket) => socket.saidHello));
    await two.slack.until(() => two.slack.calls('auth.test').length > 0);

    // The same time stamp in both, so that channel, thread and author are all equal.
    const future = (Date.now() + 3_600_000) * 1_000;
    one.general.lastTs = future;
    two.general.lastTs = future;
    const here = one.alice.says('#general', '@gateway from one');
    const there = two.alice.says('#lobby', '@gateway from two');
    expect([there.channel, there.ts]).toEqual([here.channel, here.ts]);
    const answers = (acme: Acme) => acme.slack.botMessages(here.channel, here.ts).map((message) => message.shown);
    await one.slack.until(() => answers(one).length > 0);
    await two.slack.until(() => answers(two).length > 0);

    for (let round = 0; round < 5; round += 1) {
      one.alice.replies(here, `one ${round}`);
      two.alice.replies(there, `two ${round}`);
    }
    await expect.poll(() => lab.heard.length, { timeout: 15_000 }).toBe(12);
    expect(new Set(lab.turns.map((turn) => turn.roomId)).size).toBe(2);
    for (const turn of lab.turns) {
      const fromTwo = turn.message.content.includes('two');
      expect(turn.message.senderName).toBe(fromTwo ? 'Alice of the other house' : 'Alice');
      expect(turn.message.metadata).toMatchObject({
        slack_team_id: fromTwo ? 'T07OTHER002' : 'T07GATE0001',
        slack_app_slug: fromTwo ? 'two' : 'one',
        slack_channel_name: fromTwo ? 'lobby' : 'general',
      });
    }
    expect(new Set(answers(one).map((text) => text.includes('two')))).toEqual(new Set([false]));
    expect(new Set(answers(two).map((text) => text.includes('one')))).toEqual(new Set([false]));
    expect(new Set(one.slack.calls().map((call) => call.token))).toEqual(new Set([one.botToken, 'xapp-one']));
    expect(new Set(two.slack.calls().map((call) => call.token))).toEqual(new Set([two.botToken, 'xapp-two']));
    one.slack.check();
    two.slack.check();
  });
});

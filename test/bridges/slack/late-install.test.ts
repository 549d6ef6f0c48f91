import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../../src/store/memory.js';
import { startBridge, type BridgeLabOptions } from '../../support/slack/bridge-lab.js';
import { createSkippingClock } from '../../support/skipping-clock.js';

const HOUR_MS = 3_600_000;

/** A workspace that nobody has installed the app in, and a post in it that mentions the bot. */
async function start() {
  const clock = createSkippingClock();
  const options: BridgeLabOptions = { clock, store: createMemoryStore() };
  const lab = await startBridge({ ...options, acme: { clock } });
  const { slack, app } = lab;
  const team = slack.team({ id: 'T07LATE0001', name: 'Late' });
  const dave = slack.person(slack.user(team, { name: 'dave' }), app);
  const lobby = slack.channel(team, { name: 'lobby', members: [dave.id, 'U07GATEBOT2'] });
  const asks = (words: string) => dave.saysRaw(lobby.id, { text: `<@U07GATEBOT2> ${words}` });
  const said = asks('is anybody there?');
  const post = { user: dave.id, channel: lobby.id, ts: said.ts, text: '<@U07GATEBOT2> is anybody there?' };
  const deliver = async () => {
    for (const [index, type] of ['app_mention', 'message'].entries()) {
      const delivery = slack.deliverRaw(app, {
        type: 'event_callback',
        event_id: `EvLATE${index}`,
        team_id: team.id,
        event: { ...post, type, channel_type: 'channel' },
        authorizations: [{ team_id: team.id, user_id: 'U07GATEBOT2', is_bot: true }],
      });
      await slack.until(() => delivery?.state === 'acked');
    }
    await lab.idle();
  };
  const install = async () => {
    await lab.stop();
    slack.install(app, team, { botToken: 'xoxb-test-late', botUserId: 'U07GATEBOT2' });
    const settings = { botToken: 'xoxb-test-late' };
    return await startBridge({ ...options, world: lab, sandbox: lab.sandbox, settings });
  };
  return { lab, clock, said, asks, deliver, install };
}

describe('what came from a workspace before the app was installed in it', () => {
  it('is answered once when it is installed within a day, and known when Slack repeats it', async () => {
    const { lab, clock, said, deliver, install } = await start();
    await deliver();
    expect(lab.heard).toEqual([]);
    expect(await lab.adapter.deadLetters.list()).toMatchObject([
      { code: 'SLACK_NO_INSTALLATION' },
      { code: 'SLACK_NO_INSTALLATION' },
    ]);
    clock.advance(23 * HOUR_MS);
    const next = await install();
    expect(await next.answered(said)).toEqual(['echo: is anybody there?']);
    await deliver();
    await next.idle();
    expect(next.heard).toEqual(['is anybody there?']);
    expect(await next.adapter.deadLetters.list()).toEqual([]);
  });

  it('stays listed when that takes longer', async () => {
    const { clock, said, asks, deliver, install } = await start();
    await deliver();
    clock.advance(25 * HOUR_MS);
    const next = await install();
    expect(await next.answered(asks('and now?'))).toEqual(['echo: and now?']);
    await next.idle();
    expect([next.answers(said), next.heard]).toEqual([[], ['and now?']]);
    expect(await next.adapter.deadLetters.list()).toHaveLength(2);
  });
});

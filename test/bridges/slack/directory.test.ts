import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/base/log.js';
import { noMetrics } from '../../../src/base/metrics.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { createSlackClient } from '../../../bridges/slack/client.js';
import { personLabel, SlackDirectory } from '../../../bridges/slack/directory.js';
import { createThrottledClient } from '../../../bridges/slack/outbound/throttled-client.js';
import { slackMessageSchema } from '../../../bridges/slack/messages.js';
import { startAcme } from '../../support/slack/acme.js';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function setUp() {
  const clock = createManualClock();
  const acme = await startAcme({ clock, rates: false });
  cleanups.push(() => acme.slack.stop());
  const client = createSlackClient({ token: acme.botToken, slackApiUrl: acme.slack.apiUrl });
  return { ...acme, clock, directory: new SlackDirectory(client, clock, silentLogger) };
}

describe('names of people and places', () => {
  it('S-160 a name is asked for once a day, and again after a change', async () => {
    const { directory, slack, alice, clock } = await setUp();
    expect((await directory.user(alice.id))?.name).toBe('Alice');
    alice.user.displayName = 'Alice B.';
    expect((await directory.user(alice.id))?.name).toBe('Alice');
    directory.forgetUser(alice.id);
    expect((await directory.user(alice.id))?.name).toBe('Alice B.');
    await clock.advance(24 * 3_600_000 + 1);
    await directory.user(alice.id);
    expect(slack.calls('users.info')).toHaveLength(3);
  });

  it('S-160 a failure counts for a minute, and only then is the name asked for again', async () => {
    const { directory, slack, alice, clock } = await setUp();
    slack.fault({ method: 'users.info', effect: { kind: 'status', status: 503 } });
    expect(await directory.user(alice.id)).toBeNull();
    expect(await directory.user(alice.id)).toBeNull();
    expect(slack.calls('users.info')).toHaveLength(1);
    await clock.advance(60_001);
    expect((await directory.user(alice.id))?.name).toBe('Alice');
  });

  it('S-160 twenty askers at once cost one call', async () => {
    const { directory, slack, alice } = await setUp();
    await Promise.all(Array.from({ length: 20 }, () => directory.user(alice.id)));
    expect(slack.calls('users.info')).toHaveLength(1);
  });

  it('S-160 a name that Slack puts off counts as unknown after ten seconds', async () => {
    const { slack, alice, clock, botToken } = await setUp();
    slack.fault({ method: 'users.info', effect: { kind: 'status', status: 429, headers: { 'retry-after': '3600' } } });
    const raw = createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl });
    const client = createThrottledClient(raw, { clock, metrics: noMetrics });
    const name = new SlackDirectory(client, clock, silentLogger).user(alice.id);
    await slack.until(() => slack.calls('users.info').length === 1);
    await clock.advance(10_000);
    expect(await name).toBeNull();
  });

  it('S-161 a place is called DM, #name, or by its id where the name cannot be read', async () => {
    const { directory, slack, alice, bot, general } = await setUp();
    expect(await directory.channelLabel(general.id)).toBe('#general');
    expect(await directory.channelLabel(slack.directChannel(alice.user, bot).id)).toBe('DM');
    expect(await directory.channelLabel('C0UNKNOWN')).toBe('C0UNKNOWN');
    general.name = 'town-square';
    directory.forgetChannel(general.id);
    expect(await directory.channelLabel(general.id)).toBe('#town-square');
  });

  it('S-161 a person is called Name (@handle), one of both, or Slack user', () => {
    const person = {
      id: 'U1',
      teamId: null,
      email: null,
      isBot: false,
      isAdmin: false,
      isGuest: false,
      isStranger: false,
    };
    expect(personLabel({ ...person, name: 'Alice', handle: 'alice' })).toBe('Alice (@alice)');
    expect(personLabel({ ...person, name: 'Alice', handle: null })).toBe('Alice');
    expect(personLabel({ ...person, name: null, handle: 'alice' })).toBe('@alice');
    expect(personLabel({ ...person, name: null, handle: null })).toBe('Slack user');
    expect(personLabel(null)).toBe('Slack user');
  });

  it('looks up everybody a message mentions before it is converted', async () => {
    const { directory, bob, general, bot, team } = await setUp();
    const message = slackMessageSchema.parse({ ts: '1.1', text: `<@${bob.id}> in <#${general.id}> and <@U0NOBODY1>` });
    const names = await directory.namesFor(message, { userId: bot.botUserId, teamId: team.id });
    expect([names.user(bob.id), names.channel(general.id), names.user('U0NOBODY1')]).toEqual([
      'Bob [QA]',
      'general',
      null,
    ]);
  });
});

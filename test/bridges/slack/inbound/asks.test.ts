import { describe, expect, it, onTestFinished } from 'vitest';
import { deferred } from '../../../../src/base/async.js';
import { silentLogger } from '../../../../src/base/log.js';
import type { QueueRecord } from '../../../../src/store/queue-records.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import { createSlackClient } from '../../../../bridges/slack/client.js';
import { createAsks } from '../../../../bridges/slack/inbound/asks.js';
import type { SlackRecord } from '../../../../bridges/slack/inbound/records.js';
import type { Installation } from '../../../../bridges/slack/installations.js';
import { startAcme } from '../../../support/slack/acme.js';

async function setUp() {
  const clock = createManualClock();
  const acme = await startAcme({ clock, rates: false });
  const { slack, general, alice } = acme;
  const client = createSlackClient({ token: acme.botToken, slackApiUrl: slack.apiUrl });
  onTestFinished(async () => {
    client.close();
    await slack.stop();
  });
  slack.expectPing(alice.id);
  const asks = createAsks({
    autoJoin: false,
    accept: () => Promise.resolve({ kind: 'accepted' }),
    clock,
    log: silentLogger,
  });
  const own = { user: () => null, channel: () => null, group: () => null };
  const by = {
    client,
    identity: { botUserId: acme.bot.botUserId, teamId: acme.team.id },
    directory: { namesFor: () => Promise.resolve({ ...own, ownUserId: '', team: '' }) },
  } as unknown as Installation;
  const opening = { channel: general.id, threadTs: null, userId: alice.id, does: 'asks:', words: 'what now?' };
  const putAt = clock.now();
  const post = (maybeDelivered: boolean) => {
    const record = { id: 'main:cmd:1', putAt, maybeDelivered } as unknown as QueueRecord<SlackRecord>;
    return asks.post(opening, by, record, new AbortController().signal);
  };
  return { ...acme, clock, post, said: () => slack.messages(general).map((one) => one.ts) };
}

describe('a question that is posted for a person', () => {
  it('S-101 stands once when an earlier try got through', async () => {
    const { slack, post, said } = await setUp();
    slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: true } });
    await expect(post(false)).rejects.toMatchObject({ code: 'SLACK_CONNECTION_LOST' });
    const [ts] = said();
    expect(await post(true)).toEqual({ kind: 'opened', ts, threadTs: ts });
    expect(said()).toHaveLength(1);
  });

  it('S-101 stands once when an earlier try gets through after its sender is gone', async () => {
    const { slack, post, said, clock } = await setUp();
    const lands = deferred();
    slack.fault({ method: 'chat.postMessage', effect: { kind: 'late', until: lands.promise, connection: 'broken' } });
    await expect(post(false)).rejects.toMatchObject({ code: 'SLACK_CONNECTION_LOST' });
    const again = post(true);
    await slack.until(() => slack.calls('conversations.history').some(({ outcome }) => outcome === 'ok'));
    while (clock.nextInMs !== 5_000) await new Promise((resolve) => setImmediate(resolve));
    lands.resolve();
    await clock.advance(5_000);
    expect(await again).toMatchObject({ kind: 'opened' });
    expect(said()).toHaveLength(1);
  });

  it('S-102 is posted when no earlier try got through', async () => {
    const { slack, post, said, clock } = await setUp();
    slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: false } });
    await expect(post(false)).rejects.toMatchObject({ code: 'SLACK_CONNECTION_LOST' });
    const again = post(true);
    while (clock.nextInMs !== 5_000) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(5_000);
    expect(await again).toMatchObject({ kind: 'opened' });
    expect(said()).toHaveLength(1);
  });
});

import { describe, expect, it } from 'vitest';
import type { SlackAppConfig } from '../../../../bridges/slack/apps.js';
import { createDispatcher, type DispatcherDeps } from '../../../../bridges/slack/inbound/dispatcher.js';
import type { SlackRecord } from '../../../../bridges/slack/inbound/records.js';
import type { Installation } from '../../../../bridges/slack/installations.js';
import { systemClock } from '../../../../src/base/clock.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { silentLogger } from '../../../../src/base/log.js';
import { noMetrics } from '../../../../src/base/metrics.js';
import type { Outcome } from '../../../../src/store/durable-queue.js';
import type { QueueRecord } from '../../../../src/store/queue-records.js';
import { createFakeSlackOut } from '../../../support/slack/fake-out.js';

const signal = new AbortController().signal;

function setUp(error: Error) {
  const out = createFakeSlackOut();
  const installation = { app: { slug: 'main' } as SlackAppConfig, identity: { teamId: 'T1' }, refused: null };
  const fails = () => Promise.reject(error);
  const replayOf: DispatcherDeps['replayOf'] = () => async (payload, onDelivery) => {
    await onDelivery(payload);
    return true;
  };
  const messages: DispatcherDeps['messages'] = {
    take: fails,
    ended: (_at, outcome) => ({ ...outcome, changes: [{ kind: 'delete', key: 'claimed' }] }) as Outcome,
  };
  const { handle, crashLoop } = createDispatcher({
    installations: new Map([['main', installation as unknown as Installation]]),
    replayOf,
    messages,
    onCommand: fails,
    giveUp: () => Promise.resolve<Outcome>({ kind: 'dead', code: 'X', reason: 'x' }),
    tries: 5,
    out,
    clock: systemClock,
    log: silentLogger,
    metrics: noMetrics,
  } as unknown as DispatcherDeps);
  const record = (payload: object, failures: number): QueueRecord<SlackRecord> => ({
    id: 'main:x',
    lane: 'l',
    body: {
      slug: 'main',
      transport: 'http',
      receivedAt: 0,
      retryNum: null,
      retryReason: null,
      payload,
      again: false,
      tooMany: false,
    },
    putAt: Date.now(),
    failures,
    crashes: 0,
    maybeDelivered: false,
  });
  return { handle, crashLoop, record, out };
}
const mention = {
  type: 'event_callback',
  team_id: 'T1',
  event: { type: 'app_mention', channel: 'C1', user: 'U1', text: 'x', ts: '1.1' },
};

describe('a delivery whose handling fails', () => {
  it('S-037 is given up with the mark that its message had its turn, so that its other event is not tried as well', async () => {
    const { handle, record } = setUp(new GatewayError('BAND_UNAVAILABLE'));
    expect(await handle(record(mention, 0), signal)).toMatchObject({ kind: 'retry', maybeDelivered: true });
    expect(await handle(record(mention, 4), signal)).toMatchObject({ kind: 'dead', changes: [{ key: 'claimed' }] });
  });

  it('S-106 is told to its author when it was there at too many ends of the process', async () => {
    const { crashLoop, record } = setUp(new GatewayError('BAND_UNAVAILABLE'));
    expect(await crashLoop(record(mention, 0), signal)).toMatchObject({
      kind: 'dead',
      code: 'X',
      changes: [{ key: 'claimed' }],
    });
  });

  it('S-169 a command that comes to no good end is answered, by its own address while that is open', async () => {
    const { handle, record, out } = setUp(new GatewayError('SLACK_REFUSED'));
    const command = {
      command: '/band',
      text: 'new',
      team_id: 'T1',
      user_id: 'U1',
      channel_id: 'C1',
      response_url: 'https://hooks.slack.com/commands/x',
    };
    await expect(handle(record(command, 0), signal)).rejects.toMatchObject({ code: 'SLACK_REFUSED' });
    expect(out.writes).toMatchObject([
      { kind: 'ephemeral', userId: 'U1', draft: { response: { url: 'https://hooks.slack.com/commands/x' } } },
    ]);
  });
});

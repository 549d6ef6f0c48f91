import { describe, expect, it } from 'vitest';
import {
  createChangeHandler,
  type ChangeAt,
  type ChangeDeps,
} from '../../../../bridges/slack/inbound/change-events.js';
import { PendingChanges } from '../../../../bridges/slack/inbound/changes.js';
import { messageIdentity } from '../../../../bridges/slack/conversation.js';
import { slackMessageSchema } from '../../../../bridges/slack/messages.js';
import type { SlackRecord } from '../../../../bridges/slack/inbound/records.js';
import type { QueueRecord } from '../../../../src/store/queue-records.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';

describe('a deletion that comes before its message', () => {
  it('S-152 is remembered, so that the message is not answered when it comes', async () => {
    const clock = createManualClock();
    const changes = new PendingChanges(createMemoryStore(), 'changes', clock);
    const deps = {
      options: { deletes: 'cancel', edits: 'history' },
      changes,
      clock,
      past: { forget: () => undefined },
      claims: { has: () => Promise.resolve(false) },
      runner: { runsMessage: () => false },
      bindings: { find: () => null },
      waiting: () => 0,
    };
    const message = slackMessageSchema.parse({ ts: '1.1', user: 'U1', text: 'never mind' });
    const at = {
      installation: { app: { slug: 'main' } },
      identity: { botUserId: 'UB', botId: 'BB', teamId: 'T1' },
      delivery: { teamId: 'T1', appId: 'A1' },
      event: { kind: 'deleted', channel: 'C1', ts: '1.1', previous: message },
    };
    const handler = createChangeHandler(deps as unknown as ChangeDeps);
    const record = { id: 'x', putAt: 0 } as unknown as QueueRecord<SlackRecord>;
    await handler(at as unknown as ChangeAt, record, new AbortController().signal);
    expect(await changes.latest(messageIdentity('main', 'T1', 'C1', '1.1'), message)).toBeNull();
  });
});

import { describe, expect, it } from 'vitest';
import { PendingChanges } from '../../../../bridges/slack/inbound/changes.js';
import { slackMessageSchema } from '../../../../bridges/slack/messages.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';

const DAY_MS = 86_400_000;
const message = slackMessageSchema.parse({ ts: '1.1', text: 'as it was' });

describe('PendingChanges', () => {
  it('S-150 S-152 keeps an edit or a deletion as long as its message may wait, and no longer', async () => {
    const clock = createManualClock();
    const changes = new PendingChanges(createMemoryStore(), 'changes', clock);
    await changes.put('a', null);
    await clock.advance(13 * DAY_MS);
    await changes.put('b', { ...message, text: 'as it is' });
    await changes.prune();
    expect(await changes.latest('a', message)).toBeNull();
    await clock.advance(2 * DAY_MS);
    await changes.prune();
    expect(await changes.latest('a', message)).toBe(message);
    expect((await changes.latest('b', message))?.text).toBe('as it is');
  });
});

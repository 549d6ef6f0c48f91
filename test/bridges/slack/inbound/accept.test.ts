import { describe, expect, it } from 'vitest';
import { createAccept, type Arrival } from '../../../../bridges/slack/inbound/accept.js';
import { slackRecords } from '../../../../bridges/slack/inbound/records.js';
import { silentLogger } from '../../../../src/base/log.js';
import { noMetrics } from '../../../../src/base/metrics.js';
import { Inbox } from '../../../../src/store/inbox.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';

const LANE = 'thread:main:T1:C1:1.0';

const setUp = async () => {
  const clock = createManualClock();
  const options = { store: createMemoryStore(), prefix: 'inbox', clock, log: silentLogger };
  const inbox = await Inbox.open({ ...options, ...slackRecords, seenRetentionMs: 60_000 });
  const accept = createAccept({ inbox, clock, metrics: noMetrics, deadlineMs: 1_000, maxQueuedPerThread: 2 });
  let count = 0;
  const arrives = (more: Partial<Arrival> = {}, fields: Record<string, string> = {}) => {
    const ts = `1.${(count += 1)}`;
    const event = { type: 'message', channel: 'C1', user: 'U1', text: 'x', ts, thread_ts: '1.0', ...fields };
    const payload = { type: 'event_callback', team_id: 'T1', event_id: `Ev${count}`, event_time: 1, event };
    return accept({ slug: 'main', transport: 'http', payload, ...more });
  };
  return { inbox, arrives };
};

describe('a payload that came as JSON', () => {
  it('is read back from the disk as it was handed on before', async () => {
    const store = createMemoryStore();
    const clock = createManualClock();
    const open = () =>
      Inbox.open({
        store,
        prefix: 'inbox',
        clock,
        log: silentLogger,
        ...slackRecords,
        seenRetentionMs: 60_000,
      });
    const inbox = await open();
    const accept = createAccept({ inbox, clock, metrics: noMetrics, deadlineMs: 1_000, maxQueuedPerThread: 2 });
    const json = Buffer.concat([
      Buffer.from(` {"type": "event_callback",\n "event_id":"Ev1","event":{"type":"team_join","user":"U\\u0031 `),
      Buffer.from(`\u{1F600} \\ud83d`),
      Buffer.from([0xff, 0xe2, 0x82, 0xf0, 0x9f]), // no UTF-8, as a sender may sign it nevertheless
      Buffer.from(`"}} `),
    ]);
    const payload = JSON.parse(json.toString()) as unknown;
    await accept({ slug: 'main', transport: 'http', payload, json, retryNum: 1, retryReason: '"}' });
    const handed = async (from: typeof inbox) =>
      await new Promise((resolve) => {
        from.queue.start((record) => {
          resolve(record.body);
          return Promise.resolve({ kind: 'wait', afterMs: 1 });
        });
      });
    const first = await handed(inbox);
    expect(await handed(await open())).toEqual(first);
    expect(first).toMatchObject({ payload, retryNum: 1, retryReason: '"}', transport: 'http' });
  });
});

describe('a thread in which as many messages wait as may', () => {
  it('takes one more into a lane of its own, where it is refused aloud', async () => {
    const { inbox, arrives } = await setUp();
    for (let i = 0; i < 4; i += 1) expect(await arrives()).toEqual({ kind: 'accepted' });
    expect(inbox.queue.laneDepth(LANE)).toBe(3);
    expect(inbox.queue.laneDepth(`full:${LANE}`)).toBe(1);
  });

  it('counts a post once that comes as a message and as a mention, and never refuses its second event', async () => {
    const { inbox, arrives } = await setUp();
    const posts = ['1.11', '1.12', '1.13'];
    for (const ts of posts) for (const type of ['message', 'app_mention']) await arrives({}, { type, ts });
    expect(inbox.queue.laneDepth(LANE)).toBe(6);
    await arrives({}, { type: 'message', ts: '1.14' });
    await arrives({}, { type: 'app_mention', ts: '1.14' });
    expect(inbox.queue.laneDepth(LANE)).toBe(6);
    expect(inbox.queue.laneDepth(`full:${LANE}`)).toBe(2);
  });

  it('still takes what an outage has piled up, and what somebody asks for once more', async () => {
    const { inbox, arrives } = await setUp();
    for (let i = 0; i < 3; i += 1) await arrives();
    await arrives({ transport: 'catch-up' });
    await arrives({ again: true });
    expect(inbox.queue.laneDepth(LANE)).toBe(5);
  });
});

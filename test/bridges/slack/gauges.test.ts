import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createGauges } from '../../../bridges/slack/gauges.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { recordedMetrics } from './outbound/lab.js';

it('S-212 the figures of the inbox follow it, and an inbox that grows old is said in the log, at most every ten minutes', async () => {
  const clock = createManualClock();
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  const figures = recordedMetrics();
  const inbox = { depth: 3, deadCount: 1, oldestAgeMs: 0 };
  const look = createGauges({
    metrics: figures.metrics,
    clock,
    log,
    inbox,
    runner: { running: 2 },
    bindings: { size: 7, unreachable: () => [{ slug: 'main', channel: 'C1', since: 0 }] },
    installations: new Map([
      ['main', { identity: {}, refused: null }],
      ['other', { identity: null, refused: new Error('no') }],
    ]),
  } as unknown as Parameters<typeof createGauges>[0]);
  look();
  const now = (name: string) => figures.of(name).map(({ labels, value }) => [labels, value]);
  expect(now('slack_inbox_records')).toEqual([
    [{ state: 'waiting' }, 3],
    [{ state: 'dead' }, 1],
  ]);
  expect(now('slack_turn_queue_depth')).toEqual([[{}, 1]]);
  expect(now('slack_bindings')).toEqual([[{}, 7]]);
  expect(now('slack_unreachable_channels')).toEqual([[{}, 1]]);
  expect(now('slack_installations')).toEqual([
    [{ state: 'known' }, 1],
    [{ state: 'asking' }, 0],
    [{ state: 'refused' }, 1],
  ]);
  expect(lines).toEqual([]);
  inbox.oldestAgeMs = 61_000;
  look();
  look();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('wait longer than they should');
  await clock.advance(10 * 60_000);
  look();
  expect(lines).toHaveLength(2);
  Object.assign(inbox, { oldestAgeMs: 0, depth: 10_001 });
  await clock.advance(10 * 60_000);
  look();
  expect(lines).toHaveLength(3);
});

import type { Clock } from '../../src/base/clock.js';
import type { Logger } from '../../src/base/log.js';
import type { Metrics } from '../../src/base/metrics.js';
import type { DurableQueue } from '../../src/store/durable-queue.js';
import type { Bindings } from './inbound/bindings.js';
import type { SlackRecord } from './inbound/records.js';
import type { TurnRunner } from './inbound/turn.js';
import type { Installation } from './installations.js';

export interface GaugesDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly inbox: DurableQueue<SlackRecord>;
  readonly runner: TurnRunner;
  readonly bindings: Bindings;
  readonly installations: ReadonlyMap<string, Installation>;
}

export const SAMPLE_EVERY_MS = 5_000;
/** Past these the inbox is more than a busy minute. */
const OLD_MS = 60_000;
const MANY_RECORDS = 10_000;
const SAY_AGAIN_AFTER_MS = 10 * 60_000;

/** Figures that are looked at rather than counted. @returns what looks at them, to be called every so often */
export function createGauges({ metrics, clock, log, inbox, runner, bindings, installations }: GaugesDeps): () => void {
  const records = metrics.gauge('slack_inbox_records', 'Deliveries that wait or were given up', ['state']);
  const oldest = metrics.gauge('slack_inbox_oldest_seconds', 'Age of the delivery that has waited longest');
  const queued = metrics.gauge('slack_turn_queue_depth', 'Deliveries that wait while others are worked on');
  const states = metrics.gauge('slack_installations', 'Workspaces by whether Slack knows the app', ['state']);
  const bound = metrics.gauge('slack_bindings', 'Threads that a room stands for');
  const unreachable = metrics.gauge(
    'slack_unreachable_channels',
    'Channels with threads that can no longer be written',
  );
  let saidAt = Number.NEGATIVE_INFINITY;

  return () => {
    const oldestMs = inbox.oldestAgeMs;
    records.set({ state: 'waiting' }, inbox.depth);
    records.set({ state: 'dead' }, inbox.deadCount);
    oldest.set({}, oldestMs / 1_000);
    queued.set({}, Math.max(0, inbox.depth - runner.running));
    bound.set({}, bindings.size);
    unreachable.set({}, bindings.unreachable().length);
    const counts = { known: 0, asking: 0, refused: 0 };
    for (const { identity, refused } of installations.values()) {
      counts[refused ? 'refused' : identity ? 'known' : 'asking'] += 1;
    }
    for (const [state, count] of Object.entries(counts)) states.set({ state }, count);

    if ((oldestMs <= OLD_MS && inbox.depth <= MANY_RECORDS) || clock.now() - saidAt < SAY_AGAIN_AFTER_MS) return;
    saidAt = clock.now();
    const fields = { waiting: inbox.depth, oldestSeconds: Math.round(oldestMs / 1_000) };
    log.error(fields, 'deliveries from Slack wait longer than they should');
  };
}

import type { Counter, Gauge, Metrics } from '../../../src/base/metrics.js';

/** The figures of what is written into Slack. */
export interface OutboundMeters {
  readonly records: Gauge;
  readonly ambiguous: Counter;
  readonly fallbacks: Counter;
  readonly dead: Counter;
}

export function outboundMeters(metrics: Metrics): OutboundMeters {
  return {
    records: metrics.gauge('slack_outbox_records', 'Writes into Slack that wait or were given up', ['state']),
    ambiguous: metrics.counter('slack_outbox_ambiguous_total', 'Writes of which nobody knew whether Slack took them', [
      'resolution',
    ]),
    fallbacks: metrics.counter(
      'slack_render_fallback_total',
      'Posts, or pieces of them, that went out in another form',
      ['from', 'to', 'cause'],
    ),
    dead: metrics.counter('slack_dead_letters_total', 'What was given up', ['side', 'cause']),
  };
}

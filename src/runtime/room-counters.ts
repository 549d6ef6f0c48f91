import type { Counter, Metrics } from '../base/metrics.js';

/** What the rooms of an Agent count. */
export interface RoomCounters {
  /** Messages by how an attempt at them ended. */
  readonly attempts: Counter;
  /** Looks for missed messages by how they ended. */
  readonly passes: Counter;
  /** Rooms whose queue was full, so that the work list was asked instead. */
  readonly overflows: Counter;
}

export function roomCounters(metrics: Metrics): RoomCounters {
  return {
    attempts: metrics.counter('band_runtime_attempts_total', 'Attempts at messages by how they ended.', ['outcome']),
    passes: metrics.counter('band_runtime_passes_total', 'Looks for missed messages by how they ended.', ['result']),
    overflows: metrics.counter('band_runtime_overflows_total', 'Rooms whose queue of pushed messages was full.'),
  };
}

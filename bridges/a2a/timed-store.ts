import type { Clock } from '../../src/base/clock.js';
import type { Metrics } from '../../src/base/metrics.js';
import type { StateStore } from '../../src/store/port.js';

const BUCKETS_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** The same store, with a figure of how long its writes take. */
export function timedStore(store: StateStore, clock: Clock, metrics: Metrics): StateStore {
  const seconds = metrics.histogram('band_a2a_store_seconds', 'Seconds a write of tasks takes', [], BUCKETS_SECONDS);
  return {
    get: (key) => store.get(key),
    range: (options) => store.range(options),
    lease: (name, owner, ttlMs) => store.lease(name, owner, ttlMs),
    close: () => store.close(),
    batch(changes) {
      const begun = clock.now();
      const written = store.batch(changes);
      const done = (): void => {
        seconds.observe({}, Math.max(0, clock.now() - begun) / 1_000);
      };
      written.then(done, done);
      return written;
    },
  };
}

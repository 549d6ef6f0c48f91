import type { Background } from '../../src/base/async.js';
import type { Clock } from '../../src/base/clock.js';
import { createGauges, SAMPLE_EVERY_MS, type GaugesDeps } from './gauges.js';

const PRUNE_EVERY_MS = 3_600_000;

export interface UpkeepDeps extends GaugesDeps {
  /** What is past its time is forgotten by each of them. */
  readonly forgetters: readonly (() => Promise<unknown>)[];
  readonly background: Background;
  readonly clock: Clock;
}

/** What happens every so often: old things are forgotten, figures looked at. @returns what ends each of it */
export function startUpkeep({ forgetters, background, ...deps }: UpkeepDeps): (() => void)[] {
  const look = createGauges(deps);
  look();
  return [
    deps.clock.every(PRUNE_EVERY_MS, () => {
      for (const forget of forgetters) background.run(() => forget().then(() => undefined));
    }),
    deps.clock.every(SAMPLE_EVERY_MS, look),
  ];
}

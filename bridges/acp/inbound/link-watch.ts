import type { Clock } from '../../../src/base/clock.js';

/** Whether the live connection to Band is down, and for how long. */
export interface LinkWatch {
  /** @param isUp - looked at whenever somebody asks; without one the connection counts as up */
  readonly follow: (isUp: () => boolean) => void;
  /** Milliseconds since it was first seen down; 0 while it is up. Ask regularly: nobody else looks. */
  readonly downForMs: () => number;
}

export function createLinkWatch(clock: Clock): LinkWatch {
  let isUp: () => boolean = () => true;
  let downSince: number | null = null;
  return {
    follow(look) {
      isUp = look;
      downSince = null;
    },
    downForMs() {
      if (isUp()) downSince = null;
      else downSince ??= clock.now();
      return downSince === null ? 0 : clock.now() - downSince;
    },
  };
}

import type { Clock } from '../../../src/base/clock.js';

/** Whether the live connection to Band is down, and for how long. */
export interface LinkWatch {
  /** Until it is told anything the connection counts as up. */
  readonly changed: (isConnected: boolean) => void;
  /** Milliseconds since it went down; 0 while it is up. */
  readonly downForMs: () => number;
}

export function createLinkWatch(clock: Clock): LinkWatch {
  let downSince: number | null = null;
  return {
    changed(isConnected) {
      if (isConnected) downSince = null;
      else downSince ??= clock.now();
    },
    downForMs: () => (downSince === null ? 0 : clock.now() - downSince),
  };
}

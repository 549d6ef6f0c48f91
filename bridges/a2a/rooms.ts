import type { Clock } from '../../src/base/clock.js';
import type { Logger } from '../../src/base/log.js';
import type { Metrics } from '../../src/base/metrics.js';
import type { BandCalls } from './band.js';

export interface RoomCountDeps {
  readonly rest: Pick<BandCalls, 'listChats'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly everyMs: number;
}

/** Keeps a figure of the rooms the agent is in: the platform allows an agent so many, and no call deletes one. */
export async function countRooms({ rest, clock, log, metrics, everyMs }: RoomCountDeps, signal: AbortSignal) {
  const rooms = metrics.gauge('band_a2a_rooms', 'Rooms the agent is in');
  const stopped = (): boolean => signal.aborted;
  while (!stopped()) {
    await clock.sleep(everyMs, signal).catch(() => undefined);
    if (stopped()) return;
    try {
      rooms.set({}, (await rest.listChats({ page: 1, pageSize: 1, signal })).totalCount);
    } catch (error) {
      if (!stopped()) log.debug({ err: error }, 'the rooms could not be counted');
    }
  }
}

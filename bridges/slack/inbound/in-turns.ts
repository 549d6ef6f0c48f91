import { Lanes } from '../../../src/base/lane.js';
import type { Handler } from '../../../src/store/durable-queue.js';
import { isThreadLane, type SlackRecord } from './records.js';

export interface InTurnsOptions {
  /** Messages that are worked on at the same time. */
  readonly mostTurns: number;
  /** The bridge stops: who waits for a place leaves it at once, and the message stays where it is. */
  readonly closing: AbortSignal;
}

/** Deliveries other than messages that are handled at the same time. */
const MOST_OTHERS = 64;

/**
 * So many messages at a time; what steers a turn, or asks for something that Slack waits three seconds for, has places
 * of its own, since it must not wait for the end of the very turns it may be about.
 */
export function inTurns(handle: Handler<SlackRecord>, { mostTurns, closing }: InTurnsOptions): Handler<SlackRecord> {
  const turns = new Lanes({ maxWaitingPerLane: 1, maxRunning: mostTurns });
  const others = new Lanes({ maxWaitingPerLane: 1, maxRunning: MOST_OTHERS });
  return async (record, signal) => {
    const places = isThreadLane(record.lane) ? turns : others;
    const progress = { begun: false };
    const work = () => {
      progress.begun = true;
      return handle(record, signal);
    };
    try {
      return await places.run(record.lane, work, closing);
    } catch (error) {
      if (progress.begun || !closing.aborted) throw error;
      return { kind: 'wait', afterMs: 0 };
    }
  };
}

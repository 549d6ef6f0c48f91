import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import { judgeFault, slackErrorOf } from '../errors.js';
import type { Unsure } from './notes.js';

const SECOND_MS = 1_000;
/** A request whose connection is gone may still be on its way, or in Slack's hands, for so long. */
export const LANDS_WITHIN_MS = 5 * SECOND_MS;
/** What Slack has not answered in time it is slow about. */
const LANDS_LATE_WITHIN_MS = 30 * SECOND_MS;

/** Said by what stands in front of Slack's servers, which may still be at work. */
const PASSED_ON: ReadonlySet<number> = new Set([502, 504]);

/** An earlier try may still land: nothing is sent before `afterMs` have passed. Holds the lane, is charged to nobody. */
export class TooEarly extends Error {
  readonly afterMs: number;

  constructor(afterMs: number) {
    super('An earlier try may still reach Slack.');
    this.name = 'TooEarly';
    this.afterMs = afterMs;
  }
}

/** Until when a write of unknown end may still take effect. */
export class Landing {
  readonly #clock: Clock;
  readonly #openedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#openedAt = clock.now();
  }

  begin(path: string, begunAt = this.#clock.now()): Unsure {
    return { path, begunAt, landedBy: null };
  }

  /** The mark of a call that failed; null where it has certainly not taken effect. */
  after(error: unknown, begun: Unsure, method: string): Unsure | null {
    return mayHaveWorked(error, method) ? { ...begun, landedBy: this.#clock.now() + landsWithin(error) } : null;
  }

  /** @throws {TooEarly} while what is not there yet may still come */
  check({ landedBy }: Unsure): void {
    // A process that ended in the middle left no time: its requests left before this one began.
    const leftMs = (landedBy ?? this.#openedAt + LANDS_WITHIN_MS) - this.#clock.now();
    // More than that is left only where the clock was set back.
    if (leftMs > 0 && leftMs <= LANDS_LATE_WITHIN_MS) throw new TooEarly(leftMs);
  }
}

function mayHaveWorked(error: unknown, method: string): boolean {
  if (!isGatewayError(error) || !error.code.startsWith('SLACK_')) return true;
  const { fault } = judgeFault(error, method);
  return fault.kind === 'again' && fault.ambiguous;
}

/** How long a failed call may go on to take effect. What Slack has answered by itself is over. */
function landsWithin(error: unknown): number {
  if (isGatewayError(error, 'SLACK_TIMEOUT')) return LANDS_LATE_WITHIN_MS;
  if (!isGatewayError(error)) return LANDS_WITHIN_MS;
  const { status } = error.details;
  const isAnswered = slackErrorOf(error) !== null || (typeof status === 'number' && !PASSED_ON.has(status));
  return isAnswered ? 0 : LANDS_WITHIN_MS;
}

import type { Clock } from '../../base/clock.js';

/** Hands out the moments at which things happen: microseconds, strictly growing, whatever the host's clock does. */
export class Timeline {
  readonly #clock: Pick<Clock, 'now'>;
  #lastMicros = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** The next moment, e.g. `2025-11-17T11:20:10.284136Z`. Moments compare as strings. */
  next(): string {
    this.#lastMicros = Math.max(this.#lastMicros + 1, this.#clock.now() * 1_000);
    return formatMicros(this.#lastMicros);
  }

  /** A moment read back from disk: everything from now on comes after it. */
  passed(moment: string): void {
    this.#lastMicros = Math.max(this.#lastMicros, microsOf(moment));
  }
}

/** @param micros - whole microseconds since the epoch */
export function formatMicros(micros: number): string {
  const whole = Math.floor(micros);
  const rest = whole % 1_000;
  return `${spellMs((whole - rest) / 1_000)}${String(rest).padStart(3, '0')}Z`;
}

/** Moments come many to a millisecond, and it is the millisecond that takes time to spell. */
let spelled = { ms: NaN, text: '' };

function spellMs(ms: number): string {
  if (spelled.ms !== ms) spelled = { ms, text: new Date(ms).toISOString().slice(0, 23) };
  return spelled.text;
}

/** The inverse of {@link formatMicros}. */
export function microsOf(moment: string): number {
  return Date.parse(`${moment.slice(0, 23)}Z`) * 1_000 + Number(moment.slice(23, 26));
}

import { silentLogger, type Logger } from '../base/log.js';

/**
 * What a tool call means for the turn: it only looked (`observe`), changed something (`act`), answered (`reply`), or
 * said that there is nothing to answer (`decline`).
 */
export type TurnEffect = 'observe' | 'act' | 'reply' | 'decline';

export interface TurnOptions {
  /** The cycle's own signal: the turn ends when it aborts. */
  readonly signal?: AbortSignal;
  /** Whether a missing reply is told to the room, from `reportTurnFailuresToRoom`; default true. */
  readonly reportFailures?: boolean;
  readonly log?: Logger;
}

/**
 * One run of an adapter for one message, seen from the obligation to answer. It is complete once at least one call
 * replied, declined or acted, the adapter settled it, or a failure was reported to the room; a turn that ends
 * otherwise misses its reply.
 */
export class Turn {
  readonly #signal: AbortSignal | null;
  readonly #effects = new Set<TurnEffect>();
  #settled = false;
  #reported = false;
  #detached = false;
  #judged = false;
  #verdictGiven = false;
  #ended = false;
  /** Whether a missing reply is told to the room. */
  readonly reportFailures: boolean;
  readonly log: Logger;

  constructor({ signal, reportFailures = true, log = silentLogger }: TurnOptions = {}) {
    this.#signal = signal ?? null;
    this.reportFailures = reportFailures;
    this.log = log;
  }

  /** Notes a call that succeeded. An ended turn takes no notes. */
  record(effect: TurnEffect): void {
    if (!this.ended) this.#effects.add(effect);
  }

  /** The adapter ends the turn by itself: nothing more is owed to the room. */
  settle(): void {
    this.#settled = true;
  }

  /** A failure of this turn already reached the room. */
  noteReported(): void {
    this.#reported = true;
  }

  /** The turn outlives `onMessage`; the adapter calls `judgeDetachedTurn` at its real end. */
  detach(): void {
    this.#detached = true;
  }

  /** Whether the turn's end is judged at all; said before its adapter runs. */
  setJudged(judged: boolean): void {
    this.#judged = judged;
  }

  /** @returns true the first time: a verdict is given once */
  claimVerdict(): boolean {
    const first = !this.#verdictGiven;
    this.#verdictGiven = true;
    return first;
  }

  /** From now on the turn's tools post nothing. */
  end(): void {
    this.#ended = true;
  }

  get complete(): boolean {
    return this.replied || this.#effects.has('act') || this.#settled || this.#reported;
  }

  /** A tool replied or declined, so the model's closing text is not relayed. */
  get replied(): boolean {
    return this.#effects.has('reply') || this.#effects.has('decline');
  }

  /** A tool said that there is nothing to answer, and none answered. */
  get declined(): boolean {
    return this.#effects.has('decline') && !this.#effects.has('reply');
  }

  /** The adapter ended the turn by itself. */
  get settled(): boolean {
    return this.#settled;
  }

  get reported(): boolean {
    return this.#reported;
  }

  get detached(): boolean {
    return this.#detached;
  }

  /** A turn that is not judged may end without an answer. */
  get judged(): boolean {
    return this.#judged;
  }

  get ended(): boolean {
    return this.#ended || this.#signal?.aborted === true;
  }

  /** The cycle was cancelled: interrupt, stop, timeout or shutdown. */
  get aborted(): boolean {
    return this.#signal?.aborted === true;
  }

  /** Hand it to every call made for this turn. */
  get signal(): AbortSignal | null {
    return this.#signal;
  }
}

import { BoundedMap } from '../base/bounded.js';

/** Messages whose attempts are remembered; the oldest are forgotten first. */
const MAX_REMEMBERED = 10_000;

/**
 * How often each message was tried. A message is charged once the platform accepted its claim, so a claim that
 * failed costs nothing (W-01); it is exhausted when its attempts are used up or its failure is final.
 */
export class AttemptBook {
  readonly #attempts = new BoundedMap<string, number>(MAX_REMEMBERED);
  readonly #maxAttempts: number;

  /** @param maxAttempts - from `maxMessageRetries`: 1 means one try and no second one */
  constructor(maxAttempts: number) {
    this.#maxAttempts = maxAttempts;
  }

  /** @returns the number of this attempt, from 1 */
  charge(roomId: string, messageId: string): number {
    const key = keyOf(roomId, messageId);
    const attempt = (this.#attempts.get(key) ?? 0) + 1;
    this.#attempts.set(key, attempt);
    return attempt;
  }

  /** Takes one charge back: the attempt was ended by a person or by shutdown, not by a failure. */
  refund(roomId: string, messageId: string): void {
    const key = keyOf(roomId, messageId);
    const charged = this.#attempts.get(key);
    if (charged === undefined) return;
    if (charged <= 1) this.#attempts.delete(key);
    else this.#attempts.set(key, charged - 1);
  }

  /** No further attempt, whatever the budget. */
  exhaust(roomId: string, messageId: string): void {
    this.#attempts.set(keyOf(roomId, messageId), Number.POSITIVE_INFINITY);
  }

  isExhausted(roomId: string, messageId: string): boolean {
    return (this.#attempts.get(keyOf(roomId, messageId)) ?? 0) >= this.#maxAttempts;
  }

  /** The message succeeded; nothing needs remembering. */
  clear(roomId: string, messageId: string): void {
    this.#attempts.delete(keyOf(roomId, messageId));
  }

  get size(): number {
    return this.#attempts.size;
  }
}

const keyOf = (roomId: string, messageId: string) => `${roomId}/${messageId}`;

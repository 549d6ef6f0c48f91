import { GatewayError } from '../../../src/base/errors.js';
import type { Metrics } from '../../../src/base/metrics.js';

const RETRY_AFTER_MS = 5_000;

/** How many streams may be open, in all and per principal. */
export class StreamSlots {
  readonly #limits: { readonly streams: number; readonly streamsPerPrincipal: number };
  readonly #byPrincipal = new Map<string, number>();
  readonly #gauge;
  readonly #cut;
  #open = 0;

  constructor(limits: { readonly streams: number; readonly streamsPerPrincipal: number }, metrics: Metrics) {
    this.#limits = limits;
    this.#gauge = metrics.gauge('band_a2a_streams', 'Open streams');
    this.#cut = metrics.counter('band_a2a_streams_cut_total', 'Streams cut off because their reader was too slow');
  }

  /** @returns gives the slot back. @throws {GatewayError} `A2A_STREAM_LIMIT` */
  take(principal: string): () => void {
    const own = this.#byPrincipal.get(principal) ?? 0;
    if (this.#open >= this.#limits.streams || own >= this.#limits.streamsPerPrincipal) {
      throw new GatewayError('A2A_STREAM_LIMIT', { retryAfterMs: RETRY_AFTER_MS });
    }
    this.#set(principal, own + 1, 1);
    return () => {
      this.#set(principal, (this.#byPrincipal.get(principal) ?? 1) - 1, -1);
    };
  }

  cut(): void {
    this.#cut.inc();
  }

  #set(principal: string, own: number, change: number): void {
    if (own > 0) this.#byPrincipal.set(principal, own);
    else this.#byPrincipal.delete(principal);
    this.#open += change;
    this.#gauge.set({}, this.#open);
  }
}

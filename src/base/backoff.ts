export interface BackoffOptions {
  baseMs: number;
  maxMs: number;
  /** Growth per try; default 2. */
  factor?: number;
  /**
   * `equal`: half of the delay fixed, half random. `full`: all of it random.
   * `tenth`: within ten percent either way. Default `equal`.
   */
  jitter?: 'equal' | 'full' | 'tenth' | 'none';
  /** Random numbers in [0, 1); default Math.random. */
  random?: () => number;
}

/**
 * Delay before try number `tries` + 1, in milliseconds.
 *
 * @param tries - failures so far, from 1; smaller values count as 1
 */
export function backoffMs(
  tries: number,
  { baseMs, maxMs, factor = 2, jitter = 'equal', random = Math.random }: BackoffOptions,
): number {
  const delay = Math.min(maxMs, baseMs * factor ** Math.max(0, tries - 1));
  switch (jitter) {
    case 'equal':
      return delay / 2 + (delay / 2) * random();
    case 'full':
      return delay * random();
    case 'tenth':
      return delay * (0.9 + 0.2 * random());
    case 'none':
      return delay;
  }
}

import type { RetryPlan } from '../errors.js';

const SECOND_MS = 1_000;
const USUAL_SECONDS = [1, 2, 4, 8, 15, 30, 60] as const;
const JITTER = 0.2;
const USUAL_LIMIT_MS = 30 * 60_000;
const MIGRATION_STEP_MS = 5 * 60_000;
const MIGRATION_LIMIT_MS = 24 * 3_600_000;
const UNKNOWN_TRIES = 3;

/** @param tries - failures so far, this one included */
export function planDelay(plan: RetryPlan, tries: number, random: () => number): number {
  if (plan === 'migration') return MIGRATION_STEP_MS;
  const step = plan === 'message-limit' ? USUAL_SECONDS.length : tries;
  const seconds = USUAL_SECONDS[Math.min(step, USUAL_SECONDS.length) - 1] ?? 60;
  // A workspace at its limit is left alone for the whole minute.
  const least = plan === 'message-limit' ? 1 : 1 - JITTER;
  return seconds * SECOND_MS * (least + (1 + JITTER - least) * random());
}

/**
 * Whether a plan is at its end.
 *
 * @param nextMs - from the first failure to the next try
 */
export function isPlanOver(plan: RetryPlan, tries: number, nextMs: number): boolean {
  if (plan === 'three-tries') return tries >= UNKNOWN_TRIES;
  return nextMs > (plan === 'migration' ? MIGRATION_LIMIT_MS : USUAL_LIMIT_MS);
}

import { createHash, timingSafeEqual } from 'node:crypto';

/** Equal texts, compared in a time that does not tell where they differ. */
export function sameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

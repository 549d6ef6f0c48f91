import { randomInt } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const KEY_CHARS = 40;

/** A fresh API key with the prefix of its kind. */
export function newApiKey(kind: 'User' | 'Agent', random?: () => number): string {
  let key = kind === 'User' ? 'band_u_' : 'band_a_';
  for (let n = 0; n < KEY_CHARS; n += 1) {
    key += ALPHABET[random ? Math.floor(random() * ALPHABET.length) : randomInt(ALPHABET.length)] ?? '';
  }
  return key;
}

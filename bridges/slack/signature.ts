import { createHmac, timingSafeEqual } from 'node:crypto';

export const SIGNATURE_WINDOW_SECONDS = 300;

export type SignatureFailure = 'missing' | 'version' | 'stale' | 'future' | 'mismatch';

export type SignatureVerdict =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly reason: SignatureFailure;
      /** Seconds this machine is ahead of the sender, where the digest was right and only the time was off. */
      readonly skewSeconds: number | null;
    };

export interface SignedRequest {
  /** `x-slack-request-timestamp`. */
  readonly timestamp: string | undefined;
  /** `x-slack-signature`. */
  readonly signature: string | undefined;
  /** The bytes as they came. */
  readonly body: Uint8Array;
}

const TIMESTAMP = /^\d{1,12}$/;
const SIGNATURE = /^([^=]*)=([0-9a-f]{64})$/i;
const VERSION = 'v0';

/**
 * Whether Slack signed this request with one of the app's secrets, no more than 300 seconds away in either direction.
 * Slack's own receiver looks at the past only, takes any version and hashes decoded text (T-08).
 *
 * @param secrets - several while a signing secret is being replaced; empty ones never match
 */
export function verifySignature(
  { timestamp, signature, body }: SignedRequest,
  secrets: readonly string[],
  nowMs: number,
): SignatureVerdict {
  if (!timestamp || !signature) return refused('missing');
  if (!TIMESTAMP.test(timestamp)) return refused('mismatch');
  const [, version, digest] = SIGNATURE.exec(signature) ?? [];
  if (version === undefined || digest === undefined) {
    return refused(signature.startsWith(`${VERSION}=`) ? 'mismatch' : 'version');
  }
  if (version !== VERSION) return refused('version');

  const matches = matchesAny(Buffer.from(digest, 'hex'), timestamp, body, secrets);
  const skewSeconds = Math.floor(nowMs / 1_000) - Number(timestamp);
  if (Math.abs(skewSeconds) > SIGNATURE_WINDOW_SECONDS) {
    return { ok: false, reason: skewSeconds > 0 ? 'stale' : 'future', skewSeconds: matches ? skewSeconds : null };
  }
  return matches ? { ok: true } : refused('mismatch');
}

/** The header value Slack sends for these bytes. */
export function signBody(secret: string, timestamp: string, body: Uint8Array): string {
  return `${VERSION}=${hmac(secret, timestamp, body)}`;
}

const refused = (reason: SignatureFailure): SignatureVerdict => ({ ok: false, reason, skewSeconds: null });

// In hexadecimal: a digest handed out as a Buffer costs as much again as the digest itself.
const hmac = (secret: string, timestamp: string, body: Uint8Array): string =>
  createHmac('sha256', secret).update(`${VERSION}:${timestamp}:`).update(body).digest('hex');

/** Looks at every secret, so that the time taken says nothing about which one came close. */
function matchesAny(digest: Buffer, timestamp: string, body: Uint8Array, secrets: readonly string[]): boolean {
  let found = false;
  for (const secret of secrets) {
    if (secret === '') continue;
    if (timingSafeEqual(Buffer.from(hmac(secret, timestamp, body), 'hex'), digest)) found = true;
  }
  return found;
}

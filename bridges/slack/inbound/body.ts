import type { IncomingMessage } from 'node:http';
import type { CancelTimer, Clock } from '../../../src/base/clock.js';

export type BodyOutcome =
  | { readonly kind: 'read'; readonly bytes: Buffer }
  /** Somebody read the stream before and kept nothing. */
  | { readonly kind: 'drained' }
  | { readonly kind: 'too_large' }
  /** The sender stopped in the middle. */
  | { readonly kind: 'stalled' }
  | { readonly kind: 'gone' };

export interface BodyLimits {
  readonly limitBytes: number;
  /** Longest silence between two pieces, in milliseconds. */
  readonly idleMs: number;
  readonly clock: Clock;
}

/** What is still taken in of a body that is too large, so that its sender gets to read the refusal. */
const DRAIN_BYTES = 64 * 1024;

/** The bytes of a request as they came; a parser in front may have left them in `rawBody`. */
export async function readBody(
  request: IncomingMessage,
  { limitBytes, idleMs, clock }: BodyLimits,
): Promise<BodyOutcome> {
  if (request.readableEnded || request.readableDidRead) {
    const { rawBody } = request as IncomingMessage & { rawBody?: unknown };
    if (!Buffer.isBuffer(rawBody)) return { kind: 'drained' };
    return rawBody.length > limitBytes ? { kind: 'too_large' } : { kind: 'read', bytes: rawBody };
  }
  if (Number(request.headers['content-length'] ?? 0) > limitBytes + DRAIN_BYTES) return { kind: 'too_large' };

  return await new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let size = 0;
    let cancelIdle: CancelTimer = () => undefined;
    const finish = (outcome: BodyOutcome) => {
      cancelIdle();
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      resolve(outcome);
    };
    const watch = () => {
      cancelIdle();
      cancelIdle = clock.after(idleMs, () => {
        finish({ kind: 'stalled' });
      });
    };
    const onData = (piece: Buffer) => {
      size += piece.length;
      if (size > limitBytes + DRAIN_BYTES) finish({ kind: 'too_large' });
      else if (size <= limitBytes) pieces.push(piece);
      watch();
    };
    const onEnd = () => {
      finish(size > limitBytes ? { kind: 'too_large' } : { kind: 'read', bytes: Buffer.concat(pieces) });
    };
    const onGone = () => {
      finish({ kind: 'gone' });
    };
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
    watch();
  });
}

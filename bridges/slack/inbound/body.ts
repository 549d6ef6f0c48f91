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
export function readBody(request: IncomingMessage, { limitBytes, idleMs, clock }: BodyLimits): Promise<BodyOutcome> {
  return new Promise((resolve) => {
    if (request.readableEnded || request.readableDidRead) {
      resolve(keptBody(request, limitBytes));
      return;
    }
    if (Number(request.headers['content-length'] ?? 0) > limitBytes + DRAIN_BYTES) {
      resolve({ kind: 'too_large' });
      return;
    }
    const pieces: Buffer[] = [];
    let size = 0;
    let heardAt = clock.now();
    let cancelIdle: CancelTimer = () => undefined;
    let isOver = false;
    const finish = (outcome: BodyOutcome) => {
      if (isOver) return;
      isOver = true;
      cancelIdle();
      if (outcome.kind !== 'read') request.off('data', onData);
      resolve(outcome);
    };
    // One timer for the whole body: what came meanwhile only puts its end off.
    const watch = (ms: number) => {
      cancelIdle = clock.after(ms, () => {
        const silentMs = Math.max(0, clock.now() - heardAt);
        if (silentMs >= idleMs) finish({ kind: 'stalled' });
        else watch(idleMs - silentMs);
      });
    };
    const onData = (piece: Buffer) => {
      heardAt = clock.now();
      size += piece.length;
      if (size > limitBytes + DRAIN_BYTES) finish({ kind: 'too_large' });
      else if (size <= limitBytes) pieces.push(piece);
    };
    const onEnd = () => {
      const [first] = pieces;
      if (size > limitBytes) finish({ kind: 'too_large' });
      else finish({ kind: 'read', bytes: first && pieces.length === 1 ? first : Buffer.concat(pieces) });
    };
    const onGone = () => {
      finish({ kind: 'gone' });
    };
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
    watch(idleMs);
  });
}

/** The body of a request that somebody has read before. */
function keptBody(request: IncomingMessage & { readonly rawBody?: unknown }, limitBytes: number): BodyOutcome {
  const { rawBody } = request;
  if (!Buffer.isBuffer(rawBody)) return { kind: 'drained' };
  return rawBody.length > limitBytes ? { kind: 'too_large' } : { kind: 'read', bytes: rawBody };
}

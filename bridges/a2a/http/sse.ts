import type { ServerResponse } from 'node:http';
import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';

export interface StreamOptions {
  readonly clock: Clock;
  readonly keepaliveMs: number;
  readonly maxAgeMs: number;
  /** Makes the source end. */
  readonly stop: () => void;
}

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
} as const;

const PROBE = ': keep-alive\n\n';
const PROBE_AGAIN_MS = 1_000;

/**
 * Writes events as they come, one `data:` line each, with a comment line in quiet times. The first event was taken
 * already, so a stream that fails at once is an ordinary error answer.
 *
 * Resolves when the stream is over: its source ended, its age was reached, or the reader left.
 */
export async function writeStream(
  response: ServerResponse,
  first: unknown,
  events: AsyncGenerator,
  { clock, keepaliveMs, maxAgeMs, stop }: StreamOptions,
): Promise<void> {
  response.writeHead(200, HEADERS);
  response.flushHeaders();
  response.socket?.setNoDelay(true);
  let stopBeat: () => void = () => undefined;
  const armBeat = (): void => {
    stopBeat();
    stopBeat = clock.after(keepaliveMs, () => {
      if (!response.writableNeedDrain) response.write(PROBE);
      armBeat();
    });
  };
  const old = clock.after(maxAgeMs, () => {
    stop();
    // A reader that takes nothing cannot be told that it is over.
    if (response.writableNeedDrain) response.destroy();
  });
  // A reader that closed its half may be there still or gone for good; only writing to it tells, the second time.
  let stopProbe: () => void = () => undefined;
  const onHalfClosed = (): void => {
    response.write(PROBE);
    stopProbe = clock.after(PROBE_AGAIN_MS, () => response.write(PROBE));
  };
  const { socket } = response;
  socket?.once('end', onHalfClosed);
  try {
    let event: unknown = first;
    for (;;) {
      armBeat();
      if (!response.write(`data: ${JSON.stringify(event)}\n\n`)) await drained(response);
      if (response.destroyed) return;
      const next = await events.next();
      if (next.done === true) return;
      event = next.value;
    }
  } catch (error) {
    // A reader that fell behind is cut off; it may subscribe again.
    if (!isGatewayError(error, 'A2A_STREAM_CUT')) throw error;
    response.destroy();
  } finally {
    stopBeat();
    stopProbe();
    socket?.off('end', onHalfClosed);
    old();
    await events.return(undefined);
    if (!response.destroyed && !response.writableEnded) response.end();
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}

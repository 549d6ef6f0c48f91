import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { onAbort } from '../../base/async.js';

/** One HTTP request of the client. */
export interface HttpCall {
  readonly options: Dispatcher.DispatchOptions;
  readonly signal: AbortSignal | undefined;
  readonly maxAnswerBytes: number;
  /** What an answer above the limit fails with. */
  readonly tooLarge: () => Error;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Sends a request and reads its whole answer as text. The answers of an API are short, so they are taken as they come
 * from the connection: a stream and its reader would cost more than the call.
 *
 * Rejects with what the dispatcher reports, with the signal's reason, or with what `tooLarge` makes.
 */
export function httpCall(dispatcher: Dispatcher, { options, signal, maxAnswerBytes, tooLarge }: HttpCall) {
  return new Promise<HttpAnswer>((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null;
    let status = 0;
    let headers: IncomingHttpHeaders = {};
    let chunks: Buffer[] = [];
    let bytes = 0;
    const release = onAbort(signal, (reason) => {
      reject(reason);
      controller?.abort(reason);
    });
    if (signal?.aborted === true) return;
    const fail = (error: Error): void => {
      release();
      reject(error);
    };
    try {
      dispatcher.dispatch(options, {
        onRequestStart(started) {
          controller = started;
          // It waited for a connection while the caller left.
          if (signal?.aborted === true) started.abort(signal.reason as Error);
        },
        onResponseStart(_started, statusCode, received) {
          status = statusCode;
          headers = received;
          // An informational answer comes before the real one.
          chunks = [];
          bytes = 0;
        },
        onResponseData(started, chunk) {
          bytes += chunk.length;
          if (bytes > maxAnswerBytes) started.abort(tooLarge());
          else chunks.push(chunk);
        },
        onResponseEnd() {
          release();
          const [first] = chunks;
          const whole = chunks.length === 1 && first ? first : Buffer.concat(chunks);
          resolve({ status, headers, text: whole.toString('utf8') });
        },
        onResponseError(_started, error) {
          fail(error);
        },
      });
    } catch (error) {
      fail(error as Error);
    }
  });
}

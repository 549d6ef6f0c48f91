import { deferred } from '../../../src/base/async.js';
import { GatewayError } from '../../../src/base/errors.js';
import { isTerminal, type StreamEvent, type Task } from '../wire.js';
import type { OpenTask, Watcher } from './book.js';
import { snapshot } from './log.js';
import { isSettled } from './states.js';

export interface FollowOptions {
  /** Bytes of events that may wait for the reader. */
  readonly bufferBytes: number;
  /** End after an interrupted status too, as a sending stream does. */
  readonly endWhenInterrupted: boolean;
  /** Ends the stream without an error: the reader left, or the stream has grown too old. */
  readonly signal: AbortSignal;
  /** The reader fell too far behind; what it does not take cannot hold the stream up. */
  onCut(): void;
}

/**
 * Reads a task from now on: first the task as it stands, then every later event once, in order. Snapshot and
 * subscription are taken in one go, so nothing falls between them.
 *
 * @throws {GatewayError} `A2A_STREAM_CUT` while iterating when the reader falls behind by more than `bufferBytes`
 */
export function follow(open: OpenTask, options: FollowOptions): AsyncGenerator<StreamEvent, void, undefined> {
  const first = { task: snapshot(open.view) };
  const done = options.endWhenInterrupted ? isSettled : isTerminal;
  const queue: { readonly event: StreamEvent; readonly bytes: number }[] = [];
  let waiting = 0;
  let ended = false;
  let cut = false;
  let wake = deferred();
  const watcher: Watcher = {
    onEvent(event, size) {
      if (ended) return;
      const bytes = size();
      queue.push({ event, bytes });
      waiting += bytes;
      if (waiting > options.bufferBytes && queue.length > 1) {
        cut = true;
        open.watchers.delete(watcher);
        options.onCut();
      }
      wake.resolve();
    },
    onEnd() {
      ended = true;
      wake.resolve();
    },
  };
  const stopped = (): void => {
    wake.resolve();
  };
  if (!done(open.row.state)) open.watchers.add(watcher);
  options.signal.addEventListener('abort', stopped, { once: true });
  const release = (): void => {
    open.watchers.delete(watcher);
    options.signal.removeEventListener('abort', stopped);
  };

  async function* events(): AsyncGenerator<StreamEvent, void, undefined> {
    try {
      yield first;
      if (done(first.task.status.state)) return;
      for (;;) {
        if (options.signal.aborted) return;
        if (cut) throw new GatewayError('A2A_STREAM_CUT');
        const next = queue.shift();
        if (next) {
          const { event } = next;
          waiting -= next.bytes;
          yield event;
          if ('statusUpdate' in event && done(event.statusUpdate.status.state)) return;
          continue;
        }
        if (ended) return;
        wake = deferred();
        await wake.promise;
      }
    } finally {
      release();
    }
  }
  const generator = events();
  // A generator that was never started runs no `finally`, so a reader that leaves at once is released here.
  const giveUp = generator.return.bind(generator);
  generator.return = (value) => {
    release();
    return giveUp(value);
  };
  return generator;
}

/** Waits until the task is terminal or interrupted; resolves at once when it is, and when `signal` aborts. */
export async function settled(open: OpenTask, signal: AbortSignal): Promise<Task> {
  if (!isSettled(open.row.state) && !signal.aborted) {
    const over = deferred();
    const finish = (): void => {
      over.resolve();
    };
    const watcher: Watcher = {
      onEvent(event) {
        if ('statusUpdate' in event && isSettled(event.statusUpdate.status.state)) over.resolve();
      },
      onEnd: finish,
    };
    open.watchers.add(watcher);
    signal.addEventListener('abort', finish, { once: true });
    await over.promise;
    signal.removeEventListener('abort', finish);
    open.watchers.delete(watcher);
  }
  return snapshot(open.view);
}

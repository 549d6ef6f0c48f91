import { deferred } from '../../../src/base/async.js';
import { GatewayError } from '../../../src/base/errors.js';
import type { Caller } from '../call.js';
import { isTerminal, type StreamEvent, type Task } from '../wire.js';
import type { OpenTask, Watcher } from './book.js';
import { snapshot } from './log.js';
import { isSettled } from './states.js';

export interface FollowOptions {
  /** Bytes of events that may wait for the reader. */
  readonly bufferBytes: number;
  /** End after an interrupted status too, as a sending stream does. */
  readonly endWhenInterrupted: boolean;
  /** Ends the stream without an error once it is gone: it left, or the stream has grown too old. */
  readonly caller: Caller;
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
  if (!done(open.row.state)) open.watchers.add(watcher);
  const stay = options.caller.onGone(() => {
    wake.resolve();
  });
  const release = (): void => {
    open.watchers.delete(watcher);
    stay();
  };

  async function* events(): AsyncGenerator<StreamEvent, void, undefined> {
    try {
      yield first;
      if (done(first.task.status.state)) return;
      for (;;) {
        if (options.caller.gone) return;
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

/** Waits until the task is terminal or interrupted, or the caller is gone; resolves at once when that is so. */
export async function settled(open: OpenTask, caller: Caller): Promise<Task> {
  if (!isSettled(open.row.state) && !caller.gone) {
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
    const stay = caller.onGone(finish);
    await over.promise;
    stay();
    open.watchers.delete(watcher);
  }
  return snapshot(open.view);
}

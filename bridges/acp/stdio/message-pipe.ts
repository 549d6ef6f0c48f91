import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';

/** A stream of frames whose far end is two functions: frames are pushed in, and written out. */
export interface MessagePipe {
  readonly stream: Stream;
  push(message: AnyMessage): void;
  /** No more frames come in. */
  end(): void;
}

/** @param write - takes one outgoing frame; the next one waits until it resolved */
export function createMessagePipe(write: (message: AnyMessage) => Promise<void>): MessagePipe {
  let controller: ReadableStreamDefaultController<AnyMessage> | null = null;
  return {
    stream: {
      readable: new ReadableStream<AnyMessage>({
        start(made) {
          controller = made;
        },
        cancel() {
          controller = null;
        },
      }),
      writable: new WritableStream<AnyMessage>({ write }),
    },
    push(message) {
      controller?.enqueue(message);
    },
    end() {
      controller?.close();
      controller = null;
    },
  };
}

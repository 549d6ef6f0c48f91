import type { Socket } from 'node:net';
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import type { Logger } from '../../../src/base/log.js';
import { encodeFrame } from './frames.js';
import type { Backend, Say } from './front.js';
import { createLineSplitter } from './lines.js';
import { EOF_GRACE_MS, waitForAnswers, writeLine } from './local-socket.js';
import { createMessagePipe } from './message-pipe.js';

/** The owner's frames may be larger than an editor's: a replayed message is escaped once more. */
const OWNER_FRAME_FACTOR = 4;
const LINE_END = Buffer.from('\n');

/** The server in this process. */
export function localBackend(
  connect: (stream: Stream) => { readonly openRequests: number; close(): void },
): (say: Say) => Backend {
  return (say) => {
    const pipe = createMessagePipe((message) => say(encodeFrame(message), message));
    const connection = connect(pipe.stream);
    return {
      send({ message }) {
        pipe.push(message);
        return Promise.resolve();
      },
      async end() {
        await waitForAnswers(connection, EOF_GRACE_MS);
        connection.close();
      },
      close() {
        connection.close();
      },
    };
  };
}

/** The process that runs the agent, reached by its local socket: lines are copied as they are. */
export function ownerBackend(
  socket: Socket,
  deps: { readonly maxMessageBytes: number; readonly log: Logger },
): (say: Say) => Backend {
  return (say) => {
    let writes: Promise<void>[] = [];
    const reader = createLineSplitter(deps.maxMessageBytes * OWNER_FRAME_FACTOR, {
      onLine(bytes) {
        const message = parse(bytes);
        if (message) writes.push(say(Buffer.concat([bytes, LINE_END]), message).catch(() => undefined));
        else deps.log.warn('the process that runs the agent sent something that is no frame; left out');
      },
      onTooLong() {
        deps.log.warn('the process that runs the agent sent a frame that is too long; left out');
      },
    });
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      if (writes.length === 0) return;
      // A slow editor slows the owner down instead of filling memory here.
      socket.pause();
      void Promise.all(writes).then(() => socket.resume());
      writes = [];
    });
    const ended = new Promise<void>((resolve) => {
      socket.once('end', resolve);
      socket.once('close', () => {
        resolve();
      });
    });
    return {
      async send({ bytes }) {
        if (!socket.writable) return;
        await writeLine(socket, Buffer.concat([bytes, LINE_END])).catch(() => undefined);
      },
      async end() {
        socket.end();
        await ended;
      },
      close() {
        socket.removeAllListeners('data');
        socket.destroy();
      },
    };
  };
}

function parse(bytes: Uint8Array): AnyMessage | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as AnyMessage) : null;
  } catch {
    // Not a frame.
    return null;
  }
}

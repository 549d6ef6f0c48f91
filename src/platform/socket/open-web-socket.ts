import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { toError } from '../../base/errors.js';
import { networkFault } from '../network-error.js';
import type { OpenWebSocket, SocketEnd, WebSocketLike } from './web-socket.js';

const MAX_REFUSAL_BYTES = 64 * 1024;

interface WsOptions {
  /** A larger frame ends the connection with 1009; default 8 MiB, room for the longest message however it is escaped. */
  maxFrameBytes?: number;
}

/** The `ws` package as an {@link OpenWebSocket}. */
export function createOpenWebSocket({ maxFrameBytes = 8 * 1024 * 1024 }: WsOptions = {}): OpenWebSocket {
  return (url, headers, listener) => {
    let ended = false;
    const end = (how: SocketEnd) => {
      if (ended) return;
      ended = true;
      listener.ended(how);
    };

    let socket: WebSocket;
    try {
      socket = new WebSocket(url, { headers, maxPayload: maxFrameBytes, perMessageDeflate: false });
    } catch (error) {
      // A malformed address or header; the text of the error would repeat the key that stands in both.
      queueMicrotask(() => {
        end({ kind: 'failed', message: `the address or the key cannot be used (${toError(error).name})` });
      });
      return { send: () => undefined, close: () => undefined, terminate: () => undefined };
    }

    let opened = false;
    let problem = 'the handshake failed';
    socket.on('open', () => {
      opened = true;
      listener.opened();
    });
    socket.on('message', (data: Buffer, isBinary) => {
      if (!ended) listener.message(isBinary ? null : data.toString('utf8'));
    });
    socket.on('error', (error) => {
      problem = networkFault(error).message;
    });
    socket.on('close', (code, reason) => {
      end(opened ? { kind: 'closed', code, reason: reason.toString('utf8') } : { kind: 'failed', message: problem });
    });
    socket.on('unexpected-response', (_request, response) => {
      void readRefusal(response).then((body) => {
        end({ kind: 'refused', status: response.statusCode ?? 0, headers: response.headers, body });
        socket.terminate();
      });
    });
    return facade(socket);
  };
}

function facade(socket: WebSocket): WebSocketLike {
  return {
    send(text) {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close(code, reason) {
      socket.close(code, reason);
    },
    terminate() {
      socket.terminate();
    },
  };
}

/** The body of a refused upgrade, as far as it comes: a broken or endless one is no reason to lose the status. */
async function readRefusal(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= MAX_REFUSAL_BYTES) break;
    }
  } catch {
    // what has been read is enough
  }
  return Buffer.concat(chunks).toString('utf8').slice(0, MAX_REFUSAL_BYTES);
}

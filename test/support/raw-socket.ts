import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';

export type WireFrame = [
  joinRef: string | null,
  ref: string | null,
  topic: string,
  event: string,
  payload: Record<string, unknown>,
];

const PATIENCE_MS = 10_000;

/** A WebSocket without a client library behind it: frames as they come, and waiting for them. */
export interface RawSocket {
  readonly received: readonly WireFrame[];
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
  readonly send: (...frame: WireFrame) => void;
  readonly sendText: (text: string) => void;
  /** Sends a join and resolves with the reply's payload. */
  readonly join: (topic: string) => Promise<Record<string, unknown>>;
  readonly leave: (topic: string) => Promise<Record<string, unknown>>;
  /** The first frame, received already or to come, that fits. */
  readonly frame: (fits: (frame: WireFrame) => boolean, what?: string) => Promise<WireFrame>;
  /** The payload of the first push of an event that fits, received already or to come. */
  readonly push: (
    event: string,
    fits?: (payload: Record<string, unknown>) => boolean,
  ) => Promise<Record<string, unknown>>;
  /** Resolves once everything that the platform had queued for this socket so far has arrived. */
  readonly settled: () => Promise<void>;
  readonly close: (code?: number) => Promise<void>;
  /** Ends TCP without a close frame. */
  readonly drop: () => void;
  readonly socket: WebSocket;
}

/** @throws {UpgradeRefused} when the upgrade is answered with a status */
export async function openRawSocket(url: string, headers: Record<string, string> = {}): Promise<RawSocket> {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false });
  const received: WireFrame[] = [];
  const waiting = new Set<() => void>();
  const joinRefs = new Map<string, string>();
  let refs = 0;

  socket.on('message', (data) => {
    received.push(JSON.parse((data as Buffer).toString()) as WireFrame);
    for (const look of [...waiting]) look();
  });
  const closed = new Promise<number>((resolve) => {
    socket.on('close', (code) => {
      resolve(code);
      for (const look of [...waiting]) look();
    });
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.on('error', reject);
    socket.once('unexpected-response', (_request, response) => {
      readAll(response).then((body) => {
        reject(new UpgradeRefused(response.statusCode ?? 0, body, response.headers));
      }, reject);
    });
  });

  const frame = (fits: (frame: WireFrame) => boolean, what = 'a frame'): Promise<WireFrame> =>
    new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        waiting.delete(look);
      };
      const look = () => {
        const found = received.find(fits);
        if (found) {
          end();
          resolve(found);
        } else if (socket.readyState === socket.CLOSED) {
          end();
          reject(new Error(`the socket closed before ${what} came`));
        }
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error(`no ${what} within ${PATIENCE_MS} ms; got ${JSON.stringify(received.slice(-5))}`));
      }, PATIENCE_MS);
      waiting.add(look);
      look();
    });
  const ask = async (topic: string, event: string, joinRef: string | null): Promise<Record<string, unknown>> => {
    const ref = String((refs += 1));
    if (event === 'phx_join') joinRefs.set(topic, ref);
    socket.send(JSON.stringify([event === 'phx_join' ? ref : joinRef, ref, topic, event, {}]));
    const reply = await frame((it) => it[1] === ref && it[3] === 'phx_reply', `reply to ${event} of ${topic}`);
    return reply[4];
  };

  return {
    received,
    closed,
    socket,
    frame,
    send: (...it) => {
      socket.send(JSON.stringify(it));
    },
    sendText: (text) => {
      socket.send(text);
    },
    join: (topic) => ask(topic, 'phx_join', null),
    leave: (topic) => ask(topic, 'phx_leave', joinRefs.get(topic) ?? null),
    push: async (event, fits = () => true) => (await frame((it) => it[3] === event && fits(it[4]), `push ${event}`))[4],
    settled: async () => {
      await ask('phoenix', 'heartbeat', null);
    },
    close: async (code = 1000) => {
      socket.close(code);
      await closed;
    },
    drop: () => {
      socket.terminate();
    },
  };
}

/** The platform answered an upgrade with a status instead of a connection. */
export class UpgradeRefused extends Error {
  readonly status: number;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];

  constructor(status: number, body: string, headers: IncomingMessage['headers']) {
    super(`upgrade refused with ${status}`);
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** What refused an upgrade; fails when it was accepted. */
export async function refusedUpgrade(url: string, headers: Record<string, string> = {}): Promise<UpgradeRefused> {
  try {
    await (await openRawSocket(url, headers)).close();
  } catch (error) {
    if (error instanceof UpgradeRefused) return error;
    throw error;
  }
  throw new Error('the upgrade was expected to be refused');
}

async function readAll(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return text;
}

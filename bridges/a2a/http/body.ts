import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError } from '../../../src/base/errors.js';
import { refusal } from '../errors.js';

const BODY_DEADLINE_MS = 30_000;
const utf8 = new TextDecoder('utf-8', { fatal: true });

export interface BodyLimits {
  readonly bodyBytes: number;
  readonly jsonDepth: number;
}

const JSON_TYPE = /^application\/(?:json|(?:[\w.-]+\+)?json)$/;

/** Whether a request says that a body follows. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Looks at a request's headers, before any of its body is read.
 *
 * @param needsBody - without one a content type says nothing, where none is needed
 * @throws {GatewayError} `A2A_REQUEST_TYPE`, `A2A_ENCODED`, `A2A_NOT_ACCEPTABLE`, `A2A_TOO_LARGE`
 */
export function checkHeaders(request: IncomingMessage, limits: BodyLimits, needsBody: boolean): void {
  const { headers } = request;
  const contentType = headers['content-type'];
  if (contentType !== undefined && (needsBody || hasBody(request))) {
    const [type = '', ...parameters] = contentType
      .toLowerCase()
      .split(';')
      .map((part) => part.trim());
    const charset = parameters
      .find((one) => one.startsWith('charset='))
      ?.slice('charset='.length)
      .replace(/"/g, '');
    if (!JSON_TYPE.test(type) || (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')) {
      throw new GatewayError('A2A_REQUEST_TYPE');
    }
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') throw new GatewayError('A2A_ENCODED');
  // Node takes the chunks apart and leaves every other coding as it is.
  const transfer = headers['transfer-encoding'];
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') throw new GatewayError('A2A_ENCODED');
  if (!acceptsAny(headers.accept)) throw new GatewayError('A2A_NOT_ACCEPTABLE');
  if (Number(headers['content-length'] ?? 0) > limits.bodyBytes) throw tooLarge(limits);
}

const OFFERED = ['application/json', 'application/a2a+json', 'text/event-stream'];

function acceptsAny(accept: string | undefined): boolean {
  if (accept === undefined || accept.trim() === '') return true;
  return accept
    .toLowerCase()
    .split(',')
    .some((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
      if (parameters.some((one) => /^q=0(\.0*)?$/.test(one))) return false;
      return (
        type === '*/*' ||
        OFFERED.some((one) => one === type || (type.endsWith('/*') && one.startsWith(type.slice(0, -1))))
      );
    });
}

/**
 * The body's text.
 *
 * @throws {GatewayError} `A2A_TOO_LARGE` while reading; `A2A_SLOW` after 30 s; `A2A_PARSE` for bytes that are not UTF-8
 */
export async function readBody(request: IncomingMessage, limits: BodyLimits, clock: Clock): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  await new Promise<void>((resolve, reject) => {
    const cancel = clock.after(BODY_DEADLINE_MS, () => {
      done(new GatewayError('A2A_SLOW'));
    });
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limits.bodyBytes) done(tooLarge(limits));
      else chunks.push(chunk);
    };
    const onEnd = (): void => {
      done(null);
    };
    const onGone = (): void => {
      done(new GatewayError('A2A_SLOW'));
    };
    const done = (error: GatewayError | null): void => {
      cancel();
      request.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone);
      if (!error) {
        resolve();
        return;
      }
      // What still arrives is not wanted; the answer goes out and the connection closes behind it.
      request.on('error', () => undefined).pause();
      reject(error);
    };
    request.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone);
  });
  try {
    return utf8.decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  } catch (cause) {
    throw new GatewayError('A2A_PARSE', { cause });
  }
}

/**
 * The body as JSON.
 *
 * @throws {GatewayError} `A2A_PARSE` when it is none; `A2A_ENVELOPE` when it is nested too deeply or has a guarded key
 */
export function parseJson(text: string, limits: BodyLimits): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new GatewayError('A2A_PARSE', { cause });
  }
  checkShape(value, limits.jsonDepth);
  return value;
}

/** Walks without recursion, so that depth costs no stack. */
function checkShape(root: unknown, maxDepth: number): void {
  const stack: { value: object; depth: number }[] = [];
  const push = (value: unknown, depth: number): void => {
    if (typeof value !== 'object' || value === null) return;
    if (depth > maxDepth) throw new GatewayError('A2A_ENVELOPE');
    stack.push({ value, depth });
  };
  push(root, 1);
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value, depth } = next;
    if (Array.isArray(value)) {
      for (const item of value) push(item, depth + 1);
      continue;
    }
    // A copy of such a key could reach a prototype.
    if (Object.hasOwn(value, '__proto__')) throw new GatewayError('A2A_ENVELOPE');
    for (const item of Object.values(value)) push(item, depth + 1);
  }
}

function tooLarge({ bodyBytes }: BodyLimits): GatewayError {
  return refusal('A2A_TOO_LARGE', { limit: String(bodyBytes) });
}

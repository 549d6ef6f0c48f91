import { expect } from 'vitest';
import { ERROR_CODES, type ErrorCode } from '../../../src/base/error-codes.js';
import { prefixRange } from '../../../src/store/port.js';
import type { Answer } from './client.js';
import { KEY, OTHER_KEY, type A2ALab } from './lab.js';
import { ASKED_ID, type Way } from './ways.js';

/** A text that stands in requests and nowhere else. */
export const CANARY = 'canary-of-the-request';

/** What a client must be told. */
export interface Refusal {
  /** Whose sentence it is. */
  readonly is: ErrorCode;
  readonly code: number;
  /** HTTP status over JSON-RPC and over HTTP+JSON. */
  readonly http: readonly [rpc: number, rest: number];
  readonly word: string;
  readonly reason?: string;
  /** Of the reason; `band-gateway` unless the protocol has it. */
  readonly domain?: 'a2a-protocol.org';
  readonly metadata?: Readonly<Record<string, string>>;
  /** Violated fields, in order. */
  readonly fields?: readonly string[];
  /** Another sentence than that of the code. */
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The id that is echoed; null where the body was not read by then, or has none. */
  readonly id?: string | number | null;
}

const PROTOCOL = { domain: 'a2a-protocol.org' } as const;
const own = (is: ErrorCode, rpc: number, rest: number, word: string, reason: string): Refusal => ({
  is,
  code: -32000,
  http: [rpc, rest],
  word,
  reason,
});
const ofProtocol = (is: ErrorCode, code: number, rest: number, word: string, reason: string): Refusal => ({
  is,
  code,
  http: [200, rest],
  word,
  reason,
  ...PROTOCOL,
});
const plain = (is: ErrorCode, code: number, rpc: number, rest: number): Refusal => ({
  is,
  code,
  http: [rpc, rest],
  word: 'INVALID_ARGUMENT',
});

/** The rows of the fault table, as the wire must have them. */
export const REFUSALS = {
  parse: { ...plain('A2A_PARSE', -32700, 200, 400), id: null },
  envelope: plain('A2A_ENVELOPE', -32600, 200, 400),
  method: { ...plain('A2A_METHOD_UNKNOWN', -32601, 200, 404), word: 'NOT_FOUND' },
  route: own('A2A_ROUTE_UNKNOWN', 404, 404, 'NOT_FOUND', 'ROUTE_UNKNOWN'),
  httpMethod: own('A2A_METHOD_NOT_ALLOWED', 405, 405, 'UNIMPLEMENTED', 'METHOD_NOT_ALLOWED'),
  version: {
    ...ofProtocol('A2A_VERSION', -32009, 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'),
    metadata: { supported: '1.0, 0.3' },
  },
  requestType: { ...plain('A2A_REQUEST_TYPE', -32600, 415, 415), id: null },
  notAcceptable: { ...plain('A2A_NOT_ACCEPTABLE', -32600, 406, 406), id: null },
  encoded: { ...plain('A2A_ENCODED', -32600, 415, 415), id: null },
  tooLarge: { ...own('A2A_TOO_LARGE', 413, 413, 'INVALID_ARGUMENT', 'PAYLOAD_TOO_LARGE'), id: null },
  params: plain('A2A_PARAMS', -32602, 200, 400),
  contentType: ofProtocol('A2A_CONTENT_TYPE', -32005, 400, 'INVALID_ARGUMENT', 'CONTENT_TYPE_NOT_SUPPORTED'),
  taskUnknown: ofProtocol('A2A_TASK_UNKNOWN', -32001, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'),
  taskEnded: ofProtocol('A2A_TASK_ENDED', -32004, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'),
  taskOver: ofProtocol('A2A_TASK_OVER', -32004, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'),
  taskBusy: { is: 'A2A_TASK_BUSY', code: -32004, http: [200, 400], word: 'FAILED_PRECONDITION', reason: 'TASK_BUSY' },
  notCancelable: ofProtocol('A2A_NOT_CANCELABLE', -32002, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'),
  idReused: {
    is: 'A2A_MESSAGE_ID_REUSED',
    code: -32602,
    http: [200, 409],
    word: 'ALREADY_EXISTS',
    reason: 'MESSAGE_ID_REUSED',
  },
  push: ofProtocol('A2A_PUSH_UNSUPPORTED', -32003, 400, 'FAILED_PRECONDITION', 'PUSH_NOTIFICATION_NOT_SUPPORTED'),
  noExtendedCard: ofProtocol(
    'A2A_NO_EXTENDED_CARD',
    -32007,
    400,
    'FAILED_PRECONDITION',
    'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
  ),
  unauthenticated: { ...own('A2A_UNAUTHENTICATED', 401, 401, 'UNAUTHENTICATED', 'UNAUTHENTICATED'), id: null },
  scope: own('A2A_SCOPE', 403, 403, 'PERMISSION_DENIED', 'PERMISSION_DENIED'),
  peerUnknown: { ...own('A2A_PEER_UNKNOWN', 404, 404, 'NOT_FOUND', 'PEER_UNKNOWN'), id: null },
  rateLimited: { ...own('A2A_RATE_LIMITED', 429, 429, 'RESOURCE_EXHAUSTED', 'RATE_LIMITED'), id: null },
  streamLimit: own('A2A_STREAM_LIMIT', 429, 429, 'RESOURCE_EXHAUSTED', 'STREAM_LIMIT'),
  contextBusy: own('A2A_CONTEXT_BUSY', 200, 409, 'ABORTED', 'CONTEXT_BUSY'),
  taskLimit: own('A2A_TASK_LIMIT', 429, 429, 'RESOURCE_EXHAUSTED', 'TASK_LIMIT'),
  capacity: own('A2A_CAPACITY', 503, 503, 'UNAVAILABLE', 'CAPACITY'),
  notReady: own('A2A_NOT_READY', 503, 503, 'UNAVAILABLE', 'NOT_READY'),
  bandDown: own('A2A_BAND_DOWN', 503, 503, 'UNAVAILABLE', 'BAND_UNAVAILABLE'),
  storeDown: own('A2A_STORE_DOWN', 503, 503, 'UNAVAILABLE', 'STORE_UNAVAILABLE'),
  stopping: { ...own('A2A_STOPPING', 503, 503, 'UNAVAILABLE', 'SHUTTING_DOWN'), id: null },
} as const satisfies Record<string, Refusal>;

/** Every way must be refused alike, word for word, and leave nothing behind: no call of Band, no record, no line. */
export async function expectRefused(
  lab: A2ALab,
  ways: readonly Way[],
  refusal: Refusal,
  { peer = 'helper', headers = {} }: { peer?: string; headers?: Record<string, string> } = {},
): Promise<void> {
  expect(ways.length).toBeGreaterThan(0);
  const before = await traces(lab);
  const since = lab.lines.length;
  for (const way of ways) {
    const answer = await way.ask(lab.client, peer, { headers });
    expect([way.name, answer.status, answer.body]).toEqual([way.name, ...wanted(way, refusal, answer)]);
    const type = way.style === 'rpc' ? 'application/json' : 'application/a2a+json';
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': type,
      'cache-control': 'no-store',
      ...refusal.headers,
    });
    expectSilent(answer.text);
  }
  expect(await traces(lab)).toEqual(before);
  for (const line of lab.lines.slice(since)) {
    expectSilent(JSON.stringify(line));
    expect([line, Number(line['level']) < 30]).toEqual([line, true]);
  }
}

/** Nothing of the request's text and no credential stands in what is shown or logged. */
export function expectSilent(text: string): void {
  for (const secret of [CANARY, KEY, OTHER_KEY, 'band_a_canary']) expect(text).not.toContain(secret);
  expect(text).not.toMatch(/canary-exception-text|\bat .*\.[jt]s:\d|node_modules|cccccccc-/);
}

function wanted({ style }: Way, refusal: Refusal, { body }: Answer): [number, object] {
  const [rpc, rest] = refusal.http;
  const message = refusal.message ?? ERROR_CODES[refusal.is].text;
  const details = detailsOf(refusal, body);
  if (style === 'rest') return [rest, { error: { code: rest, status: refusal.word, message, details } }];
  const error = { code: refusal.code, message, ...(details.length > 0 && { data: details }) };
  return [rpc, { jsonrpc: '2.0', id: refusal.id === undefined ? ASKED_ID : refusal.id, error }];
}

function detailsOf({ reason, domain, metadata, fields }: Refusal, body: Answer['body']): object[] {
  const said = body.error?.data ?? body.error?.details ?? [];
  return [
    ...(reason === undefined
      ? []
      : [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason,
            domain: domain ?? 'band-gateway',
            ...(metadata && { metadata }),
          },
        ]),
    ...(fields === undefined
      ? []
      : [
          {
            '@type': 'type.googleapis.com/google.rpc.BadRequest',
            // What is wrong with a field is said in words; the path is what a program reads.
            fieldViolations: fields.map((field, at) => ({
              field,
              description: said[reason === undefined ? 0 : 1]?.fieldViolations[at]?.description,
            })),
          },
        ]),
  ];
}

/** All that a request can leave behind. */
async function traces(lab: A2ALab): Promise<object> {
  const stored = await lab.store.range({ ...prefixRange(''), limit: 10_000 });
  return {
    stored: stored.map(({ key, revision }) => [key, revision]),
    writes: lab.rooms.writes.length,
    held: lab.engine.held,
  };
}

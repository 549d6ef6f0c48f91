import { z } from 'zod';
import { isLegacyJsonRpcMethod, legacyJsonRpcToV1Method } from '@a2a-js/sdk/compat/v0_3';
import { GatewayError } from '../../src/base/errors.js';
import { invalidFields, type FieldViolation } from './errors.js';
import { TASK_STATES } from './wire.js';

/** Requests, checked field by field before a codec sees them: the codecs accept almost anything. */

export const METHODS = [
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'GetExtendedAgentCard',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
] as const;
export type Method = (typeof METHODS)[number];

/** The operation that a JSON-RPC method names in a dialect, or null. */
export function methodOf(name: string, dialect: '1.0' | '0.3'): Method | null {
  const current = dialect === '1.0' ? name : isLegacyJsonRpcMethod(name) ? legacyJsonRpcToV1Method(name) : null;
  // The SDK's table also answers to what every object has, e.g. `constructor`.
  return METHODS.find((method) => method === current) ?? null;
}

export interface ParseLimits {
  readonly parts: number;
  readonly idChars: number;
  readonly metadataBytes: number;
}

export interface RequestSchemas {
  /** Checked parameters in the dialect's own spelling, defaults of the dialect filled in. */
  parse(method: Method, dialect: '1.0' | '0.3', params: unknown): Record<string, unknown>;
}

const MAX_URL_CHARS = 2_048;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;

export function createRequestSchemas(limits: ParseLimits): RequestSchemas {
  const id = z
    .string()
    .min(1, 'must not be empty')
    .max(limits.idChars, `must not exceed ${limits.idChars} characters`)
    .refine((text) => !/\p{Cc}/u.test(text), 'must not hold control characters')
    // Half a surrogate pair has no bytes of its own, so two ids that differ in one would be the same record.
    .refine((text) => !/\p{Cs}/u.test(text), 'must be well-formed text');
  // The wire's null and empty text both say "not set".
  const optionalId = z.preprocess((value) => (value === '' || value === null ? undefined : value), id.optional());
  const metadata = z
    .record(z.string(), z.unknown())
    .nullish()
    .refine(
      (value) => value == null || Buffer.byteLength(JSON.stringify(value)) <= limits.metadataBytes,
      `must not exceed ${limits.metadataBytes} bytes`,
    );
  const strings = z.array(z.string()).nullish();
  const historyLength = z.int('must be a whole number').min(0, 'must not be negative').nullish();
  const url = z
    .string()
    .max(MAX_URL_CHARS, `must not exceed ${MAX_URL_CHARS} characters`)
    .refine(isWebUrl, 'must be an http or https URL');
  const base64 = z.string().refine(isBase64, 'must be base64');
  const pushConfig = z.record(z.string(), z.unknown()).nullish();

  const partV1 = z
    .object({
      text: z.string().nullish(),
      raw: base64.nullish(),
      url: url.nullish(),
      data: z.unknown().optional(),
      filename: z.string().nullish(),
      mediaType: z.string().nullish(),
      metadata,
    })
    .refine(
      (part) => [part.text, part.raw, part.url, part.data].filter((one) => one != null).length === 1,
      'must hold exactly one of text, raw, url and data',
    );
  const partV03 = z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('text'), text: z.string(), metadata }),
    z.object({ kind: z.literal('data'), data: z.unknown().refine((data) => data != null, 'must be set'), metadata }),
    z.object({
      kind: z.literal('file'),
      file: z
        .object({
          bytes: base64.optional(),
          uri: url.optional(),
          name: z.string().nullish(),
          mimeType: z.string().nullish(),
        })
        .refine((file) => (file.bytes === undefined) !== (file.uri === undefined), 'must hold one of bytes and uri'),
      metadata,
    }),
  ]);

  const messageOf = <P extends z.ZodType, R extends z.ZodType>(part: P, role: R) =>
    z.object({
      messageId: id,
      role,
      parts: z
        .array(part)
        .min(1, 'must not be empty')
        .max(limits.parts, `must not hold more than ${limits.parts} parts`),
      contextId: optionalId,
      taskId: optionalId,
      metadata,
      extensions: strings,
      referenceTaskIds: strings,
    });
  const v1Role = z.union([z.literal('ROLE_USER'), z.literal(1)], 'must be ROLE_USER').transform(() => 'ROLE_USER');

  const sendV1 = z.object({
    message: messageOf(partV1, v1Role),
    configuration: z
      .object({
        acceptedOutputModes: strings,
        historyLength,
        returnImmediately: z.boolean().nullish(),
        taskPushNotificationConfig: pushConfig,
      })
      .nullish(),
    metadata,
  });
  const sendV03 = z.object({
    message: messageOf(partV03, z.literal('user', 'must be user')).extend({ kind: z.literal('message').optional() }),
    configuration: z
      .object({
        acceptedOutputModes: strings,
        historyLength,
        // The codec reads an absent value as false; the protocol waits unless told otherwise.
        blocking: z
          .boolean()
          .nullish()
          .transform((value) => value ?? true),
        pushNotificationConfig: pushConfig,
      })
      .nullish(),
    metadata,
  });
  const noState = 'must be a task state';
  const state = z
    .union([z.enum(TASK_STATES), z.int().min(1, noState).max(TASK_STATES.length, noState)], noState)
    .transform((value) => (typeof value === 'number' ? PROTO_STATES[value] : value));
  const list = z.object({
    contextId: optionalId,
    status: z.preprocess(
      (value) => (value === 0 || value === 'TASK_STATE_UNSPECIFIED' ? undefined : value),
      state.nullish(),
    ),
    pageSize: z.int('must be a whole number').min(1, 'must be at least 1').max(100, 'must not exceed 100').nullish(),
    pageToken: z.string().max(4_096, 'is too long').nullish(),
    historyLength,
    statusTimestampAfter: z.string().refine(isTimestamp, 'must be an RFC 3339 timestamp').nullish(),
    includeArtifacts: z.boolean().nullish(),
  });

  const byTask = z.object({ id, historyLength, metadata });
  const schemas: Partial<Record<Method, { v1: z.ZodType; v03: z.ZodType | null }>> = {
    SendMessage: { v1: sendV1, v03: sendV03 },
    SendStreamingMessage: { v1: sendV1, v03: sendV03 },
    GetTask: { v1: byTask, v03: byTask },
    ListTasks: { v1: list, v03: null },
    CancelTask: { v1: z.object({ id, metadata }), v03: z.object({ id, metadata }) },
    SubscribeToTask: { v1: z.object({ id }), v03: z.object({ id, metadata }) },
  };

  return {
    parse(method, dialect, params) {
      const schema = dialect === '1.0' ? schemas[method]?.v1 : schemas[method]?.v03;
      // Operations without fields of their own, and those that are refused whatever they carry.
      if (!schema) return {};
      const fields = dialect === '1.0' ? camelCased(params ?? {}) : (params ?? {});
      const parsed = schema.safeParse(fields, { reportInput: true });
      if (!parsed.success) throw invalidFields(violationsOf(parsed.error));
      return withoutNulls(parsed.data) as Record<string, unknown>;
    },
  };
}

const PROTO_STATES: readonly (string | undefined)[] = [
  undefined,
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
];

/** A JSON-RPC envelope with everything a request needs. */
export interface Envelope {
  readonly id: string | number | null;
  readonly method: string;
  readonly params: unknown;
}

/** The id of a body that may be no request at all, so that a refusal can echo it. */
export function usableId(body: unknown): string | number | null {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return null;
  const { id } = body as { id?: unknown };
  return typeof id === 'string' || (typeof id === 'number' && Number.isSafeInteger(id)) ? id : null;
}

/** @throws {GatewayError} `A2A_ENVELOPE` for anything but one JSON-RPC 2.0 request */
export function parseEnvelope(body: unknown): Envelope {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new GatewayError('A2A_ENVELOPE');
  const { jsonrpc, method, params, id } = body as Record<string, unknown>;
  const isIdUsable = id === undefined || id === null || usableId(body) !== null;
  const areParamsUsable =
    params === undefined || (typeof params === 'object' && params !== null && !Array.isArray(params));
  if (jsonrpc !== '2.0' || typeof method !== 'string' || method === '' || !isIdUsable || !areParamsUsable) {
    throw new GatewayError('A2A_ENVELOPE');
  }
  return { id: usableId(body), method, params };
}

function violationsOf(error: z.ZodError): FieldViolation[] {
  return error.issues.map((issue) => ({ field: pathOf(issue.path), description: describe(issue) }));
}

function describe(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type' && issue.input === undefined) return 'is required';
  // What does not begin like this stands in a schema above.
  if (!issue.message.startsWith('Invalid ')) return issue.message;
  return issue.code === 'invalid_type' ? `must be ${typeName(issue.expected)}` : 'is not of a known kind';
}

function typeName(expected: string): string {
  switch (expected) {
    case 'array':
      return 'a list';
    case 'object':
    case 'record':
      return 'an object';
    case 'int':
      return 'a whole number';
    default:
      return `a ${expected}`;
  }
}

function pathOf(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${String(step)}`))
    .join('');
}

/** RFC 3339; the 30th of February and 24:00, which the platform reads as a later day, are none. */
function isTimestamp(text: string): boolean {
  if (!TIMESTAMP.test(text) || Number.isNaN(Date.parse(text))) return false;
  const local = text.slice(0, 'yyyy-mm-ddThh:mm:ss'.length).toUpperCase();
  return new Date(`${local}Z`).toISOString().startsWith(local);
}

function isWebUrl(text: string): boolean {
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return false;
  const { protocol } = new URL(text);
  return protocol === 'http:' || protocol === 'https:';
}

function isBase64(text: string): boolean {
  const body = text.replace(/={1,2}$/, '');
  if (!/^[A-Za-z0-9+/]*$/.test(body) && !/^[A-Za-z0-9_-]*$/.test(body)) return false;
  const padded = text.length !== body.length;
  return padded ? text.length % 4 === 0 : body.length % 4 !== 1;
}

/** The names of proto fields as JSON may also spell them; values below `metadata` and `data` are somebody's own. */
function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased);
  if (typeof value !== 'object' || value === null) return value;
  const out: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    const camel = /^[a-z]+(_[a-z]+)+$/.test(key)
      ? key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      : key;
    if (camel !== key && Object.hasOwn(value, camel)) continue;
    out[camel] = camel === 'metadata' || camel === 'data' ? item : camelCased(item);
  }
  return out;
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== null && item !== undefined)
      .map(([key, item]) => [key, key === 'metadata' || key === 'data' ? item : withoutNulls(item)]),
  );
}

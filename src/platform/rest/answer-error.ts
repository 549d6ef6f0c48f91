import { z } from 'zod';
import { ApiError } from '../../base/band-errors.js';
import type { ErrorCode } from '../../base/error-codes.js';
import { GatewayError } from '../../base/errors.js';

/** Band's error envelope; the fields that a foreign shape may lack are optional. */
const envelopeSchema = z.object({
  error: z.object({
    code: z.string().nullish().catch(null),
    message: z.string().nullish().catch(null),
    request_id: z.string().nullish().catch(null),
  }),
});

/** What a proxy or an older platform answers instead. */
const flatSchema = z.object({ error: z.string(), message: z.string().nullish().catch(null) });

/** Band has no code of its own for a stopped execution; its documented wording opens with this. */
const STOPPED_PREFIX = 'Agent execution is stopped; cannot post';

const MAX_KEPT_TEXT_CHARS = 2_000;

const CODE_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: 'BAND_UNAUTHORIZED',
  403: 'BAND_FORBIDDEN',
  404: 'BAND_NOT_FOUND',
  408: 'BAND_TIMEOUT',
  409: 'BAND_CONFLICT',
  429: 'BAND_RATE_LIMITED',
};

interface ErrorAnswer {
  readonly status: number;
  /** The body's text, free of secrets. */
  readonly text: string;
  readonly retryAfterMs: number | null;
  /** What was asked, e.g. `POST /api/v1/agent/chats`. */
  readonly request: string;
}

/** An answer outside 2xx as the error that its caller meets; any body is survived, an empty one included. */
export function answerError(answer: ErrorAnswer): GatewayError {
  const cause = apiError(answer.status, answer.text);
  const code = codeOf(answer.status, cause);
  return new GatewayError(code, {
    cause,
    ...(answer.retryAfterMs === null ? {} : { retryAfterMs: answer.retryAfterMs }),
    ...(code === 'ROOM_LIMIT' ? { message: 'Band refuses this because a limit of the plan is reached.' } : {}),
    details: {
      request: answer.request,
      status: answer.status,
      ...(cause.code === null ? {} : { bandCode: cause.code }),
      ...(cause.requestId === null ? {} : { requestId: cause.requestId }),
    },
  });
}

function codeOf(status: number, { code, message }: ApiError): ErrorCode {
  if (status === 403 && code === 'limit_reached') return 'ROOM_LIMIT';
  if (status === 403 && message.includes(`: ${STOPPED_PREFIX}`)) return 'BAND_ROOM_STOPPED';
  const known = CODE_BY_STATUS[status];
  if (known) return known;
  if (status >= 500) return 'BAND_UNAVAILABLE';
  // Redirects are not followed: they would carry the key to another address.
  return status >= 400 ? 'BAND_INVALID' : 'BAND_BAD_ANSWER';
}

function apiError(statusCode: number, text: string): ApiError {
  const body = parseJson(text);
  if (body === undefined) {
    // A page of HTML helps nobody in a log line, plain words do.
    const words = text.trim();
    return new ApiError({
      statusCode,
      body: words === '' ? null : words.slice(0, MAX_KEPT_TEXT_CHARS),
      message: words === '' || words.startsWith('<') ? null : words.slice(0, 200),
    });
  }
  const envelope = envelopeSchema.safeParse(body);
  if (envelope.success) {
    const { code, message, request_id } = envelope.data.error;
    return new ApiError({
      statusCode,
      body,
      code: code ?? null,
      requestId: request_id ?? null,
      message: message ?? null,
    });
  }
  const flat = flatSchema.safeParse(body);
  if (flat.success) {
    return new ApiError({
      statusCode,
      body,
      code: flat.data.error,
      message: flat.data.message ?? flat.data.error,
    });
  }
  return new ApiError({ statusCode, body });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // not JSON, which is one of the shapes to survive
  }
}

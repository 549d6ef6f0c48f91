import { randomBytes } from 'node:crypto';
import { Problem } from './world/problem.js';

/** What a call is answered with. */
export interface Answer {
  readonly status: number;
  /** Finished text; null for no body. */
  readonly body: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export const noContent: Answer = { status: 204, body: null };

export function json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): Answer {
  return { status, body: JSON.stringify(body), ...(headers ? { headers } : {}) };
}

export const data = (value: unknown, status = 200): Answer => json(status, { data: value });

/** Unlike any other in this process and its life, which is all that a person reading a log wants of it. */
export const newRequestId = (): string => `${RUN}${(requests += 1).toString(36).padStart(6, '0')}`;

const RUN = randomBytes(6).toString('base64url');
let requests = 0;

/** The one shape of every refusal (Band API: error envelope). */
export function errorBody(problem: Problem, requestId: string | null): object {
  return {
    error: {
      code: problem.code,
      message: problem.message,
      request_id: requestId,
      ...(problem.details ? { details: problem.details } : {}),
    },
  };
}

export function refusal(problem: Problem, requestId: string): Answer {
  return json(problem.status, errorBody(problem, requestId));
}

const CODE_BY_STATUS: Readonly<Record<number, string>> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  413: 'payload_too_large',
  422: 'validation_error',
  429: 'too_many_requests',
  500: 'internal_error',
  503: 'service_unavailable',
};

/** A refusal by its status alone, for answers that a test asked for. */
export function problemOf(status: number, message: string): Problem {
  return new Problem(status, CODE_BY_STATUS[status] ?? 'error', message);
}

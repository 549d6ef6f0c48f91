import { request } from 'undici';

export interface RestAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** Parsed JSON; null without a body or when it is none. */
  readonly body: unknown;
}

/** One REST call, nothing hidden. */
export async function callRest(
  restUrl: string,
  method: string,
  path: string,
  apiKey: string | null,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<RestAnswer> {
  const answer = await request(`${restUrl}${path}`, {
    method: method as 'GET',
    headers: {
      ...(apiKey === null ? {} : { 'x-api-key': apiKey }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? null : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, headers: answer.headers, text, body: parsed(text) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

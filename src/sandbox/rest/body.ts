import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { problemOf } from '../answer.js';
import { badRequest, Problem } from '../world/problem.js';

/** The largest legal body is a message of 512 KiB whose every byte is escaped. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * Reads a request to its end and parses it as JSON. No body at all is fine whatever the headers say.
 *
 * @param done - gets the value, or the {@link Problem}: 413, or 400 for what is not JSON in UTF-8
 */
export function readJson(request: IncomingMessage, done: (problem: Problem | null, body: unknown) => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  let settled = false;
  const settle = (problem: Problem | null, body: unknown) => {
    if (settled) return;
    settled = true;
    done(problem, body);
  };
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) {
    settle(problemOf(413, 'Request body is too large'), undefined);
    return;
  }
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) settle(problemOf(413, 'Request body is too large'), undefined);
    else chunks.push(chunk);
  });
  request.on('end', () => {
    if (size === 0) {
      settle(null, undefined);
      return;
    }
    let body: unknown;
    try {
      body = JSON.parse(utf8.decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    } catch {
      settle(badRequest('Malformed JSON'), undefined);
      return;
    }
    settle(null, body);
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws {Problem} 422 with a pointer to every invalid field */
export function parseBody<S extends z.ZodType>(schema: S, body: unknown): z.infer<S> {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return parsed.data;
  const details: Record<string, string[]> = {};
  for (const issue of parsed.error.issues) {
    const pointer = `/${issue.path.map(String).join('/')}`;
    (details[pointer] ??= []).push(issue.message);
  }
  throw new Problem(422, 'validation_error', 'Validation failed', details);
}

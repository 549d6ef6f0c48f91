import { z } from 'zod';
import { isUuid } from '../../base/ids.js';
import type { Answered } from '../world/paging.js';
import { invalid } from '../world/problem.js';
import { json, type Answer } from '../answer.js';

/** Pieces that the request schemas of both surfaces share. */

/** A lone half of a surrogate pair cannot be written as UTF-8, so it becomes U+FFFD at the door. */
const wellFormed = (value: string): string =>
  value.replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, '\uFFFD');

export const text = z.string({ error: 'is invalid' }).transform(wellFormed);

export const requiredText = z.string({ error: "can't be blank" }).transform(wellFormed);

export const uuid = z
  .string({ error: 'is invalid' })
  .refine(isUuid, { error: 'is invalid' })
  .transform((value) => value.toLowerCase());

const object = { error: 'must be an object' };

export const newChat = z.object(
  { chat: z.object({ title: text.nullish(), task_id: uuid.nullish() }, object).nullish() },
  object,
);

export const renamedChat = z.object({ chat: z.object({ title: requiredText }, object) }, object);

export const newMessage = z.object(
  {
    message: z.object(
      {
        content: requiredText,
        // Each entry is checked against the room, with codes of its own.
        mentions: z.array(z.unknown(), { error: 'must be a list' }).nullish(),
        attachment_ids: z.array(uuid, { error: 'must be a list' }).optional(),
      },
      object,
    ),
  },
  object,
);

export const newParticipant = z.object(
  {
    participant: z.object(
      {
        participant_id: uuid,
        role: z.enum(['owner', 'admin', 'member'], { error: 'is invalid' }).nullish(),
      },
      object,
    ),
  },
  object,
);

/** A list answer of an endpoint with both paging families. */
export function bothFamilies(
  answered: Answered<unknown>,
  rows: readonly unknown[],
  extra: Readonly<Record<string, unknown>> = {},
): { answer: Answer; metadata: object } {
  const metadata = { ...answered.cursors, ...answered.pages, ...extra };
  return { answer: json(200, { data: rows, metadata }, deprecation(answered)), metadata };
}

/** The page family ends on this day where cursors exist. */
export function deprecation(answered: Answered<unknown>): Record<string, string> | undefined {
  return answered.deprecated ? { Deprecation: 'true', Sunset: 'Thu, 01 Oct 2026 00:00:00 GMT' } : undefined;
}

/** A query value that has to be one of a set; null when absent or empty. */
export function choice<T extends string>(query: URLSearchParams, name: string, values: readonly T[]): T | null {
  const value = query.get(name);
  if (value === null || value === '') return null;
  const found = values.find((known) => known === value);
  if (found === undefined) throw invalid(`/${name}`, 'is invalid');
  return found;
}

export function queryUuid(query: URLSearchParams, name: string): string | null {
  const value = query.get(name);
  if (value === null || value === '') return null;
  if (!isUuid(value)) throw invalid(`/${name}`, 'is invalid');
  return value.toLowerCase();
}

export function queryBoolean(query: URLSearchParams, name: string): boolean | null {
  const value = choice(query, name, ['true', 'false']);
  return value === null ? null : value === 'true';
}

/** @returns the moment in the platform's own spelling, so that it compares with others as text */
export function queryMoment(query: URLSearchParams, name: string): string | null {
  const value = query.get(name);
  if (value === null || value === '') return null;
  // A plus sign that was not encoded arrives as a space.
  const found = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+ -]\d\d:?\d\d)?$/i.exec(value);
  const zone = (found?.[4] ?? 'Z').replace(' ', '+');
  const seconds = found ? Date.parse(`${found[1] ?? ''}T${found[2] ?? ''}${zone}`) : NaN;
  if (!found || Number.isNaN(seconds)) throw invalid(`/${name}`, 'is invalid');
  const fraction = (found[3] ?? '').slice(0, 6).padEnd(6, '0');
  return `${new Date(seconds).toISOString().slice(0, 19)}.${fraction}Z`;
}

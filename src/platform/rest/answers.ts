import { z } from 'zod';
import type { Logger } from '../../base/log.js';
import type { CursorPage, Page } from './band-rest.js';
import { badAnswer, type RestAnswer } from './transport.js';

/** Answers of Band's API taken apart: `{ data }`, and for lists `{ data, metadata }`. */

const listSchema = z.looseObject({ data: z.array(z.unknown()), metadata: z.unknown().optional() });
const pageMetadataSchema = z.looseObject({
  page: z.int().nullish().catch(null),
  page_size: z.int().nullish().catch(null),
  total_count: z.int().nullish().catch(null),
  total_pages: z.int().nullish().catch(null),
});
const cursorMetadataSchema = z.looseObject({
  has_more: z.boolean().nullish().catch(null),
  next_cursor: z.string().nullish().catch(null),
});

/** @throws {GatewayError} `BAND_BAD_ANSWER` when there is no `data` of that shape */
export function dataOf<T>(answer: RestAnswer, schema: z.ZodType<T>): T {
  const { json } = answer;
  if (typeof json !== 'object' || json === null || !('data' in json)) {
    throw badAnswer(answer.request, 'there is no data');
  }
  const data = schema.safeParse(json.data);
  if (!data.success) throw badAnswer(answer.request, 'the data has another shape', data.error);
  return data.data;
}

/**
 * The rows of a list. A row of another shape is left out and logged: one bad row must not hide the others.
 *
 * @throws {GatewayError} `BAND_BAD_ANSWER` when there is no list at all
 */
export function rowsOf<T>(answer: RestAnswer, schema: z.ZodType<T>, log: Logger): { rows: T[]; metadata: unknown } {
  const list = listSchema.safeParse(answer.json);
  if (!list.success) throw badAnswer(answer.request, 'there is no list', list.error);
  const rows: T[] = [];
  for (const item of list.data.data) {
    const row = schema.safeParse(item);
    if (row.success) rows.push(row.data);
    else log.warn({ request: answer.request, problem: z.prettifyError(row.error) }, 'row of a band list left out');
  }
  return { rows, metadata: list.data.metadata };
}

/** A page as asked for; totals that the answer leaves out are guessed so that a walk goes on while pages are full. */
export function pageOf<T>(
  answer: RestAnswer,
  schema: z.ZodType<T>,
  asked: { page?: number | undefined; pageSize?: number | undefined },
  log: Logger,
): Page<T> {
  const { rows, metadata } = rowsOf(answer, schema, log);
  const known = pageMetadataSchema.catch({}).parse(metadata);
  const page = known.page ?? asked.page ?? 1;
  const pageSize = known.page_size ?? asked.pageSize ?? 20;
  return {
    data: rows,
    page,
    pageSize,
    totalCount: known.total_count ?? rows.length,
    totalPages: known.total_pages ?? (rows.length < pageSize ? page : page + 1),
  };
}

export function cursorPageOf<T>(answer: RestAnswer, schema: z.ZodType<T>, log: Logger): CursorPage<T> {
  const { rows, metadata } = rowsOf(answer, schema, log);
  const known = cursorMetadataSchema.catch({}).parse(metadata);
  const nextCursor = known.next_cursor ?? null;
  return { data: rows, hasMore: (known.has_more ?? nextCursor !== null) && nextCursor !== null, nextCursor };
}

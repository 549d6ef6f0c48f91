import { invalid, Problem } from './problem.js';

export const MAX_PAGE_SIZE = 100;

/** What a caller asks of a list: one page by number, or what comes after a cursor. */
export type Ask =
  | { readonly kind: 'page'; readonly page: number; readonly size: number; readonly explicit: boolean }
  | { readonly kind: 'cursor'; readonly after: string; readonly size: number };

/**
 * Reads paging parameters. Out of range values are clamped.
 *
 * @param families - `page` knows `page` and `page_size` only; `both` prefers `cursor` and `limit`
 * @param filters - name of the list with its filters and order: a cursor is good for the same ones only
 * @throws {Problem} 422 for values that are no numbers, a bad cursor, or parameters of both families
 */
export function readAsk(query: URLSearchParams, families: 'page' | 'both', filters: string, defaultSize = 20): Ask {
  const asksPage = query.has('page') || query.has('page_size');
  if (families === 'both') {
    const cursor = query.get('cursor');
    if (asksPage && (cursor !== null || query.has('limit'))) {
      throw new Problem(422, 'validation_error', 'Use either cursor and limit, or page and page_size', {
        '/page': ['cannot be combined with cursor pagination'],
      });
    }
    const limit = readInteger(query, 'limit', defaultSize, MAX_PAGE_SIZE);
    if (cursor !== null && cursor !== '') return { kind: 'cursor', after: openCursor(cursor, filters), size: limit };
    if (!asksPage) return { kind: 'page', page: 1, size: limit, explicit: false };
  }
  return {
    kind: 'page',
    page: readInteger(query, 'page', 1, Number.MAX_SAFE_INTEGER),
    size: readInteger(query, 'page_size', defaultSize, MAX_PAGE_SIZE),
    explicit: asksPage,
  };
}

/** A list that can be read from any place: rows in order, each with a place of its own that survives changes. */
export interface Listing<Row> {
  readonly total: number;
  /** Rows after a place; from the first one when it is null. A place that cannot be read ends in a {@link Problem}. */
  after(place: string | null): Iterable<Row>;
  placeOf(row: Row): string;
}

export interface Answered<Row> {
  readonly rows: Row[];
  readonly pages: { page: number; page_size: number; total_count: number; total_pages: number };
  readonly cursors: { has_more: boolean; limit: number; next_cursor: string | null };
  /** The caller used the family that is going to end. */
  readonly deprecated: boolean;
}

/** Answers an ask from a listing, for either family. */
export function answerAsk<Row>(ask: Ask, listing: Listing<Row>, filters: string): Answered<Row> {
  const skip = ask.kind === 'page' ? (ask.page - 1) * ask.size : 0;
  const rows: Row[] = [];
  let hasMore = false;
  if (skip < listing.total) {
    let seen = 0;
    for (const row of listing.after(ask.kind === 'cursor' ? ask.after : null)) {
      seen += 1;
      if (seen <= skip) continue;
      if (rows.length === ask.size) {
        hasMore = true;
        break;
      }
      rows.push(row);
    }
  }
  const last = rows.at(-1);
  return {
    rows,
    pages: {
      page: ask.kind === 'page' ? ask.page : 1,
      page_size: ask.size,
      total_count: listing.total,
      total_pages: Math.max(1, Math.ceil(listing.total / ask.size)),
    },
    cursors: {
      has_more: hasMore,
      limit: ask.size,
      next_cursor: hasMore && last !== undefined ? sealCursor(listing.placeOf(last), filters) : null,
    },
    deprecated: ask.kind === 'page' && ask.explicit,
  };
}

/** A listing over rows in memory; places are made of a sort value and an id, and compare like them. */
export function sortedListing<Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => { readonly sort: string; readonly id: string },
  order: 'asc' | 'desc',
): Listing<Row> {
  const sign = order === 'asc' ? 1 : -1;
  const compare = (a: { sort: string; id: string }, b: { sort: string; id: string }) =>
    sign * (compareText(a.sort, b.sort) || compareText(a.id, b.id));
  const sorted = [...rows].sort((a, b) => compare(keyOf(a), keyOf(b)));
  return {
    total: sorted.length,
    after(place) {
      if (place === null) return sorted;
      const [id, sort] = splitOnce(place);
      return sorted.filter((row) => compare(keyOf(row), { sort, id }) > 0);
    },
    placeOf: (row) => `${keyOf(row).id} ${keyOf(row).sort}`,
  };
}

/** A listing in the order given, for lists without cursors. */
export function plainListing<Row>(rows: readonly Row[]): Listing<Row> {
  return { total: rows.length, after: () => rows, placeOf: () => '' };
}

export const badCursor = () => invalid('/cursor', 'is invalid');

function readInteger(query: URLSearchParams, name: string, fallback: number, max: number): number {
  const text = query.get(name);
  if (text === null || text === '') return fallback;
  if (!/^[+-]?\d+$/.test(text)) throw invalid(`/${name}`, 'must be an integer');
  return Math.min(max, Math.max(1, Number(text)));
}

function sealCursor(place: string, filters: string): string {
  return Buffer.from(JSON.stringify([filters, place])).toString('base64url');
}

function openCursor(cursor: string, filters: string): string {
  let opened: unknown;
  try {
    opened = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw badCursor();
  }
  if (!Array.isArray(opened) || opened[0] !== filters || typeof opened[1] !== 'string') throw badCursor();
  return opened[1];
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function splitOnce(text: string): [string, string] {
  const at = text.indexOf(' ');
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

import type { CallOptions, CursorOptions, CursorPage, Page, PageOptions } from './band-rest.js';

const LARGEST_PAGE = 100;
const MAX_PAGES = 50;

interface WalkOptions extends CallOptions {
  /** Rows asked for per call, at most 100; default 100. */
  readonly pageSize?: number;
  /** Calls at most; default 50. */
  readonly maxPages?: number;
}

/** What a walk found, and whether it saw the end. */
interface Walked<T> {
  readonly items: readonly T[];
  /** False when the walk ended at `maxPages` with more to come. */
  readonly complete: boolean;
}

/**
 * Reads a list of the page family to its end. Rows with an id are merged by it: a list that grows meanwhile shows the
 * row at a page's edge twice.
 */
export async function walkPages<T extends { readonly id?: unknown }>(
  fetchPage: (options: PageOptions) => Promise<Page<T>>,
  { pageSize = LARGEST_PAGE, maxPages = MAX_PAGES, ...call }: WalkOptions = {},
): Promise<Walked<T>> {
  const found = new Merged<T>();
  for (let page = 1; page <= maxPages; page += 1) {
    const answer = await fetchPage({ ...call, page, pageSize });
    found.add(answer.data);
    if (answer.data.length === 0 || page >= answer.totalPages) return found.walked(true);
  }
  return found.walked(false);
}

/** Reads a list of the cursor family to its end, merged by id like {@link walkPages}. */
export async function walkCursor<T extends { readonly id?: unknown }>(
  fetchPage: (options: CursorOptions) => Promise<CursorPage<T>>,
  { pageSize = LARGEST_PAGE, maxPages = MAX_PAGES, ...call }: WalkOptions = {},
): Promise<Walked<T>> {
  const found = new Merged<T>();
  let cursor: string | undefined;
  for (let pages = 1; pages <= maxPages; pages += 1) {
    const answer = await fetchPage({ ...call, limit: pageSize, ...(cursor === undefined ? {} : { cursor }) });
    found.add(answer.data);
    if (!answer.hasMore || answer.nextCursor === null) return found.walked(true);
    // A cursor that leads to itself would be walked for ever.
    if (answer.nextCursor === cursor) return found.walked(false);
    cursor = answer.nextCursor;
  }
  return found.walked(false);
}

/** Rows in the order they were first seen. */
class Merged<T extends { readonly id?: unknown }> {
  readonly #byId = new Map<unknown, T>();

  add(rows: readonly T[]): void {
    for (const row of rows) {
      const key = row.id ?? row;
      if (!this.#byId.has(key)) this.#byId.set(key, row);
    }
  }

  walked(complete: boolean): Walked<T> {
    return { items: [...this.#byId.values()], complete };
  }
}

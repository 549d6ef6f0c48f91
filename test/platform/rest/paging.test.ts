import { describe, expect, it } from 'vitest';
import type { CursorOptions, PageOptions } from '../../../src/platform/rest/band-rest.js';
import { walkCursor, walkPages } from '../../../src/platform/rest/paging.js';

const rows = (from: number, count: number) => Array.from({ length: count }, (_, i) => ({ id: String(from + i) }));

describe('a walk of pages', () => {
  const list =
    (total: number, calls: PageOptions[] = []) =>
    (options: PageOptions) => {
      calls.push(options);
      const { page = 1, pageSize = 20 } = options;
      const from = (page - 1) * pageSize;
      return Promise.resolve({
        data: rows(from, Math.max(0, Math.min(pageSize, total - from))),
        page,
        pageSize,
        totalCount: total,
        totalPages: Math.max(1, Math.ceil(total / pageSize)),
      });
    };

  it('reads 250 rows in three calls of a hundred', async () => {
    const calls: PageOptions[] = [];
    const { items, complete } = await walkPages(list(250, calls));
    expect(items).toHaveLength(250);
    expect(complete).toBe(true);
    expect(calls.map(({ page, pageSize }) => [page, pageSize])).toEqual([
      [1, 100],
      [2, 100],
      [3, 100],
    ]);
  });

  it('ends at its bound and says that there is more', async () => {
    const { items, complete } = await walkPages(list(1_000), { pageSize: 10, maxPages: 3 });
    expect(items).toHaveLength(30);
    expect(complete).toBe(false);
  });

  it('merges a row that moved to the next page meanwhile', async () => {
    const { items } = await walkPages((options: PageOptions) =>
      Promise.resolve({
        data: options.page === 1 ? rows(0, 3) : rows(2, 3),
        page: options.page ?? 1,
        pageSize: 3,
        totalCount: 5,
        totalPages: 2,
      }),
    );
    expect(items.map(({ id }) => id)).toEqual(['0', '1', '2', '3', '4']);
  });
});

describe('a walk of cursors', () => {
  const list =
    (total: number, next: (at: number) => string | null) =>
    ({ cursor, limit = 20 }: CursorOptions) => {
      const at = Number(cursor ?? 0);
      const hasMore = at + limit < total;
      return Promise.resolve({ data: rows(at, Math.min(limit, total - at)), hasMore, nextCursor: next(at + limit) });
    };

  it('follows them to the end', async () => {
    expect(await walkCursor(list(250, String))).toMatchObject({ complete: true, items: { length: 250 } });
  });

  it('does not walk a cursor that leads to itself for ever', async () => {
    const { complete, items } = await walkCursor(list(250, () => '100'));
    expect(complete).toBe(false);
    expect(items.length).toBeLessThanOrEqual(250);
  });
});

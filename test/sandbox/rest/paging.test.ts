import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { metadataOf, rowsOf, sandboxLab, verdictOf, type Caller } from '../../support/sandbox-lab.js';

const ids = (rows: Record<string, unknown>[]) => rows.map(({ id }) => id);

/** All rows by cursor, in pages of `limit`. */
async function walk(caller: Caller, path: string, limit: number) {
  const rows: Record<string, unknown>[] = [];
  const join = path.includes('?') ? '&' : '?';
  for (let cursor: string | null = null; ;) {
    const query: string = cursor === null ? `limit=${limit}` : `limit=${limit}&cursor=${encodeURIComponent(cursor)}`;
    const answer = await caller.get(`${path}${join}${query}`);
    rows.push(...rowsOf(answer));
    const metadata = metadataOf(answer);
    if (metadata['has_more'] !== true) {
      expect(metadata['next_cursor']).toBeNull();
      return rows;
    }
    cursor = String(metadata['next_cursor']);
  }
}

describe('pages', () => {
  it('hand out 100 rows when 100 are asked for, and 250 peers in three pages', async () => {
    const { sandbox, echo } = await sandboxLab();
    for (let n = 0; n < 246; n += 1) {
      sandbox.dev.addAgent({ ownerHandle: 'demo', name: `Peer ${n}`, description: 'one of many' });
    }
    const sizes: number[] = [];
    const seen = new Set<unknown>();
    for (let page = 1; page <= 4; page += 1) {
      const answer = await echo.get(`/peers?page=${page}&page_size=100`);
      sizes.push(rowsOf(answer).length);
      for (const id of ids(rowsOf(answer))) seen.add(id);
      expect(metadataOf(answer)).toEqual({ page, page_size: 100, total_count: 251, total_pages: 3 });
    }
    expect(sizes).toEqual([100, 100, 51, 0]);
    expect(seen.size).toBe(251);
  });

  it.each([
    ['page=0&page_size=0', { page: 1, page_size: 1 }],
    ['page=-3&page_size=500', { page: 1, page_size: 100 }],
    ['page=&page_size=', { page: 1, page_size: 20 }],
    ['', { page: 1, page_size: 20 }],
    ['unknown=1', { page: 1, page_size: 20 }],
  ])('clamp %s', async (query, expected) => {
    const { echo } = await sandboxLab();
    expect(metadataOf(await echo.get(`/peers?${query}`))).toMatchObject(expected);
  });

  it('refuse what is no number', async () => {
    const { echo } = await sandboxLab();
    expect(verdictOf(await echo.get('/peers?page=two'))).toBe('422 validation_error');
  });

  it('of nothing are one empty page', async () => {
    const { echo } = await sandboxLab();
    const answer = await echo.get('/chats');
    expect(rowsOf(answer)).toEqual([]);
    expect(metadataOf(answer)).toEqual({ page: 1, page_size: 20, total_count: 0, total_pages: 1 });
  });
});

describe('both families on one endpoint', () => {
  it('give both groups of metadata, and announce the end of pages', async () => {
    const { echo, room, say } = await sandboxLab();
    const roomId = await room(DEMO.echo.id);
    for (let n = 0; n < 3; n += 1) await say(roomId, `message ${n}`, DEMO.echo.id);
    const path = `/chats/${roomId}/messages`;

    const plain = await echo.get(path);
    expect(metadataOf(plain)).toEqual({
      page: 1,
      page_size: 20,
      total_count: 3,
      total_pages: 1,
      has_more: false,
      limit: 20,
      next_cursor: null,
      status_filter: null,
    });
    expect(plain.headers['deprecation']).toBeUndefined();

    const paged = await echo.get(`${path}?page=2&page_size=2&status=all`);
    expect(rowsOf(paged)).toHaveLength(1);
    expect(metadataOf(paged)).toMatchObject({ page: 2, page_size: 2, total_pages: 2, status_filter: 'all' });
    expect(paged.headers['deprecation']).toBeDefined();
    expect(paged.headers['sunset']).toContain('Oct 2026');
    expect(metadataOf(await echo.get(`/chats/${roomId}/context`))).toMatchObject({ limit: 50, page_size: 50 });
  });

  it.each([
    'page=1&limit=5',
    'page_size=5&cursor=x',
    'cursor=x',
    'cursor=W10',
    'limit=many',
    'status=open',
    'sort_order=up',
  ])('refuse %s', async (query) => {
    const { echo, room } = await sandboxLab();
    const roomId = await room(DEMO.echo.id);
    expect(verdictOf(await echo.get(`/chats/${roomId}/messages?${query}`))).toBe('422 validation_error');
  });

  it('refuse a cursor of another filter, another order, another list', async () => {
    const { echo, user, room, say } = await sandboxLab();
    const roomId = await room(DEMO.echo.id);
    for (let n = 0; n < 3; n += 1) await say(roomId, `message ${n}`, DEMO.echo.id);
    const first = await echo.get(`/chats/${roomId}/messages?limit=1&status=pending`);
    const cursor = String(metadataOf(first)['next_cursor']);
    for (const path of [
      `/chats/${roomId}/messages?cursor=${cursor}`,
      `/chats/${roomId}/messages?status=pending&sort_order=desc&cursor=${cursor}`,
      `/chats/${roomId}/context?cursor=${cursor}`,
    ]) {
      expect(verdictOf(await echo.get(path))).toBe('422 validation_error');
    }
    expect(verdictOf(await user.get(`/chats/${roomId}/messages?cursor=${cursor}`))).toBe('422 validation_error');
    expect(rowsOf(await echo.get(`/chats/${roomId}/messages?status=pending&cursor=${cursor}`))).toHaveLength(2);
  });

  it('walk every list by cursor without a gap or a repeat, in order, while it grows', async () => {
    const { echo, user, room, say } = await sandboxLab();
    const roomId = await room(DEMO.echo.id);
    const posted: string[] = [];
    for (let n = 0; n < 25; n += 1) posted.push(await say(roomId, `message ${n}`, DEMO.echo.id));
    const path = `/chats/${roomId}/messages`;

    expect(ids(await walk(echo, path, 7))).toEqual(posted);
    expect(ids(await walk(echo, `${path}?sort_order=desc`, 7))).toEqual([...posted].reverse());
    expect(ids(await walk(echo, `/chats/${roomId}/context`, 7))).toEqual(posted);
    expect(ids(await walk(user, path, 7))).toEqual([...posted].reverse());

    const first = await user.get(`${path}?limit=5`);
    await say(roomId, 'newer', DEMO.echo.id);
    const second = await user.get(`${path}?limit=5&cursor=${String(metadataOf(first)['next_cursor'])}`);
    expect(ids([...rowsOf(first), ...rowsOf(second)])).toEqual([...posted].reverse().slice(0, 10));
  });

  it('walk rooms, participants and agents of a person by cursor', async () => {
    const { user, room } = await sandboxLab();
    const rooms: string[] = [];
    for (let n = 0; n < 5; n += 1) rooms.push(await room());
    expect(ids(await walk(user, '/chats', 2))).toEqual([...rooms].reverse());
    expect(ids(await walk(user, '/chats?order=asc', 2))).toEqual(rooms);
    const full = await room(DEMO.echo.id, DEMO.dice.id, DEMO.editor.id);
    expect(ids(await walk(user, `/chats/${full}/participants`, 2))).toHaveLength(4);
    expect(ids(await walk(user, `/chats/${full}/participants?participant_type=Agent`, 2))).toHaveLength(3);
    expect(ids(await walk(user, '/agents', 2))).toHaveLength(5);
    const byName = await walk(user, '/agents?sort=name&order=asc', 2);
    expect(byName.map(({ name }) => name)).toEqual(['Dice', 'Echo', 'Editor', 'Gateway', 'Helpdesk']);
  });
});

describe('filters of a person’s message list', () => {
  it('are the type, several types, all but some types, and a moment that excludes itself', async () => {
    const { echo, user, room, say } = await sandboxLab();
    const roomId = await room(DEMO.echo.id);
    await say(roomId, 'one', DEMO.echo.id);
    await echo.post(`/chats/${roomId}/events`, { event: { content: 'hm', message_type: 'thought' } });
    await echo.post(`/chats/${roomId}/events`, { event: { content: 'oh', message_type: 'error' } });
    await say(roomId, 'two', DEMO.echo.id);
    const list = async (query: string) =>
      rowsOf(await user.get(`/chats/${roomId}/messages?${query}`)).map((row) => row['message_type']);

    expect(await list('')).toEqual(['text', 'error', 'thought', 'text']);
    expect(await list('message_type=thought')).toEqual(['thought']);
    expect(await list('message_types=thought,error')).toEqual(['error', 'thought']);
    expect(await list('message_types=thought&message_types=error')).toEqual(['error', 'thought']);
    expect(await list('exclude_message_types=text')).toEqual(['error', 'thought']);
    const rows = rowsOf(await user.get(`/chats/${roomId}/messages`));
    const since = String(rows[2]?.['inserted_at']);
    expect(await list(`since=${since}`)).toEqual(['text', 'error']);
    expect(await list(`since=${since.replace('Z', '+00:00')}`)).toEqual(['text', 'error']);
    const counted = await user.get(`/chats/${roomId}/messages?since=${since}`);
    expect(metadataOf(counted)['total_count']).toBe(2);
    for (const bad of [
      'message_type=nothing',
      'since=yesterday',
      `since=${since}&cursor=x`,
      'message_types=text, error',
    ]) {
      expect(verdictOf(await user.get(`/chats/${roomId}/messages?${bad}`))).toBe('422 validation_error');
    }
    const both = 'message_type=text&exclude_message_types=error';
    expect(verdictOf(await user.get(`/chats/${roomId}/messages?${both}`))).toBe('422 validation_error');
  });
});

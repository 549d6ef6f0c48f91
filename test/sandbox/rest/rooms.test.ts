import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { dataOf, idOf, rowsOf, sandboxLab, verdictOf } from '../../support/sandbox-lab.js';

const { echo: ECHO } = DEMO;

describe('a room’s title', () => {
  it('is "New chat" until the first text gives it one: its first line, 60 characters', async () => {
    const { user, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const title = async () => dataOf(await user.get(`/chats/${roomId}`))['title'];
    expect(await title()).toBe('New chat');
    await say(roomId, `@Echo ${'long '.repeat(20)}\nsecond line`, ECHO.id);
    const first = String(await title());
    expect(first).toMatch(/^@Echo long long/);
    expect(first.length).toBeLessThanOrEqual(60);
    await say(roomId, 'something else', ECHO.id);
    expect(await title()).toBe(first);
  });

  it('that somebody chose is not replaced', async () => {
    const { user, echo, say } = await sandboxLab();
    const roomId = idOf(await user.post('/chats', { chat: { title: '  Weather ' } }));
    await user.post(`/chats/${roomId}/participants`, { participant: { participant_id: ECHO.id } });
    await say(roomId, 'hello', ECHO.id);
    expect(dataOf(await echo.get(`/chats/${roomId}`))['title']).toBe('Weather');
  });

  it.each([
    ['x', '200'],
    ['x'.repeat(120), '200'],
    [` ${'x'.repeat(120)} `, '200'],
    ['x'.repeat(121), '422 validation_error'],
    ['', '422 validation_error'],
    ['   ', '422 validation_error'],
    ['two\nlines', '422 validation_error'],
    ['two\rlines', '422 validation_error'],
    ['nul\0', '422 validation_error'],
    [null, '422 validation_error'],
  ])('may be %j: %s', async (title, verdict) => {
    const { echo } = await sandboxLab();
    const roomId = idOf(await echo.post('/chats', {}));
    expect(verdictOf(await echo.patch(`/chats/${roomId}`, { chat: { title } }))).toBe(verdict);
  });

  it('is for the owner to change, as often as wanted', async () => {
    const { echo, user, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    expect(verdictOf(await echo.patch(`/chats/${roomId}`, { chat: { title: 'Mine' } }))).toBe('403 forbidden');
    expect(verdictOf(await user.patch(`/chats/${roomId}`, { chat: { title: 'Mine' } }))).toBe('200');
    expect(verdictOf(await user.patch(`/chats/${roomId}`, { chat: { title: 'Mine' } }))).toBe('200');
  });
});

describe('rooms', () => {
  it('are listed for those in them only, and 404 for everybody else', async () => {
    const { echo, dice, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    expect(rowsOf(await echo.get('/chats')).map(({ id }) => id)).toEqual([roomId]);
    expect(rowsOf(await dice.get('/chats'))).toEqual([]);
    expect(verdictOf(await dice.get(`/chats/${roomId}`))).toBe('404 not_found');
    expect(verdictOf(await echo.get(`/chats/${roomId.toUpperCase()}`))).toBe('200');
  });

  it('are filtered and sorted for a person', async () => {
    const { user, say, room } = await sandboxLab();
    const older = await room(ECHO.id);
    const task = idOf(await user.post('/chats', { chat: { task_id: '12345678-1234-4234-8234-123456789abc' } }));
    await say(older, 'hello', ECHO.id);
    const list = async (query: string) => rowsOf(await user.get(`/chats?${query}`)).map(({ id }) => id);
    expect(await list('')).toEqual([task, older]);
    expect(await list('sort_by=updated_at')).toEqual([older, task]);
    expect(await list('type=task')).toEqual([task]);
    expect(await list('type=direct')).toEqual([]);
    expect(await list('status=archived')).toEqual([]);
    expect(verdictOf(await user.get('/chats?sort_by=title'))).toBe('422 validation_error');
  });

  it('are deleted by their owner, and are gone for everybody', async () => {
    const { sandbox, user, echo, person, room } = await sandboxLab();
    const bob = sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const roomId = await room(ECHO.id, bob.id);
    expect(verdictOf(await person(bob.apiKey).delete(`/chats/${roomId}`))).toBe('403 forbidden');
    expect(verdictOf(await user.delete(`/chats/${roomId}`))).toBe('200');
    for (const caller of [user, echo, person(bob.apiKey)]) {
      expect(verdictOf(await caller.get(`/chats/${roomId}`))).toBe('404 not_found');
      expect(rowsOf(await caller.get('/chats'))).toEqual([]);
    }
    expect(verdictOf(await user.delete(`/chats/${roomId}`))).toBe('404 not_found');
    expect(rowsOf(await user.get(`/agents/${ECHO.id}/executions`))).toEqual([]);
  });
});

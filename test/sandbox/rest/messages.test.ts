import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { dataOf, pointersOf, rowsOf, sandboxLab, verdictOf, type Json } from '../../support/sandbox-lab.js';

const { echo: ECHO, dice: DICE, user: DEMO_USER } = DEMO;

describe('posting a message', () => {
  it.each([
    ['no entry', [], '422 mentions_required'],
    ['no list', undefined, '422 mentions_required'],
    ['null', null, '422 mentions_required'],
    ['no list but a text', 'everybody', '422 validation_error'],
    ['references only', [{ id: ECHO.id, kind: 'reference' }], '422 mentions_required'],
    ['the sender', [{ id: DEMO_USER.id }], '422 cannot_mention_self'],
    ['the sender by handle', [{ handle: '@Demo' }], '422 cannot_mention_self'],
    ['somebody twice', [{ id: ECHO.id }, { handle: 'demo/echo' }], '422 duplicate_mentions'],
    [
      'somebody as mention and as reference',
      [{ id: ECHO.id }, { id: ECHO.id, kind: 'reference' }],
      '422 duplicate_mentions',
    ],
    ['somebody who is not in the room', [{ id: DICE.id }], '422 mentioned_participant_not_in_room'],
    [
      'somebody known by handle who is not in the room',
      [{ handle: 'demo/dice' }],
      '422 mentioned_participant_not_in_room',
    ],
    [
      'an id that nobody has',
      [{ id: '12345678-1234-4234-8234-123456789abc' }],
      '422 mentioned_participant_not_in_room',
    ],
    ['an id that is none', [{ id: 'echo' }], '422 validation_error'],
    ['a handle that nobody has', [{ handle: 'demo/nobody' }], '422 handle_not_found'],
    ['a name only', [{ name: 'Echo' }], '422 mention_missing_identifier'],
    ['nulls only', [{ id: null, handle: null }], '422 mention_missing_identifier'],
    ['a blank handle', [{ handle: ' ' }], '422 mention_missing_identifier'],
    ['a kind that is none', [{ id: ECHO.id, kind: 'cc' }], '422 invalid_mention_kind'],
    ['a null kind', [{ id: ECHO.id, kind: null }], '422 invalid_mention_kind'],
    ['an entry that is a text', ['echo'], '422 validation_error'],
    ['an id with a null handle', [{ id: ECHO.id, handle: null }], '201'],
    ['an id in upper case', [{ id: ECHO.id.toUpperCase() }], '201'],
    ['an id beside a wrong handle, which does not count', [{ id: ECHO.id, handle: 'demo/nobody' }], '201'],
    ['a handle in any case with its sign', [{ handle: '@Demo/ECHO' }], '201'],
    ['a mention and a reference', [{ id: ECHO.id }, { id: DEMO.gateway.id, kind: 'reference' }], '201'],
  ])('that names %s is answered %3$s', async (_name, mentions, verdict) => {
    const { user, room } = await sandboxLab();
    const roomId = await room(ECHO.id, DEMO.gateway.id);
    const answer = await user.post(`/chats/${roomId}/messages`, { message: { content: 'hi', mentions } });
    expect(verdictOf(answer)).toBe(verdict);
  });

  it('says a mention code in its message as well, which clients compare', async () => {
    const { echo, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const message = { content: 'hi', mentions: [{ id: DICE.id }] };
    const { body } = await echo.post(`/chats/${roomId}/messages`, { message });
    expect(body).toMatchObject({ error: { message: 'mentioned_participant_not_in_room' } });
  });

  it.each([
    ['nothing', '', '422 validation_error'],
    ['spaces', ' \n\t ', '422 validation_error'],
    ['zero-width characters', '\u200b\u200d\ufeff', '422 validation_error'],
    ['direction marks', '\u202e\u2066', '422 validation_error'],
    ['a lone combining mark', '\u0301', '422 validation_error'],
    ['a control character', '\u0007', '422 validation_error'],
    ['a symbol', '✓', '201'],
    ['a picture', '👋', '201'],
    ['512 KiB', 'x'.repeat(512 * 1024), '201'],
    ['one byte more', 'x'.repeat(512 * 1024 + 1), '422 validation_error'],
    ['512 KiB of UTF-8 in fewer characters', 'é'.repeat(256 * 1024), '201'],
    ['what would not fit into a frame', '\u0001'.repeat(300_000) + 'x', '422 validation_error'],
    ['half a surrogate pair, kept as U+FFFD', 'a\ud800', '201'],
  ])('of %s is answered %3$s', async (_name, content, verdict) => {
    const { user, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const answer = await user.post(`/chats/${roomId}/messages`, { message: { content, mentions: [{ id: ECHO.id }] } });
    expect(verdictOf(answer)).toBe(verdict);
    if (answer.status === 422) expect(pointersOf(answer)).toEqual(['/message/content']);
  });

  it('answers with the recipients, references left out, and stores tokens', async () => {
    const { user, room } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const sent = await user.post(`/chats/${roomId}/messages`, {
      message: { content: '@Echo ask @demo/dice', mentions: [{ id: ECHO.id }, { id: DICE.id, kind: 'reference' }] },
    });
    expect(dataOf(sent)).toEqual({
      id: expect.any(String) as string,
      success: true,
      recipients: [{ id: ECHO.id, handle: 'demo/echo', name: 'Echo' }],
    });
    const [stored] = rowsOf(await user.get(`/chats/${roomId}/messages`));
    expect(stored).toMatchObject({
      content: `@[[${ECHO.id}]] ask @[[${DICE.id}]]`,
      metadata: { mentions: [{ kind: 'mention' }, { kind: 'reference' }], status: 'sent' },
    });
  });

  it('grows strictly in time, however fast it comes and wherever the clock goes', async () => {
    let now = 1_700_000_000_000;
    const clock = { now: () => (now -= 7), sleep: () => Promise.resolve(), after: () => () => undefined };
    const { user, room, say } = await sandboxLab({ clock: { ...clock, every: () => () => undefined } });
    const roomId = await room(ECHO.id);
    for (let n = 0; n < 10; n += 1) await say(roomId, 'hi', ECHO.id);
    const times = rowsOf(await user.get(`/chats/${roomId}/messages`)).map((row) => String(row['inserted_at']));
    expect(new Set(times).size).toBe(10);
    expect([...times].sort().reverse()).toEqual(times);
  });

  it('is refused with limit_reached at the bounds of the sandbox', async () => {
    const { user, echo, room, say } = await sandboxLab({
      limits: { messagesPerRoom: 2, rooms: 2, participantsPerRoom: 2, agents: 5 },
    });
    const roomId = await room(ECHO.id);
    await say(roomId, 'one', ECHO.id);
    await say(roomId, 'two', ECHO.id);
    const message = { content: 'three', mentions: [{ id: ECHO.id }] };
    expect(verdictOf(await user.post(`/chats/${roomId}/messages`, { message }))).toBe('403 limit_reached');
    const event = { content: 'hm', message_type: 'thought' };
    expect(verdictOf(await echo.post(`/chats/${roomId}/events`, { event }))).toBe('403 limit_reached');
    const participant = { participant_id: DICE.id };
    expect(verdictOf(await user.post(`/chats/${roomId}/participants`, { participant }))).toBe('403 limit_reached');
    await room();
    expect(verdictOf(await user.post('/chats', {}))).toBe('403 limit_reached');
    const agent = { name: 'More', description: 'than five' };
    expect(verdictOf(await user.post('/agents/register', { agent }))).toBe('403 limit_reached');
  });
});

describe('posting an event', () => {
  const attention = (metadata: Json | null) => ({ content: 'look', message_type: 'attention', metadata });
  it.each([
    ['16384 characters', { content: '𝒳'.repeat(16_384), message_type: 'thought' }, '201'],
    ['one character more', { content: 'x'.repeat(16_385), message_type: 'thought' }, '422 validation_error'],
    ['blank content', { content: ' ', message_type: 'thought' }, '422 validation_error'],
    ['no content', { message_type: 'thought' }, '422 validation_error'],
    ['the type text', { content: 'hi', message_type: 'text' }, '422 validation_error'],
    ['an unknown type', { content: 'hi', message_type: 'dance' }, '422 validation_error'],
    ['no type', { content: 'hi' }, '422 validation_error'],
    ['null metadata', { content: 'hi', message_type: 'task', metadata: null }, '201'],
    ['a list as metadata', { content: 'hi', message_type: 'task', metadata: [] }, '422 validation_error'],
    ['65536 bytes of metadata', { content: 'hi', message_type: 'task', metadata: { a: 'x'.repeat(65_528) } }, '201'],
    [
      'one byte more',
      { content: 'hi', message_type: 'task', metadata: { a: 'x'.repeat(65_529) } },
      '422 validation_error',
    ],
    ['a question for attention', attention({ kind: 'question' }), '201'],
    ['attention without a kind', attention({}), '422 validation_error'],
    ['attention without metadata', attention(null), '422 validation_error'],
    ['attention of an unknown kind', attention({ kind: 'shout' }), '422 validation_error'],
  ])('with %s is answered %3$s', async (_name, event, verdict) => {
    const { echo, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    expect(verdictOf(await echo.post(`/chats/${roomId}/events`, { event }))).toBe(verdict);
  });

  it('refuses metadata that nests without end', async () => {
    const { echo, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const nested = `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
    const body = `{"event":{"content":"x","message_type":"task","metadata":${nested}}}`;
    expect(verdictOf(await echo.post(`/chats/${roomId}/events`, body))).toBe('422 validation_error');
  });

  it('needs no mention, keeps the metadata, and shows neither to other agents', async () => {
    const { echo, dice, user, room } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const metadata = { id: 'call_1', function: { name: 'search' } };
    await echo.post(`/chats/${roomId}/events`, { event: { content: 'x', message_type: 'tool_call', metadata } });
    expect(rowsOf(await user.get(`/chats/${roomId}/messages`))[0]).toMatchObject({ metadata });
    expect(rowsOf(await echo.get(`/chats/${roomId}/context`))[0]).toMatchObject({ metadata });
    expect(rowsOf(await dice.get(`/chats/${roomId}/context`))).toEqual([]);
    expect(rowsOf(await dice.get(`/chats/${roomId}/messages?status=all`))).toEqual([]);
  });
});

describe('context', () => {
  it('is what the agent wrote and every text that mentions it, oldest first', async () => {
    const { echo, dice, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    await say(roomId, 'for echo', ECHO.id);
    await say(roomId, 'for dice', DICE.id);
    await say(roomId, 'for both', ECHO.id, DICE.id);
    const mentions = [{ id: DEMO_USER.id }, { id: ECHO.id, kind: 'reference' }];
    await dice.post(`/chats/${roomId}/messages`, { message: { content: 'by dice about echo', mentions } });
    await echo.post(`/chats/${roomId}/events`, { event: { content: 'by echo', message_type: 'task' } });
    const contents = rowsOf(await echo.get(`/chats/${roomId}/context`)).map((row) =>
      String(row['content']).replaceAll(/@\[\[.*?\]\] /g, ''),
    );
    expect(contents).toEqual(['for echo', 'for both', 'by echo']);
  });

  it('carries delivery_status on the agent’s own rows unless it is switched off', async () => {
    const { sandbox, echo, dice, room } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const message = { content: 'roll', mentions: [{ id: DICE.id }] };
    const sent = await echo.post(`/chats/${roomId}/messages`, { message });
    await dice.post(`/chats/${roomId}/messages/${String(dataOf(sent)['id'])}/processing`);
    const metadata = async () => rowsOf(await echo.get(`/chats/${roomId}/context`))[0]?.['metadata'] as Json;
    expect(await metadata()).toMatchObject({ delivery_status: { [DICE.id]: { status: 'processing' } } });
    sandbox.dev.set({ deliveryStatusOnOwnRows: false });
    expect(await metadata()).not.toHaveProperty('delivery_status');
  });
});

describe('what the sandbox does not offer', () => {
  it.each([
    ['GET', '/memories', '403 forbidden'],
    ['POST', '/memories', '403 forbidden'],
    ['POST', '/memories/1/archive', '403 forbidden'],
    ['GET', '/chats/ROOM/tasks', '404 not_found'],
    ['POST', '/chats/ROOM/tasks', '404 not_found'],
    ['GET', '/chats/ROOM/tasks/7', '404 not_found'],
    ['PUT', '/chats/ROOM/board', '404 not_found'],
    ['POST', '/chats/ROOM/files', '404 not_found'],
  ])('%s %s is answered %s', async (method, path, verdict) => {
    const { echo, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    const call = { GET: echo.get, POST: echo.post, PUT: echo.put }[method as 'GET'];
    expect(verdictOf(await call(path.replace('ROOM', roomId)))).toBe(verdict);
  });
});

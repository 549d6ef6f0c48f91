import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { exchange } from '../../support/raw-http.js';
import { callRest } from '../../support/rest-call.js';
import { pointersOf, sandboxLab, verdictOf } from '../../support/sandbox-lab.js';
import { errorShape } from '../../support/wire-shapes.js';

const UNKNOWN = '12345678-1234-4234-8234-123456789abc';

describe('a request that is wrong', () => {
  it.each([
    ['GET', '/api/v1/agent/nothing', '404 not_found'],
    ['GET', '/api/v1/nothing', '404 not_found'],
    ['GET', '/', '404 not_found'],
    ['PURGE', '/api/v1/agent/me', '404 not_found'],
    ['POST', '/api/v1/agent/me', '404 not_found'],
    ['GET', '/api/v1/agent/chats/%E0%A4%A', '422 validation_error'],
    ['GET', '/api/v1/agent/chats/not-a-uuid', '422 validation_error'],
    ['GET', `/api/v1/agent/chats/${UNKNOWN}`, '404 not_found'],
    ['GET', `/api/v1/agent/chats/${UNKNOWN}/messages/next`, '404 not_found'],
    ['GET', '//', '404 not_found'],
  ])('%s %s is answered %3$s in the envelope', async (method, path, verdict) => {
    const { sandbox } = await sandboxLab();
    const answer = await callRest(sandbox.restUrl, method, path, DEMO.echo.apiKey);
    expect(verdictOf(answer)).toBe(verdict);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    errorShape.parse(answer.body);
  });

  it.each([
    ['{"chat":', '400 bad_request'],
    ['not json', '400 bad_request'],
    [Buffer.from([0x7b, 0xff, 0x7d]), '400 bad_request'],
    ['[]', '422 validation_error'],
    ['"text"', '422 validation_error'],
    ['7', '422 validation_error'],
    ['{"chat":7}', '422 validation_error'],
    ['{"chat":{"task_id":"nope"}}', '422 validation_error'],
    ['{"chat":{"title":7}}', '422 validation_error'],
    ['null', '201'],
    ['{}', '201'],
    ['{"chat":null}', '201'],
    ['{"chat":{"title":null,"task_id":null},"more":1}', '201'],
    ['{"chat":{"title":"a"},"chat":{"title":"b"}}', '201'],
  ])('the body %j is answered %s', async (body, verdict) => {
    const { sandbox } = await sandboxLab();
    const answer = await callRest(sandbox.restUrl, 'POST', '/api/v1/agent/chats', DEMO.echo.apiKey, body);
    expect(verdictOf(answer)).toBe(verdict);
  });

  it('names the invalid field by its JSON pointer', async () => {
    const { echo, room } = await sandboxLab();
    const roomId = await room(DEMO.echo.id);
    const answer = await echo.post(`/chats/${roomId}/messages`, { message: { mentions: [] } });
    expect(pointersOf(answer)).toEqual(['/message/content']);
    expect(pointersOf(await echo.post(`/chats/${roomId}/participants`, {}))).toEqual(['/participant']);
    expect(pointersOf(await echo.post(`/chats/${roomId}/activity`, { working: 'yes' }))).toEqual(['/working']);
  });

  it('may have an empty body under a JSON content type', async () => {
    const { sandbox, echo, room, say } = await sandboxLab();
    const roomId = await room(DEMO.echo.id);
    const messageId = await say(roomId, 'hello', DEMO.echo.id);
    const headers = { 'content-type': 'application/json', 'content-length': '0' };
    const path = `/api/v1/agent/chats/${roomId}/messages/${messageId}/processing`;
    expect((await callRest(sandbox.restUrl, 'POST', path, DEMO.echo.apiKey, '', headers)).status).toBe(200);
    expect((await echo.delete(`/chats/${roomId}/participants/${DEMO.echo.id}`)).status).toBe(200);
  });

  it('is refused with 413 when it is larger than 4 MiB, announced or not', async () => {
    const { sandbox } = await sandboxLab();
    const big = JSON.stringify({ chat: { title: 'x'.repeat(4 * 1024 * 1024) } });
    const announced = await callRest(sandbox.restUrl, 'POST', '/api/v1/agent/chats', DEMO.echo.apiKey, big);
    expect(verdictOf(announced)).toBe('413 payload_too_large');
    const chunked = await fetch(`${sandbox.restUrl}/api/v1/agent/chats`, {
      method: 'POST',
      headers: { 'x-api-key': DEMO.echo.apiKey },
      body: new Blob([big]).stream(),
      duplex: 'half',
    });
    expect(chunked.status).toBe(413);
    errorShape.parse(await chunked.json());
    expect((await callRest(sandbox.restUrl, 'GET', '/health', null)).body).toEqual({ status: 'ok' });
  });

  it('gets the envelope even when it is no HTTP, or its headers are too large', async () => {
    const { sandbox } = await sandboxLab();
    for (const [text, status] of [
      ['hello\r\n\r\n', 400],
      [`GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`, 431],
    ] as const) {
      const answer = await exchange(sandbox.port, text);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      errorShape.parse(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))));
    }
  });

  it('never ends in a 5xx, a hang or HTML, whatever its JSON is', async () => {
    const { sandbox, room, say } = await sandboxLab();
    const roomId = await room(DEMO.echo.id, DEMO.dice.id);
    const messageId = await say(roomId, 'hello', DEMO.echo.id);
    const routes: [string, string][] = [
      ['POST', '/agent/chats'],
      ['PATCH', `/agent/chats/${roomId}`],
      ['POST', `/agent/chats/${roomId}/messages`],
      ['POST', `/agent/chats/${roomId}/events`],
      ['POST', `/agent/chats/${roomId}/participants`],
      ['POST', `/agent/chats/${roomId}/activity`],
      ['POST', `/agent/chats/${roomId}/messages/${messageId}/failed`],
      ['POST', '/agent/contacts/add'],
      ['POST', '/agent/contacts/remove'],
      ['POST', '/agent/contacts/requests/respond'],
      ['POST', '/me/chats'],
      ['PUT', '/me/profile'],
      ['POST', '/me/agents/register'],
      ['POST', `/me/chats/${roomId}/messages`],
      ['POST', '/me/contacts/requests'],
      ['POST', '/me/contacts/resolve'],
      ['POST', '/dev/users'],
      ['POST', '/dev/agents'],
      ['POST', '/dev/sockets/close'],
    ];
    const value = fc.jsonValue({ maxDepth: 3 });
    const keys = ['chat', 'title', 'message', 'content', 'mentions', 'id', 'handle', 'kind', 'event', 'message_type'];
    const moreKeys = [
      'metadata',
      'participant',
      'participant_id',
      'role',
      'working',
      'error',
      'action',
      'user',
      'agent',
    ];
    const shaped = fc.dictionary(
      fc.constantFrom(...keys, ...moreKeys),
      fc.oneof(value, fc.dictionary(fc.constantFrom(...keys, ...moreKeys), value, { maxKeys: 4 })),
      { maxKeys: 4 },
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...routes), fc.oneof(shaped, value), async ([method, path], body) => {
        const url = path.startsWith('/dev/') ? path.replace('/dev/', '/dev/v1/') : `/api/v1${path}`;
        const key = path.startsWith('/me') ? DEMO.user.apiKey : DEMO.echo.apiKey;
        const answer = await callRest(sandbox.restUrl, method, url, key, JSON.stringify(body));
        expect(answer.status).toBeLessThan(500);
        if (answer.status >= 400) errorShape.parse(answer.body);
      }),
      { numRuns: 400 },
    );
  });
});

import { MockAgent, type MockPool } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/base/band-errors.js';
import type { GatewayError } from '../../../src/base/errors.js';
import { createRestClient, type RestClientOptions } from '../../../src/platform/rest/rest-client.js';
import { createManualClock, type ManualClock } from '../../../src/testing/manual-clock.js';
import { failure } from '../../support/link-lab.js';

const KEY = 'band_a_the_secret_key';
const ROOM = 'cccccccc-cccc-4ccc-8ccc-cccccccccccc';
const MESSAGE = 'dddddddd-dddd-4ddd-8ddd-dddddddddddd';
const AGENT = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
const JSON_HEADERS = { headers: { 'content-type': 'application/json; charset=utf-8' } };
const ME = { id: AGENT, name: 'Helper', handle: 'jane/helper', owner_uuid: 'o', description: 'Answers questions' };

let agent: MockAgent;
let band: MockPool;
let clock: ManualClock;

beforeEach(() => {
  agent = new MockAgent();
  agent.disableNetConnect();
  band = agent.get('http://band.test');
  clock = createManualClock();
});
afterEach(async () => {
  agent.assertNoPendingInterceptors();
  await agent.close();
});

function client(options: Partial<RestClientOptions> = {}) {
  return createRestClient({
    restUrl: 'http://band.test/',
    apiKey: KEY,
    dispatcher: agent,
    clock,
    random: () => 0.5,
    ...options,
  });
}

/** Moves the clock on until `promise` has settled; at most ten minutes. */
async function running<T>(promise: Promise<T>): Promise<T> {
  let settled = false;
  const watched = promise.finally(() => (settled = true));
  watched.catch(() => undefined);
  for (let i = 0; i < 600 && !settled; i += 1) await clock.advance(1_000);
  return watched;
}

const envelope = (code: string, message: string) => ({ error: { code, message, request_id: 'F9v0' } });

describe('a call', () => {
  it('R-016 carries the key as it is, asks for JSON, and keeps a path in front of the API', async () => {
    agent
      .get('http://band.test')
      .intercept({
        path: '/proxy/api/v1/agent/me',
        headers: { 'x-api-key': 'proxy-managed', accept: 'application/json' },
      })
      .reply(200, { data: ME });
    const rest = client({ restUrl: 'http://band.test/proxy/', apiKey: 'proxy-managed' });
    expect(await rest.getMe()).toMatchObject({ handle: 'jane/helper' });
  });

  it('sends every endpoint as the API wants it', async () => {
    const rest = client();
    const room = { id: ROOM, title: 't' };
    const expectCall = (method: string, path: string, body: unknown, status: number, answer: unknown) => {
      band
        .intercept({
          method,
          path: `/api/v1/agent${path}`,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        .reply(status, answer === undefined ? '' : (answer as object), JSON_HEADERS);
    };
    expectCall('POST', '/chats', { chat: {} }, 201, { data: room });
    expect(await rest.createChat()).toMatchObject({ id: ROOM });
    expectCall('POST', '/chats', { chat: { title: null, task_id: 'x' } }, 201, { data: room });
    await rest.createChat({ title: null, taskId: 'x' });
    expectCall('GET', `/chats/${ROOM}`, undefined, 200, { data: room });
    await rest.getChat(ROOM);
    expectCall('PATCH', `/chats/${ROOM}`, { chat: { title: 'new' } }, 200, { data: room });
    await rest.renameChat(ROOM, 'new');
    const message = { message: { content: '@jane hi', mentions: [{ id: 'u', handle: 'jane' }] } };
    expectCall('POST', `/chats/${ROOM}/messages`, message, 201, { data: { id: MESSAGE, success: true } });
    expect(
      await rest.postMessage(ROOM, { content: '@jane hi', mentions: [{ id: 'u', handle: 'jane' }] }),
    ).toMatchObject({ id: MESSAGE });
    const event = { event: { content: 'c', message_type: 'task', metadata: { a: 1 } } };
    const created = { data: { id: 'e', message_type: 'task', success: true } };
    expectCall('POST', `/chats/${ROOM}/events`, event, 201, created);
    await rest.postEvent(ROOM, { content: 'c', messageType: 'task', metadata: { a: 1 } });
    expectCall('GET', `/chats/${ROOM}/context?limit=100`, undefined, 200, { data: [], metadata: { has_more: false } });
    expect(await rest.getContext(ROOM, { limit: 100 })).toEqual({ data: [], hasMore: false, nextCursor: null });
    expectCall('GET', `/chats/${ROOM}/participants`, undefined, 200, { data: [{ id: 'u', type: 'User' }] });
    expect(await rest.listParticipants(ROOM)).toHaveLength(1);
    const added = { participant: { participant_id: 'p', role: 'member' } };
    expectCall('POST', `/chats/${ROOM}/participants`, added, 201, { data: { id: 'p', type: 'Agent' } });
    await rest.addParticipant(ROOM, { participantId: 'p', role: 'member' });
    expectCall('DELETE', `/chats/${ROOM}/participants/p`, undefined, 200, { data: { id: 'p', type: 'Agent' } });
    await rest.removeParticipant(ROOM, 'p');
    expectCall('POST', `/chats/${ROOM}/activity`, { working: true }, 200, { data: { working: true } });
    await rest.reportActivity(ROOM, true);
    expectCall('POST', '/contacts/add', { handle: '@bob', message: null }, 201, { data: { id: 'c' } });
    await rest.contacts.add('@bob', null);
    expectCall('POST', '/contacts/remove', { contact_id: 'c' }, 200, { data: { status: 'removed' } });
    await rest.contacts.remove({ contactId: 'c' });
    const respond = { action: 'approve', request_id: 'r' };
    expectCall('POST', '/contacts/requests/respond', respond, 200, { data: { id: 'r' } });
    await rest.contacts.respond('approve', { requestId: 'r' });
    const requests = { data: { received: [], sent: [] }, metadata: { page: 1 } };
    expectCall('GET', '/contacts/requests?sent_status=all', undefined, 200, requests);
    expect(await rest.contacts.requests({ sentStatus: 'all' })).toEqual(requests);
    expectCall('GET', '/memories?scope=subject&page_size=5', undefined, 200, { data: [{ id: 'm' }] });
    expect(await rest.memories.list({ scope: 'subject', page_size: 5, type: null })).toEqual({
      data: [{ id: 'm' }],
      metadata: {},
    });
    expectCall('POST', '/memories/m/archive', undefined, 200, { data: { id: 'm' } });
    await rest.memories.archive('m');
  });

  it.each(['', '.', '..'])('refuses the id %j, which would name another path, without a call', async (id) => {
    expect((await failure(client().getChat(id))).code).toBe('BAND_INVALID');
  });

  it('keeps an id one segment, whatever it holds', async () => {
    band.intercept({ path: '/api/v1/agent/chats/..%2Fme%3Fx%23/messages/next' }).reply(204, '');
    expect(await client().nextMessage('../me?x#')).toBeNull();
  });
});

describe('answers', () => {
  it('a page that leaves totals out is walked on while it is full', async () => {
    band.intercept({ path: '/api/v1/agent/chats?page=2&page_size=2' }).reply(200, { data: [{ id: 'a' }, { id: 'b' }] });
    expect(await client().listChats({ page: 2, pageSize: 2 })).toMatchObject({ page: 2, totalPages: 3 });
    band.intercept({ path: '/api/v1/agent/peers?not_in_chat=r&page=3&page_size=2' }).reply(200, { data: [] });
    expect(await client().listPeers({ notInChat: 'r', page: 3, pageSize: 2 })).toMatchObject({ totalPages: 3 });
  });

  it('one bad row of a list does not hide the others', async () => {
    band.intercept({ path: '/api/v1/agent/chats' }).reply(200, { data: [{ id: 'a' }, { id: 7 }, null, { id: 'b' }] });
    expect((await client().listChats()).data.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('204 on a mark says stopped, and an answer that does not accept is none', async () => {
    const path = `/api/v1/agent/chats/${ROOM}/messages/${MESSAGE}`;
    const rest = client();
    band.intercept({ method: 'POST', path: `${path}/processing` }).reply(204, '');
    expect(await rest.markProcessing(ROOM, MESSAGE)).toEqual({ kind: 'stopped' });
    const status = { id: MESSAGE, status: 'processing', attempt_number: 2, success: true };
    band.intercept({ method: 'POST', path: `${path}/processing` }).reply(200, { data: status });
    expect(await rest.markProcessing(ROOM, MESSAGE)).toEqual({ kind: 'accepted', attempt: 2 });
    band
      .intercept({ method: 'POST', path: `${path}/failed`, body: '{"error":"why"}' })
      .reply(200, { data: { ...status, success: false } });
    expect((await failure(rest.markFailed(ROOM, MESSAGE, 'why'))).code).toBe('BAND_BAD_ANSWER');
    for (const body of ['', '{}', '{"data":null}', 'null', '[1]', '<html>', '{"data":{"id":"x"}}']) {
      band.intercept({ method: 'POST', path: `${path}/processed` }).reply(200, body);
      expect((await failure(rest.markProcessed(ROOM, MESSAGE))).code, body).toBe('BAND_BAD_ANSWER');
    }
  });

  it('204 on next is nothing, an empty 200 is an error', async () => {
    const path = `/api/v1/agent/chats/${ROOM}/messages/next`;
    band.intercept({ path }).reply(204, '');
    expect(await client().nextMessage(ROOM)).toBeNull();
    band.intercept({ path }).reply(200, '');
    expect((await failure(client().nextMessage(ROOM))).code).toBe('BAND_BAD_ANSWER');
  });

  it('a body beyond the limit is refused', async () => {
    band.intercept({ path: '/api/v1/agent/me' }).reply(200, { data: { ...ME, description: 'x'.repeat(5_000) } });
    const error = await failure(client({ maxAnswerBytes: 1_000 }).getMe());
    expect(error.code).toBe('BAND_BAD_ANSWER');
    expect(error.details['why']).toContain('1000 bytes');
  });
});

describe('refusals', () => {
  it.each<[number, unknown, string]>([
    [400, envelope('bad_request', 'm'), 'BAND_INVALID'],
    [401, envelope('unauthorized', 'm'), 'BAND_UNAUTHORIZED'],
    [403, envelope('forbidden', 'm'), 'BAND_FORBIDDEN'],
    [403, envelope('limit_reached', 'm'), 'ROOM_LIMIT'],
    [403, envelope('forbidden', 'Agent execution is stopped; cannot post messages'), 'BAND_ROOM_STOPPED'],
    [403, envelope('forbidden', 'Agent execution is stopped; cannot post events'), 'BAND_ROOM_STOPPED'],
    [403, { error: 'forbidden', message: 'Agent execution is stopped; cannot post' }, 'BAND_ROOM_STOPPED'],
    [404, envelope('not_found', 'm'), 'BAND_NOT_FOUND'],
    [409, envelope('conflict', 'm'), 'BAND_CONFLICT'],
    [422, envelope('mentions_required', 'm'), 'BAND_INVALID'],
    [413, '', 'BAND_INVALID'],
    [302, '', 'BAND_BAD_ANSWER'],
  ])('%i %j is %s and is not repeated', async (status, body, code) => {
    band
      .intercept({ method: 'POST', path: `/api/v1/agent/chats/${ROOM}/messages` })
      .reply(status, body as object, JSON_HEADERS);
    const error = await failure(client().postMessage(ROOM, { content: 'x', mentions: [] }));
    expect(error.code).toBe(code);
    expect(error.cause).toBeInstanceOf(ApiError);
    expect((error.cause as ApiError).statusCode).toBe(status);
    expect(clock.now()).toBe(createManualClock().now());
  });

  it.each<[string, string | object, Partial<ApiError>]>([
    ['the envelope', envelope('forbidden', 'no'), { code: 'forbidden', requestId: 'F9v0' }],
    ['an envelope without a request id', { error: { code: 'forbidden', message: 'no' } }, { code: 'forbidden' }],
    ['an envelope of wrong types', { error: { code: 5, message: [] } }, { code: null, message: '403 Forbidden' }],
    ['a flat shape', { error: 'unauthorized', message: 'no' }, { code: 'unauthorized', message: '403 Forbidden: no' }],
    ['a flat shape without words', { error: 'nope' }, { code: 'nope', message: '403 Forbidden: nope' }],
    ['plain text', 'go away', { code: null, body: 'go away', message: '403 Forbidden: go away' }],
    ['HTML', '<html><b>Forbidden</b></html>', { code: null, message: '403 Forbidden' }],
    ['nothing', '', { code: null, body: null, message: '403 Forbidden' }],
    ['JSON that is no object', '[1,2]', { code: null, message: '403 Forbidden' }],
    ['null', 'null', { code: null, message: '403 Forbidden' }],
  ])('survives %s', async (_name, body, expected) => {
    band.intercept({ path: '/api/v1/agent/me' }).reply(403, body);
    const { cause } = await failure(client().getMe());
    expect(cause).toMatchObject(expected);
  });

  it('a key that a proxy echoes does not get into the error', async () => {
    band.intercept({ path: '/api/v1/agent/me' }).reply(403, `your x-api-key was ${KEY}`);
    const error = await failure(client().getMe());
    expect(JSON.stringify([error, error.cause, String(error.cause), error.stack])).not.toContain(KEY);
  });

  it('request id and status stand in the details, for the log line', async () => {
    band.intercept({ path: '/api/v1/agent/me' }).reply(404, envelope('not_found', 'm'));
    expect((await failure(client().getMe())).details).toEqual({
      request: 'GET /api/v1/agent/me',
      status: 404,
      bandCode: 'not_found',
      requestId: 'F9v0',
    });
  });
});

describe('repeats', () => {
  const me = { path: '/api/v1/agent/me' };

  it.each([408, 429, 500, 502, 503, 504])('a read is repeated after %i, three times at most', async (status) => {
    band.intercept(me).reply(status, '').times(4);
    const start = clock.now();
    const error = await running(failure(client().getMe()));
    expect((error.cause as ApiError).statusCode).toBe(status);
    expect(clock.now() - start).toBe(7_000);
  });

  it('waits 1, 2 and 4 s within ten percent', async () => {
    for (const [random, waitsMs] of [
      [0, [900, 1_800, 3_600]],
      [1, [1_100, 2_200, 4_400]],
    ] as const) {
      band.intercept(me).reply(500, '').times(3);
      band.intercept(me).reply(200, { data: ME });
      const pending = client({ random: () => random }).getMe();
      for (const waitMs of waitsMs) {
        await clock.advance(0);
        expect(Math.round(clock.nextInMs!)).toBe(waitMs);
        await clock.advance(waitMs);
      }
      expect((await pending).id).toBe(AGENT);
    }
  });

  it('Retry-After in seconds or as a date comes first, then X-RateLimit-Reset, and is never cut short', async () => {
    const reset = String(Math.floor(clock.now() / 1_000) + 5 + 6 + 9);
    band.intercept(me).reply(429, '', { headers: { 'Retry-After': '5', 'X-RateLimit-Reset': reset } });
    band.intercept(me).reply(503, '', { headers: { 'Retry-After': new Date(clock.now() + 11_000).toUTCString() } });
    band.intercept(me).reply(429, '', { headers: { 'X-RateLimit-Reset': reset } });
    band.intercept(me).reply(200, { data: ME });
    const pending = client({ random: () => 0 }).getMe();
    const waits: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      await clock.advance(0);
      waits.push(clock.nextInMs!);
      await clock.advance(clock.nextInMs!);
    }
    await pending;
    expect(waits).toEqual([5_000, 6_000, 9_000]);
  });

  it("a longer wait than a minute is the caller's to keep", async () => {
    band.intercept(me).reply(429, '', { headers: { 'Retry-After': '3600' } });
    const error = await failure(client().getMe());
    expect(error.code).toBe('BAND_RATE_LIMITED');
    expect(error.retryAfterMs).toBe(3_600_000);
  });

  it('nonsense in the headers is ignored', async () => {
    band.intercept(me).reply(429, '', { headers: { 'Retry-After': 'soon', 'X-RateLimit-Reset': 'x' } });
    band.intercept(me).reply(200, { data: ME });
    const pending = client().getMe();
    await clock.advance(0);
    expect(clock.nextInMs).toBe(1_000);
    await clock.advance(1_000);
    await pending;
  });

  it('a caller with a schedule of its own switches them off', async () => {
    band.intercept(me).reply(429, '');
    expect((await failure(client().getMe({ retries: 0 }))).code).toBe('BAND_RATE_LIMITED');
  });

  const post = { method: 'POST', path: `/api/v1/agent/chats/${ROOM}/messages` };
  const sent = { data: { id: MESSAGE, success: true } };
  const postOne = () => client().postMessage(ROOM, { content: 'x', mentions: [{ id: 'u' }] });
  const withCode = (code: string) => Object.assign(new Error(`${code} happened`), { code });

  it.each([429, 503])('a post is repeated after %i, which tells that it had no effect', async (status) => {
    band.intercept(post).reply(status, '');
    band.intercept(post).reply(201, sent);
    expect(await running(postOne())).toMatchObject({ id: MESSAGE });
  });

  it.each(['ECONNREFUSED', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'])('a post is repeated after %s', async (code) => {
    band.intercept(post).replyWithError(withCode(code));
    band.intercept(post).reply(201, sent);
    expect(await running(postOne())).toMatchObject({ id: MESSAGE });
  });

  it.each<[string, number | string, string]>([
    ['500', 500, 'BAND_UNAVAILABLE'],
    ['502', 502, 'BAND_UNAVAILABLE'],
    ['408', 408, 'BAND_TIMEOUT'],
    ['a broken connection', 'UND_ERR_SOCKET', 'BAND_CONNECTION_LOST'],
    ['a reset', 'ECONNRESET', 'BAND_CONNECTION_LOST'],
    ['a silent platform', 'UND_ERR_HEADERS_TIMEOUT', 'BAND_TIMEOUT'],
  ])('a post is not repeated after %s: it may have been taken', async (_name, fault, code) => {
    if (typeof fault === 'number') band.intercept(post).reply(fault, '');
    else band.intercept(post).replyWithError(withCode(fault));
    const error: GatewayError = await running(failure(postOne()));
    expect(error.code).toBe(code);
    expect(error.undelivered).toBe(false);
  });

  it('a mark is repeated after a broken connection', async () => {
    const path = `/api/v1/agent/chats/${ROOM}/messages/${MESSAGE}/processed`;
    band.intercept({ method: 'POST', path }).replyWithError(withCode('ECONNRESET'));
    band
      .intercept({ method: 'POST', path })
      .reply(200, { data: { id: MESSAGE, status: 'processed', attempt_number: 1, success: true } });
    expect(await running(client().markProcessed(ROOM, MESSAGE))).toEqual({ kind: 'accepted', attempt: 1 });
  });

  it('409 is not repeated: a participant that is there stays there', async () => {
    band
      .intercept({ method: 'POST', path: `/api/v1/agent/chats/${ROOM}/participants` })
      .reply(409, envelope('conflict', 'already in the room'));
    expect((await failure(client().addParticipant(ROOM, { participantId: 'p' }))).code).toBe('BAND_CONFLICT');
  });

  it('activity is never repeated and has its own deadline', async () => {
    const path = `/api/v1/agent/chats/${ROOM}/activity`;
    band.intercept({ method: 'POST', path }).reply(503, '');
    expect((await failure(client().reportActivity(ROOM, true))).code).toBe('BAND_UNAVAILABLE');
    band.intercept({ method: 'POST', path }).reply(200, {}).delay(60_000);
    const failed = failure(client().reportActivity(ROOM, true));
    await clock.advance(2_000);
    expect((await failed).code).toBe('BAND_TIMEOUT');
    expect(clock.pending).toBe(0);
  });

  it('a signal ends the wait for a repeat, and a call that has not begun', async () => {
    const controller = new AbortController();
    band.intercept(me).reply(503, '');
    const pending = client().getMe({ signal: controller.signal });
    await clock.advance(100);
    controller.abort(new Error('stop now'));
    await expect(pending).rejects.toThrow('stop now');
    expect(clock.pending).toBe(0);
    await expect(client().getMe({ signal: controller.signal })).rejects.toThrow('stop now');
  });
});

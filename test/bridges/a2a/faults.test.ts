import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { toWireError } from '../../../bridges/a2a/errors.js';
import { ERROR_CODES, type ErrorCode } from '../../../src/base/error-codes.js';
import { GatewayError } from '../../../src/base/errors.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore } from '../../../src/store/port.js';
import { message } from '../../support/a2a/client.js';
import { a2aLab, KEY, type A2ALab } from '../../support/a2a/lab.js';

const NOW = { returnImmediately: true };

/** Code, HTTP status over JSON-RPC and over REST, status word, reason: the tables of 5.4 and our own rows. */
const TABLE: Partial<Record<ErrorCode, [number, number, number, string, string | null]>> = {
  A2A_PARSE: [-32700, 200, 400, 'INVALID_ARGUMENT', null],
  A2A_ENVELOPE: [-32600, 200, 400, 'INVALID_ARGUMENT', null],
  A2A_METHOD_UNKNOWN: [-32601, 200, 404, 'NOT_FOUND', null],
  A2A_ROUTE_UNKNOWN: [-32000, 404, 404, 'NOT_FOUND', 'ROUTE_UNKNOWN'],
  A2A_METHOD_NOT_ALLOWED: [-32000, 405, 405, 'UNIMPLEMENTED', 'METHOD_NOT_ALLOWED'],
  A2A_VERSION: [-32009, 200, 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED'],
  A2A_REQUEST_TYPE: [-32600, 415, 415, 'INVALID_ARGUMENT', null],
  A2A_NOT_ACCEPTABLE: [-32600, 406, 406, 'INVALID_ARGUMENT', null],
  A2A_ENCODED: [-32600, 415, 415, 'INVALID_ARGUMENT', null],
  A2A_TOO_LARGE: [-32000, 413, 413, 'INVALID_ARGUMENT', 'PAYLOAD_TOO_LARGE'],
  A2A_SLOW: [-32000, 408, 408, 'DEADLINE_EXCEEDED', 'REQUEST_TIMEOUT'],
  A2A_PARAMS: [-32602, 200, 400, 'INVALID_ARGUMENT', null],
  A2A_CONTENT_TYPE: [-32005, 200, 400, 'INVALID_ARGUMENT', 'CONTENT_TYPE_NOT_SUPPORTED'],
  A2A_TASK_UNKNOWN: [-32001, 200, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
  A2A_TASK_ENDED: [-32004, 200, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
  A2A_TASK_OVER: [-32004, 200, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
  A2A_TASK_BUSY: [-32004, 200, 400, 'FAILED_PRECONDITION', 'TASK_BUSY'],
  A2A_NOT_CANCELABLE: [-32002, 200, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'],
  A2A_MESSAGE_ID_REUSED: [-32602, 200, 409, 'ALREADY_EXISTS', 'MESSAGE_ID_REUSED'],
  A2A_PUSH_UNSUPPORTED: [-32003, 200, 400, 'FAILED_PRECONDITION', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  A2A_NO_EXTENDED_CARD: [-32007, 200, 400, 'FAILED_PRECONDITION', 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'],
  A2A_UNAUTHENTICATED: [-32000, 401, 401, 'UNAUTHENTICATED', 'UNAUTHENTICATED'],
  A2A_SCOPE: [-32000, 403, 403, 'PERMISSION_DENIED', 'PERMISSION_DENIED'],
  A2A_PEER_UNKNOWN: [-32000, 404, 404, 'NOT_FOUND', 'PEER_UNKNOWN'],
  A2A_RATE_LIMITED: [-32000, 429, 429, 'RESOURCE_EXHAUSTED', 'RATE_LIMITED'],
  A2A_STREAM_LIMIT: [-32000, 429, 429, 'RESOURCE_EXHAUSTED', 'STREAM_LIMIT'],
  A2A_CONTEXT_BUSY: [-32000, 200, 409, 'ABORTED', 'CONTEXT_BUSY'],
  A2A_TASK_LIMIT: [-32000, 429, 429, 'RESOURCE_EXHAUSTED', 'TASK_LIMIT'],
  A2A_CAPACITY: [-32000, 503, 503, 'UNAVAILABLE', 'CAPACITY'],
  A2A_NOT_READY: [-32000, 503, 503, 'UNAVAILABLE', 'NOT_READY'],
  A2A_BAND_DOWN: [-32000, 503, 503, 'UNAVAILABLE', 'BAND_UNAVAILABLE'],
  A2A_STORE_DOWN: [-32000, 503, 503, 'UNAVAILABLE', 'STORE_UNAVAILABLE'],
  A2A_STOPPING: [-32000, 503, 503, 'UNAVAILABLE', 'SHUTTING_DOWN'],
};

describe('the table of faults', () => {
  it.each(Object.entries(TABLE) as [ErrorCode, NonNullable<(typeof TABLE)[ErrorCode]>][])(
    '%s has its code, statuses, word and reason',
    (code, [rpc, http, rest, word, reason]) => {
      const wire = toWireError(new GatewayError(code, { cause: new Error('canary') }), 'req-1');
      expect([wire.rpcCode, wire.rpcStatus, wire.restStatus, wire.word, wire.details[0]?.['reason'] ?? null]).toEqual([
        rpc,
        http,
        rest,
        word,
        reason,
      ]);
      expect(wire.message).toBe(ERROR_CODES[code].text);
      expect(JSON.stringify(wire)).not.toContain('canary');
    },
  );

  it('covers every code of A2A requests', () => {
    const codes = Object.keys(ERROR_CODES).filter((code) => code.startsWith('A2A_') && code !== 'A2A_STREAM_CUT');
    expect(codes.sort()).toEqual(Object.keys(TABLE).sort());
  });

  it('a bug shows the request id and nothing else', () => {
    const wire = toWireError(new Error('canary in secret.ts'), 'req-1');
    expect([wire.rpcCode, wire.rpcStatus, wire.restStatus, wire.expected]).toEqual([-32603, 500, 500, false]);
    expect(JSON.stringify(wire)).not.toContain('canary');
    expect(wire.details[0]).toMatchObject({ reason: 'INTERNAL', metadata: { requestId: 'req-1' } });
  });
});

describe('faults that come from inside', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());

  /** A memory store whose writes or reads fail while told so. */
  const failing = () => {
    const store = createMemoryStore();
    const state = { writes: false, reads: false };
    const guarded: StateStore = {
      ...store,
      batch: (changes) => (state.writes ? Promise.reject(new GatewayError('STORE_TRIPPED')) : store.batch(changes)),
      get: (key) => (state.reads ? Promise.reject(new Error('canary-bug')) : store.get(key)),
    };
    return { state, guarded };
  };

  it('A-153 a store that takes no writes refuses new work and makes no task; reads go on', async () => {
    const { state, guarded } = failing();
    lab = await a2aLab({ store: guarded });
    const taskId = await lab.submit('x');
    await lab.posted(1);
    await lab.until(async () => (await lab.get(taskId)).status.state === 'TASK_STATE_WORKING');
    state.writes = true;
    const refused = await lab.client.rpc('helper', 'SendMessage', message('y', {}, NOW));
    expect([refused.status, refused.body.error.data[0]?.reason]).toEqual([503, 'STORE_UNAVAILABLE']);
    expect((await lab.get(taskId)).status.state).toBe('TASK_STATE_WORKING');
    expect(lab.engine.held.tasks).toBe(1);
    expect(lab.rooms.posted).toHaveLength(1);
  });

  it('a reply that comes while the store is out of order is taken once it is back', async () => {
    const { state, guarded } = failing();
    lab = await a2aLab({ store: guarded });
    const taskId = await lab.submit('x');
    await lab.posted(1);
    await lab.until(async () => (await lab.get(taskId)).status.state === 'TASK_STATE_WORKING');
    state.writes = true;
    const taken = lab.reply('answer');
    await lab.until(() => lab.lines.some(({ msg }) => String(msg).includes('the store refused a step')));
    expect((await lab.get(taskId)).artifacts).toBeUndefined();
    state.writes = false;
    await lab.clock.advance(2_000);
    await taken;
    expect((await lab.get(taskId)).artifacts?.[0]?.parts[0]?.text).toBe('answer');
  });

  it('A-201 a write whose outcome is unknown is settled by what the disk has: nothing is lost or doubled', async () => {
    const store = createMemoryStore();
    let lie = false;
    const lying: StateStore = {
      ...store,
      async batch(changes) {
        const revision = await store.batch(changes);
        if (!lie) return revision;
        lie = false;
        throw new GatewayError('STORE_IO');
      },
    };
    lab = await a2aLab({ store: lying });
    const taskId = await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    await lab.until(async () => (await lab.get(taskId)).status.state === 'TASK_STATE_WORKING');
    const next = await lab.submit('two', { contextId: 'c' });
    const stream = await lab.client.stream('helper', 'SubscribeToTask', { id: taskId });
    await stream.next();
    lie = true;
    const taken = lab.reply('answer');
    await lab.until(() => lab.lines.some(({ msg }) => String(msg).includes('the store refused a step')));
    await lab.clock.advance(1_000);
    await taken;
    const events = await stream.rest();
    expect(events.map(({ result }) => Object.keys(result)[0])).toEqual(['artifactUpdate', 'statusUpdate']);
    expect((await lab.get(taskId)).artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(['answer']);
    // The lane goes on with the next task.
    await lab.posted(2);
    await lab.reply('second answer');
    expect((await lab.get(next)).artifacts?.[0]?.parts[0]?.text).toBe('second answer');
    expect(lab.engine.held.tasks).toBe(0);
  });

  it('A-158 a bug is a 500 with the request id, on both doors, and one line in the log', async () => {
    const { state, guarded } = failing();
    lab = await a2aLab({ store: guarded });
    state.reads = true;
    const rpc = await lab.client.rpc('helper', 'GetTask', { id: 'x' });
    const rest = await lab.client.request('GET', '/agents/helper/tasks/x');
    state.reads = false;
    for (const answer of [rpc, rest]) {
      expect(answer.status).toBe(500);
      expect(answer.text).not.toContain('canary');
      expect(answer.text).toContain(answer.headers.get('x-request-id'));
    }
    expect(lab.lines.filter(({ msg }) => msg === 'a request failed')).toHaveLength(2);
  });

  it('A-326 a stop gives waiting callers the task as it stands, ends streams, refuses what is new', async () => {
    lab = await a2aLab();
    const blocked = lab.client.rpc('helper', 'SendMessage', message('x'));
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('y'));
    await lab.posted(2);
    await stream.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    const stopped = lab.close();
    expect((await blocked).body.result.task.status.state).toBe('TASK_STATE_WORKING');
    expect(await stream.rest()).toEqual([]);
    await stopped;
    const again = await lab.restarted();
    expect(again.engine.held.tasks).toBe(2);
    await again.close();
  });

  it('A-326 with a memory store open tasks fail before their streams end', async () => {
    lab = await a2aLab({ durable: false });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('y'));
    await stream.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    await lab.close();
    expect((await stream.rest()).at(-1)?.result.statusUpdate.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { metadata: { band_reason: 'GATEWAY_SHUTDOWN' } },
    });
  });

  it('A-326 while it stops, new requests are refused with a time to come again', async () => {
    lab = await a2aLab();
    const release = lab.rooms.hold('createChat');
    await lab.submit('x');
    await lab.until(() => lab.rooms.countOf(/^POST \/chats$/) === 1);
    const stopping = lab.close();
    const late = await lab.client.rpc('helper', 'SendMessage', message('y'));
    expect([late.status, late.headers.get('retry-after'), late.body.error.data[0]?.reason]).toEqual([
      503,
      '5',
      'SHUTTING_DOWN',
    ]);
    release();
    await stopping;
  });

  it('A-326 a request whose body was on its way when the stop began makes no task', async () => {
    lab = await a2aLab();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message('y', {}, NOW) });
    const headers = { 'x-api-key': KEY, 'a2a-version': '1.0', 'content-length': String(body.length) };
    const request = httpRequest(`${lab.client.base}/agents/helper`, { method: 'POST', headers });
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    request.write(body.slice(0, 10));
    await lab.until(() => lab.clock.nextInMs === 30_000, 'the wait for the rest');
    const stopped = lab.close();
    await lab.until(() => lab.engine.readers.aborted);
    request.end(body.slice(10));
    const [answer] = await answered;
    answer.resume();
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5']);
    await stopped;
    expect(lab.rooms.writes).toEqual([]);
    const again = await lab.restarted();
    expect((await again.client.rpc('helper', 'ListTasks', {})).body.result.totalSize).toBe(0);
    await again.close();
  });

  it('A-326 a stop does not wait longer than it may', async () => {
    lab = await a2aLab({ options: { shutdownMs: 1_000 } });
    lab.rooms.hold('createChat');
    await lab.submit('x');
    await lab.until(() => lab.rooms.countOf(/^POST \/chats$/) === 1);
    const stopping = lab.close();
    await lab.until(() => lab.clock.nextInMs !== null);
    for (let n = 0; n < 5; n += 1) await lab.clock.advance(1_000);
    await stopping;
  });

  it('A-333 rooms that the runtime lets go because it stops fail no task', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('x');
    await lab.posted(1);
    await lab.until(async () => (await lab.get(taskId)).status.state === 'TASK_STATE_WORKING');
    await lab.adapter.onCleanup(lab.roomId, { reason: 'shutdown' });
    expect((await lab.get(taskId)).status.state).toBe('TASK_STATE_WORKING');
  });
});

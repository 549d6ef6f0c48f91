import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { isTerminal, TASK_STATES, type Task } from '../../../bridges/a2a/wire.js';
import { kindOf, message, type Body, type Content } from '../../support/a2a/client.js';
import { KEY, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';
import { answeringLab, asks, bindingsOf, kindsOf, taskOf, type Binding } from './lab.js';

/**
 * The requirements of the official suite for 1.0 by their ids, over both bindings and with the product's own settings;
 * those it lists as not tested as well. Not here: gRPC, which is not served; push and signed cards, which are not offered.
 */
const NOW = { returnImmediately: true };
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

let lab: A2ALab;
afterEach(() => lab.close());
/** A checkout of the official suite, to see whether its registry has moved. */
const CHECKOUT = process.env['A2A_TCK_CHECKOUT'];
const NOT_SERVED = /^(?:GRPC|PUSH|CARD-SIGN)-/;
/** What only a client can do, or an operator outside the gateway. */
const NOT_OURS = /^(?:VER-CLIENT-001|AUTH-TLS-002|AUTH-SERVER-001|AUTH-INTASK-004|CORE-STREAM-002)$/;
const each = async (check: (binding: Binding) => Promise<void>) => {
  for (const binding of bindingsOf(lab)) await check(binding);
};
const state = (task: Task) => task.status.state;
const contentOf = (event: Body): Content => (event as Partial<Body>).result ?? event;
const silent = () => answeringLab(() => null);

describe('A-364 sending', () => {
  it('CORE-SEND-001 DM-TASK-001 answers with a task that has its required fields', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      const task = await taskOf(binding);
      expect([task.id, task.contextId]).toEqual([expect.stringMatching(ID), expect.stringMatching(ID)]);
      expect(TASK_STATES).toContain(state(task));
    });
  });

  it('CORE-SEND-002 refuses messages to ended tasks', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      const { id } = await taskOf(binding);
      const { value, reason } = await binding.send(message('more', { taskId: id }));
      expect([binding.name === 'JSONRPC' ? value['code' as never] : 400, reason]).toEqual([
        binding.name === 'JSONRPC' ? -32004 : 400,
        'UNSUPPORTED_OPERATION',
      ]);
    });
  });

  it('CORE-SEND-003 refuses content of a kind that the card does not take', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      const parts = [{ raw: 'AAEC', filename: 'x.bin', mediaType: 'application/x-unsupported' }];
      expect((await binding.send(message('', { parts }))).reason).toBe('CONTENT_TYPE_NOT_SUPPORTED');
    });
  });

  it('CORE-EXECUTION-001 a blocking send waits for the end, or for a question', async () => {
    lab = await answeringLab((text) => (text === 'ask' ? `Which?${asks}` : 'done'));
    await each(async (binding) => {
      expect(state(await taskOf(binding))).toBe('TASK_STATE_COMPLETED');
      expect(state(await taskOf(binding, 'ask'))).toBe('TASK_STATE_INPUT_REQUIRED');
    });
  });

  it('CORE-EXECUTION-002 a send that wants no wait gets none', async () => {
    lab = await silent();
    await each(async (binding) => {
      const { value } = await binding.send(message('slow', {}, NOW));
      expect(isTerminal(state(value.task))).toBe(false);
    });
  });
});

describe('A-364 streaming', () => {
  it('CORE-STREAM-001 CORE-STREAM-003 JSONRPC-SSE-001 HTTP_JSON-SSE-001 begins with the task and closes at its end', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      const stream = await binding.stream(message('hi'));
      expect(stream.headers.get('content-type')).toBe('text/event-stream');
      const events = await stream.rest();
      expect(kindOf(events[0]!)).toBe('task');
      expect(isTerminal(contentOf(events.at(-1)!).statusUpdate.status.state)).toBe(true);
    });
  });

  it('STREAM-ORDER-001 events come in the order they were made', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      expect(await kindsOf(await binding.stream(message('hi')))).toEqual([
        'task',
        'statusUpdate',
        'artifactUpdate',
        'statusUpdate',
      ]);
    });
  });

  it('STREAM-ORDER-002 STREAM-ORDER-003 STREAM-ORDER-004 every stream has the same events, and closing one touches no other', async () => {
    lab = await silent();
    await each(async (binding) => {
      const { value } = await binding.send(message('slow', {}, NOW));
      const { id } = value.task;
      await lab.until(() => lab.engine.book.find(id)?.row.posted === 1);
      const roomId = lab.rooms.posted.at(-1)!.roomId;
      const [a, b, c] = [await binding.subscribe(id), await binding.subscribe(id), await binding.subscribe(id)];
      await lab.until(() => lab.engine.book.find(id)?.watchers.size === 3);
      await c.cancel();
      await lab.reply('done', { roomId });
      const [first, second] = [await a.rest(), await b.rest()];
      expect(second.map(contentOf)).toEqual(first.map(contentOf));
      expect(first.map(kindOf)).toEqual(['task', 'artifactUpdate', 'statusUpdate']);
    });
  });

  it('STREAM-SUB-001 STREAM-SUB-002 a subscription begins with the task and closes at its end', async () => {
    lab = await silent();
    await each(async (binding) => {
      const { value } = await binding.send(message('slow', {}, NOW));
      const { id } = value.task;
      const stream = await binding.subscribe(id);
      expect(kindOf((await stream.next())!)).toBe('task');
      await binding.cancel(id);
      expect(contentOf((await stream.rest()).at(-1)!).statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
    });
  });

  it('STREAM-SUB-003 STREAM-SUB-004 ended and unknown tasks cannot be subscribed to', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      const { id } = await taskOf(binding);
      for (const [task, reason] of [
        [id, 'UNSUPPORTED_OPERATION'],
        ['nope', 'TASK_NOT_FOUND'],
      ] as const) {
        const { error } = (await (await binding.subscribe(task)).next())!;
        expect((error.data ?? error.details)[0]?.reason).toBe(reason);
      }
    });
  });
});

describe('A-364 getting, listing and cancelling', () => {
  it('CORE-GET-001 CORE-GET-002 a task reads as it stands, an unknown one is not found', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      const task = await taskOf(binding);
      const got = await binding.get(task.id);
      expect({ ...got.value, jsonrpc: undefined }).toMatchObject({ ...task });
      expect((await binding.get('nope')).reason).toBe('TASK_NOT_FOUND');
    });
  });

  it('CORE-LIST-001 AUTH-SCOPE-002 lists own tasks only', async () => {
    lab = await answeringLab();
    const other = bindingsOf({ ...lab, client: lab.client.as({ headers: { 'x-api-key': OTHER_KEY } }) });
    await taskOf(other[0]!);
    await each(async (binding) => {
      const own = await taskOf(binding);
      const { value } = await binding.list({ contextId: own.contextId });
      expect(value.tasks.map(({ id }) => id)).toEqual([own.id]);
    });
    expect((await other[1]!.list({})).value.totalSize).toBe(1);
  });

  it('CORE-LIST-002 CORE-LIST-003 CORE-LIST-004 pages by token, newest first, with an empty token at the end', async () => {
    lab = await answeringLab();
    for (const text of ['a', 'b', 'c']) {
      await taskOf(bindingsOf(lab)[0]!, text);
      await lab.clock.advance(1_000);
    }
    await each(async (binding) => {
      const first = (await binding.list({ pageSize: 2 })).value;
      const second = (await binding.list({ pageSize: 2, pageToken: first.nextPageToken })).value;
      const times = [...first.tasks, ...second.tasks].map(({ status }) => status.timestamp);
      expect(times).toEqual([...times].sort().reverse());
      expect([first.tasks.length, second.tasks.length, second.nextPageToken]).toEqual([2, 1, '']);
    });
  });

  it('CORE-LIST-005 leaves artifacts out unless they are asked for', async () => {
    lab = await answeringLab();
    await taskOf(bindingsOf(lab)[0]!);
    await each(async (binding) => {
      expect('artifacts' in (await binding.list({})).value.tasks[0]!).toBe(false);
      expect((await binding.list({ includeArtifacts: true })).value.tasks[0]?.artifacts).toHaveLength(1);
    });
  });

  it('CORE-CANCEL-001 CORE-CANCEL-002 CORE-CANCEL-003 cancels an open task, and no other', async () => {
    lab = await silent();
    await each(async (binding) => {
      const { value } = await binding.send(message('slow', {}, NOW));
      expect((await binding.cancel(value.task.id)).value.status.state).toBe('TASK_STATE_CANCELED');
      expect((await binding.cancel(value.task.id)).reason).toBe('TASK_NOT_CANCELABLE');
      expect((await binding.cancel('nope')).reason).toBe('TASK_NOT_FOUND');
    });
  });
});

describe('A-364 contexts and history', () => {
  it('CORE-MULTI-001 CORE-MULTI-001a a context is made where none is given, and is in the answer', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      expect((await taskOf(binding)).contextId).toMatch(ID);
    });
  });

  it('CORE-MULTI-002 CORE-MULTI-002a CORE-MULTI-003 a client’s context is kept, an unusable one refused', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      expect((await taskOf(binding, 'hi', { contextId: 'mine' })).contextId).toBe('mine');
      const { answer } = await binding.send(message('hi', { contextId: 'a\u0000b' }));
      expect(answer.text).toContain('message.contextId');
    });
  });

  it('CORE-MULTI-004 each new task has an id of its own', async () => {
    lab = await answeringLab();
    const ids = new Set<string>();
    await each(async (binding) => {
      for (let n = 0; n < 3; n += 1) ids.add((await taskOf(binding, `job ${n}`)).id);
    });
    expect(ids.size).toBe(6);
  });

  it('CORE-MULTI-005 CORE-MULTI-006 an unknown task is not found, a known one tells its context', async () => {
    lab = await answeringLab((text) => (text === 'ask' ? `Which?${asks}` : null));
    await each(async (binding) => {
      expect((await binding.send(message('x', { taskId: 'nope' }))).reason).toBe('TASK_NOT_FOUND');
      const task = await taskOf(binding, 'ask');
      const { value } = await binding.send(message('this', { taskId: task.id }, NOW));
      expect([value.task.id, value.task.contextId]).toEqual([task.id, task.contextId]);
    });
  });

  it('CORE-HIST-001 a context that is not the task’s is refused', async () => {
    lab = await answeringLab(() => `Which?${asks}`);
    await each(async (binding) => {
      const task = await taskOf(binding, 'ask');
      const { answer } = await binding.send(message('x', { taskId: task.id, contextId: 'other' }));
      expect(answer.text).toContain('does not belong to message.taskId');
    });
  });

  it('CORE-HIST-002 CORE-HIST-003 CORE-HIST-004 historyLength 0 leaves the history out, n is never exceeded', async () => {
    lab = await answeringLab((text) => (text === 'done' ? 'ok' : `Which?${asks}`));
    await each(async (binding) => {
      const { id } = await taskOf(binding, 'ask');
      const last = await binding.send(message('done', { taskId: id }, { historyLength: 0 }));
      expect(last.value.task.history).toBeUndefined();
      expect((await binding.get(id, 0)).value.history).toBeUndefined();
      expect((await binding.get(id, 2)).value.history).toHaveLength(2);
    });
  });

  it('CORE-HIST-005 CORE-HIST-006 the history holds what was said, in order', async () => {
    lab = await answeringLab((text) => (text === 'done' ? 'ok' : `Which?${asks}`));
    await each(async (binding) => {
      const { id } = await taskOf(binding, 'ask');
      await binding.send(message('done', { taskId: id }));
      const { history } = (await binding.get(id)).value;
      expect(history?.map(({ role, parts }) => [role, parts[0]?.text])).toEqual([
        ['ROLE_USER', 'ask'],
        ['ROLE_AGENT', 'Which?'],
        ['ROLE_USER', 'done'],
      ]);
    });
  });
});

describe('A-364 capabilities and errors', () => {
  it('CORE-CAP-001 push operations are refused where the card does not offer them', async () => {
    lab = await answeringLab();
    const rpc = await lab.client.rpc('helper', 'GetTaskPushNotificationConfig', { taskId: 'x', id: 'y' });
    const rest = await lab.client.request('GET', '/agents/helper/tasks/x/pushNotificationConfigs');
    expect([rpc.body.error.code, rest.body.error.details[0]?.reason]).toEqual([
      -32003,
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
    ]);
  });

  it('CORE-CAP-002 streaming is offered, and the operations are there', async () => {
    lab = await answeringLab();
    const card = await lab.client.request('GET', '/agents/helper');
    expect((card.body as unknown as { capabilities: object }).capabilities).toMatchObject({ streaming: true });
    await each(async (binding) => {
      expect((await binding.stream(message('hi'))).status).toBe(200);
    });
  });

  it('CORE-CAP-003 CARD-EXT-001 CARD-EXT-002 the extended card wants a caller, and an error where there is none', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      expect((await binding.extendedCard()).answer.status).toBe(200);
    });
    const stranger = await lab.client.request('GET', '/agents/helper/extendedAgentCard', undefined, {
      headers: { 'x-api-key': 'no' },
    });
    expect(stranger.status).toBe(401);
    await lab.close();
    lab = await answeringLab(undefined, { extendedCard: 'off' });
    await each(async (binding) => {
      expect((await binding.extendedCard()).reason).toBe('EXTENDED_AGENT_CARD_NOT_CONFIGURED');
    });
  });

  it('CORE-CAP-004 the card requires no extension, so none can be missing', async () => {
    lab = await answeringLab();
    const card = await lab.client.request('GET', '/agents/helper');
    expect(card.text).not.toContain('"required":true');
  });

  it('CORE-ERR-001 CORE-ERR-002 errors name the field, and nothing is done before all fields are checked', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      const { answer } = await binding.send({ message: { messageId: 'm', role: 'ROLE_USER', parts: [] } });
      expect(answer.text).toContain('message.parts');
      expect(lab.rooms.posted).toEqual([]);
    });
  });

  it('JSONRPC-ERR-001 JSONRPC-ERR-002 JSONRPC-ERR-003 JSONRPC-SSE-002 JSON-RPC errors have code, sentence and ErrorInfo', async () => {
    lab = await answeringLab();
    const { id } = await taskOf(bindingsOf(lab)[0]!);
    for (const [method, params, code, reason] of [
      ['GetTask', { id: 'nope' }, -32001, 'TASK_NOT_FOUND'],
      ['CancelTask', { id }, -32002, 'TASK_NOT_CANCELABLE'],
      ['ListTaskPushNotificationConfigs', { taskId: id }, -32003, 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
      ['SendMessage', message('x', { taskId: id }), -32004, 'UNSUPPORTED_OPERATION'],
      [
        'SendMessage',
        message('', { parts: [{ raw: 'AA==', mediaType: 'image/png' }] }),
        -32005,
        'CONTENT_TYPE_NOT_SUPPORTED',
      ],
    ] as const) {
      const { body } = await lab.client.rpc('helper', method, params);
      expect(body.error).toMatchObject({
        code,
        message: expect.stringMatching(/\S/) as string,
        data: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org' }],
      });
    }
  });

  it('HTTP_JSON-ERR-001 HTTP_JSON-ERR-002 HTTP_JSON-STATUS-001 REST errors are statuses with ErrorInfo, as 1.0.1 has them', async () => {
    lab = await answeringLab();
    const { id } = await taskOf(bindingsOf(lab)[0]!);
    for (const [verb, path, body, status, word, reason] of [
      ['GET', 'tasks/nope', undefined, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
      ['POST', `tasks/${id}:cancel`, undefined, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'],
      ['POST', 'message:send', message('x', { taskId: id }), 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
    ] as const) {
      const answer = await lab.client.request(verb, `/agents/helper/${path}`, body);
      expect([answer.status, answer.body.error]).toMatchObject([
        status,
        { code: status, status: word, details: [{ reason, domain: 'a2a-protocol.org' }] },
      ]);
    }
  });

  it('JSONRPC-FMT-001 JSONRPC-FMT-002 JSONRPC-SVC-001 JSONRPC-SVC-002 JSON-RPC 2.0 in JSON, methods in Pascal case, versions in a header', async () => {
    lab = await answeringLab();
    const answer = await lab.client.rpc('helper', 'SendMessage', message('hi'), { id: 'r' });
    expect([answer.headers.get('content-type'), answer.body.jsonrpc]).toEqual(['application/json', '2.0']);
    expect((await lab.client.rpc('helper', 'sendMessage', message('hi'))).body.error.code).toBe(-32601);
    expect((await lab.client.rpc('helper', 'SendMessage', message('hi'), { version: '9.0' })).body.error.code).toBe(
      -32009,
    );
  });

  it('HTTP_JSON-SVC-001 HTTP_JSON-SVC-002 HTTP_JSON-QP-001 HTTP_JSON-URL-001 HTTP_JSON-URL-002 REST paths, verbs, queries and headers', async () => {
    lab = await answeringLab();
    const { id } = await taskOf(bindingsOf(lab)[1]!);
    const json = { headers: { accept: 'application/json' } };
    const got = await lab.client.request('GET', `/agents/helper/tasks/${id}?historyLength=1`, undefined, json);
    expect([got.status, got.headers.get('content-type'), got.body.history?.length]).toEqual([
      200,
      'application/json',
      1,
    ]);
    expect((await lab.client.request('DELETE', `/agents/helper/tasks/${id}`)).status).toBe(405);
    expect((await lab.client.request('GET', '/agents/helper/tasks', undefined, { version: '9.0' })).status).toBe(400);
  });
});

describe('A-364 the data model', () => {
  it('DM-STATUS-001 DM-MSG-001 DM-MSG-002 DM-PART-001 DM-ART-001 DM-TASK-002 statuses, messages, parts and artifacts have their fields', async () => {
    lab = await answeringLab((text) => (text === 'ask' ? `Which?${asks}` : 'done'));
    await each(async (binding) => {
      const asked = await taskOf(binding, 'ask');
      expect(asked.status.message).toMatchObject({
        role: 'ROLE_AGENT',
        messageId: expect.stringMatching(/\S/) as string,
      });
      const { artifacts, history } = await taskOf(binding);
      expect(artifacts?.[0]).toMatchObject({
        artifactId: expect.stringMatching(/\S/) as string,
        parts: [{ text: 'done' }],
      });
      for (const part of artifacts?.[0]?.parts ?? []) {
        expect(Object.keys(part).filter((key) => ['text', 'raw', 'url', 'data'].includes(key))).toHaveLength(1);
      }
      expect(['ROLE_USER', 'ROLE_AGENT']).toContain(history?.[0]?.role);
    });
  });

  it('DM-SERIAL-001 DM-SERIAL-002 DM-SERIAL-003 DM-SERIAL-004 names in camel case, enums by name, times in UTC', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      const { answer, value } = await binding.send(message('hi'));
      expect(answer.text).not.toMatch(/"[a-z]+_[a-z_]+":/);
      expect(value.task.status.state).toBe('TASK_STATE_COMPLETED');
      expect(value.task.status.timestamp).toMatch(TIMESTAMP);
    });
  });

  it('DM-SERIAL-005 fields nobody knows are ignored, required ones are required', async () => {
    lab = await answeringLab();
    await each(async (binding) => {
      expect((await binding.send({ ...message('hi', { colour: 'red' }), speed: 5 })).answer.status).toBe(200);
      expect((await binding.send({ message: { parts: [{ text: 'x' }] } })).answer.text).toContain('message.messageId');
    });
  });
});

describe('A-364 cards, versions and bindings', () => {
  const cardOf = () =>
    lab.client.request('GET', '/agents/helper/.well-known/agent-card.json', undefined, { version: null });

  it('CARD-DISC-001 CARD-STRUCT-001 CARD-PROTO-001 CARD-PROTO-002 BIND-FIELD-001 the card is there, whole, and names every binding with its address', async () => {
    lab = await answeringLab();
    const { status, body } = await cardOf();
    const { supportedInterfaces } = body as unknown as { supportedInterfaces: Record<string, string>[] };
    expect(status).toBe(200);
    expect(supportedInterfaces.map((one) => one['protocolBinding'])).toEqual(['JSONRPC', 'HTTP+JSON', 'JSONRPC']);
    for (const one of supportedInterfaces)
      expect([URL.canParse(one['url'] ?? ''), one['protocolVersion']]).toEqual([
        true,
        expect.stringMatching(/^\d\.\d$/),
      ]);
  });

  it('CARD-CACHE-001 CARD-CACHE-002 CARD-CACHE-003 the card may be cached', async () => {
    lab = await answeringLab();
    const { headers } = await cardOf();
    expect(headers.get('cache-control')).toContain('max-age');
    expect(headers.get('etag')).toMatch(/^"/);
    expect(headers.get('last-modified')).toMatch(/GMT$/);
  });

  it('VER-SERVER-001 VER-SERVER-002 VER-SERVER-003 VER-CLIENT-002 patches do not count, the asked version is spoken, others are refused, none is 0.3', async () => {
    lab = await answeringLab();
    expect(
      (await lab.client.rpc('helper', 'SendMessage', message('a'), { version: '1.0.9' })).body.result.task.id,
    ).toMatch(ID);
    expect((await lab.client.rpc('helper', 'SendMessage', message('b'), { version: '2.0' })).body.error.code).toBe(
      -32009,
    );
    expect((await lab.client.rpc('helper', 'tasks/get', { id: 'x' }, { version: '' })).body.error.code).toBe(-32001);
    expect((await lab.client.rpc('helper', 'tasks/get', { id: 'x' }, { version: null })).body.error.code).toBe(-32001);
  });

  it('BIND-EQUIV-001 BIND-EQUIV-002 BIND-EQUIV-003 both bindings do the same and answer the same', async () => {
    lab = await answeringLab();
    const [rpc, rest] = bindingsOf(lab) as [Binding, Binding];
    const plain = ({ status, artifacts }: Task) => [status.state, artifacts?.map(({ parts }) => parts)];
    expect(plain(await taskOf(rest))).toEqual(plain(await taskOf(rpc)));
    const { id } = await taskOf(rpc, 'shared');
    expect((await rest.get(id)).value).toEqual((await rpc.get(id)).value);
    expect((await rest.list({})).value).toEqual((await rpc.list({})).value);
    const card = async (binding: Binding) => (await binding.extendedCard()).value;
    expect(await card(rest)).toEqual(await card(rpc));
  });

  it('BIND-EQUIV-004 both bindings name the same reason for the same fault, and take the same credentials', async () => {
    lab = await answeringLab();
    const { id } = await taskOf(bindingsOf(lab)[0]!);
    const faults = (binding: Binding) =>
      Promise.all([
        binding.get('nope'),
        binding.cancel(id),
        binding.send(message('x', { taskId: id })),
        binding.send(message('', { parts: [{ raw: 'AA==', mediaType: 'image/png' }] })),
      ]);
    const [rpc, rest] = bindingsOf(lab) as [Binding, Binding];
    const reasons = async (binding: Binding) => (await faults(binding)).map(({ reason }) => reason);
    expect(await reasons(rest)).toEqual(await reasons(rpc));
    for (const headers of [{ 'x-api-key': KEY }, { authorization: `Bearer ${KEY}` }]) {
      const client = lab.client.as({ headers });
      for (const binding of bindingsOf({ ...lab, client })) expect((await binding.list({})).answer.status).toBe(200);
    }
  });
});

describe('A-364 authentication', () => {
  it('AUTH-SERVER-002 AUTH-SCOPE-001 every operation wants a caller', async () => {
    lab = await answeringLab();
    const client = lab.client.as({ headers: {} });
    const { id } = await taskOf(bindingsOf(lab)[0]!);
    for (const binding of bindingsOf({ ...lab, client })) {
      for (const { answer } of [
        await binding.send(message('x')),
        await binding.get(id),
        await binding.list({}),
        await binding.cancel(id),
        await binding.extendedCard(),
      ]) {
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
          401,
          expect.stringContaining('Bearer'),
        ]);
      }
    }
  });

  it('AUTH-SCOPE-003 somebody else’s task looks like one that never was', async () => {
    lab = await answeringLab();
    const { id } = await taskOf(bindingsOf(lab)[0]!);
    const client = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    for (const binding of bindingsOf({ ...lab, client })) {
      const [foreign, unknown] = [await binding.get(id), await binding.get('nope')];
      expect([foreign.answer.status, foreign.answer.text]).toEqual([unknown.answer.status, unknown.answer.text]);
    }
  });

  it('AUTH-TLS-001 an address for the outside is https, unless the operator says otherwise', async () => {
    lab = await answeringLab();
    await expect(answeringLab(undefined, { publicUrl: 'http://gw.example.test' })).rejects.toThrow('must be https');
  });

  it('AUTH-INTASK-001 AUTH-INTASK-002 AUTH-INTASK-003 AUTH-INTASK-006 a peer that wants authorization has a task, a state, a message, and hears what the client says', async () => {
    const wants = '\n```a2a\n{"state":"auth-required"}\n```';
    lab = await answeringLab((text) => (text === 'go on' ? 'done' : `Sign in at the portal.${wants}`));
    await each(async (binding) => {
      const task = await taskOf(binding, 'pay');
      expect(task.status).toMatchObject({
        state: 'TASK_STATE_AUTH_REQUIRED',
        message: { parts: [{ text: 'Sign in at the portal.' }] },
      });
      expect(state((await binding.send(message('go on', { taskId: task.id }))).value.task)).toBe(
        'TASK_STATE_COMPLETED',
      );
    });
  });

  it('AUTH-INTASK-005 a subscription stays open while authorization is awaited', async () => {
    const wants = '\n```a2a\n{"state":"auth-required"}\n```';
    lab = await answeringLab((text) => (text === 'go on' ? 'done' : `Sign in.${wants}`));
    await each(async (binding) => {
      const { id } = await taskOf(binding, 'pay');
      const stream = await binding.subscribe(id);
      await stream.next();
      await binding.send(message('go on', { taskId: id }, NOW));
      expect((await kindsOf(stream)).at(-1)).toBe('statusUpdate');
    });
  });
});

describe.skipIf(CHECKOUT === undefined)('A-364 the registry of the official suite', () => {
  it('has no requirement that this file does not name', async () => {
    lab = await answeringLab();
    const folder = join(CHECKOUT ?? '', 'tck', 'requirements');
    const registry = readdirSync(folder)
      .filter((name) => name.endsWith('.py'))
      .flatMap(
        (name) =>
          readFileSync(join(folder, name), 'utf8').match(/(?<=id=")[A-Z_]+(?:-[A-Z]+)?-\d{3}[a-z]?(?=")/g) ?? [],
      );
    const own = readFileSync(new URL(import.meta.url), 'utf8');
    const wanted = registry.filter((id) => !NOT_SERVED.test(id) && !NOT_OURS.test(id));
    expect(wanted.length).toBeGreaterThan(80);
    expect(wanted.filter((id) => !own.includes(id))).toEqual([]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { legacyMessage, message, type Answer } from '../../support/a2a/client.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const NOW = { returnImmediately: true };

describe('the fields of a request', () => {
  let lab: A2ALab;
  beforeAll(async () => {
    lab = await a2aLab({ options: { limits: { openTasks: 1_000, openTasksPerPrincipal: 1_000 } } });
  });
  afterAll(() => lab.close());

  const send = (fields: object, configuration: object = NOW) => {
    const params = message('x', fields as Record<string, unknown>);
    return { ...params, configuration: { ...NOW, ...configuration } };
  };
  /** The violated fields over every way of sending, which must agree. */
  const violated = async (params: unknown): Promise<string[]> => {
    const rpc = await lab.client.rpc('helper', 'SendMessage', params);
    const stream = await lab.client.rpc('helper', 'SendStreamingMessage', params);
    const rest = await lab.client.request('POST', '/agents/helper/message:send', params);
    expect([rpc.status, rpc.body.error.code, rest.status, rest.body.error.status]).toEqual([
      200,
      -32602,
      400,
      'INVALID_ARGUMENT',
    ]);
    const restStream = await lab.client.request('POST', '/agents/helper/message:stream', params);
    expect(stream.body.error).toEqual(rpc.body.error);
    expect(rest.body.error.details).toEqual(rpc.body.error.data);
    expect(restStream.body).toEqual(rest.body);
    return fieldsOf(rpc);
  };
  const legacyViolated = async (params: unknown): Promise<string[]> => {
    const rpc = await lab.client.rpc('helper', 'message/send', params, { version: null });
    const stream = await lab.client.rpc('helper', 'message/stream', params, { version: null });
    expect([rpc.status, rpc.body.error.code]).toEqual([200, -32602]);
    expect(stream.body.error).toEqual(rpc.body.error);
    return fieldsOf(rpc);
  };
  const fieldsOf = ({ body, text }: Answer): string[] => {
    // The words are ours, not those of the library that found the fault.
    expect(text).not.toMatch(/Invalid |expected |received |Too (?:small|big)/);
    return body.error.data[0]!.fieldViolations.map(({ field }) => field);
  };

  it.each([
    ['no message', { configuration: {} }, ['message']],
    ['a message that is a text', { message: 'x' }, ['message']],
    ['an empty messageId', send({ messageId: '' }), ['message.messageId']],
    ['a long messageId', send({ messageId: 'x'.repeat(257) }), ['message.messageId']],
    ['a messageId with a control', send({ messageId: 'a\u0000b' }), ['message.messageId']],
    ['no messageId', send({ messageId: undefined }), ['message.messageId']],
    ['no role', send({ role: undefined }), ['message.role']],
    ['the agent as sender', send({ role: 'ROLE_AGENT' }), ['message.role']],
    ['an unknown role', send({ role: 'ROLE_CAT' }), ['message.role']],
    ['no parts', send({ parts: undefined }), ['message.parts']],
    ['empty parts', send({ parts: [] }), ['message.parts']],
    ['parts that are no list', send({ parts: { text: 'x' } }), ['message.parts']],
    ['too many parts', send({ parts: Array.from({ length: 65 }, () => ({ text: 'x' })) }), ['message.parts']],
    ['a part without content', send({ parts: [{ text: 'x' }, {}] }), ['message.parts[1]']],
    ['a part with two contents', send({ parts: [{ text: 'x', url: 'https://x.example' }] }), ['message.parts[0]']],
    ['data that is null', send({ parts: [{ data: null }] }), ['message.parts[0]']],
    ['a text that is a number', send({ parts: [{ text: 5 }] }), ['message.parts[0].text']],
    ['bad base64', send({ parts: [{ raw: '***', filename: 'a.txt' }] }), ['message.parts[0].raw']],
    ['a url that is not of the web', send({ parts: [{ url: 'ftp://x.example/a' }] }), ['message.parts[0].url']],
    ['a long url', send({ parts: [{ url: `https://x.example/${'a'.repeat(2_048)}` }] }), ['message.parts[0].url']],
    ['a context that is too long', send({ contextId: 'x'.repeat(257) }), ['message.contextId']],
    ['a context with a control', send({ contextId: 'a\nb' }), ['message.contextId']],
    ['a context with half a character', send({ contextId: 'a\ud800' }), ['message.contextId']],
    ['a context that is a number', send({ contextId: 7 }), ['message.contextId']],
    ['a task that is too long', send({ taskId: 'x'.repeat(257) }), ['message.taskId']],
    ['a part that is a text', send({ parts: ['x'] }), ['message.parts[0]']],
    ['a media type that is a number', send({ parts: [{ text: 'x', mediaType: 5 }] }), ['message.parts[0].mediaType']],
    ['references that are no list', send({ referenceTaskIds: 'x' }), ['message.referenceTaskIds']],
    ['an extension that is no text', send({ extensions: [5] }), ['message.extensions[0]']],
    [
      'metadata of a part that is a text',
      send({ parts: [{ text: 'x', metadata: 'y' }] }),
      ['message.parts[0].metadata'],
    ],
    ['a configuration that is a text', { ...send({}), configuration: 'x' }, ['configuration']],
    ['several faults at once', send({ role: 'x', parts: [] }), ['message.role', 'message.parts']],
    ['metadata that is a list', send({ metadata: [] }), ['message.metadata']],
    ['metadata that is too large', send({ metadata: { a: 'x'.repeat(65_536) } }), ['message.metadata']],
    ['a negative historyLength', send({}, { historyLength: -1 }), ['configuration.historyLength']],
    ['a fraction as historyLength', send({}, { historyLength: 1.5 }), ['configuration.historyLength']],
    ['a text as historyLength', send({}, { historyLength: 'abc' }), ['configuration.historyLength']],
    ['a text as returnImmediately', send({}, { returnImmediately: 'false' }), ['configuration.returnImmediately']],
    [
      'output modes that are no list',
      send({}, { acceptedOutputModes: 'text/plain' }),
      ['configuration.acceptedOutputModes'],
    ],
    ['invisible text', send({ parts: [{ text: ' \u200b\n' }] }), ['message.parts']],
  ])('A-120 A-126 %s is refused with the field', async (_name, params, fields) => {
    expect(await violated(params)).toEqual(fields);
  });

  it.each([
    ['no message', {}, ['message']],
    ['an empty messageId', legacyMessage('x', { messageId: '' }), ['message.messageId']],
    ['a message that is a text', { message: 'x' }, ['message']],
    ['no messageId', legacyMessage('x', { messageId: undefined }), ['message.messageId']],
    ['a long messageId', legacyMessage('x', { messageId: 'x'.repeat(257) }), ['message.messageId']],
    ['a messageId with a control', legacyMessage('x', { messageId: 'a\u0000b' }), ['message.messageId']],
    ['another kind of message', legacyMessage('x', { kind: 'task' }), ['message.kind']],
    ['no role', legacyMessage('x', { role: undefined }), ['message.role']],
    ['an unknown role', legacyMessage('x', { role: 'cat' }), ['message.role']],
    ['the agent as sender', legacyMessage('x', { role: 'agent' }), ['message.role']],
    ['the role of the other dialect', legacyMessage('x', { role: 'ROLE_USER' }), ['message.role']],
    ['no parts', legacyMessage('x', { parts: undefined }), ['message.parts']],
    ['empty parts', legacyMessage('x', { parts: [] }), ['message.parts']],
    ['parts that are no list', legacyMessage('x', { parts: { kind: 'text', text: 'x' } }), ['message.parts']],
    [
      'too many parts',
      legacyMessage('x', { parts: Array.from({ length: 65 }, () => ({ kind: 'text', text: 'x' })) }),
      ['message.parts'],
    ],
    ['a part without a kind', legacyMessage('x', { parts: [{ text: 'x' }] }), ['message.parts[0].kind']],
    ['a part of an unknown kind', legacyMessage('x', { parts: [{ kind: 'cat' }] }), ['message.parts[0].kind']],
    ['a text that is a number', legacyMessage('x', { parts: [{ kind: 'text', text: 5 }] }), ['message.parts[0].text']],
    ['a file without content', legacyMessage('x', { parts: [{ kind: 'file', file: {} }] }), ['message.parts[0].file']],
    [
      'a url that is not of the web',
      legacyMessage('x', { parts: [{ kind: 'file', file: { uri: 'file:///etc/passwd' } }] }),
      ['message.parts[0].file.uri'],
    ],
    ['a context that is too long', legacyMessage('x', { contextId: 'x'.repeat(257) }), ['message.contextId']],
    ['a context with a control', legacyMessage('x', { contextId: 'a\nb' }), ['message.contextId']],
    ['metadata that is a list', legacyMessage('x', { metadata: [] }), ['message.metadata']],
    ['metadata that is too large', legacyMessage('x', { metadata: { a: 'x'.repeat(65_536) } }), ['message.metadata']],
    ['invisible text', legacyMessage(' \u200b\n'), ['message.parts']],
    ['a fraction as historyLength', legacyMessage('x', {}, { historyLength: 1.5 }), ['configuration.historyLength']],
    [
      'output modes that are no list',
      legacyMessage('x', {}, { acceptedOutputModes: 'text/plain' }),
      ['configuration.acceptedOutputModes'],
    ],
    ['data that is null', legacyMessage('x', { parts: [{ kind: 'data', data: null }] }), ['message.parts[0].data']],
    [
      'a file with both contents',
      legacyMessage('x', { parts: [{ kind: 'file', file: { bytes: 'YQ==', uri: 'https://x.example' } }] }),
      ['message.parts[0].file'],
    ],
    [
      'bad base64',
      legacyMessage('x', { parts: [{ kind: 'file', file: { bytes: '***' } }] }),
      ['message.parts[0].file.bytes'],
    ],
    ['a negative historyLength', legacyMessage('x', {}, { historyLength: -1 }), ['configuration.historyLength']],
    ['a text as blocking', legacyMessage('x', {}, { blocking: 'no' }), ['configuration.blocking']],
  ])('A-120 in 0.3 %s is refused with the field', async (_name, params, fields) => {
    expect(await legacyViolated(params)).toEqual(fields);
  });

  it.each([
    ['GetTask', {}, 'id', 'is required'],
    ['GetTask', { id: '' }, 'id', 'must not be empty'],
    ['GetTask', { id: ['x'] }, 'id', 'must be a string'],
    ['GetTask', { id: 'x', historyLength: -1 }, 'historyLength', 'must not be negative'],
    ['GetTask', { id: 'x', historyLength: 1.5 }, 'historyLength', 'must be a whole number'],
    ['CancelTask', { id: 5 }, 'id', 'must be a string'],
    ['SubscribeToTask', {}, 'id', 'is required'],
    ['ListTasks', { pageSize: 0 }, 'pageSize', 'must be at least 1'],
    ['ListTasks', { pageSize: 101 }, 'pageSize', 'must not exceed 100'],
    ['ListTasks', { status: 'TASK_STATE_SLEEPING' }, 'status', 'must be a task state'],
    ['ListTasks', { status: -1 }, 'status', 'must be a task state'],
    ['ListTasks', { status: true }, 'status', 'must be a task state'],
    ['ListTasks', { statusTimestampAfter: 'yesterday' }, 'statusTimestampAfter', 'must be an RFC 3339 timestamp'],
    ['ListTasks', { includeArtifacts: 'true' }, 'includeArtifacts', 'must be a boolean'],
    ['ListTasks', { contextId: 'a\nb' }, 'contextId', 'must not hold control characters'],
    ['ListTasks', { pageToken: 'forged' }, 'pageToken', 'is not valid'],
    ['tasks/get', {}, 'id', 'is required'],
    ['tasks/get', { id: 'x', historyLength: -1 }, 'historyLength', 'must not be negative'],
    ['tasks/get', { id: 'x', metadata: 'y' }, 'metadata', 'must be an object'],
    ['tasks/cancel', { id: 'a\u0000' }, 'id', 'must not hold control characters'],
    ['tasks/resubscribe', { id: 'x'.repeat(257) }, 'id', 'must not exceed 256 characters'],
  ])('A-120 %s with %j names the field %s and says that it %s', async (method, params, field, description) => {
    const version = method.includes('/') ? null : '1.0';
    const { status, body } = await lab.client.rpc('helper', method, params, { version });
    expect([status, body.error.code]).toEqual([200, -32602]);
    expect(body.error.data).toEqual([
      { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field, description }] },
    ]);
  });

  it.each([
    'tasks?pageSize=0',
    'tasks?pageSize=101',
    'tasks?pageSize=abc',
    'tasks?pageSize=',
    'tasks?pageSize=1&pageSize=101',
    'tasks?status=NOPE',
    'tasks?includeArtifacts=maybe',
    'tasks?historyLength=-1',
    'tasks?statusTimestampAfter=2026-02-30T00:00:00Z',
    'tasks?contextId=%0a',
    'tasks?pageToken=a.b',
    'tasks/x?historyLength=-1',
    'tasks/x?historyLength=1.5',
  ])('A-120 A-263 the query of %s is refused with its field', async (path) => {
    const { status, body } = await lab.client.request('GET', `/agents/helper/${path}`);
    const [, field] = /\?(\w+)=/.exec(path) ?? [];
    expect([status, body.error.status]).toEqual([400, 'INVALID_ARGUMENT']);
    expect(body.error.details[0]?.fieldViolations.map((one) => one.field)).toEqual([field]);
  });

  it('A-121 unknown fields are ignored at every level', async () => {
    const params = {
      ...message('x', { colour: 'red', parts: [{ text: 'x', size: 5 }] }),
      configuration: { ...NOW, speed: 'fast' },
      tenant: 'acme',
    };
    expect((await lab.client.rpc('helper', 'SendMessage', params)).body.error).toBeUndefined();
  });

  it('A-122 each kind of content passes alone, and falsy data is data', async () => {
    for (const part of [
      { text: 'x' },
      { url: 'https://x.example/a.pdf' },
      { raw: 'aGk=', filename: 'a.txt' },
      { raw: 'aGk', filename: 'a.txt' },
      ...[false, 0, '', [], {}].map((data) => ({ data })),
    ]) {
      const answer = await lab.client.rpc('helper', 'SendMessage', send({ parts: [part] }));
      expect([part, answer.body.error]).toEqual([part, undefined]);
    }
  });

  it('A-123 truths in a query may be written as text', async () => {
    expect((await lab.client.request('GET', '/agents/helper/tasks?includeArtifacts=true')).status).toBe(200);
  });

  it('A-124 enum values go by name or by number', async () => {
    expect((await lab.client.rpc('helper', 'SendMessage', send({ role: 1 }))).body.error).toBeUndefined();
    expect((await lab.client.rpc('helper', 'ListTasks', { status: 2 })).body.error).toBeUndefined();
  });

  it('A-125 timestamps come in with any offset and go out in UTC with milliseconds', async () => {
    for (const at of ['2026-01-01T00:00:00Z', '2026-01-01T01:00:00.123456789+01:00', '2025-12-31t23:00:00.1-01:00']) {
      const { body } = await lab.client.rpc('helper', 'ListTasks', { statusTimestampAfter: at });
      expect([at, body.error]).toEqual([at, undefined]);
    }
    for (const at of ['2026-02-29T00:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01T00:00:00', '2026-01-01', '']) {
      const { body } = await lab.client.rpc('helper', 'ListTasks', { statusTimestampAfter: at });
      expect([at, body.error?.code]).toEqual([at, -32602]);
    }
    const taskId = await lab.submit('x');
    expect((await lab.get(taskId)).status.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('reads the names of fields in both spellings of proto JSON', async () => {
    const answer = await lab.client.rpc('helper', 'SendMessage', {
      message: { message_id: 'snake', role: 'ROLE_USER', parts: [{ text: 'x', media_type: 'text/plain' }] },
      configuration: { return_immediately: true },
    });
    expect(answer.body.result.task.history?.[0]?.messageId).toBe('snake');
  });
});

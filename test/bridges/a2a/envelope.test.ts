import { afterEach, describe, expect, it } from 'vitest';
import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { legacyMessage, message } from '../../support/a2a/client.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const NOW = { returnImmediately: true };

describe('versions and envelopes', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const open = async (options: A2AOptionsInput = {}) => {
    lab = await a2aLab({ options });
  };
  /** Whether a 1.0 or a 0.3 list-like call got through, or the code of the refusal. */
  const outcome = async (headers: Record<string, string>, query = ''): Promise<string | number> => {
    const ask = (method: string) =>
      lab.client.request(
        'POST',
        `/agents/helper${query}`,
        { jsonrpc: '2.0', id: 1, method, params: { id: 'x' } },
        {
          version: null,
          headers,
        },
      );
    const [newer, older] = [await ask('GetTask'), await ask('tasks/get')];
    if (newer.body.error.code === -32001 && older.body.error.code === -32601) return '1.0';
    if (newer.body.error.code === -32601 && older.body.error.code === -32001) return '0.3';
    expect(older.body.error.code).toBe(newer.body.error.code);
    expect(newer.body.error.data[0]).toMatchObject({
      reason: 'VERSION_NOT_SUPPORTED',
      metadata: { supported: '1.0, 0.3' },
    });
    return newer.body.error.code;
  };

  it.each([
    ['1.0', '', '1.0'],
    [' 1.0 ', '', '1.0'],
    ['1.0.1', '', '1.0'],
    [null, '?A2A-Version=1.0', '1.0'],
    [null, '?a2a-version=1.0.7', '1.0'],
    ['1.0', '?A2A-Version=1.0', '1.0'],
    ['1', '', -32009],
    ['1.1', '', -32009],
    ['0.9', '', -32009],
    ['2.0', '', -32009],
    ['abc', '', -32009],
    ['1.0', '?A2A-Version=0.3', -32009],
    ['', '', '0.3'],
    [null, '', '0.3'],
    ['0.3', '', '0.3'],
    ['0.3.0', '', '0.3'],
  ])('A-100 the header %j with the query %j means %s', async (header, query, wanted) => {
    await open();
    expect(await outcome(header === null ? {} : { 'a2a-version': header }, query)).toBe(wanted);
  });

  it('A-101 with sniff a 1.0 method without a version is 1.0, an older one is still 0.3', async () => {
    await open({ missingVersion: 'sniff' });
    const newer = await lab.client.rpc('helper', 'SendMessage', message('x', {}, NOW), { version: null });
    expect(newer.body.result.task.status.state).toBe('TASK_STATE_SUBMITTED');
    const older = await lab.client.rpc('helper', 'message/send', legacyMessage('x', {}, { blocking: false }), {
      version: null,
    });
    expect(older.body.result.status.state).toBe('submitted');
  });

  it.each([
    ['a batch', [{ jsonrpc: '2.0', id: 7, method: 'GetTask', params: {} }], null],
    ['null', 'null', null],
    ['a number', '5', null],
    ['a text', '"x"', null],
    ['another jsonrpc', { jsonrpc: '1.0', id: 7, method: 'GetTask' }, 7],
    ['no jsonrpc', { id: 'a', method: 'GetTask' }, 'a'],
    ['no method', { jsonrpc: '2.0', id: 7 }, 7],
    ['a method that is no text', { jsonrpc: '2.0', id: 7, method: 5 }, 7],
    ['params that are a list', { jsonrpc: '2.0', id: 7, method: 'GetTask', params: [] }, 7],
    ['params that are a text', { jsonrpc: '2.0', id: 7, method: 'GetTask', params: 'x' }, 7],
    ['a fraction as id', { jsonrpc: '2.0', id: 1.5, method: 'GetTask' }, null],
    ['an object as id', { jsonrpc: '2.0', id: {}, method: 'GetTask' }, null],
    ['a truth as id', { jsonrpc: '2.0', id: true, method: 'GetTask' }, null],
  ])('A-103 %s is no request, and the id is echoed where it can be', async (_name, body, id) => {
    await open();
    for (const version of ['1.0', null]) {
      const answer = await lab.client.request('POST', '/agents/helper', body, { version });
      expect([answer.status, answer.body.error.code, (answer.body as { id: unknown }).id]).toEqual([200, -32600, id]);
    }
  });

  it.each([0, '', 2 ** 53 - 1, 'x'.repeat(256), -5])('A-103 the id %j is echoed with its type', async (id) => {
    await open();
    const answer = await lab.client.rpc('helper', 'ListTasks', {}, { id });
    expect((answer.body as { id: unknown }).id).toBe(id);
  });

  it.each([
    ['broken JSON', '{"jsonrpc":'],
    ['a byte order mark alone', '\ufeff'],
    ['UTF-16', new Uint8Array(Buffer.from('{"jsonrpc":"2.0"}', 'utf16le'))],
    ['cut UTF-8', new Uint8Array([0x22, 0xe2, 0x82, 0x22])],
    ['nothing', ''],
  ])('A-104 %s cannot be parsed', async (_name, body) => {
    await open();
    const answer = await lab.client.request('POST', '/agents/helper', body);
    expect([answer.status, answer.body.error.code, (answer.body as { id: unknown }).id]).toEqual([200, -32700, null]);
    const rest = await lab.client.request('POST', '/agents/helper/message:send', body);
    expect([rest.status, rest.body.error.status]).toEqual([400, 'INVALID_ARGUMENT']);
  });

  it('A-105 an unknown method is unknown, with and without parameters', async () => {
    await open();
    for (const version of ['1.0', null]) {
      for (const params of [undefined, {}]) {
        const answer = await lab.client.rpc('helper', 'Nope', params, { version });
        expect([answer.status, answer.body.error.code]).toEqual([200, -32601]);
      }
    }
  });

  it('A-106 guarded keys reach no prototype', async () => {
    await open();
    const guarded = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"metadata":{"__proto__":{"polluted":1}}}}}`;
    expect((await lab.client.request('POST', '/agents/helper', guarded)).body.error.code).toBe(-32600);
    const taskId = await lab.submit('x', { metadata: { constructor: { prototype: { polluted: 1 } } } });
    expect((await lab.get(taskId)).history?.[0]?.metadata).toEqual({ constructor: { prototype: { polluted: 1 } } });
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('A-107 depth 32 passes and 33 does not; a wide body is answered in time', async () => {
    await open();
    const nested = (levels: number) => {
      let value: unknown = 1;
      for (let n = 0; n < levels; n += 1) value = { a: value };
      return value;
    };
    // params, message, metadata stand above what is nested here.
    const deep = (levels: number) => message('x', { metadata: nested(levels - 3) }, NOW);
    expect((await lab.client.rpc('helper', 'SendMessage', deep(32))).body.error).toBeUndefined();
    expect((await lab.client.rpc('helper', 'SendMessage', deep(33))).body.error.code).toBe(-32600);
    const started = Date.now();
    const wide = `[${'{},'.repeat(349_000)}{}]`;
    expect((await lab.client.request('POST', '/agents/helper', wide)).body.error.code).toBe(-32600);
    expect(Date.now() - started).toBeLessThan(1_000);
  });

  it('A-108 a request without an id is carried out and answered with null', async () => {
    await open();
    const answer = await lab.client.request('POST', '/agents/helper', {
      jsonrpc: '2.0',
      method: 'SendMessage',
      params: message('x', {}, NOW),
    });
    expect(answer.body).toMatchObject({ id: null, result: { task: { status: { state: 'TASK_STATE_SUBMITTED' } } } });
  });

  it('A-109 a version that is switched off is missing from the card and refused', async () => {
    await open({ versions: ['1.0'] });
    const card = await lab.client.request('GET', '/agents/helper/.well-known/agent-card.json');
    expect(JSON.stringify(card.body)).not.toContain('0.3');
    for (const version of ['0.3', null]) {
      const older = await lab.client.rpc('helper', 'message/send', legacyMessage('x'), { version });
      expect(older.body.error.code).toBe(-32009);
    }
    expect((await lab.client.request('GET', '/agents/helper/.well-known/agent.json')).status).toBe(400);
    await lab.close();
    await open({ versions: ['0.3'] });
    expect((await lab.client.rpc('helper', 'SendMessage', message('x'))).body.error.code).toBe(-32009);
    for (const version of ['1.0', null]) {
      const rest = await lab.client.request('GET', '/agents/helper/tasks', undefined, { version });
      expect([rest.status, rest.body.error.details[0]?.reason]).toEqual([400, 'VERSION_NOT_SUPPORTED']);
    }
    const legacy = await lab.client.request('GET', '/agents/helper', undefined, { version: null });
    expect((legacy.body as unknown as { protocolVersion: string }).protocolVersion).toBe('0.3.0');
  });

  it('A-100 on REST a version that contradicts the path is refused', async () => {
    await open();
    const answer = await lab.client.request('GET', '/agents/helper/tasks', undefined, { version: '0.3' });
    expect([answer.status, answer.body.error.details[0]?.reason]).toEqual([400, 'VERSION_NOT_SUPPORTED']);
    expect((await lab.client.request('GET', '/agents/helper/tasks', undefined, { version: null })).status).toBe(200);
  });
});

import { gzipSync } from 'node:zlib';
import { afterEach, describe, it } from 'vitest';
import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { a2aLab, type A2ALab, type LabOptions } from '../../support/a2a/lab.js';
import { CANARY, expectRefused, REFUSALS } from '../../support/a2a/refusals.js';
import * as ways from '../../support/a2a/ways.js';

const NOW = { returnImmediately: true };

let lab: A2ALab;
afterEach(() => lab.close());
const open = async (options: A2AOptionsInput = {}, more: Partial<LabOptions> = {}) => {
  lab = await a2aLab({ options, ...more });
};
/** A message that says the canary; every one has an id of its own. */
const said = (fields: Record<string, unknown> = {}) => ({
  messageId: crypto.randomUUID(),
  parts: [{ text: CANARY }],
  ...fields,
});
const sends = (fields?: Record<string, unknown>, configuration?: Record<string, unknown>) =>
  ways.sendWays(said(fields), configuration);
const envelope = (more: object) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'SendMessage',
  params: {},
  canary: CANARY,
  ...more,
});
/** A task of the first principal whose peer is at work. */
const working = async (fields: Record<string, unknown> = {}) => {
  const before = lab.rooms.posted.length;
  const taskId = await lab.submit('job', fields);
  await lab.posted(before + 1);
  await lab.until(async () => (await lab.get(taskId)).status.state === 'TASK_STATE_WORKING');
  return taskId;
};

describe('a body that is no request', () => {
  it.each([
    ['broken JSON', `{"jsonrpc":"${CANARY}`],
    ['bytes that are not UTF-8', new Uint8Array([0x22, ...Buffer.from(CANARY), 0xff, 0xfe, 0x22])],
    ['nothing at all', ''],
    ['two values', `{} "${CANARY}"`],
  ])('A-104 %s is a parse error at every door', async (_name, body) => {
    await open();
    await expectRefused(lab, ways.bodyWays(body), REFUSALS.parse);
  });

  it.each([
    ['null', 'null'],
    ['a number', '5'],
    ['a text', `"${CANARY}"`],
    ['a batch', [envelope({})]],
    ['nesting beyond the limit', `{"canary":${'['.repeat(40)}"${CANARY}"${']'.repeat(40)}}`],
    ['a guarded key', `{"message":{"__proto__":{"canary":"${CANARY}"}}}`],
  ])('A-103 A-106 A-107 %s is no request at any door', async (_name, body) => {
    await open();
    await expectRefused(lab, ways.bodyWays(body), { ...REFUSALS.envelope, id: null });
  });

  it.each([
    ['another jsonrpc', envelope({ jsonrpc: '1.0' }), 7],
    ['no method', envelope({ method: undefined }), 7],
    ['a fraction as id', envelope({ id: 1.5 }), null],
    ['params that are a text', envelope({ params: CANARY }), 7],
    ['params that are a list', envelope({ params: [CANARY] }), 7],
    ['params that are null', envelope({ params: null }), 7],
  ])('A-103 %s is no JSON-RPC request', async (_name, body, id) => {
    await open();
    await expectRefused(lab, ways.onRpc(ways.bodyWays(body)), { ...REFUSALS.envelope, id });
  });

  it.each(['Nope', 'GetTask ', 'gettask', 'constructor', 'toString', '__proto__', 'hasOwnProperty', 'tasks/list'])(
    'A-105 the method %j is unknown in both dialects',
    async (method) => {
      await open();
      await expectRefused(lab, ways.onRpc(ways.bodyWays(envelope({ method }))), { ...REFUSALS.method, id: 7 });
    },
  );

  it('A-101 a method of the other dialect is unknown', async () => {
    await open();
    const [current, older] = ways.onRpc(ways.bodyWays(envelope({ method: 'message/send' })));
    await expectRefused(lab, [current!], { ...REFUSALS.method, id: 7 });
    await expectRefused(lab, [{ ...older!, ask: ways.onRpc(ways.bodyWays(envelope({})))[1]!.ask }], {
      ...REFUSALS.method,
      id: 7,
    });
  });
});

describe('a request that its headers or its address rule out', () => {
  it.each([
    ['/nope', 'GET'],
    ['/agents', 'GET'],
    ['/agents/helper/nope', 'POST'],
    ['/agents/helper/v1/message:send', 'POST'],
    ['/agents/helper/message:sends', 'POST'],
    ['/agents/he%2flper/tasks', 'GET'],
    ['/agents/..%2f..%2fetc/tasks', 'GET'],
    ['/agents/helper%00/tasks', 'GET'],
    [`/agents/${'x'.repeat(300)}/tasks`, 'GET'],
  ])('A-034 A-063 nothing is served under %s', async (path, method) => {
    await open();
    const way: ways.Way = {
      name: path,
      style: 'rest',
      ask: (client, _peer, options) => client.request(method, path, method === 'POST' ? {} : undefined, options),
    };
    await expectRefused(lab, [way], REFUSALS.route);
  });

  it.each([
    ['DELETE', '', 'GET, HEAD, POST'],
    ['GET', '/message:send', 'POST'],
    ['PUT', '/message:stream', 'POST'],
    ['POST', '/tasks', 'GET'],
    ['DELETE', '/tasks/x', 'GET'],
    ['GET', '/tasks/x:cancel', 'POST'],
    ['PATCH', '/tasks/x:subscribe', 'GET, POST'],
    ['POST', '/extendedAgentCard', 'GET'],
    ['POST', '/.well-known/agent-card.json', 'GET, HEAD'],
  ])('A-063 %s is no method of %j, and the answer names those that are', async (method, path, allow) => {
    await open();
    const way: ways.Way = {
      name: path,
      style: 'rest',
      ask: (client, peer, options) =>
        client.request(method, `/agents/${peer}${path}`, method === 'GET' ? undefined : {}, options),
    };
    await expectRefused(lab, [way], { ...REFUSALS.httpMethod, headers: { allow } });
  });

  it.each(['9.9', '1', '1.1', 'abc', '1.0, 0.3', '1.0.', '-1.0'])(
    'A-100 the version %j is not served, at no door',
    async (version) => {
      await open();
      const asked = { 'a2a-version': version };
      const rpc = ways.onRpc(ways.bodyWays(envelope({ method: 'ListTasks' }))).slice(0, 1);
      await expectRefused(lab, rpc, { ...REFUSALS.version, id: 7 }, { headers: asked });
      await expectRefused(lab, ways.onRest(sends()), REFUSALS.version, { headers: asked });
    },
  );

  it('A-100 A-109 a version that contradicts its path, another value, or that is switched off', async () => {
    await open();
    await expectRefused(lab, ways.onRest(sends()), REFUSALS.version, { headers: { 'a2a-version': '0.3' } });
    const twice: ways.Way = {
      name: 'query',
      style: 'rest',
      ask: (client, peer) => client.request('GET', `/agents/${peer}/tasks?A2A-Version=0.3`),
    };
    await expectRefused(lab, [twice], REFUSALS.version);
    await lab.close();
    await open({ versions: ['1.0'] });
    const older = sends().filter(({ name }) => name.startsWith('message/'));
    await expectRefused(lab, older, { ...REFUSALS.version, metadata: { supported: '1.0' } });
  });

  it('A-063 a foreign content type is refused by each door in its own way', async () => {
    await open();
    for (const type of ['text/plain', 'text/html', 'application/xml', 'application/json; charset=utf-16', '']) {
      const typed = ways.bodyWays(JSON.stringify(envelope({})), { 'content-type': type });
      await expectRefused(lab, ways.onRpc(typed), REFUSALS.requestType);
      await expectRefused(lab, ways.onRest(typed), REFUSALS.contentType);
    }
  });

  it('A-063 an Accept that leaves out all that is offered', async () => {
    await open();
    for (const accept of ['text/html', 'image/*', 'text/event-stream;q=0']) {
      await expectRefused(lab, ways.bodyWays(envelope({})), REFUSALS.notAcceptable, { headers: { accept } });
    }
  });

  it('A-065 a body that is compressed', async () => {
    await open();
    for (const coding of ['gzip', 'br', 'deflate, gzip']) {
      const packed = ways.bodyWays(new Uint8Array(gzipSync(JSON.stringify(envelope({})))), {
        'content-encoding': coding,
      });
      await expectRefused(lab, packed, REFUSALS.encoded);
    }
  });

  it('A-064 a body that is too large', async () => {
    await open({ limits: { bodyBytes: 1_000 } });
    const wide = ways.bodyWays(envelope({ pad: 'x'.repeat(2_000) }));
    await expectRefused(lab, wide, { ...REFUSALS.tooLarge, metadata: { limit: '1000' } });
  });
});

describe('content that is not taken', () => {
  it.each([
    ['a picture', { raw: 'iVBORw0KGgo=', filename: 'a.png', mediaType: 'image/png' }, 'image/png'],
    ['text of another kind', { text: CANARY, mediaType: 'text/html' }, 'text/html'],
    ['data of another kind', { data: CANARY, mediaType: 'application/xml' }, 'application/xml'],
    ['bytes of no known kind', { raw: 'AAEC' }, 'application/octet-stream'],
    ['text that is none', { raw: '/w==', filename: 'a.txt' }, 'text/plain'],
  ])('A-302 A-303 %s', async (_name, part, mediaType) => {
    await open();
    // In 0.3 a text and a datum have no media type.
    const all = sends({ parts: [{ text: CANARY }, part] });
    const sendable = 'raw' in part ? all : all.filter(({ name }) => !name.startsWith('message/'));
    await expectRefused(lab, sendable, { ...REFUSALS.contentType, metadata: { mediaType } });
  });

  it('A-302 with strict output modes, a client that takes none of them', async () => {
    await open({ strictOutputModes: true });
    const picky = sends({}, { acceptedOutputModes: ['image/png', 'audio/*'] });
    await expectRefused(lab, picky, { ...REFUSALS.contentType, metadata: { mediaType: 'image/png, audio/*' } });
  });

  it('A-306 text without anything visible, and text over the limit', async () => {
    await open({ maxMessageChars: CANARY.length + 5 });
    await expectRefused(lab, sends({ parts: [{ text: '\u200b \n\u2800' }] }), {
      ...REFUSALS.params,
      fields: ['message.parts'],
    });
    await expectRefused(lab, sends({ parts: [{ text: `${CANARY} and more` }] }), {
      ...REFUSALS.params,
      fields: ['message.parts'],
    });
  });
});

describe('what is not offered', () => {
  it('A-286 push notifications: no operation of them, and no send that carries one', async () => {
    await open();
    const taskId = await working();
    await expectRefused(lab, ways.pushWays(taskId, `https://hook.example.test/${CANARY}`), REFUSALS.push);
    const hook = { url: `https://hook.example.test/${CANARY}`, token: CANARY };
    await expectRefused(lab, sends({}, { ...NOW, taskPushNotificationConfig: hook }), REFUSALS.push);
  });

  it('A-049 the extended card', async () => {
    await open({ extendedCard: 'off' });
    await expectRefused(lab, ways.extendedCardWays(), REFUSALS.noExtendedCard);
  });
});

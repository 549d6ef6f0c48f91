import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { message, type Answer } from '../../support/a2a/client.js';
import { a2aLab, KEY, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';

const NOW = { returnImmediately: true };
let lab: A2ALab;
afterEach(() => lab.close());
const open = async (options: A2AOptionsInput = {}) => {
  lab = await a2aLab({ options });
};

describe('the order of the checks', () => {
  /** Each fault of a request and how the step that meets it answers; earlier steps come first. */
  const STEPS: { name: string; apply: (call: Draft) => void; seen: (answer: Answer) => boolean }[] = [
    {
      name: 'address rate',
      apply: (call) => (call.exhausted = 'address'),
      seen: ({ status, headers }) => status === 429 && headers.get('www-authenticate') === null,
    },
    {
      name: 'credentials',
      apply: (call) => (call.headers['x-api-key'] = 'wrong'),
      seen: ({ status }) => status === 401,
    },
    {
      name: 'principal rate',
      apply: (call) => (call.tired = true),
      seen: ({ status, body }) => status === 429 && body.error.data[0]?.reason === 'RATE_LIMITED',
    },
    { name: 'peer', apply: (call) => (call.peer = 'nobody'), seen: ({ status }) => status === 404 },
    {
      name: 'headers',
      apply: (call) => (call.headers['content-type'] = 'text/plain'),
      seen: ({ status }) => status === 415,
    },
    { name: 'size', apply: (call) => (call.padding = 'x'.repeat(2_000)), seen: ({ status }) => status === 413 },
    { name: 'envelope', apply: (call) => (call.jsonrpc = '1.0'), seen: ({ body }) => body.error?.code === -32600 },
    {
      name: 'version',
      apply: (call) => (call.headers['a2a-version'] = '9.9'),
      seen: ({ body }) => body.error?.code === -32009,
    },
    { name: 'method', apply: (call) => (call.method = 'Nope'), seen: ({ body }) => body.error?.code === -32601 },
    { name: 'parameters', apply: (call) => (call.params = {}), seen: ({ body }) => body.error?.code === -32602 },
    {
      name: 'scope',
      apply: (call) => (call.headers['x-api-key'] ??= 'reader'),
      seen: ({ status }) => status === 403,
    },
  ];
  interface Draft {
    exhausted: string;
    /** Of a principal that has asked too much. */
    tired: boolean;
    peer: string;
    jsonrpc: string;
    method: string;
    params: object;
    padding: string;
    headers: Record<string, string>;
  }

  it('A-060 of two faults of one request the earlier step answers', async () => {
    const limits = { bodyBytes: 1_500 };
    const auth = {
      apiKeys: [
        { name: 'alpha', key: KEY },
        { name: 'reader', key: 'reader', scopes: ['a2a.read' as const] },
      ],
    };
    await open({ limits, auth });
    const strict = await a2aLab({ options: { auth, limits: { ...limits, ipRatePerMin: 1 } } });
    await strict.client.rpc('helper', 'ListTasks', {});
    const tired = await a2aLab({ options: { auth, limits: { ...limits, ratePerMin: 1, burst: 1 } } });
    for (const key of [KEY, 'reader']) {
      await tired.client.rpc('helper', 'ListTasks', {}, { headers: { 'x-api-key': key } });
    }
    try {
      for (const [i, first] of STEPS.entries()) {
        for (const second of STEPS.slice(i)) {
          const draft: Draft = {
            exhausted: '',
            tired: false,
            peer: 'helper',
            jsonrpc: '2.0',
            method: 'SendMessage',
            params: message('x', {}, NOW),
            padding: '',
            headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
          };
          first.apply(draft);
          second.apply(draft);
          draft.headers['x-api-key'] ??= KEY;
          const { jsonrpc, method, params, padding } = draft;
          const target = draft.exhausted === 'address' ? strict : draft.tired ? tired : lab;
          const answer = await target.client.request(
            'POST',
            `/agents/${draft.peer}`,
            { jsonrpc, id: 1, method, params, padding },
            { headers: draft.headers, version: draft.headers['a2a-version'] ?? null },
          );
          expect([first.name, second.name, first.seen(answer)]).toEqual([first.name, second.name, true]);
        }
      }
    } finally {
      await strict.close();
      await tired.close();
    }
  });
});

describe('the HTTP door', () => {
  const raw = (text: string): Promise<{ socket: Socket; text: () => string; closed: Promise<void> }> =>
    new Promise((resolve, reject) => {
      const { port } = new URL(lab.client.base);
      const socket = connect(Number(port), '127.0.0.1', () => {
        socket.write(text);
        resolve({ socket, text: () => seen, closed });
      });
      let seen = '';
      socket.on('data', (chunk: Buffer) => (seen += chunk.toString('utf8')));
      socket.on('error', reject);
      const closed = new Promise<void>((done) =>
        socket.once('close', () => {
          done();
        }),
      );
    });

  it('A-061 a bad key is refused before the body is read, and the connection closes', async () => {
    await open();
    const { text, closed } = await raw(
      'POST /agents/helper HTTP/1.1\r\nhost: x\r\nx-api-key: wrong\r\ncontent-length: 10000000000\r\n\r\n{"json',
    );
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 401 /);
    expect(text().toLowerCase()).toContain('connection: close');
    expect(text()).toContain('"id":null');
  });

  it('A-062 A-068 every answer is JSON with its headers, never a page or a stack', async () => {
    await open();
    const answers = [
      await lab.client.request('GET', '/nope'),
      await lab.client.request('GET', '/agents/helper/nope'),
      await lab.client.request('DELETE', '/agents/helper'),
      await lab.client.request('POST', '/agents/helper', '{'),
      await lab.client.request('POST', '/agents/helper', 'x', { headers: { 'content-type': 'text/html' } }),
      await lab.client.request('GET', '/peers', undefined, { headers: { 'x-api-key': 'wrong' } }),
      await lab.client.request('GET', '/agents/helper'),
      await lab.client.rpc('helper', 'ListTasks', {}),
    ];
    for (const { headers, text } of answers) {
      expect(headers.get('content-type')).toMatch(/^application\/(a2a\+)?json$/);
      expect(text).not.toMatch(/<html|\bat .*\.[jt]s:\d|\/bridges\/|node_modules/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('x-request-id')).toMatch(/\S/);
    }
    expect(answers.at(-1)?.headers.get('cache-control')).toBe('no-store');
  });

  it('A-063 unknown routes, wrong methods, types and encodings have their statuses', async () => {
    await open();
    const statusOf = async (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) => {
      const answer = await lab.client.request(method, path, body, { headers });
      return [answer.status, answer.body.error.status ?? answer.body.error.code];
    };
    expect(await statusOf('GET', '/agents/helper/x/y')).toEqual([404, 'NOT_FOUND']);
    expect(await statusOf('PUT', '/agents/helper/tasks')).toEqual([405, 'UNIMPLEMENTED']);
    const wrong = await lab.client.request('PUT', '/agents/helper/tasks/x:subscribe');
    expect(wrong.headers.get('allow')).toBe('GET, POST');
    expect(await statusOf('POST', '/agents/helper', { accept: 'image/png' }, {})).toEqual([406, -32600]);
    expect(await statusOf('POST', '/agents/helper', { 'content-type': 'text/plain' }, {})).toEqual([415, -32600]);
    expect(
      await statusOf('POST', '/agents/helper', { 'content-type': 'application/json; charset=latin1' }, {}),
    ).toEqual([415, -32600]);
    const rest = await lab.client.request('POST', '/agents/helper/message:send', '{}', {
      headers: { 'content-type': 'text/plain' },
    });
    expect([rest.status, rest.body.error.details[0]?.reason]).toEqual([400, 'CONTENT_TYPE_NOT_SUPPORTED']);
    for (const type of ['application/json', 'application/a2a+json', 'application/x+json; charset="UTF-8"']) {
      const answer = await lab.client.rpc('helper', 'ListTasks', {}, { headers: { 'content-type': type } });
      expect([type, answer.status]).toEqual([type, 200]);
    }
  });

  it('A-063 a request without a body has no content type that could be wrong', async () => {
    await open();
    const taskId = await lab.submit('x');
    const typed = { headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    expect((await lab.client.request('GET', `/agents/helper/tasks/${taskId}`, undefined, typed)).status).toBe(200);
    expect((await lab.client.request('POST', `/agents/helper/tasks/${taskId}:cancel`, '', typed)).status).toBe(200);
    const full = await lab.client.request('POST', `/agents/helper/tasks/${taskId}:cancel`, 'a=b', typed);
    expect([full.status, full.body.error.details[0]?.reason]).toEqual([400, 'CONTENT_TYPE_NOT_SUPPORTED']);
    expect((await lab.client.request('POST', '/agents/helper/message:send', '', typed)).status).toBe(400);
  });

  it('A-063 the type of a REST answer follows Accept', async () => {
    await open();
    for (const [accept, type] of [
      ['*/*', 'application/a2a+json'],
      ['application/json', 'application/json'],
      ['application/a2a+json', 'application/a2a+json'],
    ] as const) {
      const { headers } = await lab.client.request('GET', '/agents/helper/tasks', undefined, { headers: { accept } });
      expect([accept, headers.get('content-type')]).toEqual([accept, type]);
    }
  });

  it.each(['//', '//a/b', '/agents/%', 'http://[', '*', 'http://x/agents/helper', '/agents/helper?%', '/./..//'])(
    'A-034 A-062 the request target %j is answered in JSON and breaks nothing',
    async (target) => {
      await open();
      const { text, socket } = await raw(`GET ${target} HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY}\r\n\r\n`);
      await lab.until(() => text().includes('\r\n\r\n'));
      expect(text()).toMatch(/^HTTP\/1\.1 (?:200|400|404) /);
      expect(text()).toMatch(/content-type: application\/(?:a2a\+)?json/i);
      socket.destroy();
      expect((await lab.client.rpc('helper', 'ListTasks', {})).status).toBe(200);
    },
  );

  it('A-062 an expectation that nobody knows is ignored', async () => {
    await open();
    const { text, socket } = await raw(
      `GET /agents/helper/tasks HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY}\r\nexpect: 200-maybe\r\n\r\n`,
    );
    await lab.until(() => text().includes('nextPageToken'));
    expect(text()).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('A-064 the limit of a body holds by its length and by counting, and the limit itself passes', async () => {
    await open({ limits: { bodyBytes: 1_000 } });
    const bodyOf = (bytes: number) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {}, pad: '' });
      return body.replace('"pad":""', `"pad":"${'x'.repeat(bytes - body.length)}"`);
    };
    expect((await lab.client.request('POST', '/agents/helper', bodyOf(1_000))).status).toBe(200);
    const over = await lab.client.request('POST', '/agents/helper', bodyOf(1_001));
    expect([over.status, over.body.error.data[0]]).toMatchObject([
      413,
      { reason: 'PAYLOAD_TOO_LARGE', metadata: { limit: '1000' } },
    ]);
    const chunked = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = httpRequest(
        `${lab.client.base}/agents/helper`,
        { method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/json' } },
        resolve,
      );
      request.on('error', reject);
      request.write(bodyOf(600));
      request.write('x'.repeat(600));
      request.end();
    });
    chunked.resume();
    expect(chunked.statusCode).toBe(413);
  });

  it('A-065 compressed bodies are refused', async () => {
    await open();
    const answer = await lab.client.request('POST', '/agents/helper', new Uint8Array(gzipSync('{}')), {
      headers: { 'content-encoding': 'gzip' },
    });
    expect([answer.status, answer.body.error.code]).toEqual([415, -32600]);
    const { text, socket } = await raw(
      `POST /agents/helper HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY}\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    );
    await lab.until(() => text().includes('-32600'));
    expect(text()).toMatch(/^HTTP\/1\.1 415 /);
    socket.destroy();
  });

  it('A-127 extensions are named by either header; known ones are active and echoed, others are ignored', async () => {
    await open({ extendedCard: 'always' });
    const limits = 'urn:band-gateway:a2a:limits';
    const echoed = async (name: string, value: string, version: string | null) => {
      const method = version === null ? 'tasks/get' : 'GetTask';
      const { headers } = await lab.client.rpc('helper', method, { id: 'x' }, { version, headers: { [name]: value } });
      return [headers.get('a2a-extensions'), headers.get('x-a2a-extensions')];
    };
    expect(await echoed('a2a-extensions', `https://x.example/ext, ${limits} ,${limits}`, '1.0')).toEqual([
      limits,
      null,
    ]);
    expect(await echoed('x-a2a-extensions', limits, '1.0')).toEqual([limits, null]);
    expect(await echoed('x-a2a-extensions', limits, null)).toEqual([null, limits]);
    expect(await echoed('a2a-extensions', 'https://x.example/ext,,%,', '1.0')).toEqual([null, null]);
    expect(await echoed('a2a-extensions', `${'x,'.repeat(40)}${limits}`, '1.0')).toEqual([null, null]);
    await lab.close();
    await open({ extendedCard: 'off' });
    expect(await echoed('a2a-extensions', limits, '1.0')).toEqual([null, null]);
  });

  it('A-065 answers go out as they are, whatever coding a client would take', async () => {
    await open();
    const coded = { 'accept-encoding': 'gzip, br' };
    const json = await lab.client.rpc('helper', 'ListTasks', {}, { headers: coded });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('x'), { headers: coded });
    expect([json.status, json.headers.get('content-encoding')]).toEqual([200, null]);
    expect((await stream.next())?.result.task.status.state).toBe('TASK_STATE_SUBMITTED');
    await stream.cancel();
  });

  it('A-066 a trailing slash changes nothing', async () => {
    await open();
    for (const path of ['/peers', '/agents/helper', '/agents/helper/tasks', '/agents/helper/.well-known/agent.json']) {
      const [plain, slashed] = [await lab.client.request('GET', path), await lab.client.request('GET', `${path}/`)];
      expect([slashed.status, slashed.text]).toEqual([200, plain.text]);
    }
    expect((await lab.client.rpc('helper/', 'ListTasks', {})).status).toBe(200);
  });

  it('A-067 a request id is echoed to a trusted proxy, and made otherwise', async () => {
    await open({ trustProxy: ['127.0.0.1'] });
    const idFor = async (id: string) =>
      (await lab.client.rpc('helper', 'ListTasks', {}, { headers: { 'x-request-id': id } })).headers.get(
        'x-request-id',
      );
    expect(await idFor('req-7')).toBe('req-7');
    expect(await idFor('x'.repeat(129))).toMatch(/^[0-9a-f-]{36}$/);
    await lab.close();
    await open();
    expect(await idFor('req-7')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('A-069 browsers of allowed origins get their headers, others none, and a preflight is answered', async () => {
    await open({ cors: { origins: ['https://app.example.test'] } });
    const from = (origin: string) => lab.client.rpc('helper', 'ListTasks', {}, { headers: { origin } });
    const allowed = await from('https://app.example.test');
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example.test');
    expect(allowed.headers.get('vary')).toContain('Origin');
    expect(allowed.headers.get('access-control-expose-headers')).toBe(
      'A2A-Version, ETag, Retry-After, WWW-Authenticate, X-Request-Id',
    );
    expect((await from('https://evil.example.test')).headers.get('access-control-allow-origin')).toBeNull();
    const preflight = await lab.client.request('OPTIONS', '/agents/helper', undefined, {
      headers: { origin: 'https://app.example.test', 'access-control-request-method': 'POST', 'x-api-key': 'none' },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-headers')).toBe(
      'A2A-Version, A2A-Extensions, Authorization, Content-Type, X-API-Key',
    );
  });

  it.each([
    ['', (error: object) => ({ jsonrpc: '2.0', id: null, error })],
    ['/message:send', null],
  ])('A-070 a body that does not come to /agents/helper%s is given up after 30 s', async (path, envelope) => {
    await open();
    const { text, closed } = await raw(
      `POST /agents/helper${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY}\r\na2a-version: 1.0\r\ncontent-length: 100\r\n\r\n{"js`,
    );
    await lab.until(() => lab.clock.nextInMs !== null && lab.clock.nextInMs <= 30_000);
    await lab.clock.advance(30_000);
    await closed;
    expect(text()).toMatch(/^HTTP\/1\.1 408 /);
    expect(text().toLowerCase()).toContain('\r\nconnection: close\r\n');
    const message = 'The request took too long to arrive.';
    const info = {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'REQUEST_TIMEOUT',
      domain: 'band-gateway',
    };
    expect(JSON.parse(text().slice(text().indexOf('\r\n\r\n')))).toEqual(
      envelope?.({ code: -32000, message, data: [info] }) ?? {
        error: { code: 408, status: 'DEADLINE_EXCEEDED', message, details: [info] },
      },
    );
    expect(lab.rooms.writes).toEqual([]);
  });

  it('A-070 idle connections block nobody', async () => {
    await open();
    const idle = await Promise.all(Array.from({ length: 300 }, () => raw('')));
    expect((await lab.client.rpc('helper', 'ListTasks', {})).status).toBe(200);
    for (const { socket } of idle) socket.destroy();
  });

  it('A-071 a blocked send and a stream outlive every timeout of the server', async () => {
    await open({ responseTimeoutMs: null });
    const sent = lab.client.rpc('helper', 'SendMessage', message('slow'));
    await lab.posted(1);
    await lab.clock.advance(3_000_000);
    await lab.reply('at last');
    expect((await sent).body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('A-340 rates hold per principal and per address, say when to come again, and touch nobody else', async () => {
    await open({ limits: { ratePerMin: 60, burst: 2, ipRatePerMin: 0 } });
    const beta = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    for (let n = 0; n < 2; n += 1) expect((await lab.client.rpc('helper', 'ListTasks', {})).status).toBe(200);
    const over = await lab.client.rpc('helper', 'ListTasks', {});
    expect([over.status, over.headers.get('retry-after'), over.body.error.data[0]?.reason]).toEqual([
      429,
      '1',
      'RATE_LIMITED',
    ]);
    expect((await beta.rpc('helper', 'ListTasks', {})).status).toBe(200);
    await lab.clock.advance(1_000);
    expect((await lab.client.rpc('helper', 'ListTasks', {})).status).toBe(200);
    await lab.close();
    await open({ limits: { ratePerMin: 0, ipRatePerMin: 2 } });
    const statuses = [];
    for (let n = 0; n < 3; n += 1) {
      statuses.push((await lab.client.rpc('helper', 'ListTasks', {}, { headers: { 'x-api-key': 'wrong' } })).status);
    }
    expect(statuses).toEqual([401, 401, 429]);
  });

  it('A-342 mutated requests are answered without a 500', async () => {
    await open({
      limits: { openTasks: 100_000, openTasksPerPrincipal: 100_000, streams: 10_000, streamsPerPrincipal: 10_000 },
    });
    const seeds = [
      { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message('x', {}, NOW) },
      { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { pageSize: 5, status: 'TASK_STATE_WORKING' } },
      { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'x', historyLength: 2 } },
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'message/send',
        params: {
          message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] },
          configuration: { blocking: false },
        },
      },
    ];
    const runs = Number(process.env['A2A_FUZZ_RUNS'] ?? 400);
    const mutated = fc.tuple(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.nat(30), fc.jsonValue({ maxDepth: 2 })), { minLength: 1, maxLength: 3 }),
      fc.constantFrom('1.0', '0.3', null),
      fc.option(fc.tuple(fc.nat(200), fc.nat(255)), { freq: 3 }),
    );
    await fc.assert(
      fc.asyncProperty(mutated, async ([seed, changes, version, flip]) => {
        let body: unknown = structuredClone(seed);
        for (const [at, value] of changes) body = replaced(body, at, value);
        const bytes = new Uint8Array(Buffer.from(JSON.stringify(body) ?? 'null'));
        if (flip) bytes[flip[0] % bytes.length] = flip[1];
        const aborter = AbortSignal.timeout(150);
        const answer = await lab.client
          .request('POST', '/agents/helper', bytes, { version, signal: aborter })
          .catch(() => null);
        // Null: a stream or a wait that the change asked for.
        if (answer) expect(answer.status).toBeLessThan(500);
      }),
      { numRuns: runs },
    );
    expect(lab.lines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    expect((await lab.client.rpc('helper', 'ListTasks', {})).status).toBe(200);
  });
});

/** The value with its n-th place, counted depth first, replaced. */
function replaced(value: unknown, place: number, by: unknown): unknown {
  let left = place;
  const walk = (one: unknown): unknown => {
    if (left === 0) {
      left -= 1;
      return by;
    }
    left -= 1;
    if (Array.isArray(one)) return one.map(walk);
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, item]) => [key, walk(item)]));
  };
  return walk(value);
}

import { PassThrough, Readable, Writable } from 'node:stream';
import { agent, methods, ndJsonStream, RequestError, type AgentContext, type AgentApp } from '@agentclientprotocol/sdk';
import { afterEach, describe, expect, it, vi } from 'vitest';

/**
 * What the bridge leans on in the protocol SDK, and what it works around (P-165). A new version of the SDK runs these
 * first: a test that fails here names the workaround to look at again.
 */

interface Wire {
  write(text: string | Uint8Array): void;
  send(frame: unknown): void;
  end(): void;
  /** Frames written by the agent so far. */
  readonly out: Record<string, unknown>[];
  /** Waits for that many frames. */
  frames(count: number): Promise<Record<string, unknown>[]>;
  readonly closed: Promise<void>;
}

const wires: { end(): void }[] = [];
afterEach(() => {
  for (const one of wires.splice(0)) one.end();
  vi.restoreAllMocks();
});

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 'init',
  method: 'initialize',
  params: { protocolVersion: 1, clientCapabilities: {} },
};

function basic(app: AgentApp = agent()): AgentApp {
  return app
    .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1 }))
    .onRequest(methods.agent.session.new, () => ({ sessionId: 's' }));
}

function wire(app: AgentApp, options?: { maxMessageBytes: number }): Wire {
  const input = new PassThrough();
  const out: Record<string, unknown>[] = [];
  let text = '';
  let tell: () => void = () => undefined;
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      out.push(...lines.map((line) => JSON.parse(line) as Record<string, unknown>));
      tell();
      done();
    },
  });
  const connection = app.connect(
    ndJsonStream(
      Writable.toWeb(output) as WritableStream<Uint8Array>,
      Readable.toWeb(input) as ReadableStream<Uint8Array>,
      options,
    ),
  );
  const made: Wire = {
    write: (data) => input.write(data),
    send: (frame) => input.write(`${JSON.stringify(frame)}\n`),
    end: () => input.end(),
    out,
    closed: connection.closed,
    async frames(count) {
      while (out.length < count) await new Promise<void>((resolve) => (tell = resolve));
      return out;
    },
  };
  wires.push(made);
  return made;
}

async function ready(app: AgentApp, options?: { maxMessageBytes: number }): Promise<Wire> {
  const made = wire(app, options);
  made.send(INITIALIZE);
  await made.frames(1);
  made.out.length = 0;
  return made;
}
const code = (frame: Record<string, unknown> | undefined) => (frame?.['error'] as { code: number } | undefined)?.code;

describe('the protocol SDK', () => {
  it('P-165 refuses a request before initialize, and one written right behind it', async () => {
    const before = wire(basic());
    before.send({ jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: '/', mcpServers: [] } });
    expect(code((await before.frames(1))[0])).toBe(-32_600);
    const behind = wire(basic());
    behind.write(
      `${JSON.stringify(INITIALIZE)}\n${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: '/', mcpServers: [] } })}\n`,
    );
    const answers = await behind.frames(2);
    expect(code(answers.find(({ id }) => id === 1))).toBe(-32_600);
  });

  it('P-165 answers broken lines with id null and goes on', async () => {
    const one = await ready(basic());
    one.write('not json\n[1]\n42\r\n\n');
    one.send({ jsonrpc: '2.0', id: 5, method: 'session/new', params: { cwd: '/', mcpServers: [] } });
    const frames = await one.frames(4);
    expect(frames.map((frame) => [frame['id'], code(frame)])).toEqual([
      [null, -32_700],
      [null, -32_600],
      [null, -32_600],
      [5, undefined],
    ]);
  });

  it('P-165 echoes an object that is no frame in the data of its refusal', async () => {
    const one = await ready(basic());
    one.send({ jsonrpc: '2.0', method: 7, secret: 'CANARY' });
    expect(JSON.stringify((await one.frames(1))[0])).toContain('CANARY');
  });

  it('P-165 says "method not found" to unknown requests and nothing to unknown notifications', async () => {
    const one = await ready(basic());
    one.send({ jsonrpc: '2.0', method: '_x', params: {} });
    one.send({ jsonrpc: '2.0', id: 1, method: 'session/cancel', params: { sessionId: 's' } });
    const frames = await one.frames(1);
    expect(frames).toHaveLength(1);
    expect(code(frames[0])).toBe(-32_601);
  });

  it('P-165 refuses parameters with a report of fields, without a reason of its own', async () => {
    const one = await ready(basic());
    one.send({ jsonrpc: '2.0', id: 1, method: 'session/new', params: { mcpServers: [] } });
    const [frame] = await one.frames(1);
    expect(code(frame)).toBe(-32_602);
    expect((frame?.['error'] as { data: object }).data).toHaveProperty('cwd');
  });

  it('P-165 tells the text of an ordinary error to the client', async () => {
    const app = basic().onRequest(methods.agent.session.list, () => {
      throw new Error('CANARY');
    });
    const one = await ready(app);
    one.send({ jsonrpc: '2.0', id: 1, method: 'session/list', params: {} });
    expect(JSON.stringify((await one.frames(1))[0])).toContain('CANARY');
  });

  it('P-165 answers -32800 for an abort error after $/cancel_request, whose signal may be aborted before the handler runs', async () => {
    const app = basic().onRequest(
      methods.agent.session.load,
      ({ signal }) =>
        new Promise((_, reject) => {
          const stop = () => {
            reject(new DOMException('stopped', 'AbortError'));
          };
          // Written in one go, the cancel comes before the handler of the request it cancels.
          if (signal.aborted) stop();
          else signal.addEventListener('abort', stop);
        }),
    );
    const one = await ready(app);
    one.send({ jsonrpc: '2.0', id: 1, method: 'session/load', params: { sessionId: 's', cwd: '/', mcpServers: [] } });
    one.send({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 1 } });
    expect(code((await one.frames(1))[0])).toBe(-32_800);
  });

  it('P-165 closes without a word on one line over the limit', async () => {
    const one = await ready(basic(), { maxMessageBytes: 200 });
    one.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x', params: 'y'.repeat(300) })}\n`);
    await one.closed;
    expect(one.out).toEqual([]);
  });

  it('P-165 loses the answers of requests that are open at the end of input', async () => {
    let finish: () => void = () => undefined;
    const app = basic().onRequest(methods.agent.session.list, async () => {
      await new Promise<void>((resolve) => (finish = resolve));
      return { sessions: [] };
    });
    const one = await ready(app);
    one.send({ jsonrpc: '2.0', id: 1, method: 'session/list', params: {} });
    one.end();
    await one.closed;
    finish();
    await new Promise((resolve) => setImmediate(resolve));
    expect(one.out).toEqual([]);
  });

  it('P-165 sends an update from a microtask before the answer of its handler, one from setImmediate after it', async () => {
    let client: AgentContext | null = null;
    const update = (text: string) =>
      client?.notify('session/update', {
        sessionId: 's',
        update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
      });
    const app = agent()
      .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1 }))
      .onRequest(methods.agent.session.new, () => {
        queueMicrotask(() => void update('early'));
        setImmediate(() => void update('late'));
        return { sessionId: 's' };
      })
      .onConnect((connection) => {
        client = connection.client;
      });
    const one = await ready(app);
    one.send({ jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: '/', mcpServers: [] } });
    const frames = await one.frames(3);
    expect(frames.map((frame) => frame['id'] ?? JSON.stringify(frame).includes('early'))).toEqual([true, 1, false]);
  });

  it('P-165 runs handlers side by side, a notification not always after the request before it', async () => {
    const order: string[] = [];
    const app = agent()
      .onNotification(methods.agent.session.cancel, () => {
        order.push('cancel');
      })
      .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1 }))
      .onRequest(methods.agent.session.list, () => ({ sessions: [] }))
      .onRequest(methods.agent.session.load, () => ({}))
      .onRequest(methods.agent.session.prompt, () => {
        order.push('prompt');
        return { stopReason: 'end_turn' };
      });
    const one = await ready(app);
    const prompt = { jsonrpc: '2.0', id: 1, method: 'session/prompt', params: { sessionId: 's', prompt: [] } };
    const cancel = { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: 's' } };
    one.write(`${JSON.stringify(prompt)}\n${JSON.stringify(cancel)}\n`);
    await one.frames(1);
    expect(order).toContain('prompt');
    expect(order).toContain('cancel');
  });

  it('P-165 makes {} of nothing for load, and null for list', async () => {
    const app = basic()
      .onRequest(methods.agent.session.load, () => undefined as never)
      .onRequest(methods.agent.session.list, () => undefined as never);
    const one = await ready(app);
    one.send({ jsonrpc: '2.0', id: 1, method: 'session/load', params: { sessionId: 's', cwd: '/', mcpServers: [] } });
    one.send({ jsonrpc: '2.0', id: 2, method: 'session/list', params: {} });
    const frames = await one.frames(2);
    expect(frames.map((frame) => frame['result'])).toEqual([{}, null]);
  });

  it('P-165 keeps _meta and drops unknown parameters', async () => {
    let seen: unknown;
    const app = basic().onRequest(methods.agent.session.list, ({ params }) => {
      seen = params;
      return { sessions: [] };
    });
    const one = await ready(app);
    one.send({ jsonrpc: '2.0', id: null, method: 'session/list', params: { extra: 1, _meta: { a: 1 } } });
    expect((await one.frames(1))[0]?.['id']).toBeNull();
    expect(seen).toEqual({ _meta: { a: 1 } });
  });

  it('P-165 passes a RequestError through as it is', async () => {
    const app = basic().onRequest(methods.agent.session.list, () => {
      throw new RequestError(-32_002, 'Resource not found', { sessionId: 'x' });
    });
    const one = await ready(app);
    one.send({ jsonrpc: '2.0', id: 1, method: 'session/list', params: {} });
    expect((await one.frames(1))[0]?.['error']).toEqual({
      code: -32_002,
      message: 'Resource not found',
      data: { sessionId: 'x' },
    });
  });
});

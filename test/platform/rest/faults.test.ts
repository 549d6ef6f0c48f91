import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { deferred } from '../../../src/base/async.js';
import { createDispatcher } from '../../../src/platform/rest/dispatcher.js';
import { createRestClient } from '../../../src/platform/rest/rest-client.js';
import { failure } from '../../support/link-lab.js';

/** What a real HTTP client makes of a server that misbehaves. */

const KEY = 'band_a_the_secret_key';
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(listener: RequestListener): Promise<{ server: Server; url: string }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function client(url: string) {
  const dispatcher = new Agent({ connect: { timeout: 1_000 } });
  cleanups.push(() => dispatcher.destroy());
  return createRestClient({
    restUrl: url,
    apiKey: KEY,
    dispatcher,
    retries: 0,
    headersTimeoutMs: 200,
    bodyTimeoutMs: 200,
  });
}

const post = (url: string) => client(url).postMessage('room', { content: 'x', mentions: [{ id: 'u' }] });

describe('a server that misbehaves', () => {
  it.each<[string, RequestListener, string]>([
    ['hangs up before the answer', (_q, answer) => answer.destroy(), 'BAND_CONNECTION_LOST'],
    [
      'hangs up inside the body',
      (_q, answer) => {
        answer.writeHead(201, { 'content-length': 100 });
        answer.write('{"data":', () => answer.destroy());
      },
      'BAND_CONNECTION_LOST',
    ],
    [
      'answers no HTTP',
      (request) => {
        request.socket.end('nonsense\r\n\r\n');
      },
      'BAND_CONNECTION_LOST',
    ],
    ['never answers', () => undefined, 'BAND_TIMEOUT'],
    [
      'stops inside the body',
      (_q, answer) => {
        answer.writeHead(201);
        answer.write('{"data":');
      },
      'BAND_TIMEOUT',
    ],
  ])('that %s', async (_name, listener, code) => {
    const { url } = await serve(listener);
    const error = await failure(post(url));
    expect(error.code).toBe(code);
    expect(error.undelivered).toBe(false);
    expect(error.retryable).toBe(true);
    expect(JSON.stringify([error, String(error.cause)])).not.toContain(KEY);
  });

  it('that is not there is certain not to have taken anything', async () => {
    const { server, url } = await serve(() => undefined);
    await new Promise((resolve) => server.close(resolve));
    const error = await failure(post(url));
    expect(error).toMatchObject({ code: 'BAND_UNREACHABLE', undelivered: true });
    expect((error.cause as Error).message).toContain('ECONNREFUSED');
  });

  it('that streams without end is cut off at the limit', async () => {
    let chunks = 0;
    const { url } = await serve((_q, answer) => {
      const more = () => {
        chunks += 1;
        if (!answer.destroyed) answer.write('x'.repeat(10_000), () => setImmediate(more));
      };
      more();
    });
    const dispatcher = new Agent();
    cleanups.push(() => dispatcher.destroy());
    const rest = createRestClient({ restUrl: url, apiKey: KEY, dispatcher, maxAnswerBytes: 100_000 });
    expect((await failure(rest.getMe())).code).toBe('BAND_BAD_ANSWER');
    expect(chunks).toBeLessThan(1_000);
  });

  it('a caller that aborts ends the request on the wire', async () => {
    const controller = new AbortController();
    const closed = deferred();
    const { url } = await serve((request) => {
      request.socket.on('close', closed.resolve);
      controller.abort(new Error('enough'));
    });
    await expect(client(url).getMe({ signal: controller.signal })).rejects.toThrow('enough');
    await closed.promise;
  });

  it('the default dispatcher connects directly, or by the proxy that is named', async () => {
    const seen: string[] = [];
    const proxy = await serve((request, answer) => {
      seen.push(request.url ?? '');
      answer.end(JSON.stringify({ data: { id: 'a', name: 'n' } }));
    });
    const direct = createDispatcher({});
    cleanups.push(() => direct.destroy());
    const rest = createRestClient({ restUrl: proxy.url, apiKey: KEY, dispatcher: direct });
    expect((await rest.getMe()).name).toBe('n');
    expect(seen).toEqual(['/api/v1/agent/me']);
    const through = createDispatcher({ HTTP_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1' });
    cleanups.push(() => through.destroy());
    expect((await createRestClient({ restUrl: proxy.url, apiKey: KEY, dispatcher: through }).getMe()).name).toBe('n');
  });
});

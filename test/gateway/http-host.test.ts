import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { isGatewayError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/log.js';
import { createHttpHost, type HttpHost, type HttpHostOptions } from '../../src/gateway/http-host.js';
import { createPromMetrics } from '../../src/gateway/metrics.js';
import { HOST_OPTIONS } from '../support/http-host-options.js';

const hosts: HttpHost[] = [];
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.stop()));
});

async function startHost(options: Partial<HttpHostOptions> = {}) {
  const metrics = createPromMetrics({ processFigures: false });
  const host = createHttpHost({ ...HOST_OPTIONS, ...options }, { log: silentLogger, metrics, clock: systemClock });
  hosts.push(host);
  await host.start();
  return { host, metrics, url: host.localUrl };
}

/** Sends raw bytes and reads what comes back until the server closes. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => (answer += chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      resolve(answer);
    });
  });
}

describe('the prefix table', () => {
  it('hands a request to the longest prefix it lies below', async () => {
    const { host, url } = await startHost();
    host.mount('/a', (_, response) => response.end('a'));
    host.mount('/a/b', (request, response) => response.end(`b ${request.url}`));
    host.exact('/', (_, response) => response.end('root'));
    host.opened();
    const body = async (path: string) => await (await fetch(url + path)).text();
    expect(await body('/')).toBe('root');
    expect(await body('/a')).toBe('a');
    expect(await body('/a/x/y?q=1')).toBe('a');
    expect(await body('/a/b/c?q=1')).toBe('b /a/b/c?q=1');
    expect(await body('/a/bc')).toBe('a');
    expect((await fetch(`${url}/ab`)).status).toBe(404);
  });

  it('answers what nobody serves with a JSON 404', async () => {
    const { host, url } = await startHost();
    host.opened();
    const response = await fetch(`${url}/nothing`);
    expect(response.status).toBe(404);
    expect(response.headers.get('content-type')).toContain('application/json');
    expect(await response.json()).toMatchObject({ error: { code: 'not_found' } });
  });

  it('answers 503 with a wait while parts may still be starting, and for a part that was taken off', async () => {
    const { host, url } = await startHost();
    expect((await fetch(`${url}/agents/x`)).status).toBe(503);
    host.opened();
    expect((await fetch(`${url}/agents/x`)).status).toBe(404);
    const off = host.mount('/agents', (_, response) => response.end('ok'));
    expect((await fetch(`${url}/agents/x`)).status).toBe(200);
    off();
    const gone = await fetch(`${url}/agents/x`);
    expect(gone.status).toBe(503);
    expect(gone.headers.get('retry-after')).not.toBeNull();
    host.mount('/agents', (_, response) => response.end('again'));
    expect(await (await fetch(`${url}/agents/x`)).text()).toBe('again');
  });

  it('refuses two parts that want one prefix', async () => {
    const { host } = await startHost();
    host.mount('/slack', (_, response) => response.end());
    expect(() => host.mount('/slack', (_, response) => response.end())).toThrow(
      /Two parts of the service want \/slack/,
    );
    expect(() => host.mount('slack/', () => undefined)).toThrow(TypeError);
  });

  it('understands the absolute form that proxies send, and refuses upgrades nobody serves', async () => {
    const { host } = await startHost();
    host.mount('/a', (_, response) => response.end('via proxy'));
    host.opened();
    const port = host.port!;
    expect(await raw(port, 'GET http://x.test/a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).toContain(
      'via proxy',
    );
    const upgrade = 'GET /a HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n';
    expect(await raw(port, upgrade)).toMatch(/^HTTP\/1\.1 404/);
  });

  it.each([
    ['in one piece', 0],
    ['with a body that comes later', 1],
  ])('A-360 a request that offers HTTP/2 is answered in HTTP/1.1, %s', async (_name, cut) => {
    const { host } = await startHost();
    host.mount('/agents', (request, response) => {
      request.setEncoding('utf8');
      let body = '';
      request.on('data', (chunk: string) => (body += chunk));
      request.on('end', () => response.end(JSON.stringify([request.method, request.url, request.headers, body])));
    });
    const head =
      'POST /agents/echo?x=1 HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 4\r\nHost: x\r\n' +
      'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2c\r\nX-Two: 1\r\nX-Two: 2\r\n\r\n';
    const next = 'GET /agents/next HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    const socket = connect(host.port!, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(cut === 0 ? `${head}ping` : head);
    let seen = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (seen += chunk));
    if (cut === 1) {
      await new Promise((resolve) => setImmediate(resolve));
      socket.write('ping');
    }
    await vi.waitFor(() => {
      expect(seen).toContain('"ping"]');
    });
    // The connection is as good as any other.
    socket.write(next);
    await once(socket, 'close');
    expect(seen).toContain('["POST","/agents/echo?x=1",{"content-length":"4","host":"x","x-two":"1, 2"},"ping"]');
    expect(seen.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(seen).toContain('"/agents/next"');
  });

  it('A-062 an expectation that nobody knows is ignored', async () => {
    const { host } = await startHost();
    host.mount('/a', (_, response) => response.end('served'));
    const odd = 'GET /a HTTP/1.1\r\nhost: x\r\nexpect: 200-maybe\r\nconnection: close\r\n\r\n';
    expect(await raw(host.port!, odd)).toMatch(/^HTTP\/1\.1 200 .*served/s);
  });

  it('hands upgrades to their prefix', async () => {
    const { host } = await startHost();
    host.mount(
      '/acp',
      (_, response) => response.end(),
      (_, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\nhello'),
    );
    const answer = await raw(
      host.port!,
      'GET /acp HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n',
    );
    expect(answer).toContain('hello');
  });
});

describe('bad requests', () => {
  it('a listener that throws is a 500 that tells nothing', async () => {
    const { host, url } = await startHost();
    host.mount('/broken', () => {
      throw new Error('password is hunter2');
    });
    const response = await fetch(`${url}/broken`);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain('hunter2');
  });

  it('headers over the limit are 431, what is no HTTP is 400', async () => {
    const { host } = await startHost();
    const long = `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(8_000)}\r\n\r\n`;
    expect(await raw(host.port!, long)).toMatch(/^HTTP\/1\.1 431 .*headers_too_large/s);
    expect(await raw(host.port!, 'HELLO\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('A-070 headers that do not arrive, and a body that does not, are 408 at their limits', async () => {
    const { host } = await startHost({ headerTimeoutMs: 50, requestTimeoutMs: 2_500 });
    let begun = performance.now();
    expect(await raw(host.port!, 'GET / HTTP/1.1\r\nhost: x\r\n')).toMatch(/^HTTP\/1\.1 408 /);
    expect(performance.now() - begun).toBeLessThan(2_500);

    host.exact('/reads', (request) => void request.resume());
    begun = performance.now();
    const head = 'POST /reads HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nonly this';
    expect(await raw(host.port!, head)).toMatch(/^HTTP\/1\.1 408 /);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(2_400);
  });

  it('A-248 a client that has closed its half still gets all that is written later, and then the end', async () => {
    const { host } = await startHost({ keepAliveMs: 60_000 });
    host.exact('/events', (request, response) => {
      request.resume();
      response.write('first ');
      // Told by the client's end that it has said all; the rest is written after that.
      request.socket.once('end', () => {
        setImmediate(() => response.end('last'));
      });
    });
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect({ port: host.port!, host: '127.0.0.1', allowHalfOpen: true });
      let text = '';
      socket.setEncoding('utf8');
      socket.on('data', (chunk: string) => (text += chunk));
      socket.on('error', reject);
      socket.on('end', () => {
        resolve(text);
      });
      socket.end('GET /events HTTP/1.1\r\nhost: x\r\n\r\n');
    });
    expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*first [\s\S]*last/);
  });

  it('connections over the limit are closed and counted', async () => {
    const { host, metrics, url } = await startHost({ maxConnections: 1 });
    host.exact('/', (_, response) => response.end('ok'));
    const first = connect(host.port!, '127.0.0.1');
    await new Promise((resolve) => first.once('connect', resolve));
    await expect(fetch(url)).rejects.toThrow();
    expect(await metrics.text()).toContain('band_http_connections_refused_total 1');
    first.destroy();
  });
});

describe('its address', () => {
  it('a taken port is named, with what to do', async () => {
    const { host } = await startHost();
    const second = createHttpHost(
      { ...HOST_OPTIONS, port: host.port! },
      { log: silentLogger, metrics: createPromMetrics({ processFigures: false }), clock: systemClock },
    );
    const error = await second.start().catch((found: unknown) => found);
    expect(isGatewayError(error, 'PORT_IN_USE')).toBe(true);
    expect((error as Error).message).toContain(`Port ${host.port} on 127.0.0.1 is already in use`);
    await second.stop();
  });

  it('is the public one without its last slash, else this machine', async () => {
    const { host } = await startHost({ publicUrl: 'https://gw.test/base/' });
    expect(host.publicUrl).toBe('https://gw.test/base');
    expect((await startHost()).host.publicUrl).toMatch(/^http:\/\/localhost:\d+$/);
    expect(host.localUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  });
});

describe('stopping', () => {
  it('lets a request in flight finish and takes no new ones', async () => {
    const { host, url } = await startHost();
    let finish: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => {
      host.exact('/slow', (_, response) => {
        finish = () => response.end('done');
        resolve();
      });
    });
    const answer = fetch(`${url}/slow`);
    await begun;
    const stopped = host.stop();
    finish();
    expect(await (await answer).text()).toBe('done');
    await stopped;
    await expect(fetch(url)).rejects.toThrow();
  });
});

it('counts answered requests by mount and kind of status, never by path', async () => {
  const { host, metrics, url } = await startHost();
  host.mount('/a', (_, response) => response.end());
  host.opened();
  await (await fetch(`${url}/a/secret-id`)).text();
  await (await fetch(`${url}/b/other-id`)).text();
  await new Promise((resolve) => setImmediate(resolve));
  const text = await metrics.text();
  expect(text).toContain('band_http_requests_total{mount="/a",status="2xx"} 1');
  expect(text).toContain('band_http_requests_total{mount="none",status="4xx"} 1');
  expect(text).not.toContain('-id');
});

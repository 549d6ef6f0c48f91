import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createConsole } from '../../src/sandbox/console/index.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, extraRoutes: createConsole({ apiKey: DEMO.user.apiKey }) });
});
afterAll(() => sandbox.close());

async function get(path: string, headers: Record<string, string> = {}, method: 'GET' | 'POST' = 'GET') {
  const answer = await request(sandbox.restUrl + path, { method, headers });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

describe('the page', () => {
  it('comes with a policy under which nothing from elsewhere loads and nothing inline runs', async () => {
    const { status, headers, text } = await get('/');
    expect(status).toBe(200);
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(text).not.toMatch(/<script>|<style>|style="|\son[a-z]+="|https?:\/\//);
  });

  it('does not put a strange host name into its policy', async () => {
    const { headers } = await get('/', { host: "x; script-src 'unsafe-inline'" });
    expect(headers['content-security-policy']).not.toContain('unsafe-inline');
  });

  it('holds no key', async () => {
    expect((await get('/')).text).not.toContain(DEMO.user.apiKey);
  });
});

describe('its files', () => {
  it.each(['/console/style.css', '/console/main.js', '/console/api.js', '/console/mention.js', '/console/timeline.js'])(
    '%s is served and not sent again while it is the same',
    async (path) => {
      const { status, headers, text } = await get(path);
      expect(status).toBe(200);
      expect(text.length).toBeGreaterThan(100);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect((await get(path, { 'if-none-match': String(headers.etag) })).status).toBe(304);
    },
  );

  it.each(['/console/', '/console/tsconfig.json', '/console/..%2f..%2fpackage.json', '/console/index.js', '/other'])(
    '%s is not there',
    async (path) => {
      expect((await get(path)).status).toBe(404);
    },
  );

  it('takes no writing', async () => {
    expect((await get('/', {}, 'POST')).status).toBe(405);
  });
});

describe('the key', () => {
  it('is lent to a visitor on this machine, and to no cache', async () => {
    const { status, headers, text } = await get('/console/session', { 'sec-fetch-site': 'same-origin' });
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual({ api_key: DEMO.user.apiKey });
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });

  it.each([
    ['a page of another origin', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }],
    ['a name that somebody pointed here', { host: 'evil.test:4000' }],
    ['a proxy', { 'x-forwarded-for': '203.0.113.9' }],
    ['a proxy that names itself', { via: '1.1 proxy' }],
  ])('is not lent to %s', async (_, headers) => {
    const { status, text } = await get('/console/session', headers);
    expect(status).toBe(403);
    expect(text).not.toContain(DEMO.user.apiKey);
  });

  it('is not lent when the sandbox has none to lend', async () => {
    const other = await startSandbox({ port: 0, seed: 'empty', extraRoutes: createConsole() });
    const answer = await request(`${other.restUrl}/console/session`);
    expect(answer.statusCode).toBe(403);
    await answer.body.dump();
    await other.close();
  });
});

it("leaves the platform's own paths alone", async () => {
  expect((await get('/api/v1/me/profile')).status).toBe(401);
  expect((await get('/health')).status).toBe(200);
});

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { createStatusDoor } from '../../src/gateway/status-door.js';
import { duration, statusPage } from '../../src/gateway/status-page.js';
import type { GatewayReport } from '../../src/gateway/report.js';

const NOW = Date.UTC(2026, 0, 1);

function report(over: Partial<GatewayReport> = {}): GatewayReport {
  return {
    version: '1.2.3',
    now: NOW,
    startedAt: NOW - 3_600_000,
    publicUrl: 'https://gw.test',
    platformUrl: 'https://band.test',
    blockers: [],
    notices: [],
    agents: [
      {
        name: 'helpdesk',
        agentName: 'Help <b>desk</b>',
        bridgeName: 'slack',
        state: 'waiting',
        since: NOW - 20_000,
        nextTryAt: NOW + 5_000,
        problem: { code: 'BAND_UNREACHABLE', message: 'Band could not be reached.', action: 'Wait.' },
        link: { state: 'waiting', since: NOW - 10_000, why: 'closed 1006' },
        bridge: {
          links: [{ name: 'socket main', state: 'open', since: NOW - 120_000 }],
          queues: [{ name: 'inbox', depth: 3, dead: 1 }],
          lastErrors: [{ at: NOW - 1_000, code: 'SLACK_AUTH', text: 'not_authed', action: 'Renew the token.' }],
          recent: [{ at: NOW - 2_000, conversation: 'C1/1.2', what: '"><script>alert(1)</script>' }],
        },
        deadLetters: [
          { id: 'd1', queue: 'outbox', conversation: 'C1', code: 'X', reason: "it's <gone>", at: NOW - 60_000 },
        ],
      },
    ],
    ...over,
  };
}

describe('the page', () => {
  it('shows every agent and bridge with links, queues, errors, dead letters and deliveries', () => {
    const page = statusPage(report());
    for (const text of [
      'helpdesk',
      'waiting',
      'next try in 5 s',
      'socket main',
      'closed 1006',
      'inbox',
      'SLACK_AUTH',
      'Renew the token.',
      'band-gateway dead retry helpdesk d1',
      'C1/1.2',
      'http-equiv="refresh"',
    ]) {
      expect(page).toContain(text);
    }
  });

  it('tells what happened since the start, with what to do about it', () => {
    const notices = [{ at: NOW - 120_000, text: 'The store was <damaged>.', action: 'Look at the disk.' }];
    const page = statusPage(report({ notices }));
    expect(page).toContain('The store was &lt;damaged&gt;. <em>Look at the disk.</em> <small>2 min ago</small>');
    expect(statusPage(report())).not.toContain('What happened');
  });

  it('escapes whatever comes from outside', () => {
    const page = statusPage(report());
    expect(page).toContain('Help &lt;b&gt;desk&lt;/b&gt;');
    expect(page).toContain('&quot;&gt;&lt;script&gt;');
    expect(page).toContain('it&#39;s &lt;gone&gt;');
    expect(page).not.toContain('<script');
  });

  it('shows as degraded while a bridge cannot do part of its work, and as ready once it can', () => {
    expect(statusPage(report())).toContain('<span class="state fair">degraded</span>');
    const [agent] = report().agents;
    const mended = { ...agent!, bridge: { ...agent!.bridge!, lastErrors: [] } };
    expect(statusPage(report({ agents: [mended] }))).toContain('<span class="state good">ready</span>');
  });

  it('names what is in the way, since when, and what to do', () => {
    const blockers = [{ name: 'agent.helpdesk', message: 'No connection.', action: 'Look there.', since: NOW - 5_000 }];
    const page = statusPage(report({ blockers }));
    expect(page).toContain('not ready');
    expect(page).toMatch(/agent\.helpdesk<\/strong>: No connection\.[\s\S]*Look there\.[\s\S]*for 5 s/);
  });

  it.each([
    [0, '0 s'],
    [89_000, '89 s'],
    [600_000, '10 min'],
    [7_200_000, '2 h'],
    [300_000_000, '3 d'],
  ])('writes %i ms as %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });
});

describe('the door', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  async function open(token?: string) {
    const door = createStatusDoor(async () => report(), { token, onError: () => undefined });
    const server = createServer(door);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }
  const get = async (url: string, headers: Record<string, string> = {}) => {
    const answer = await request(url, { headers });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  };

  it('is open to this machine, with a policy that lets nothing else load', async () => {
    const answer = await get(await open());
    expect(answer.status).toBe(200);
    const policy = String(answer.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
  });

  it.each([
    ['a proxy on this machine', { 'x-forwarded-for': '203.0.113.9' }],
    ['a name that somebody pointed here', { host: 'evil.test' }],
  ])('is closed to visitors through %s', async (_, headers) => {
    expect((await get(await open(), headers)).status).toBe(403);
  });

  it('with a token is open to whoever brings it, and to nobody else', async () => {
    const url = await open('correct horse battery');
    expect((await get(url)).status).toBe(401);
    expect((await get(url, { authorization: 'Bearer wrong' })).status).toBe(401);
    expect((await get(url, { authorization: 'Bearer correct horse battery', host: 'gw.test' })).status).toBe(200);
  });

  it('takes the token out of the address and keeps it as a cookie that does not hold it', async () => {
    const url = await open('correct horse battery');
    const answer = await get(`${url}?token=correct+horse+battery`);
    expect(answer.status).toBe(303);
    expect(answer.headers.location).toBe('./');
    const cookie = String(answer.headers['set-cookie']);
    expect(cookie).toMatch(/HttpOnly; SameSite=Strict/);
    expect(cookie).not.toContain('horse');
    expect((await get(url, { cookie: cookie.split(';')[0]! })).status).toBe(200);
    expect((await get(url, { cookie: 'band_status=forged' })).status).toBe(401);
  });

  it('gives the same report as JSON', async () => {
    const answer = await get(await open(), { accept: 'application/json' });
    expect(JSON.parse(answer.text)).toEqual(report());
  });

  it('refuses to be written to', async () => {
    const answer = await request(await open(), { method: 'POST', body: 'x' });
    expect(answer.statusCode).toBe(405);
    expect(answer.headers.allow).toBe('GET');
  });
});

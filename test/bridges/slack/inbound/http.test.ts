import { connect } from 'node:net';
import express from 'express';
import Fastify from 'fastify';
import Koa from 'koa';
import { request } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SlackAppConfig } from '../../../../bridges/slack/apps.js';
import { createHttpIngress, type HttpIngressDeps } from '../../../../bridges/slack/inbound/http.js';
import { signBody } from '../../../../bridges/slack/signature.js';
import { createLogger } from '../../../../src/base/log.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import { openDoor, serve } from './doors.js';

const NOW_MS = Date.UTC(2026, 10, 29);
const NOW = NOW_MS / 1_000;
const app = (slug: string, secret: string | string[]): SlackAppConfig => ({
  slug,
  botToken: 'xoxb-1',
  signingSecrets: [secret].flat(),
  appToken: null,
  transport: 'http',
  persona: null,
  surface: null,
  allow: [],
  deny: [],
});
const MAIN = app('main', 'secret-main');

const setUp = async (more: Partial<HttpIngressDeps> & { store?: ReturnType<typeof createMemoryStore> } = {}) => {
  const clock = createManualClock(NOW_MS);
  const lines: string[] = [];
  const log = createLogger({ destination: { write: (line) => void lines.push(line) } });
  const counted: string[] = [];
  const metrics = {
    counter: (name: string) => ({
      inc: (labels: object = {}) => void counted.push(`${name} ${JSON.stringify(labels)}`),
    }),
    gauge: () => ({ set: () => undefined }),
    histogram: () => ({ observe: () => undefined }),
  };
  const door = await openDoor({ clock, metrics, ...(more.store ? { store: more.store } : {}) });
  door.start();
  const listener = createHttpIngress({
    apps: [MAIN],
    mountPath: '/slack',
    accept: door.accept,
    clock,
    log,
    metrics,
    bodyLimitBytes: 10_000,
    open: () => true,
    ...more,
  });
  return { ...door, clock, lines, counted, listener };
};

interface Sent {
  secret?: string;
  at?: number;
  type?: string;
  path?: string;
  method?: 'POST' | 'GET';
  headers?: Record<string, string>;
}
const post = async (url: string, body: string | Buffer, sent: Sent = {}) => {
  const { secret = 'secret-main', at = NOW, type = 'application/json', path = '/slack/main/events' } = sent;
  const bytes = Buffer.from(body);
  const answer = await request(url + path, {
    method: sent.method ?? 'POST',
    headers: {
      'content-type': type,
      'x-slack-request-timestamp': String(at),
      'x-slack-signature': signBody(secret, String(at), bytes),
      ...sent.headers,
    },
    ...(sent.method === 'GET' ? {} : { body: bytes }),
  });
  return { status: answer.statusCode, text: await answer.body.text(), headers: answer.headers };
};
let events = 0;
const event = (id = `Ev${(events += 1)}`) =>
  JSON.stringify({
    type: 'event_callback',
    team_id: 'T1',
    api_app_id: 'A1',
    event_id: id,
    event_time: 1,
    event: { type: 'app_mention', user: 'U1', text: 'hi', ts: '1.1', channel: 'C1' },
  });

describe('the HTTP door', () => {
  it('S-020 answers a signed event with 200 and nothing, on the app’s route and, for a single app, without its slug', async () => {
    const { listener, handled, inbox } = await setUp();
    const { url } = await serve(listener);
    for (const path of ['/slack/main/events', '/slack/events', '/slack/events/', '/slack/main/interactions']) {
      expect(await post(url, event(), { path })).toMatchObject({ status: 200, text: '' });
    }
    await inbox.queue.drained();
    expect(handled).toHaveLength(4);
  });

  it('S-020 asks for the slug when there are several apps', async () => {
    const { listener } = await setUp({ apps: [MAIN, app('other', 'secret-other')] });
    const { url } = await serve(listener);
    expect((await post(url, event(), { path: '/slack/events' })).status).toBe(404);
  });

  it('S-021 answers a signed challenge with its text as often as asked, and an unsigned one not at all', async () => {
    const { listener, handled } = await setUp();
    const { url } = await serve(listener);
    const body = JSON.stringify({ type: 'url_verification', challenge: 'abc <&> 1' });
    expect(await post(url, body)).toMatchObject({ status: 200, text: 'abc <&> 1' });
    expect(await post(url, body)).toMatchObject({ status: 200, text: 'abc <&> 1' });
    expect((await post(url, body, { secret: 'wrong' })).status).toBe(401);
    expect(handled).toEqual([]);
  });

  it.each([
    ['mismatch', { secret: 'wrong' }],
    ['missing', { headers: { 'x-slack-signature': '' } }],
    ['missing', { headers: { 'x-slack-request-timestamp': '' } }],
    ['version', { headers: { 'x-slack-signature': `v1=${'0'.repeat(64)}` } }],
    ['mismatch', { headers: { 'x-slack-request-timestamp': 'now' } }],
    ['stale', { at: NOW - 301 }],
    ['future', { at: NOW + 301 }],
  ] as const)('S-022 refuses a request whose signature is %s with 401 and counts why', async (reason, sent) => {
    const { listener, counted, handled } = await setUp();
    const { url } = await serve(listener);
    expect(await post(url, event(), sent as Sent)).toMatchObject({ status: 401, text: 'invalid signature' });
    expect(counted).toContain(`slack_signature_failures_total ${JSON.stringify({ app: 'main', reason })}`);
    expect(handled).toEqual([]);
  });

  it('S-023 takes a clock that is exactly 300 seconds off in either direction', async () => {
    const { listener } = await setUp();
    const { url } = await serve(listener);
    for (const at of [NOW - 300, NOW + 300]) expect((await post(url, event(), { at })).status).toBe(200);
  });

  it('S-024 refuses one app’s signature on another app’s route', async () => {
    const { listener } = await setUp({ apps: [MAIN, app('other', 'secret-other')] });
    const { url } = await serve(listener);
    expect((await post(url, event(), { path: '/slack/other/events' })).status).toBe(401);
    expect((await post(url, event(), { path: '/slack/other/events', secret: 'secret-other' })).status).toBe(200);
  });

  it('S-024 takes any of several secrets while one is being replaced', async () => {
    const { listener } = await setUp({ apps: [app('main', ['old', 'new'])] });
    const { url } = await serve(listener);
    for (const secret of ['old', 'new']) expect((await post(url, event(), { secret })).status).toBe(200);
  });

  it('S-025 checks the bytes as they came: invalid UTF-8, a byte order mark, carriage returns', async () => {
    const { listener, inbox, handled } = await setUp();
    const { url } = await serve(listener);
    const odd = [
      Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(event())]),
      Buffer.from(event().replace('{', '{\r\n')),
      Buffer.from(event().replace('"hi"', '"h\u0000i"').replace('\u0000', '')),
      Buffer.concat([
        Buffer.from(event().slice(0, -1)),
        Buffer.from(',"x":"'),
        Buffer.from([0xff, 0xfe]),
        Buffer.from('"}'),
      ]),
    ];
    for (const body of odd) expect((await post(url, body)).status).toBe(200);
    await inbox.queue.drained();
    expect(handled).toHaveLength(4);
  });

  it.each([
    ['signed text that is no JSON', 400, 'not json', {}],
    ['a form without a payload', 400, 'a=1', { type: 'application/x-www-form-urlencoded' }],
    ['an unknown slug', 404, 'x', { path: '/slack/nobody/events' }],
    ['an unknown door', 404, 'x', { path: '/slack/main/other' }],
    ['another verb', 405, '', { method: 'GET' as const }],
    ['a body over the limit', 413, 'x'.repeat(20_000), {}],
  ] as const)('S-026 answers %s with %d', async (_what, status, body, sent) => {
    const { listener, handled } = await setUp();
    const { url } = await serve(listener);
    const answer = await post(url, body, sent);
    expect(answer.status).toBe(status);
    expect(answer.text).not.toContain('<');
    if (status === 405) expect(answer.headers['allow']).toBe('POST');
    expect(handled).toEqual([]);
  });

  it('S-026 takes JSON that is no object, or of no known type, and asks for no repeat', async () => {
    const { listener } = await setUp();
    const { url } = await serve(listener);
    for (const body of ['[]', '1', 'null', '{"type":"new_thing"}', '{"type":"event_callback"}']) {
      expect((await post(url, body)).status).toBe(200);
    }
  });

  it.each([
    [
      'payload',
      `payload=${encodeURIComponent('{"type":"block_actions","user":{"id":"U1"},"actions":[{"action_id":"a"}]}')}`,
    ],
    ['command', 'command=%2Fband&text=help&user_id=U1&channel_id=C1&team_id=T1&trigger_id=t1'],
  ])('S-027 takes forms with a %s, with and without a charset, on all three routes', async (_what, body) => {
    const { listener, handled, inbox } = await setUp();
    const { url } = await serve(listener);
    let count = 0;
    for (const door of ['events', 'interactions', 'commands']) {
      for (const charset of ['', '; charset=utf-8']) {
        count += 1;
        const varied = body.replace('U1', `U${count}`).replace('t1', `t${count}`);
        const type = `application/x-www-form-urlencoded${charset}`;
        expect((await post(url, varied, { type, path: `/slack/main/${door}` })).status).toBe(200);
      }
    }
    await inbox.queue.drained();
    expect(handled).toHaveLength(count);
  });

  it('S-028 answers the certificate check unsigned, and does nothing else whatever the body holds', async () => {
    const { listener, handled } = await setUp();
    const { url } = await serve(listener);
    const body = `ssl_check=1&payload=${encodeURIComponent('{"type":"block_actions"}')}`;
    const sent = { type: 'application/x-www-form-urlencoded', secret: 'wrong' };
    expect(await post(url, body, sent)).toMatchObject({ status: 200, text: '' });
    expect(handled).toEqual([]);
  });

  describe('S-029 works under', () => {
    it('Express, below a prefix', async () => {
      const { listener } = await setUp({ mountPath: '' });
      const host = express();
      host.use('/hooks/slack', listener);
      const { url } = await serve(host);
      expect((await post(url, event(), { path: '/hooks/slack/main/events' })).status).toBe(200);
    });

    it('Express behind a parser that kept rawBody', async () => {
      const { listener } = await setUp({ mountPath: '' });
      const host = express();
      host.use(express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) }));
      host.use('/slack', listener);
      const { url } = await serve(host);
      expect((await post(url, event())).status).toBe(200);
    });

    it('Fastify', async () => {
      const { listener } = await setUp();
      const host = Fastify();
      host.removeAllContentTypeParsers();
      host.addContentTypeParser('*', (_request, _payload, done) => {
        done(null);
      });
      host.post('/slack/*', (req, reply) => {
        reply.hijack();
        listener(req.raw, reply.raw);
      });
      await host.listen({ port: 0, host: '127.0.0.1' });
      onTestFinished(() => host.close());
      const url = host.listeningOrigin;
      expect((await post(url, event())).status).toBe(200);
    });

    it('Koa', async () => {
      const { listener } = await setUp();
      const host = new Koa();
      host.use((ctx) => {
        ctx.respond = false;
        listener(ctx.req, ctx.res);
      });
      const { url } = await serve((req, res) => void host.callback()(req, res));
      expect((await post(url, event())).status).toBe(200);
    });

    it('nothing that has read the body and kept none of it: 500, and one log line a minute that says why', async () => {
      const { listener, lines, clock } = await setUp({ mountPath: '' });
      const host = express();
      host.use(express.json());
      host.use('/slack', listener);
      const { url } = await serve(host);
      expect((await post(url, event())).status).toBe(500);
      expect((await post(url, event())).status).toBe(500);
      expect(lines.filter((line) => line.includes('rawBody'))).toHaveLength(1);
      clock.jump(60_000);
      await post(url, event(), { at: NOW + 60 });
      expect(lines.filter((line) => line.includes('rawBody'))).toHaveLength(2);
    });
  });

  it('S-031 answers 503 when the record could not be stored, and takes the repeat', async () => {
    const store = createMemoryStore();
    const batch = store.batch.bind(store);
    const { listener, handled, inbox } = await setUp({ store });
    const { url } = await serve(listener);
    const body = event();
    store.batch = () => Promise.reject(new GatewayError('STORE_TRIPPED'));
    expect((await post(url, body)).status).toBe(503);
    store.batch = batch;
    expect((await post(url, body)).status).toBe(200);
    await inbox.queue.drained();
    expect(handled).toHaveLength(1);
  });

  it('S-031 answers 503 when the disk takes longer than the deadline', async () => {
    const store = createMemoryStore();
    const { listener, clock } = await setUp({ store });
    const { url } = await serve(listener);
    store.batch = () => new Promise(() => undefined);
    const answer = post(url, event());
    await expect.poll(() => clock.pending).toBeGreaterThan(0);
    while (clock.pending > 0) await clock.advance(2_500);
    expect((await answer).status).toBe(503);
  });

  it('S-032 acknowledges the same event three times and hands it on once', async () => {
    const { listener, handled, inbox, counted } = await setUp();
    const { url } = await serve(listener);
    const body = event();
    for (let i = 0; i < 3; i += 1) {
      const headers = i === 0 ? {} : { 'x-slack-retry-num': String(i), 'x-slack-retry-reason': 'http_timeout' };
      expect((await post(url, body, { headers: headers })).status).toBe(200);
    }
    await inbox.queue.drained();
    expect(handled).toHaveLength(1);
    expect(counted.filter((line) => line.startsWith('slack_events_duplicate_total'))).toHaveLength(2);
  });

  it('S-034 takes one event id on two apps as two events', async () => {
    const { listener, handled, inbox } = await setUp({ apps: [MAIN, app('other', 'secret-main')] });
    const { url } = await serve(listener);
    const body = event();
    await post(url, body);
    await post(url, body, { path: '/slack/other/events' });
    await inbox.queue.drained();
    expect(handled.map(({ slug }) => slug)).toEqual(['main', 'other']);
  });

  it('S-035 takes a repeat whose first delivery never came', async () => {
    const { listener, handled, inbox } = await setUp();
    const { url } = await serve(listener);
    await post(url, event(), { headers: { 'x-slack-retry-num': '2', 'x-slack-retry-reason': 'http_error' } });
    await inbox.queue.drained();
    expect(handled).toMatchObject([{ retryNum: 2, retryReason: 'http_error' }]);
  });

  it('S-036 takes an event without an id once', async () => {
    const { listener, handled, inbox } = await setUp();
    const { url } = await serve(listener);
    const body = event().replace(/"event_id":"[^"]*",/, '');
    await post(url, body);
    await post(url, body);
    await inbox.queue.drained();
    expect(handled).toHaveLength(1);
  });

  it('answers 503 while it stops', async () => {
    const { listener } = await setUp({ open: () => false });
    const { url } = await serve(listener);
    expect((await post(url, event())).status).toBe(503);
  });

  it('says that a clock is off after five right digests with a wrong time', async () => {
    const { listener, lines } = await setUp();
    const { url } = await serve(listener);
    for (let i = 0; i < 6; i += 1) await post(url, event(), { at: NOW - 400 });
    expect(lines.filter((line) => line.includes('"skewSeconds":400'))).toHaveLength(1);
  });

  it('answers 408 when a sender stops in the middle of a body', async () => {
    const { listener, clock } = await setUp();
    const { url } = await serve(listener);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (piece: Buffer) => (answer += piece.toString()));
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.write('POST /slack/main/events HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"half');
    await expect.poll(() => clock.pending).toBeGreaterThan(0);
    await clock.advance(5_000);
    await closed;
    expect(answer).toContain('408');
  });
});

import express from 'express';
import Fastify from 'fastify';
import Koa from 'koa';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayError } from '../../../../src/base/errors.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import { serve } from './doors.js';
import { app, event, MAIN, NOW, post, setUp } from './http-door.js';

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

  it('S-031 says once a minute, of each cause, why it takes nothing in', async () => {
    const { listener, lines, clock } = await setUp({ accept: () => Promise.reject(new GatewayError('QUEUE_FULL')) });
    const { url } = await serve(listener);
    const told = () => lines.filter((line) => line.includes('QUEUE_FULL'));
    for (let i = 0; i < 4; i += 1) expect((await post(url, event())).status).toBe(503);
    expect(told()).toHaveLength(1);
    clock.jump(60_000);
    expect((await post(url, event(), { at: NOW + 60 })).status).toBe(503);
    expect(told()).toHaveLength(2);
    expect(JSON.parse(told()[1] ?? '')).toMatchObject({ untold: 3, app: 'main' });
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
});

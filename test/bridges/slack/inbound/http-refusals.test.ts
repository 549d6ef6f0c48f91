import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serve } from './doors.js';
import { event, NOW, post, setUp, type Sent } from './http-door.js';

describe('what the HTTP door refuses', () => {
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

  it.each([
    ['bad_json', 'not json', 'application/json'],
    ['bad_json', 'a picture', 'image/png'],
    ['bad_form', 'a=1', 'application/x-www-form-urlencoded'],
    ['bad_form', 'payload=%7Bbroken', 'application/x-www-form-urlencoded; charset=utf-8'],
    ['bad_charset', event(), 'application/json; charset=utf-16le'],
    ['bad_charset', 'command=%2Fband&user_id=U1', 'application/x-www-form-urlencoded;charset="ISO-8859-1"'],
  ])(
    'S-026 counts what cannot be read as %s, and only once it is known to come from Slack',
    async (reason, body, type) => {
      const { listener, counted, handled } = await setUp();
      const { url } = await serve(listener);
      expect((await post(url, body, { type, secret: 'wrong' })).status).toBe(401);
      expect(counted.filter((line) => line.startsWith('slack_events'))).toEqual([]);
      expect((await post(url, body, { type })).status).toBe(400);
      expect(counted.filter((line) => line.startsWith('slack_events'))).toEqual([
        `slack_events_dropped_total ${JSON.stringify({ app: 'main', reason })}`,
      ]);
      expect(handled).toEqual([]);
    },
  );

  it.each(['application/json;charset=UTF-8', 'application/json; charset="utf-8"', 'text/plain; charset=us-ascii'])(
    'S-027 takes JSON that comes as %s',
    async (type) => {
      const { listener } = await setUp();
      const { url } = await serve(listener);
      expect((await post(url, event(), { type })).status).toBe(200);
    },
  );

  it.each([
    ['one that says how long it is', `Content-Length: ${64 * 1024 * 1024}`, (piece: Buffer) => piece],
    [
      'one that does not',
      'Transfer-Encoding: chunked',
      (piece: Buffer) => Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
    ],
  ])('S-026 ends the connection of %s when the body has no end', async (_what, header, frame) => {
    const { listener } = await setUp();
    const { url } = await serve(listener);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    let answer = '';
    let sent = 0;
    socket.on('data', (piece: Buffer) => (answer += piece.toString()));
    socket.on('error', () => undefined);
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.write(`POST /slack/main/events HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`);
    const piece = frame(Buffer.alloc(16 * 1024));
    const pour = () => {
      while (!socket.destroyed && sent < 64 * 1024 * 1024 && socket.write(piece)) sent += piece.length;
      sent += piece.length;
    };
    socket.on('drain', pour);
    pour();
    await closed;
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(sent).toBeLessThan(32 * 1024 * 1024);
  });

  it('S-026 journals JSON that is no object, or of no known type, as unknown, and asks for no repeat', async () => {
    const { listener, handled, inbox, counted } = await setUp();
    const { url } = await serve(listener);
    const bodies = [
      [],
      1,
      null,
      {},
      { type: 'new_thing' },
      { type: 'event_callback' },
      { type: 'event_callback', event: 7 },
    ];
    for (const body of bodies) {
      expect(await post(url, JSON.stringify(body))).toMatchObject({ status: 200, text: '' });
    }
    await inbox.queue.drained();
    expect(handled.map(({ payload }) => payload)).toEqual(bodies);
    const unknown = { app: 'main', transport: 'http', kind: 'unknown', type: 'unknown' };
    expect(counted.filter((line) => line.startsWith('slack_events'))).toEqual(
      bodies.map(() => `slack_events_received_total ${JSON.stringify(unknown)}`),
    );
  });

  it('answers 503 while it stops', async () => {
    const { listener } = await setUp({ open: () => false });
    const { url } = await serve(listener);
    expect((await post(url, event())).status).toBe(503);
  });

  it.each([
    ['ahead', 400],
    ['behind', -400],
  ])('S-022 says once that the clock is %s, by how much, after five right digests in a row', async (_how, seconds) => {
    const { listener, lines } = await setUp();
    const { url } = await serve(listener);
    const said = () => lines.filter((line) => line.includes('set the clock'));
    const at = NOW - seconds;
    for (let i = 0; i < 4; i += 1) await post(url, event(), { at });
    await post(url, event());
    for (let i = 0; i < 4; i += 1) await post(url, event(), { at });
    await post(url, event(), { at, secret: 'wrong' });
    expect(said()).toEqual([]);
    for (let i = 0; i < 3; i += 1) await post(url, event(), { at });
    expect(said()).toEqual([expect.stringContaining(`"skewSeconds":${seconds}`)]);
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

import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { signBody, verifySignature } from '../../../bridges/slack/signature.js';

const SECRET = '8f742231b10e8888abcd99yyyzzz85a5';
const NOW_SECONDS = 1_764_412_000;
const nowMs = NOW_SECONDS * 1_000 + 400;
const body = Buffer.from('{"type":"event_callback"}');
const at = (seconds: number) => String(NOW_SECONDS + seconds);
const signed = (offset = 0, secret = SECRET, bytes: Uint8Array = body) => ({
  timestamp: at(offset),
  signature: signBody(secret, at(offset), bytes),
  body: bytes,
});
const verify = (request: Parameters<typeof verifySignature>[0], secrets = [SECRET]) =>
  verifySignature(request, secrets, nowMs);

describe('a request signature', () => {
  it('matches Slack’s own recipe', () => {
    const base = `v0:${NOW_SECONDS}:${body.toString()}`;
    expect(signBody(SECRET, at(0), body)).toBe(`v0=${createHmac('sha256', SECRET).update(base).digest('hex')}`);
    expect(verify(signed())).toEqual({ ok: true });
  });

  it.each([-300, -1, 0, 1, 300])('S-023 a clock that is %i seconds off passes', (offset) => {
    expect(verify(signed(offset))).toEqual({ ok: true });
  });

  it.each([
    [-301, 'stale'],
    [301, 'future'],
  ])('S-023 a clock that is %i seconds off fails as %s, and the measured difference is known', (offset, reason) => {
    expect(verify(signed(offset))).toEqual({ ok: false, reason, skewSeconds: -offset });
  });

  it('S-022 a difference is reported only where the digest was right', () => {
    expect(verify(signed(-900, 'other'))).toEqual({ ok: false, reason: 'stale', skewSeconds: null });
  });

  it.each([
    ['no timestamp', { timestamp: undefined }, 'missing'],
    ['no signature', { signature: undefined }, 'missing'],
    ['an empty signature', { signature: '' }, 'missing'],
    ['a timestamp that is no number', { timestamp: '12e3' }, 'mismatch'],
    ['a timestamp of 13 digits', { timestamp: '1764412000000' }, 'mismatch'],
    ['a signature without a version', { signature: 'ab'.repeat(32) }, 'version'],
    ['another version', { signature: `v1=${'ab'.repeat(32)}` }, 'version'],
    ['a short digest', { signature: 'v0=abcd' }, 'mismatch'],
    ['a digest that is no hex', { signature: `v0=${'zz'.repeat(32)}` }, 'mismatch'],
    ['another body', { body: Buffer.from('{}') }, 'mismatch'],
  ])('S-022 %s is refused', (_name, change, reason) => {
    expect(verify({ ...signed(), ...change })).toMatchObject({ ok: false, reason });
  });

  it('S-022 another version is refused even with a digest that fits it', () => {
    const digest = createHmac('sha256', SECRET).update(`v1:${NOW_SECONDS}:`).update(body).digest('hex');
    expect(verify({ timestamp: at(0), signature: `v1=${digest}`, body })).toMatchObject({ reason: 'version' });
  });

  it('S-024 a signature of another app’s secret is refused, and an empty secret signs nothing', () => {
    expect(verify(signed(0, 'another app'))).toMatchObject({ ok: false, reason: 'mismatch' });
    expect(verify(signed(0, ''), [''])).toMatchObject({ ok: false, reason: 'mismatch' });
    expect(verify(signed(), [])).toMatchObject({ ok: false, reason: 'mismatch' });
  });

  it('takes the old and the new secret while one is replaced', () => {
    expect(verify(signed(0, 'old'), ['new', 'old'])).toEqual({ ok: true });
    expect(verify(signed(0, 'new'), ['new', 'old'])).toEqual({ ok: true });
  });

  it.each([
    ['invalid UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
    ['a byte order mark', Buffer.from('\ufeff{}')],
    ['carriage returns', Buffer.from('{\r\n}\r\n')],
    ['nothing', Buffer.alloc(0)],
  ])('S-025 a body of %s verifies as the bytes it is', (_name, bytes) => {
    expect(verify(signed(0, SECRET, bytes))).toEqual({ ok: true });
  });

  it('S-211 a digest that is right for longer takes no longer to refuse', () => {
    const right = signed().signature;
    const wrongAt = (index: number) =>
      `${right.slice(0, index)}${right[index] === '0' ? '1' : '0'}${right.slice(index + 1)}`;
    const early = { ...signed(), signature: wrongAt(3) };
    const late = { ...signed(), signature: wrongAt(66) };
    const time = (request: typeof early, rounds: number) => {
      const begun = process.hrtime.bigint();
      for (let round = 0; round < rounds; round += 1) verify(request);
      return Number(process.hrtime.bigint() - begun);
    };
    time(early, 2_000);
    const ratios = Array.from({ length: 9 }, () => time(late, 1_000) / time(early, 1_000)).sort((a, b) => a - b);
    // A comparison that stops at the first difference would still be lost in the hash; this guards against worse.
    expect(ratios[4]).toBeGreaterThan(0.6);
    expect(ratios[4]).toBeLessThan(1.7);
  });
});

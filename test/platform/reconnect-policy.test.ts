import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConnectionEnd } from '../../src/platform/socket/connection.js';
import { createReconnectPolicy } from '../../src/platform/socket/reconnect-policy.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

const policy = (random = () => 0.5) =>
  createReconnectPolicy({ firstConflict: 'supersede', clock: createManualClock(), random });

const closed = (code: number): ConnectionEnd => ({ kind: 'closed', code, reason: '' });
const refused = (status: number, body = '', headers: Record<string, string> = {}): ConnectionEnd => ({
  kind: 'refused',
  status,
  headers,
  body,
});

describe('the reconnect policy', () => {
  it('only 1008, and a refused conflict question, end a link that was up', () => {
    for (let code = 1000; code < 5000; code += 1) {
      const link = policy();
      link.opened();
      expect([code, link.judge(closed(code), 100_000).kind]).toEqual([code, code === 1008 ? 'final' : 'retry']);
    }
    for (let status = 200; status < 600; status += 1) {
      const link = policy();
      link.opened();
      expect([status, link.judge(refused(status), null).kind]).toEqual([status, 'retry']);
    }
  });

  it('before the first connection 400 and 409 are final, nothing else is', () => {
    for (let status = 200; status < 600; status += 1) {
      const final = status === 400 || status === 409;
      expect([status, policy().judge(refused(status), null).kind]).toEqual([status, final ? 'final' : 'retry']);
    }
  });

  it('doubles from half a second to thirty, half of it random', () => {
    const low = policy(() => 0);
    const waits = Array.from({ length: 9 }, () => {
      const verdict = low.judge({ kind: 'failed', message: 'm' }, null);
      return verdict.kind === 'retry' ? verdict.waitMs : -1;
    });
    expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
  });

  it('bare closes in a row wait longer each time, ten minutes at most', () => {
    const link = policy(() => 0);
    const waits = Array.from({ length: 7 }, () => {
      link.opened();
      const verdict = link.judge(closed(1000), 40_000);
      expect(link.onConflict).toBe('reject');
      return verdict.kind === 'retry' ? verdict.waitMs : -1;
    });
    expect(waits).toEqual([30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]);
  });

  it.each([
    ['the body', refused(429, '{"error":{"retry_after":27,"code":"too_many_requests","message":"m"}}'), 27_000],
    ['the header', refused(429, '', { 'retry-after': '12' }), 12_000],
    ['a date', refused(503, '', { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' }), 60_000],
    ['a wish beyond five minutes, cut', refused(429, '', { 'retry-after': '86400' }), 300_000],
    ['nonsense, ignored', refused(429, '{"error":{"retry_after":"soon"}}', { 'retry-after': 'later' }), 250],
    ['a negative wish, ignored', refused(429, '', { 'retry-after': '-5' }), 250],
  ])('waits as long as %s asks', (_name, end, waitMs) => {
    expect(policy(() => 0).judge(end, null)).toMatchObject({ kind: 'retry', waitMs });
  });

  it('always answers with a wait between nothing and eleven minutes', () => {
    const end: fc.Arbitrary<ConnectionEnd> = fc.oneof(
      fc.integer({ min: 1000, max: 4999 }).map(closed),
      fc
        .record({ status: fc.integer({ min: 100, max: 599 }), body: fc.string(), after: fc.string() })
        .map((r) => refused(r.status, r.body, { 'retry-after': r.after })),
      fc.constant({ kind: 'given_up', why: 'w' } as const),
      fc.constant({ kind: 'failed', message: 'm' } as const),
    );
    const step = fc.record({ end, uptimeMs: fc.option(fc.integer({ min: 0, max: 120_000 }), { nil: null }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (steps, r) => {
        const link = policy(() => r);
        for (const { end, uptimeMs } of steps) {
          if (uptimeMs !== null) link.opened();
          const verdict = link.judge(end, uptimeMs);
          if (verdict.kind === 'final') return;
          expect(verdict.waitMs).toBeGreaterThanOrEqual(0);
          expect(verdict.waitMs).toBeLessThanOrEqual(660_000);
        }
      }),
    );
  });
});

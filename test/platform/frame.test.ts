import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeFrame, encodeFrame, replyOf } from '../../src/platform/socket/frame.js';

describe('a frame', () => {
  it('comes back as it was made', () => {
    const name = fc.string({ minLength: 1, unit: 'binary' });
    const ref = fc.option(fc.string(), { nil: null });
    fc.assert(
      fc.property(ref, ref, name, name, fc.dictionary(fc.string(), fc.jsonValue()), (joinRef, r, topic, event, p) => {
        const payload = JSON.parse(JSON.stringify(p)) as Record<string, unknown>;
        expect(decodeFrame(encodeFrame(joinRef, r, topic, event, payload))).toEqual({
          joinRef,
          ref: r,
          topic,
          event,
          payload,
        });
      }),
    );
  });

  it('is the five-element array of the protocol', () => {
    expect(encodeFrame(null, '10', 'phoenix', 'heartbeat')).toBe('[null,"10","phoenix","heartbeat",{}]');
  });

  it('is never made of anything else, and nothing makes the codec throw', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const frame = decodeFrame(text);
        if (frame) expect([frame.topic, frame.event]).not.toContain('');
      }),
    );
  });
});

describe('a reply', () => {
  it.each<[Record<string, unknown>, { ok: boolean; reason: string }]>([
    [
      { status: 'ok', response: {} },
      { ok: true, reason: 'no reason given' },
    ],
    [
      { status: 'error', response: { reason: 'unauthorized' } },
      { ok: false, reason: 'unauthorized' },
    ],
    [
      { status: 'error', response: 'join crashed' },
      { ok: false, reason: 'join crashed' },
    ],
    [
      { status: 'error', response: null },
      { ok: false, reason: 'no reason given' },
    ],
    [{ status: 'timeout' }, { ok: false, reason: 'no reason given' }],
    [{}, { ok: false, reason: 'no reason given' }],
  ])('%j reads as %j', (payload, expected) => {
    expect(replyOf(payload)).toEqual(expected);
  });
});

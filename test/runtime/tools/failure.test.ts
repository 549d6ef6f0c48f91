import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../../src/base/redact.js';
import { failureEvent } from '../../../src/runtime/tools/failure.js';

const SECRET = 'hunter-two-and-a-half';
const redact = createRedactor([SECRET]);
const plain = (text: string) => text;

describe('failureEvent', () => {
  it('R-268 carries provider, code, message and detail, null where absent', () => {
    expect(failureEvent({ provider: 'openai', message: 'overloaded' }, plain)).toEqual({
      content: 'overloaded',
      metadata: { failure: { provider: 'openai', code: null, message: 'overloaded', detail: null } },
    });
    const detail = { status: 529, tries: [1, 2] };
    expect(failureEvent({ provider: 'p', message: 'm', code: 'busy', detail }, plain).metadata.failure).toEqual({
      provider: 'p',
      code: 'busy',
      message: 'm',
      detail,
    });
  });

  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  it.each([
    ['circular', circular],
    ['a bigint', { n: 1n }],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
    [
      'a toJSON that throws',
      {
        toJSON: () => {
          throw new Error('no');
        },
      },
    ],
    ['more than an event carries', { text: 'x'.repeat(70_000) }],
  ])('R-268 a detail that is %s is dropped', (_what, detail) => {
    const event = failureEvent({ provider: 'p', message: 'm', detail }, plain);
    expect(event.metadata.failure).toEqual({ provider: 'p', code: null, message: 'm', detail: null });
  });

  it('R-268 detail goes out as plain data', () => {
    const detail = { when: new Date(0), odd: undefined, error: new Error('x'), list: [undefined] };
    expect(failureEvent({ provider: 'p', message: 'm', detail }, plain).metadata.failure.detail).toEqual({
      when: '1970-01-01T00:00:00.000Z',
      error: {},
      list: [null],
    });
  });

  it('R-162 secrets are hidden in every part', () => {
    const event = failureEvent(
      {
        provider: `p ${SECRET}`,
        code: SECRET,
        message: `refused ${SECRET} and Bearer abcdefgh`,
        detail: { [SECRET]: [{ deep: `x${SECRET}` }], url: 'http://h/?api_key=band_a_123456' },
      },
      redact,
    );
    const text = JSON.stringify(event);
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain('abcdefgh');
    expect(text).not.toContain('band_a_123456');
    expect(event.content).toMatch(/^refused \[redacted\]/);
  });

  it('R-266 a message without anything to see is replaced, a long one shortened', () => {
    expect(failureEvent({ provider: 'p', message: '\u200b' }, plain).content).toBe(
      'The agent could not finish this message.',
    );
    expect(failureEvent({ provider: 'p', message: 'x'.repeat(50_000) }, plain).content).toHaveLength(16_384);
  });
});

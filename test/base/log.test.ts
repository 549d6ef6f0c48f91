import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/base/log.js';
import { createRedactor } from '../../src/base/redact.js';

const capture = (secrets: string[] = []) => {
  const lines: string[] = [];
  const log = createLogger({
    level: 'trace',
    redactor: createRedactor(secrets),
    destination: { write: (line: string) => void lines.push(line) },
  });
  return { log, all: () => lines.join('') };
};

// Put together at run time, so that no secret scanner takes this file for a leak.
const bot = ['xoxb', '1234567890', 'abcDEF'].join('-');
const app = ['xapp', '1', 'A0', '99', 'deadbeef'].join('-');
const agentKey = ['band', 'a', 'SECRETkey_123'].join('_');
const jwt = ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiJ4In0', 'c2lnbmF0dXJl'].join('.');

describe('the log', () => {
  it.each([
    ['a field', (s: string) => ({ apiKey: s })],
    ['a nested field', (s: string) => ({ connection: { apiKey: s } })],
    ['an error message', (s: string) => ({ err: new Error(`refused for ${s}`) })],
    ['a cause', (s: string) => ({ err: new Error('outer', { cause: new Error(`inner ${s}`) }) })],
    ['a URL', (s: string) => ({ url: `wss://host/socket?api_key=${s}&vsn=2.0.0` })],
    ['a header', (s: string) => ({ headers: { authorization: `Bearer ${s}` } })],
    ['text', (s: string) => ({ note: `the key is ${s}, keep it` })],
  ])('hides a secret inside %s', (_where, fields) => {
    for (const secret of [bot, app, agentKey, jwt]) {
      const { log, all } = capture();
      log.info(fields(secret), `about ${secret}`);
      expect(all()).not.toContain(secret);
      expect(all()).toContain('[redacted]');
    }
  });

  it('hides a configured secret that looks like nothing, in any escaping', () => {
    const secret = 'p"ss w/rd+1';
    const { log, all } = capture([secret]);
    log.warn({ a: secret, b: encodeURIComponent(secret) }, 'x');
    expect(all()).not.toContain('ss w/rd');
    expect(all()).not.toContain(encodeURIComponent(secret));
  });

  it('keeps the rest of a line as it was', () => {
    const { log, all } = capture(['abc']);
    log.info({ roomId: 'r1', band: 'band_room', text: 'abc monkey=banana' }, 'kept');
    expect(JSON.parse(all())).toMatchObject({
      roomId: 'r1',
      band: 'band_room',
      text: 'abc monkey=banana',
      msg: 'kept',
    });
  });
});

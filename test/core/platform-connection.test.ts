import { format, inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/base/log.js';
import { createPlatformConnection } from '../../src/core/platform-connection.js';

const PARTS = { agentId: 'a1', apiKey: 'super-secret-value', restUrl: 'http://band.test', wsUrl: 'ws://band.test' };

describe('PlatformConnection', () => {
  it('R-144 carries four values and cannot be changed', () => {
    const connection = createPlatformConnection(PARTS);
    expect([connection.agentId, connection.apiKey, connection.restUrl, connection.wsUrl]).toEqual(Object.values(PARTS));
    expect(Object.isFrozen(connection)).toBe(true);
    for (const field of ['agentId', 'apiKey', 'restUrl', 'wsUrl'] as const) {
      expect(() => {
        (connection as unknown as Record<string, string>)[field] = 'other';
      }).toThrow(TypeError);
    }
  });

  it('R-147 shows its key in no printed or serialized form', () => {
    const connection = createPlatformConnection(PARTS);
    const lines: string[] = [];
    const log = createLogger({ destination: { write: (line: string) => void lines.push(line) } });
    log.info({ connection }, 'connected');
    const shown = [
      (connection as { toString(): string }).toString(),
      JSON.stringify(connection),
      JSON.stringify({ deep: [connection] }),
      inspect(connection),
      inspect({ adapter: { platform: connection } }, { depth: 9, showHidden: true }),
      format('%s %o %O %j', connection, connection, connection, connection),
      JSON.stringify({ ...connection }),
      JSON.stringify(Object.entries(connection)),
      ...lines,
    ];
    for (const text of shown) expect(text).not.toContain(PARTS.apiKey);
    expect(JSON.parse(JSON.stringify(connection))).toEqual({
      agentId: 'a1',
      restUrl: 'http://band.test',
      wsUrl: 'ws://band.test',
    });
  });
});

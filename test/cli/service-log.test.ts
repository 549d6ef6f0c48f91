import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { createRedactor } from '../../src/base/redact.js';
import { createServiceLog } from '../../src/cli/service-log.js';
import { tempFolder } from '../support/temp-folder.js';

it('appends lines to the file that is named, making its folder, with every configured secret hidden', async () => {
  const logFile = path.join(await tempFolder(), 'logs', 'gateway.log');
  const redactor = createRedactor(['correct-horse-battery']);
  const log = createServiceLog({ logLevel: 'debug', logFile }, redactor);
  log.debug({ note: 'key correct-horse-battery' }, 'first');
  log.error({ err: new Error('https://x.test/?token=correct-horse-battery') }, 'second');
  log.trace('too fine');
  // A second start goes on where the first ended.
  createServiceLog({ logLevel: 'info', logFile }, redactor).info('third');

  const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['first', 'second', 'third']);
  expect(lines.join('\n')).not.toContain('horse');
});

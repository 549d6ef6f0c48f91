import { readFile } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { ValueError } from '../../src/base/band-errors.js';
import { silentLogger } from '../../src/base/log.js';
import { bandLogger, configureLogging, libraryRedactor, LogSettings } from '../../src/runtime/logging.js';
import { agentLab } from '../support/agent-lab.js';
import { tempFolder } from '../support/temp-folder.js';

function streams() {
  const out: string[] = [];
  const err: string[] = [];
  return {
    out,
    err,
    to: { stdout: { write: (text: string) => out.push(text) }, stderr: { write: (text: string) => err.push(text) } },
  };
}

// Before anything in this file configures logging, which is the process's own.
describe('without configuration', () => {
  it('R-159 nothing is printed', () => {
    expect(bandLogger('band.agent')).toBe(silentLogger);
    const program = fileURLToPath(new URL('../support/programs/quiet-agent.ts', import.meta.url));
    const run = spawnSync(process.execPath, ['--import', 'tsx', program], { encoding: 'utf8', timeout: 20_000 });
    expect([run.status, run.stdout, run.stderr]).toEqual([0, '', '']);
  });
});

describe('configureLogging', () => {
  it('R-161 R-293 makes the connection line visible, in the standard format, on stderr', async () => {
    const { out, err, to } = streams();
    configureLogging({}, to);
    const lab = agentLab({ ports: { log: bandLogger } });
    lab.band.name = 'Weather Agent';
    await lab.agent.start();
    await lab.agent.stop();
    expect(err[0]).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[INFO\] band\.agent: Agent started: Weather Agent \(band-sdk 6\.0\.1\)\n$/,
    );
    expect(out).toEqual([]);
  });

  it('R-160 nothing before authentication looks like the connection line', async () => {
    const { err, to } = streams();
    configureLogging({ level: 'DEBUG' }, to);
    const lab = agentLab({ ports: { log: bandLogger } });
    lab.band.fail('getMe', { code: 'BAND_UNAUTHORIZED', statusCode: 401 });
    await expect(lab.agent.start()).rejects.toThrow();
    expect(err.join('')).not.toContain('Agent started');
  });

  it('R-162 hides registered keys and what looks like one', () => {
    const { err, to } = streams();
    configureLogging({}, to);
    libraryRedactor.add('very-secret-value');
    bandLogger('band.agent').info({ key: 'band_a_0123456789', detail: 'very-secret-value' }, 'hello xoxb-12-34');
    expect(err.join('')).not.toMatch(/very-secret|band_a_0|xoxb/);
    expect(err.join('')).toContain('[redacted]');
  });

  it('shows fields and the stack of an error', () => {
    const { err, to } = streams();
    configureLogging({}, to);
    bandLogger('band.runtime').error({ err: new Error('boom'), roomId: 'r-1', n: 3 }, 'it broke');
    const [line] = err;
    expect(line).toContain('[ERROR] band.runtime: it broke roomId=r-1 n=3\nError: boom\n');
  });

  it('writes JSON when asked to, and to stdout', () => {
    const { out, to } = streams();
    configureLogging({ consoleStyle: 'json', stream: 'stdout' }, to);
    bandLogger('band.agent').warn({ roomId: 'r-1' }, 'careful');
    expect(JSON.parse(out[0]!)).toMatchObject({
      level: 'WARNING',
      logger: 'band.agent',
      message: 'careful',
      roomId: 'r-1',
    });
  });

  it('hears band loggers at level, others at rootLevel, and overrides by name', () => {
    const { err, to } = streams();
    configureLogging({ level: 'WARNING', rootLevel: 'ERROR', overrides: { 'band.link': 'DEBUG', other: 'INFO' } }, to);
    bandLogger('band.agent').info('no');
    bandLogger('band.agent').warn('yes 1');
    bandLogger('band.link.socket').debug('yes 2');
    bandLogger('other.deep').info('yes 3');
    bandLogger('elsewhere').warn('no');
    bandLogger('bandage').warn('no');
    expect(err.map((line) => line.trim().split(': ')[1])).toEqual(['yes 1', 'yes 2', 'yes 3']);
  });

  it('keeps a file of bounded size with its predecessors', async () => {
    const file = join(await tempFolder(), 'logs', 'agent.log');
    const { to } = streams();
    configureLogging({ file, maxBytes: 300, backups: 2, fileLevel: 'WARNING' }, to);
    const log = bandLogger('band.agent');
    for (let n = 0; n < 20; n += 1) log.warn(`line ${n} ${'x'.repeat(40)}`);
    log.info('not in the file');
    configureLogging({}, to);
    const texts = await Promise.all([file, `${file}.1`, `${file}.2`].map((path) => readFile(path, 'utf8')));
    expect(texts[0]).toContain('line 19');
    expect(texts.join('')).not.toContain('not in the file');
    for (const text of texts) expect(text.length).toBeLessThanOrEqual(300);
    await expect(readFile(`${file}.3`)).rejects.toThrow();
  });
});

describe('LogSettings', () => {
  it('has the documented defaults', () => {
    expect(Object.fromEntries(Object.entries(new LogSettings({}, {})))).toEqual({
      level: 'INFO',
      rootLevel: 'WARNING',
      file: null,
      fileLevel: null,
      maxBytes: 0,
      backups: 1,
      consoleStyle: 'standard',
      stream: 'stderr',
      overrides: {},
    });
  });

  it('reads its variables in any case, takes empty ones as unset, and lets arguments win', () => {
    vi.stubEnv('BAND_LOG_LEVEL', 'debug');
    expect(new LogSettings().level).toBe('DEBUG');
    const settings = new LogSettings(
      { stream: 'stdout' },
      {
        band_log_level: 'warn',
        BAND_LOG_ROOT_LEVEL: '',
        BAND_LOG_MAX_BYTES: '100',
        Band_Log_Backups: '3',
        BAND_LOG_STREAM: 'stderr',
        BAND_LOG_CONSOLE_STYLE: 'JSON',
        BAND_LOG_OVERRIDES: '{"band.link":"critical"}',
      },
    );
    expect(settings).toMatchObject({
      level: 'WARNING',
      rootLevel: 'WARNING',
      maxBytes: 100,
      backups: 3,
      stream: 'stdout',
      consoleStyle: 'json',
      overrides: { 'band.link': 'CRITICAL' },
    });
  });

  it('names the variable of a value that it cannot use', () => {
    for (const [name, value] of [
      ['BAND_LOG_LEVEL', 'loud'],
      ['BAND_LOG_MAX_BYTES', '-1'],
      ['BAND_LOG_BACKUPS', 'many'],
      ['BAND_LOG_STREAM', 'printer'],
      ['BAND_LOG_OVERRIDES', '{'],
      ['BAND_LOG_OVERRIDES', '[]'],
      ['BAND_LOG_OVERRIDES', '{"band":"loud"}'],
    ] as const) {
      expect(() => new LogSettings({}, { [name]: value }), `${name}=${value}`).toThrow(ValueError);
      expect(() => new LogSettings({}, { [name]: value })).toThrow(name);
    }
  });
});

import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BandConfigError } from '../../src/base/band-errors.js';
import { loadAgentConfig } from '../../src/config/agent-config-file.js';

const KEY = 'band_a_very_secret_key';
let dir: string;
const home = process.cwd();

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'agent-config-'));
});
afterEach(() => {
  process.chdir(home);
  rmSync(dir, { recursive: true });
});

function file(content: string | Uint8Array, name = 'agents.yaml'): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

function failureOf(name: string, configPath: string): BandConfigError {
  try {
    loadAgentConfig(name, { configPath });
  } catch (error) {
    if (error instanceof BandConfigError) return error;
    throw error;
  }
  throw new Error('the file was accepted');
}

const TWO = `weather:\n  agent_id: "id-1"\n  api_key: ${KEY}\n  framework: x\nplanner:\n  agent_id: id-2\n  api_key: k2\n`;

describe('loadAgentConfig', () => {
  it('R-288 gives the credentials that stand under the name', () => {
    const configPath = file(TWO);
    expect(loadAgentConfig('weather', { configPath })).toEqual({ agentId: 'id-1', apiKey: KEY });
    expect(loadAgentConfig('planner', { configPath: pathToFileURL(configPath) })).toEqual({
      agentId: 'id-2',
      apiKey: 'k2',
    });
  });

  it.each([[undefined], [{}], [{ configPath: null }]])(
    'R-018 without a path (%j) reads agent_config.yaml in the working folder of this moment',
    (options) => {
      file(TWO, 'agent_config.yaml');
      process.chdir(dir);
      expect(loadAgentConfig('planner', options).agentId).toBe('id-2');
    },
  );

  it('R-018 a relative path starts at the working folder', () => {
    mkdirSync(join(dir, 'conf'));
    file(TWO, join('conf', 'a.yaml'));
    process.chdir(dir);
    expect(loadAgentConfig('planner', { configPath: 'conf/a.yaml' }).agentId).toBe('id-2');
  });

  it('R-021 a missing file is named, with the example to copy', () => {
    const path = join(dir, 'nowhere.yaml');
    const error = failureOf('weather', path);
    expect(error.code).toBe('file_not_found');
    expect(error.message).toContain(path);
    expect(error.message).toMatch(/not found.*agent_config\.yaml\.example/);
  });

  it.each(['clock', '__proto__', 'constructor', 'toString'])(
    'R-022 an absent name %s is named with the path',
    (name) => {
      const path = file(TWO);
      const error = failureOf(name, path);
      expect(error.code).toBe('agent_not_found');
      expect(error.message).toContain(`'${name}' not found in ${path}`);
    },
  );

  it('R-022 an empty file holds no agent', () => {
    expect(failureOf('weather', file('')).code).toBe('agent_not_found');
    expect(failureOf('weather', file('# nothing\n')).code).toBe('agent_not_found');
  });

  it.each([
    ['weather:\n  agent_id: id-1\n', ['api_key']],
    [`weather:\n  api_key: ${KEY}\n`, ['agent_id']],
    [`weather:\n  agent_id: ""\n  api_key: ${KEY}\n`, ['agent_id']],
    ['weather:\n  agent_id: id-1\n  api_key: null\n', ['api_key']],
    ['weather:\n  other: 1\n', ['agent_id', 'api_key']],
    ['weather: {}\n', ['agent_id', 'api_key']],
    ['weather:\n', ['agent_id', 'api_key']],
    ['agent_id: id-1\n', ['api_key']],
  ])('R-023 each missing or empty field is named: %j', (text, missing) => {
    const path = file(text);
    const error = failureOf('weather', path);
    expect(error.code).toBe('missing_fields');
    expect(error.message).toContain(path);
    expect(error.message).toContain('weather');
    expect(['agent_id', 'api_key'].filter((field) => error.message.includes(field))).toEqual(missing);
  });

  it.each([`agent_id: id-1\napi_key: ${KEY}\n`, `agent_id: id-1\napi_key: ${KEY}\nweather:\n`])(
    'R-024 a file about one agent serves whatever name is asked for: %j',
    (text) => {
      expect(loadAgentConfig('weather', { configPath: file(text) })).toEqual({ agentId: 'id-1', apiKey: KEY });
    },
  );

  it('R-024 an entry of that name beats the top level', () => {
    const configPath = file(`agent_id: top\napi_key: t\nweather:\n  agent_id: own\n  api_key: o\n`);
    expect(loadAgentConfig('weather', { configPath })).toEqual({ agentId: 'own', apiKey: 'o' });
  });

  it('R-025 other agents and other fields do not matter, not even when they are wrong', () => {
    const configPath = file(`broken: 7\nweather:\n  agent_id: id-1\n  api_key: ${KEY}\n  tools: [1, 2]\n`);
    expect(loadAgentConfig('weather', { configPath })).toEqual({ agentId: 'id-1', apiKey: KEY });
  });

  it('R-025 a byte-order mark and Windows line ends are read over', () => {
    const configPath = file(`\uFEFF${TWO.replaceAll('\n', '\r\n')}`);
    expect(loadAgentConfig('weather', { configPath }).apiKey).toBe(KEY);
  });

  it.each([
    ['- a\n- b\n', 'invalid_shape'],
    ['just text\n', 'invalid_shape'],
    [`weather: ${KEY}\n`, 'invalid_shape'],
    [`weather:\n  agent_id: 12\n  api_key: ${KEY}\n`, 'invalid_shape'],
    [`weather:\n  agent_id: id-1\n  api_key: [${KEY}]\n`, 'invalid_shape'],
    [`weather:\n  agent_id: id-1\n  api_key: { ${KEY}: 1 }\n`, 'invalid_shape'],
    [`weather:\n  api_key: "${KEY}\n  agent_id: x\n`, 'invalid_file'],
    [`weather:\n  api_key: ${KEY}: ${KEY}\n`, 'invalid_file'],
    [`weather: {api_key: ${KEY}, agent_id\n`, 'invalid_file'],
    [`a: 1\na: 2\nweather:\n  api_key: ${KEY}\n`, 'invalid_file'],
  ])('R-026 %j is refused as %s and the key is in no text', (text, code) => {
    const path = file(text);
    const error = failureOf('weather', path);
    expect(error.code).toBe(code);
    expect(error.message).toContain(path);
    const texts = [error, error.cause].map((one) => (one instanceof Error ? `${one.message}${one.stack ?? ''}` : ''));
    expect(texts.join('\n')).not.toContain(KEY);
  });

  it('R-026 the field that is no text is named', () => {
    expect(failureOf('weather', file('weather:\n  agent_id: 12\n  api_key: k\n')).message).toContain('agent_id');
    expect(failureOf('weather', file('weather:\n  agent_id: x\n  api_key: 12\n')).message).toContain('api_key');
  });

  it('R-026 bad YAML keeps the parser’s error as its cause', () => {
    expect(failureOf('weather', file('a: [\n')).cause).toBeInstanceOf(Error);
  });

  it('R-026 a file that is no text, a folder, a loop and a giant are invalid files', () => {
    expect(failureOf('weather', file(Buffer.from([0x61, 0xff, 0xfe, 0x62]))).code).toBe('invalid_file');
    expect(failureOf('weather', dir).code).toBe('invalid_file');
    symlinkSync(join(dir, 'loop'), join(dir, 'loop'));
    expect(failureOf('weather', join(dir, 'loop')).code).toBe('invalid_file');
    expect(failureOf('weather', file('#'.repeat(1024 * 1024 + 1))).code).toBe('invalid_file');
  });

  it('R-026 a document of aliases that would explode is refused', () => {
    const levels = Array.from({ length: 12 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}*l${i}]`);
    const bomb = ['l0: &l0 [x, x]', ...levels].join('\n');
    expect(failureOf('weather', file(bomb)).code).toBe('invalid_file');
  });

  it('R-026 tags make no objects', () => {
    const configPath = file(`weather:\n  agent_id: !!js/function "x"\n  api_key: !odd ${KEY}\n`);
    expect(loadAgentConfig('weather', { configPath })).toEqual({ agentId: 'x', apiKey: KEY });
  });
});

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { loadConfig, readDotenv, type Config, type ConfigRequest } from '../../src/config/load.js';
import { ConfigError, problemText } from '../../src/config/problems.js';
import { secret, setting, settingsGroup } from '../../src/config/setting.js';

const chat = settingsGroup('slack', {
  bot_token: setting(z.string().optional(), { help: 'Token.', secret: true }),
  turn_timeout_seconds: setting(z.number().positive().default(900), { help: 'Seconds.', aliases: ['OLD_TIMEOUT'] }),
  port: setting(z.union([z.literal('shared'), z.int()]).default('shared'), { help: 'Port.' }),
  apps: setting(
    z
      .array(z.strictObject({ slug: z.string(), bot_token: secret(z.string().startsWith('xoxb-')).optional() }))
      .default([]),
    { help: 'Apps.' },
  ),
  allow: setting(z.array(z.string()).default([]), { help: 'Ids.' }),
  socket: { connections: setting(z.int().min(1).default(2), { help: 'Number.' }) },
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'gateway-config-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const write = (name: string, text: string) => {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  writeFileSync(path.join(folder, name), text);
};

const load = (request: Partial<ConfigRequest> = {}): Promise<Config> =>
  loadConfig({
    env: {},
    cwd: folder,
    bridgeNames: ['slack', 'a2a', 'acp'],
    bridgeGroups: async (bridge) => (bridge === 'slack' ? [chat] : [settingsGroup(bridge, {})]),
    ...request,
  });

async function problemsOf(request: Partial<ConfigRequest> = {}): Promise<string[]> {
  try {
    await load(request);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(problemText);
    throw error;
  }
  return [];
}

const agentEnv = { BAND_AGENT_ID: 'a-1', BAND_API_KEY: 'band_a_key', BAND_BRIDGE: 'slack' };

describe('the order of the sources', () => {
  it('has flags before environment before .env before file before default', async () => {
    write(
      'gateway.yaml',
      'http: { port: 1, host: file, max_connections: 7 }\nlog_level: warn\nagents: { a: { agent_id: i, api_key: kkkkkk, bridge: a2a } }\n',
    );
    write('.env', 'PORT=2\nHOST=dotenv\nLOG_LEVEL=error\n');
    const { service, settled } = await load({
      dotenv: readDotenv(folder),
      env: { PORT: '3', HOST: 'environment' },
      flags: [{ name: '--port', path: 'http.port', value: '4' }],
    });
    expect(service.http).toMatchObject({ port: 4, host: 'environment', maxConnections: 7, keepAliveMs: 72_000 });
    expect(service.logLevel).toBe('error');
    const origins = Object.fromEntries(settled.map(({ key, origin }) => [key, origin.kind]));
    expect(origins).toMatchObject({
      'http.port': 'flag',
      'http.host': 'environment',
      log_level: 'dotenv',
      'http.max_connections': 'file',
      'http.keep_alive_ms': 'default',
    });
  });

  it('leaves .env alone unless it is asked for', async () => {
    write('.env', 'PORT=2\n');
    expect((await load()).service.http.port).toBe(8080);
  });

  it.each([
    ['LOG_LEVEL', 'Debug', 'debug'],
    ['BAND_LOG_LEVEL', 'WARNING', 'warn'],
    ['BAND_LOG_LEVEL', 'CRITICAL', 'fatal'],
  ])('reads %s=%s as the level %s', async (name, value, level) => {
    expect((await load({ env: { [name]: value } })).service.logLevel).toBe(level);
  });

  it('takes an empty variable for unset', async () => {
    expect((await load({ env: { PORT: '', BAND_REST_URL: '' } })).service.http.port).toBe(8080);
  });

  it('lets the own name win over an alias', async () => {
    const timeout = async (env: Record<string, string>) =>
      (await load({ env: { ...agentEnv, ...env } })).agents[0]?.groups['slack'];
    expect(await timeout({ OLD_TIMEOUT: '5' })).toEqual({ turn_timeout_seconds: 5 });
    expect(await timeout({ OLD_TIMEOUT: '5', SLACK_TURN_TIMEOUT_SECONDS: '6' })).toEqual({ turn_timeout_seconds: 6 });
  });
});

describe('without a file', () => {
  it('takes one agent from the environment', async () => {
    const config = await load({
      env: {
        ...agentEnv,
        SLACK_SOCKET_CONNECTIONS: '3',
        SLACK_PORT: '0',
        SLACK_ALLOW: 'C1,C2',
        MAX_CYCLE_SECONDS: '9',
      },
    });
    expect(config.mode).toBe('environment');
    expect(config.agents).toMatchObject([
      { name: 'agent', options: { agentId: 'a-1', apiKey: 'band_a_key', bridge: 'slack', onSuperseded: 'stop' } },
    ]);
    expect(config.agents[0]?.groups).toEqual({
      slack: { socket: { connections: 3 }, port: 0, allow: ['C1', 'C2'] },
    });
    expect(config.agents[0]?.options.session.maxCycleSeconds).toBe(9);
  });

  it('falls back to the default agent, which settings may still change', async () => {
    const config = await load({
      defaultAgent: {
        name: 'demo',
        values: { agent_id: 'd', api_key: 'band_a_demo', bridge: 'slack' },
        groups: { slack: { port: 1, socket: { connections: 9 } } },
      },
      env: { SLACK_PORT: '2' },
    });
    expect(config.mode).toBe('default');
    expect(config.agents[0]).toMatchObject({
      name: 'demo',
      groups: { slack: { port: 2, socket: { connections: 9 } } },
    });
  });

  it('says what is missing beside the id', async () => {
    expect(await problemsOf({ env: { BAND_AGENT_ID: 'a' } })).toEqual([
      'api_key: is required; set BAND_API_KEY',
      'bridge: is required; set BAND_BRIDGE',
    ]);
  });
});

describe('a file', () => {
  it('names agents with the groups of their bridges', async () => {
    write('keys/help', 'band_a_from_file\n');
    write(
      'gateway.yaml',
      `agents:
  helpdesk:
    agent_id: a-1
    api_key: { file: keys/help }
    bridge: slack
    slack: { apps: [{ slug: main, bot_token: { env: TOKEN } }], bot_token: { env: TOKEN } }
`,
    );
    const config = await load({ env: { TOKEN: 'xoxb-secret' } });
    expect(config.agents[0]).toMatchObject({
      name: 'helpdesk',
      options: { apiKey: 'band_a_from_file' },
      groups: { slack: { apps: [{ slug: 'main', bot_token: 'xoxb-secret' }], bot_token: 'xoxb-secret' } },
    });
    expect(new Set(config.secrets)).toEqual(new Set(['band_a_from_file', 'xoxb-secret']));
  });

  it('may leave credentials to agent_config.yaml beside it', async () => {
    write('sub/gateway.yaml', 'agents:\n  helpdesk: { bridge: a2a }\n');
    write('sub/agent_config.yaml', 'helpdesk: { agent_id: a-9, api_key: band_a_nine }\n');
    const config = await load({ file: 'sub/gateway.yaml' });
    expect(config.agents[0]?.options).toMatchObject({ agentId: 'a-9', apiKey: 'band_a_nine' });
    expect(config.secrets).toContain('band_a_nine');
  });

  it('is found by GATEWAY_CONFIG, and must exist when it is named', async () => {
    write('other.yaml', 'agents: { a: { agent_id: i, api_key: kkkkkk, bridge: a2a } }\n');
    expect((await load({ env: { GATEWAY_CONFIG: 'other.yaml' } })).agents).toHaveLength(1);
    expect(await problemsOf({ file: 'gone.yaml' })).toEqual(['gone.yaml: not found']);
  });

  it('refuses unknown keys with the nearest known one, wherever they stand', async () => {
    write(
      'gateway.yaml',
      `http: { prot: 1 }
log_levle: info
agents:
  helpdesk:
    agent_id: a
    api_key: band_a_x
    bridge: slack
    slack:
      turn_timeout: 3
      apps: [{ slug: a, bot_tokn: x }]
      socket: { connection: 1 }
    a2a: {}
`,
    );
    expect(await problemsOf()).toEqual([
      'gateway.yaml:1:9: http.prot: is not a setting; did you mean port?',
      'gateway.yaml:2:1: log_levle: is not a setting; did you mean log_level?',
      'gateway.yaml:9:7: agents.helpdesk.slack.turn_timeout: is not a setting; did you mean turn_timeout_seconds?',
      'gateway.yaml:10:25: agents.helpdesk.slack.apps.0.bot_tokn: is not a setting; did you mean bot_token?',
      'gateway.yaml:11:17: agents.helpdesk.slack.socket.connection: is not a setting; did you mean connections?',
      'gateway.yaml:12:5: agents.helpdesk.a2a: belongs to an agent whose bridge is a2a',
    ]);
  });

  it('reports all bad values at once, each with its place', async () => {
    write(
      'gateway.yaml',
      `http:
  port: 99999
agents:
  helpdesk:
    agent_id: a
    api_key: { env: NOT_SET }
    bridge: slack
    slack: { socket: { connections: many }, apps: [{ bot_token: { file: nowhere } }] }
`,
    );
    const problems = await problemsOf({
      env: { LOG_LEVEL: 'loud' },
      flags: [{ name: '--host', path: 'http.host', value: '' }],
    });
    expect(problems).toEqual([
      expect.stringMatching(/^--host: http\.host: Too small/),
      expect.stringMatching(/^LOG_LEVEL \(environment\): log_level: Invalid option/),
      'gateway.yaml:2:3: http.port: Too big: expected number to be <=65535',
      'gateway.yaml:6:5: agents.helpdesk.api_key: NOT_SET is not set in the environment',
      'gateway.yaml:8:24: agents.helpdesk.slack.socket.connections: expected number, received string',
      `gateway.yaml:8:54: agents.helpdesk.slack.apps.0.bot_token: file ${folder}/nowhere not found`,
    ]);
  });

  it("reports what only the session's own class knows, at its place", async () => {
    write(
      'gateway.yaml',
      'agents:\n  a:\n    agent_id: i\n    api_key: kkkkkk\n    bridge: a2a\n    session: { working_keep_alive_seconds: 9 }\n',
    );
    expect(await problemsOf()).toEqual([
      expect.stringMatching(/^gateway\.yaml:6:5: agents\.a\.session: .*working_keep_alive_seconds must be < TTL\/2/),
    ]);
  });

  it('refuses two entries with one identity', async () => {
    write(
      'gateway.yaml',
      'agents:\n  a: { agent_id: X, api_key: kkkkkk, bridge: a2a }\n  b: { agent_id: x, api_key: kkkkkk, bridge: a2a }\n',
    );
    expect(await problemsOf()).toEqual([
      'gateway.yaml:3:8: agents.b.agent_id: is the identity of agents.a already; one agent id stands in one entry',
    ]);
  });

  it.each([
    ['what is no YAML', 'a: [', /gateway\.yaml:1:\d+: /],
    ['a key given twice', 'log_level: info\nlog_level: warn\n', /gateway\.yaml:2:1: Map keys must be unique/],
    ['a list', '- 1\n', /gateway\.yaml.*must be a mapping/],
    ['no agents', 'log_level: info\n', /names no agents/],
    ['an empty list of agents', 'agents: {}\n', /agents: must be a mapping with an entry for each agent/],
    ['an agent that is no mapping', 'agents: { a: 3 }\n', /agents\.a: must be a mapping/],
    [
      'a name that fits no key',
      'agents: { "a/b": { agent_id: i, api_key: kkkkkk, bridge: a2a } }\n',
      /agents\.a\/b: an agent is named by/,
    ],
    [
      'a bridge that does not exist',
      'agents: { a: { agent_id: i, api_key: kkkkkk, bridge: slak, slack: {} } }\n',
      /agents\.a\.bridge/,
    ],
  ])('refuses %s', async (_, text, message) => {
    write('gateway.yaml', text);
    expect((await problemsOf()).join('\n')).toMatch(message);
  });

  it('takes keys like __proto__ for ordinary unknown keys', async () => {
    write(
      'gateway.yaml',
      '__proto__: { log_level: trace }\nagents: { a: { agent_id: i, api_key: kkkkkk, bridge: a2a } }\n',
    );
    expect(await problemsOf()).toEqual(['gateway.yaml:1:1: __proto__: is not a setting']);
  });

  it('refuses flags of an agent, which would have no effect', async () => {
    write('gateway.yaml', 'agents: { a: { agent_id: i, api_key: kkkkkk, bridge: slack } }\n');
    const flags = [{ name: '--slack-port', path: 'slack.port', value: '1' }];
    expect(await problemsOf({ flags })).toEqual([
      '--slack-port: has no effect: with a settings file, agents and bridges are set there',
    ]);
  });
});

describe('secrets', () => {
  it('come from a file named by NAME_FILE or by a flag', async () => {
    write('token', 'xoxb-one\n');
    const { BAND_API_KEY, ...env } = agentEnv;
    expect(BAND_API_KEY).toBeDefined();
    const config = await load({
      env: { ...env, BAND_API_KEY_FILE: 'token' },
      flags: [{ name: '--slack-bot-token-file', path: 'slack.bot_token', value: 'token', isFile: true }],
    });
    expect(config.agents[0]).toMatchObject({
      options: { apiKey: 'xoxb-one' },
      groups: { slack: { bot_token: 'xoxb-one' } },
    });
  });

  it.each([
    [
      'a missing file',
      { BAND_API_KEY_FILE: 'gone' },
      /BAND_API_KEY_FILE \(environment\): api_key: file .*gone not found/,
    ],
    ['an empty file', { BAND_API_KEY_FILE: 'empty' }, /api_key: file .*empty is empty/],
    ['a folder', { BAND_API_KEY_FILE: '.' }, /api_key: file .* cannot be read \(EISDIR\)/],
  ])('%s is one problem that names the file', async (_, env, message) => {
    write('empty', '\n');
    const problems = await problemsOf({ env: { BAND_AGENT_ID: 'a', BAND_BRIDGE: 'slack', ...env } });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(message);
  });

  it('given both ways are refused', async () => {
    write('token', 'band_a_other\n');
    expect(await problemsOf({ env: { ...agentEnv, BAND_API_KEY_FILE: 'token' } })).toEqual([
      'BAND_API_KEY (environment): api_key: is set twice: by BAND_API_KEY and by BAND_API_KEY_FILE',
    ]);
  });

  it('never stand in a problem', async () => {
    write(
      'gateway.yaml',
      'agents: { a: { agent_id: i, api_key: [hunter2hunter2], bridge: slack, slack: { apps: [{ slug: s, bot_token: hunter2hunter2 }] } } }\n',
    );
    const problems = await problemsOf();
    expect(problems.length).toBeGreaterThan(1);
    expect(problems.join('\n')).not.toContain('hunter2');
  });
});

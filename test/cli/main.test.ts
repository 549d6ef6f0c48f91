import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { main } from '../../src/cli/main.js';
import { setting, settingsGroup } from '../../src/config/setting.js';
import type { BridgeTable } from '../../src/gateway/bridge-table.js';
import { fakeCliWorld } from '../support/cli-world.js';
import { tempFolder } from '../support/temp-folder.js';

const group = settingsGroup('slack', {
  bot_token: setting(z.string().optional(), { help: 'The token.', secret: true }),
  slug: setting(z.string().default('main'), { help: 'The slug.' }),
});
const unused = () => Promise.reject(new Error('not used here'));
const bridges: BridgeTable = {
  slack: {
    settings: async () => [group],
    open: unused,
    check: async () => [
      { level: 'warning', subject: 'slack', message: 'token xoxb-1-secretsecret seen', mend: 'Mend.' },
    ],
    manifest: async ({ groups }, options) => ({
      text: JSON.stringify({ groups, options }),
      notes: ['Invite the bot.'],
    }),
  },
};

async function run(argv: string[], over: { env?: Record<string, string>; cwd?: string } = {}) {
  const world = fakeCliWorld(over);
  const code = await main(argv, world, bridges);
  return { code, ...world.said };
}

describe('the program', () => {
  it.each([[['--version']], [['start', '--version']], [['config', 'print', '--version']]])(
    '%j prints the version',
    async (argv) => {
      const { code, out, err } = await run(argv);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toMatch(/^\d+\.\d+\.\d+\n$/);
    },
  );

  it.each(['start', 'sandbox', 'acp', 'check', 'dead', 'manifest', 'config'])(
    '%s has help, also after it',
    async (name) => {
      const { code, out, err } = await run([name, '--help']);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toContain(`Usage: band-gateway ${name}`);
    },
  );

  it('lists every command in its own help', async () => {
    const { code, out } = await run(['--help']);
    expect(code).toBe(0);
    for (const name of ['start', 'sandbox', 'acp', 'check', 'dead', 'manifest', 'config'])
      expect(out).toContain(`  ${name}`);
  });

  it.each([
    ['nothing', [], /Usage/],
    ['an unknown command', ['strat'], /there is no command strat; did you mean start\?/],
    ['an unknown flag', ['start', '--prot=1'], /--prot is not a flag of this command; did you mean --port\?/],
    ['a word too many', ['start', 'now'], /now is one word too many/],
    ['wrong settings', ['start', '--port', 'x'], /--port: http\.port: expected number/],
    ['a file that is not there', ['start', '--config', 'gone.yaml'], /gone\.yaml: not found/],
    ['half a verb', ['dead', 'retry'], /say list, or retry or drop/],
    ['no verb', ['config'], /print, schema or example\?/],
    ['a bridge without a manifest', ['manifest', 'a2a'], /name one of: slack/],
  ])('refuses %s with exit code 2', async (_, argv, message) => {
    const { code, err } = await run(argv);
    expect(code).toBe(2);
    expect(err).toMatch(message);
  });
});

describe('config', () => {
  it('print shows each value with its source and no secret', async () => {
    const env = {
      BAND_AGENT_ID: 'a-1',
      BAND_API_KEY: 'band_a_hidden',
      BAND_BRIDGE: 'slack',
      SLACK_BOT_TOKEN: 'xoxb-hidden',
    };
    const { code, out } = await run(['config', 'print', '--port', '81'], { env });
    expect(code).toBe(0);
    expect(out).toMatch(/^http\.port = 81 +# --port$/m);
    expect(out).toMatch(/^slack\.slug = main +# default$/m);
    expect(out).toMatch(/^slack\.bot_token = \(hidden\) +# SLACK_BOT_TOKEN \(environment\)$/m);
    expect(out).toMatch(/^api_key = \(hidden\) +# BAND_API_KEY \(environment\)$/m);
    expect(out).not.toMatch(/hidden[^)]/);
  });

  it('print names the place in the file', async () => {
    const folder = await tempFolder();
    writeFileSync(
      path.join(folder, 'gateway.yaml'),
      'agents:\n  a: { agent_id: i, api_key: kkkkkkkk, bridge: slack }\n',
    );
    const { out } = await run(['config', 'print'], { cwd: folder });
    expect(out).toMatch(/^agents\.a\.agent_id = i +# gateway\.yaml:2:8$/m);
  });

  it('schema is a draft 7 JSON Schema with secrets that may be references', async () => {
    const { out } = await run(['config', 'schema']);
    const schema = JSON.parse(out) as { $schema: string; properties: Record<string, unknown> };
    expect(schema.$schema).toContain('draft-07');
    expect(JSON.stringify(schema.properties['agents'])).toContain('"file"');
  });

  it('example is a file that loads as it stands, and with its comments taken as settings', async () => {
    const { out } = await run(['config', 'example']);
    const folder = await tempFolder();
    const file = path.join(folder, 'gateway.yaml');
    writeFileSync(file, out);
    const asIs = await run(['config', 'print'], { cwd: folder, env: { MY_SLACK_AGENT_KEY: 'kkkkkkkk' } });
    expect(asIs.code).toBe(0);
    const [head = '', ...lines] = out.split('\n');
    const uncommented = lines
      .map((line) => line.replace(/^( *)# /, '$1'))
      .filter((line) => !line.includes('{ file: /run/secrets'));
    writeFileSync(file, [head, ...uncommented].join('\n'));
    const all = await run(['config', 'print'], { cwd: folder, env: { MY_SLACK_AGENT_KEY: 'kkkkkkkk' } });
    expect(all.err).toBe('');
    expect(all.out).toMatch(/^http\.port = 8080 +# gateway\.yaml:\d+:\d+$/m);
  });
});

describe('manifest', () => {
  it('needs no credentials, prints the text alone, and what is left to do beside it', async () => {
    const { code, out, err } = await run(['manifest', 'slack', '--format', 'json', '--slack-slug', 'help']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      groups: { slack: { slug: 'help' } },
      options: { app: null, format: 'json', publicUrl: null },
    });
    expect(err).toBe('Invite the bot.\n');
  });
});

describe('dead', () => {
  it('says when no gateway runs', async () => {
    const folder = await tempFolder();
    const { code, err } = await run(['dead', 'list', '--data-dir', folder]);
    expect(code).toBe(1);
    expect(err).toContain('no running gateway');
  });
});

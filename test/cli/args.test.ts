import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parseArgs } from '../../src/cli/args.js';
import { namedSettings, withoutPrefix } from '../../src/config/names.js';
import { setting } from '../../src/config/setting.js';

const settings = namedSettings(
  {
    port: setting(z.int().default(1), { help: 'Port.' }),
    auto_invite: setting(z.boolean().default(true), { help: 'Switch.' }),
    peers: setting(z.array(z.string()).default([]), { help: 'List.' }),
    key: setting(z.string().optional(), { help: 'Key.', secret: true }),
    turn: { grace_ms: setting(z.int().default(1), { help: 'Nested.' }) },
  },
  ['acp'],
);
const own = [
  { name: 'config', value: 'FILE', help: 'File.' },
  { name: 'json', help: 'JSON.' },
];
const parse = (...args: string[]) => parseArgs(args, { settings, own });

describe('parseArgs', () => {
  it.each([
    [['--acp-port', '3'], [{ name: '--acp-port', path: 'acp.port', value: '3' }]],
    [['--acp-port=3'], [{ name: '--acp-port', path: 'acp.port', value: '3' }]],
    [['--acp-port', '-3'], [{ name: '--acp-port', path: 'acp.port', value: '-3' }]],
    [['--acp-auto-invite'], [{ name: '--acp-auto-invite', path: 'acp.auto_invite', value: 'true' }]],
    [['--no-acp-auto-invite'], [{ name: '--no-acp-auto-invite', path: 'acp.auto_invite', value: 'false' }]],
    [['--acp-auto-invite=off'], [{ name: '--acp-auto-invite', path: 'acp.auto_invite', value: 'off' }]],
    [['--acp-turn-grace-ms', '9'], [{ name: '--acp-turn-grace-ms', path: 'acp.turn.grace_ms', value: '9' }]],
    [['--acp-key-file', 'f'], [{ name: '--acp-key-file', path: 'acp.key', value: 'f', isFile: true }]],
    [
      ['--acp-peers', 'a,b', '--acp-peers', 'c'],
      [
        { name: '--acp-peers', path: 'acp.peers', value: 'a,b' },
        { name: '--acp-peers', path: 'acp.peers', value: 'a,b,c' },
      ],
    ],
  ])('reads %j', (args, expected) => {
    expect(parse(...args)).toEqual({ settings: expected, own: {}, positionals: [], problems: [] });
  });

  it('tells its own flags, words and settings apart', () => {
    expect(parse('list', '--json', '--config', 'x.yaml', 'id', '--', '--json')).toMatchObject({
      own: { json: true, config: 'x.yaml' },
      positionals: ['list', 'id', '--json'],
      problems: [],
    });
  });

  it.each([
    [['--acp-prot', '3'], '--acp-prot is not a flag of this command; did you mean --acp-port?'],
    [['--acp-port'], '--acp-port needs a value'],
    [['--acp-port', '--json'], '--acp-port needs a value'],
    [['--acp-port-file', 'x'], '--acp-port-file is not a flag of this command'],
    [['--no-acp-port'], '--no-acp-port is not a flag of this command; did you mean --acp-port?'],
    [['-x'], '-x is not a flag of this command'],
  ])('complains about %j', (args, problem) => {
    expect(parse(...args).problems).toEqual([problem]);
  });

  it('a command named like a group drops the prefix', () => {
    const short = withoutPrefix(settings, 'acp');
    expect(parseArgs(['--port', '4'], { settings: short, own: [] }).settings).toEqual([
      { name: '--port', path: 'acp.port', value: '4' },
    ]);
  });
});

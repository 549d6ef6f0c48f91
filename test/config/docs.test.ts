import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { a2aSettings } from '../../bridges/a2a/settings.js';
import { acpSettings } from '../../bridges/acp/settings.js';
import { slackSettings } from '../../bridges/slack/settings.js';
import { relaySettings } from '../../src/adapters/relay-settings.js';
import { exampleFile, fileSchema, flagHelp, settingsTable } from '../../src/config/describe.js';
import { namedSettings } from '../../src/config/names.js';
import type { SettingsGroup } from '../../src/config/setting.js';
import { agentSettings, serviceSettings } from '../../src/config/settings.js';

/** `UPDATE_DOCS=1 npx vitest run test/config/docs.test.ts` writes what this test compares with. */
const update = process.env['UPDATE_DOCS'] === '1';

const README = fileURLToPath(new URL('../../README.md', import.meta.url));
const EXAMPLE = fileURLToPath(new URL('../../deploy/gateway.example.yaml', import.meta.url));

const bridges: readonly { readonly name: string; readonly groups: readonly SettingsGroup[] }[] = [
  { name: 'slack', groups: [slackSettings, relaySettings] },
  { name: 'a2a', groups: [a2aSettings] },
  { name: 'acp', groups: [acpSettings] },
];

const tables = new Map([
  ['service', namedSettings(serviceSettings.tree)],
  ['agent', namedSettings(agentSettings.tree)],
  ...[slackSettings, relaySettings, a2aSettings, acpSettings].map(
    (group) => [group.name, namedSettings(group.tree, [group.name])] as const,
  ),
]);

describe('the documents follow the declarations', () => {
  it.each([...tables.keys()])("README's table of %s", (name) => {
    const readme = readFileSync(README, 'utf8');
    const [start, end] = [`<!-- settings:${name} -->`, `<!-- /settings:${name} -->`];
    const from = readme.indexOf(start) + start.length;
    const to = readme.indexOf(end);
    expect(to).toBeGreaterThan(from);
    const table = `\n\n<!-- prettier-ignore-start -->\n\n${settingsTable(tables.get(name) ?? [])}\n\n<!-- prettier-ignore-end -->\n\n`;
    if (update) writeFileSync(README, readme.slice(0, from) + table + readme.slice(to));
    else expect(readme.slice(from, to)).toBe(table);
  });

  it('deploy/gateway.example.yaml', () => {
    const text = exampleFile(bridges);
    if (update) writeFileSync(EXAMPLE, text);
    else expect(readFileSync(EXAMPLE, 'utf8')).toBe(text);
  });
});

describe('the JSON Schema', () => {
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(
    fileSchema(bridges.flatMap(({ groups }) => groups)),
  );
  const [, ...lines] = exampleFile(bridges).split('\n');
  const everything = parse(lines.map((line) => line.replace(/^( *)# /, '$1')).join('\n'), {
    uniqueKeys: true,
  }) as object;

  it('takes the example file as it stands, and with every setting in it', () => {
    expect(validate(parse(exampleFile(bridges)))).toBe(true);
    validate(withoutNulls(everything));
    expect(validate.errors ?? []).toEqual([]);
  });

  it.each([
    ['an unknown key', { http: { prot: 1 } }],
    ['a value of the wrong kind', { http: { port: 'eighty' } }],
    ['an agent without a bridge', { agents: { a: { agent_id: 'x' } } }],
    ['an unknown key in a group', { agents: { a: { bridge: 'a2a', a2a: { prot: 1 } } } }],
  ])('refuses %s', (_, file) => {
    expect(validate(file)).toBe(false);
  });
});

/** Keys with nothing behind them are settings that are left out. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, withoutNulls(item)]])),
  );
}

describe('names', () => {
  const all = [...tables.values()].flat();

  it.each(['env', 'flag'] as const)('no two settings share a %s name', (kind) => {
    const seen = new Map<string, string>();
    for (const named of all) {
      const other = seen.get(named[kind]);
      expect(other, `${named[kind]} is ${named.path.join('.')} and ${other}`).toBeUndefined();
      seen.set(named[kind], named.path.join('.'));
    }
  });

  it('every setting has a sentence of help', () => {
    for (const { setting, path } of all) expect(setting.help, path.join('.')).toMatch(/^.{10,}\.$/);
  });

  it('durations and sizes end in their unit', () => {
    const units = /_(ms|seconds|minutes|hours|days|bytes|chars)$/;
    for (const { setting, path } of all) {
      const name = path.at(-1) ?? '';
      if (/\b(in milliseconds|in seconds|in hours|in bytes)\b/.test(setting.help))
        expect(name, path.join('.')).toMatch(units);
    }
  });

  it('help names each flag once', () => {
    const lines = flagHelp(all).filter((line) => line.startsWith('  --'));
    expect(new Set(lines).size).toBe(lines.length);
  });
});

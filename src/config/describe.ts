import { z } from 'zod';
import type { NamedSetting } from './names.js';
import { isSecretSchema, isSetting, type Setting, type SettingsGroup, type SettingTree } from './setting.js';
import { agentSettings, serviceSettings } from './settings.js';

/** The default as it would be written in the file; null when there is none, or when it is empty. */
export function defaultText(setting: Setting): string | null {
  const value = defaultOf(setting.schema);
  if (value === undefined) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Whether the setting must be given. */
export function isRequired(setting: Setting): boolean {
  return !setting.schema.safeParse(undefined).success;
}

/** What may be written, in a word or two: `number`, `true|false`, `stop|standby`, `list`, `JSON`. */
export function kindText(schema: z.core.$ZodType): string {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if ('innerType' in def) return kindText(def.innerType);
  switch (def.type) {
    case 'number':
      return 'number';
    case 'boolean':
      return 'true|false';
    case 'enum':
      return Object.values(def.entries).join('|');
    case 'literal':
      return def.values.map(String).join('|');
    case 'pipe':
      return kindText((def.in as z.core.$ZodTypes)._zod.def.type === 'transform' ? def.out : def.in);
    case 'union':
      return [...new Set(def.options.map(kindText))].join('|');
    case 'array':
      return isPlain(def.element) ? 'list' : 'JSON list';
    case 'object':
    case 'record':
      return 'JSON';
    case 'null':
      return 'null';
    default:
      return 'text';
  }
}

/** Lines of a command's `--help`: each setting as a flag, with its variable and default. */
export function flagHelp(settings: readonly NamedSetting[]): string[] {
  return settings.flatMap(({ setting, flag, env }) => {
    const kind = kindText(setting.schema);
    const left = kind === 'true|false' ? `--${flag}, --no-${flag}` : `--${flag} <${kind}>`;
    const standard = defaultText(setting);
    const notes = [`env ${env}${setting.secret ? ` or ${env}_FILE` : ''}`, standard !== null && `default ${standard}`];
    return [`  ${left}`, `      ${setting.help} [${notes.filter(Boolean).join('; ')}]`];
  });
}

/** A Markdown table of settings. */
export function settingsTable(settings: readonly NamedSetting[]): string {
  const rows = settings.map(({ setting, path, env }) => {
    const standard = defaultText(setting);
    const cells = [
      code(path.join('.')),
      code(env),
      standard === null ? (isRequired(setting) ? 'required' : '') : code(standard),
      setting.help + (setting.aliases.length > 0 ? ` Also ${setting.aliases.map(code).join(', ')}.` : ''),
    ];
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  });
  return ['| Setting | Environment | Default | Meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

/** A settings file with every setting in it, commented out, and an entry for each bridge. */
export function exampleFile(
  bridges: readonly { readonly name: string; readonly groups: readonly SettingsGroup[] }[],
): string {
  const lines = [
    '# Settings of band-gateway, every one with its default. Secrets are best given as { env: NAME } or { file: PATH }.',
    '',
    ...exampleTree(serviceSettings.tree, 0),
    '',
    'agents:',
  ];
  bridges.forEach(({ name, groups }, index) => {
    lines.push(`  my-${name}-agent:`);
    lines.push(`    agent_id: 00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`);
    lines.push(`    api_key: { env: MY_${name.toUpperCase()}_AGENT_KEY }`);
    lines.push(`    bridge: ${name}`);
    if (index === 0) lines.push(...exampleTree(without(agentSettings.tree, ['agent_id', 'api_key', 'bridge']), 4));
    for (const group of groups) lines.push(...exampleTree({ [group.name]: group.tree }, 4));
  });
  return `${lines.join('\n')}\n`;
}

/** A JSON Schema (draft 7) of the settings file, for editors. */
export function fileSchema(groups: readonly SettingsGroup[]): Record<string, unknown> {
  const service = treeSchema(serviceSettings.tree);
  const agent = treeSchema({ ...agentSettings.tree, ...Object.fromEntries(groups.map((one) => [one.name, one.tree])) });
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'band-gateway settings',
    ...service,
    properties: {
      ...service.properties,
      agents: {
        type: 'object',
        description: 'The agents to host, by a name of your own.',
        // Credentials may stand in agent_config.yaml.
        additionalProperties: { ...agent, required: ['bridge'] },
      },
    },
  };
}

interface ObjectSchema {
  readonly type: 'object';
  readonly properties: Record<string, unknown>;
  readonly additionalProperties: false;
  readonly required?: readonly string[];
}

function treeSchema(tree: SettingTree): ObjectSchema {
  const properties: Record<string, unknown> = {};
  for (const [key, node] of Object.entries(tree))
    properties[key] = isSetting(node) ? valueSchema(node) : treeSchema(node);
  const required = Object.entries(tree).flatMap(([key, node]) => (isSetting(node) && isRequired(node) ? [key] : []));
  return { type: 'object', properties, additionalProperties: false, ...(required.length > 0 && { required }) };
}

const SECRET_REFERENCES = [
  { type: 'object', properties: { env: { type: 'string' } }, required: ['env'], additionalProperties: false },
  { type: 'object', properties: { file: { type: 'string' } }, required: ['file'], additionalProperties: false },
];

function valueSchema(setting: Setting): Record<string, unknown> {
  const schema: Record<string, unknown> = z.toJSONSchema(setting.schema, {
    target: 'draft-7',
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // Inside lists and maps a marked secret may be a reference as well.
      if (!isSecretSchema(zodSchema)) return;
      const plain = { ...jsonSchema };
      for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
      jsonSchema.anyOf = [plain, ...SECRET_REFERENCES] as NonNullable<typeof jsonSchema.anyOf>;
    },
  });
  delete schema['$schema'];
  const described = { ...schema, description: setting.help };
  return setting.secret ? { description: setting.help, anyOf: [schema, ...SECRET_REFERENCES] } : described;
}

/** Settings as comments that become a valid file when the marks are taken away. */
function exampleTree(tree: SettingTree, indent: number): string[] {
  const margin = ' '.repeat(indent);
  const body = (node: SettingTree, depth: number): string[] =>
    Object.entries(node).flatMap(([key, item]) => {
      const pad = '  '.repeat(depth);
      if (!isSetting(item)) return [`${pad}${key}:`, ...body(item, depth + 1)];
      const value = exampleValue(item);
      return [`${pad}# ${item.help}`, `${pad}${key}:${value === '' ? '' : ` ${value}`}`];
    });
  return body(tree, 0).map((line) => `${margin}# ${line}`);
}

function exampleValue(setting: Setting): string {
  const value = defaultOf(setting.schema);
  if (value !== undefined) return JSON.stringify(value);
  return setting.secret ? '{ file: /run/secrets/name }' : '';
}

function defaultOf(schema: z.core.$ZodType): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type === 'default' || def.type === 'prefault') return def.defaultValue;
  if ('innerType' in def) return defaultOf(def.innerType);
  return def.type === 'pipe' ? defaultOf(def.in) : undefined;
}

function without(tree: SettingTree, keys: readonly string[]): SettingTree {
  return Object.fromEntries(Object.entries(tree).filter(([key]) => !keys.includes(key)));
}

function isPlain(schema: z.core.$ZodType): boolean {
  return !/list|JSON/.test(kindText(schema));
}

function code(text: string): string {
  return `\`${text}\``;
}

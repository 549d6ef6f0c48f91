import path from 'node:path';
import type { z } from 'zod';
import { isPlainObject } from './casing.js';
import type { NamedSetting } from './names.js';
import { nearest } from './nearest.js';
import type { Origin, Problem } from './problems.js';
import { readSecretFile, resolveSecrets, SecretError } from './secret-values.js';
import { isSetting, settingIssues, type SettingsGroup, type SettingTree } from './setting.js';
import { TextValueError, valueFromText } from './text-value.js';
import type { YamlFile } from './yaml-file.js';

/** A setting given on the command line. */
export interface FlagValue {
  /** As typed, for messages: `--http-port`. */
  readonly name: string;
  /** The setting it means, e.g. `http.port`. */
  readonly path: string;
  readonly value: string;
  /** The value is a file that holds the secret. */
  readonly isFile?: boolean;
}

/** Everything a value may come from, first one wins: flags, environment, `.env`, file. */
export interface Sources {
  readonly flags: readonly FlagValue[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly dotenv: Readonly<Record<string, string | undefined>>;
  /** Folder that relative names of secret files in the environment start from. */
  readonly cwd: string;
}

/** A part of the file that a tree of settings is read from. */
export interface FilePart {
  readonly file: YamlFile;
  /** The part's place in the file, e.g. `['agents', 'helpdesk']`. */
  readonly at: readonly string[];
  readonly value: unknown;
  /** Folder of the file; relative names of secret files start here. */
  readonly folder: string;
}

/** One setting as it ended up, for `config print` and for messages. */
export interface SettledValue {
  readonly named: NamedSetting;
  /** Full name, e.g. `agents.helpdesk.slack.port`. */
  readonly key: string;
  /** As given, secrets resolved; undefined where the default applies. */
  readonly value: unknown;
  readonly origin: Origin;
}

/** What one tree of settings amounts to. */
export interface Collected {
  /** Given values, nested, in snake_case, secrets resolved; no defaults. */
  readonly values: Record<string, unknown>;
  readonly settled: readonly SettledValue[];
}

export interface CollectOptions {
  readonly settings: readonly NamedSetting[];
  /** Null when flags and environment do not apply, as for an agent in a file. */
  readonly sources: Sources | null;
  readonly part: FilePart | null;
  /** Goes in front of the settings' names in messages, e.g. `agents.helpdesk.`. */
  readonly keyPrefix?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onSecret: (secret: string) => void;
  /** Told the full name of each file that a secret came from. */
  readonly onSecretFile: (full: string) => void;
  readonly problems: Problem[];
}

type Found =
  | { readonly kind: 'text'; readonly text: string; readonly origin: Origin }
  | { readonly kind: 'secret-file'; readonly file: string; readonly origin: Origin }
  | { readonly kind: 'value'; readonly value: unknown; readonly origin: Origin };

/** Finds each setting's value in the first source that has one, and resolves its secrets. Problems are collected. */
export function collect(options: CollectOptions): Collected {
  const { settings, sources, part, keyPrefix = '', env, onSecret, onSecretFile, problems } = options;
  const values: Record<string, unknown> = {};
  const settled: SettledValue[] = [];
  for (const named of settings) {
    const key = keyPrefix + named.path.join('.');
    const found = (sources && inSources(named, sources, key, problems)) ?? inFile(named, part);
    if (!found) {
      settled.push({ named, key, value: undefined, origin: { kind: 'default', name: '' } });
      continue;
    }
    try {
      const folder = found.origin.kind === 'file' ? (part?.folder ?? '.') : (sources?.cwd ?? '.');
      if (found.kind === 'secret-file') onSecretFile(path.resolve(folder, found.file));
      const raw =
        found.kind === 'value'
          ? found.value
          : found.kind === 'text'
            ? valueFromText(named.setting.schema, found.text)
            : readSecretFile(found.file, folder);
      const value = resolveSecrets(named.setting, raw, { env, folder, onFile: onSecretFile }, onSecret);
      put(values, named.path, value);
      settled.push({ named, key, value, origin: found.origin });
    } catch (error) {
      if (!(error instanceof SecretError || error instanceof TextValueError)) throw error;
      const below = error instanceof SecretError ? error.path : [];
      const origin =
        part && found.origin.kind === 'file' ? part.file.origin([...part.at, ...named.path, ...below]) : found.origin;
      problems.push({ key: [key, ...below].join('.'), message: error.message, origin });
      // Stands for the value, so that a setting which is already reported is not reported again as missing.
      settled.push({ named, key, value: BROKEN, origin });
    }
  }
  return { values, settled };
}

const BROKEN = Symbol('broken');

/**
 * Checks collected values against their group and reports each problem with its place.
 *
 * @returns true when nothing was wrong
 */
export function validate(
  group: SettingsGroup,
  values: unknown,
  settled: readonly SettledValue[],
  part: FilePart | null,
  prefix: { readonly key: string; readonly path: readonly string[] },
  problems: Problem[],
): boolean {
  const parsed = group.schema.safeParse(values);
  if (parsed.success) return true;
  let reported = false;
  for (const issue of settingIssues(parsed.error)) {
    const full = [...prefix.path, ...issue.path];
    const owner = settled.find(({ named }) => named.path.every((key, index) => full[index] === key));
    if (owner?.value === BROKEN) continue;
    reported = true;
    const fromFile = part !== null && (!owner || owner.origin.kind === 'file' || owner.origin.kind === 'default');
    const origin = fromFile ? part.file.origin([...part.at, ...full]) : (owner?.origin ?? null);
    problems.push({
      key: prefix.key + full.join('.'),
      message: messageOf(issue, owner, full, values, part),
      origin: origin?.kind === 'default' ? null : origin,
    });
  }
  return !reported;
}

/**
 * Reports every key of the file that no setting has, with the nearest one that exists. */
export function refuseUnknownKeys(
  tree: SettingTree,
  part: FilePart,
  others: readonly string[],
  problems: Problem[],
  explain: (name: string) => string | null = () => null,
  path: readonly string[] = [],
): void {
  const value = path.reduce<unknown>((node, key) => (isPlainObject(node) ? node[key] : undefined), part.value);
  if (value === undefined || value === null) return;
  const key = (below: readonly string[]) => [...part.at, ...path, ...below].join('.');
  if (!isPlainObject(value)) {
    problems.push({ key: key([]), message: 'must be a mapping', origin: part.file.origin([...part.at, ...path]) });
    return;
  }
  const known = [...Object.keys(tree), ...others];
  for (const name of Object.keys(value)) {
    const node = Object.hasOwn(tree, name) ? tree[name] : undefined;
    if (node) {
      if (!isSetting(node)) refuseUnknownKeys(node, part, [], problems, () => null, [...path, name]);
    } else if (!others.includes(name)) {
      problems.push({
        key: key([name]),
        message: explain(name) ?? unknownKey(nearest(name, known)),
        origin: part.file.origin([...part.at, ...path, name]),
      });
    }
  }
}

export function unknownKey(meant: string | null): string {
  return meant === null ? 'is not a setting' : `is not a setting; did you mean ${meant}?`;
}

function inSources(named: NamedSetting, sources: Sources, key: string, problems: Problem[]): Found | null {
  const path = named.path.join('.');
  const flags = sources.flags.filter((flag) => flag.path === path);
  const last = flags.at(-1);
  if (last) {
    const origin: Origin = { kind: 'flag', name: last.name };
    return last.isFile ? { kind: 'secret-file', file: last.value, origin } : { kind: 'text', text: last.value, origin };
  }
  for (const [kind, source] of [
    ['environment', sources.env],
    ['dotenv', sources.dotenv],
  ] as const) {
    for (const name of [named.env, ...named.setting.aliases]) {
      const text = source[name];
      const file = named.setting.secret ? source[`${name}_FILE`] : undefined;
      if (text !== undefined && text !== '') {
        if (file)
          problems.push({ key, message: `is set twice: by ${name} and by ${name}_FILE`, origin: { kind, name } });
        return { kind: 'text', text, origin: { kind, name } };
      }
      if (file) return { kind: 'secret-file', file, origin: { kind, name: `${name}_FILE` } };
    }
  }
  return null;
}

function inFile(named: NamedSetting, part: FilePart | null): Found | null {
  if (!part) return null;
  let value: unknown = part.value;
  for (const key of named.path) {
    if (!isPlainObject(value) || !Object.hasOwn(value, key)) return null;
    value = value[key];
  }
  // A key with nothing behind it is one that somebody left out.
  const leftOut = value === null && !named.setting.schema.safeParse(null).success;
  if (value === undefined || leftOut) return null;
  return { kind: 'value', value, origin: part.file.origin([...part.at, ...named.path]) };
}

function put(values: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let node = values;
  path.forEach((key, index) => {
    if (index === path.length - 1) node[key] = value;
    else node = (node[key] ??= {}) as Record<string, unknown>;
  });
}

function messageOf(
  issue: { readonly message: string; readonly type: string; readonly path: readonly string[] },
  owner: SettledValue | undefined,
  full: readonly string[],
  values: unknown,
  part: FilePart | null,
): string {
  if (issue.type === 'extra_forbidden') {
    const schema = owner && schemaAt(owner.named.setting.schema, full.slice(owner.named.path.length, -1));
    return unknownKey(nearest(full.at(-1) ?? '', schema ? shapeKeys(schema) : []));
  }
  const value = issue.path.reduce<unknown>(
    (node, key) => (typeof node === 'object' && node !== null ? (node as Record<string, unknown>)[key] : undefined),
    values,
  );
  if (value === undefined) return owner && !part ? `is required; set ${owner.named.env}` : 'is required';
  return issue.message.replace(/^Invalid input: /, '');
}

/** The schema that describes what stands at a path inside a setting's value; null where that is not certain. */
function schemaAt(schema: z.core.$ZodType, path: readonly string[]): z.core.$ZodType | null {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if ('innerType' in def) return schemaAt(def.innerType, path);
  if (def.type === 'pipe') return schemaAt(def.in, path);
  const [key, ...rest] = path;
  if (key === undefined) return schema;
  if (def.type === 'array') return schemaAt(def.element, rest);
  if (def.type === 'record') return schemaAt(def.valueType, rest);
  const child = def.type === 'object' ? def.shape[key] : undefined;
  return child ? schemaAt(child, rest) : null;
}

function shapeKeys(schema: z.core.$ZodType): string[] {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  return def.type === 'object' ? Object.keys(def.shape) : [];
}

import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { z } from 'zod';
import { isPlainObject } from './casing.js';
import { isSecretSchema, type Setting } from './setting.js';

/** Where `{ env: NAME }` and `{ file: PATH }` are looked up. */
export interface SecretSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder that relative file names start from. */
  readonly folder: string;
  /** Told the full name of each file that a secret came from. */
  readonly onFile?: (full: string) => void;
}

/** A secret that could not be had; the text names the place, never the value. */
export class SecretError extends Error {
  /** Where in the value, below the setting. */
  readonly path: readonly string[];

  constructor(message: string, where: readonly string[] = []) {
    super(message);
    this.path = where;
  }
}

const MAX_SECRET_BYTES = 65_536;

/**
 * Replaces every `{ env: NAME }` and `{ file: PATH }` at the secret places of a setting's value.
 *
 * @param onSecret - told each secret that the value holds, so that logs can hide it
 * @throws {SecretError} for the first one that is missing, empty or unreadable
 */
export function resolveSecrets(
  setting: Setting,
  value: unknown,
  sources: SecretSources,
  onSecret: (secret: string) => void,
): unknown {
  return mapSecrets(setting, value, (found, where) => {
    const text = typeof found === 'string' ? found : lookUp(found, sources, where);
    onSecret(text);
    return text;
  });
}

/** The value with a mask at its secret places. */
export function maskSecrets(setting: Setting, value: unknown, mask = '(hidden)'): unknown {
  return mapSecrets(setting, value, () => mask);
}

function mapSecrets(
  setting: Setting,
  value: unknown,
  replace: (found: string | Reference, where: readonly string[]) => unknown,
): unknown {
  const walk = (item: unknown, isSecret: boolean, schema: z.core.$ZodType | null, where: string[]): unknown => {
    const hidden = isSecret || (schema !== null && marked(schema));
    if (hidden && typeof item === 'string') return replace(item, where);
    if (Array.isArray(item)) {
      const element = schema && elementOf(schema);
      return item.map((one, index) => walk(one, hidden, element, [...where, String(index)]));
    }
    if (!isPlainObject(item)) return item;
    if (hidden && isReference(item)) return replace(item, where);
    return Object.fromEntries(
      Object.entries(item).map(([key, one]) => {
        const child = schema && childOf(schema, key, item);
        return [key, walk(one, hidden, child, [...where, key])];
      }),
    );
  };
  return walk(value, setting.secret, setting.schema, []);
}

/**
 * The text of a secret file, without white space around it.
 *
 * @throws {SecretError} when it is missing, unreadable, empty or larger than 64 KiB
 */
export function readSecretFile(file: string, folder: string, where: readonly string[] = []): string {
  const full = path.resolve(folder, file);
  let bytes: Buffer;
  try {
    bytes = readFileSync(full);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new SecretError(
      code === 'ENOENT' ? `file ${full} not found` : `file ${full} cannot be read (${code})`,
      where,
    );
  }
  if (bytes.length > MAX_SECRET_BYTES) throw new SecretError(`file ${full} is larger than 64 KiB`, where);
  const text = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .trim();
  if (text === '') throw new SecretError(`file ${full} is empty`, where);
  return text;
}

type Reference = { readonly env: string } | { readonly file: string };

function isReference(value: Record<string, unknown>): value is Reference & Record<string, unknown> {
  const keys = Object.keys(value);
  return keys.length === 1 && (keys[0] === 'env' || keys[0] === 'file') && typeof value[keys[0]] === 'string';
}

function lookUp(reference: Reference, { env, folder, onFile }: SecretSources, where: readonly string[]): string {
  if ('file' in reference) {
    onFile?.(path.resolve(folder, reference.file));
    return readSecretFile(reference.file, folder, where);
  }
  const value = env[reference.env];
  if (value === undefined || value === '')
    throw new SecretError(`${reference.env} is not set in the environment`, where);
  return value;
}

/** The schema under optional, default and similar wrappers. */
function bare(schema: z.core.$ZodType): z.core.$ZodType {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'nonoptional':
    case 'readonly':
    case 'catch':
      return bare(def.innerType);
    case 'pipe':
      return bare(def.in);
    case 'lazy':
      return bare(def.getter());
    default:
      return schema;
  }
}

function marked(schema: z.core.$ZodType): boolean {
  if (isSecretSchema(schema)) return true;
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if ('innerType' in def) return marked(def.innerType);
  if (def.type === 'pipe') return marked(def.in);
  return def.type === 'union' && def.options.some(marked);
}

function elementOf(schema: z.core.$ZodType): z.core.$ZodType | null {
  const { def } = (bare(schema) as z.core.$ZodTypes)._zod;
  if (def.type === 'array') return def.element;
  if (def.type !== 'union') return null;
  for (const option of def.options) {
    const element = elementOf(option);
    if (element) return element;
  }
  return null;
}

function childOf(schema: z.core.$ZodType, key: string, value: Record<string, unknown>): z.core.$ZodType | null {
  const { def } = (bare(schema) as z.core.$ZodTypes)._zod;
  if (def.type === 'object') return def.shape[key] ?? null;
  if (def.type === 'record') return def.valueType;
  if (def.type !== 'union') return null;
  const options = def.options.filter((option) =>
    Object.keys(value).every((name) => childOf(option, name, {}) !== null),
  );
  for (const option of options.length > 0 ? options : def.options) {
    const child = childOf(option, key, {});
    if (child) return child;
  }
  return null;
}

import { z } from 'zod';
import { ValidationError } from '../base/band-errors.js';
import { isPlainObject, respell } from './casing.js';
import type { CamelCase } from './spelling.js';

const settingMark: unique symbol = Symbol('setting');
const secretSchemas = new WeakSet<z.core.$ZodType>();

export interface SettingAbout {
  /** One sentence for help texts and tables: what it does, with its unit. */
  readonly help: string;
  /** Never printed; may be written as `{ env: NAME }` or `{ file: PATH }`, and as `NAME_FILE` in the environment. */
  readonly secret?: boolean;
  /** Environment names kept for parity with other programs; the setting's own name wins over them. */
  readonly aliases?: readonly string[];
  /** Environment name outside the rule, e.g. `PORT`. */
  readonly env?: string;
  /** Flag outside the rule, without its dashes, e.g. `rest-url`. */
  readonly flag?: string;
}

/** One declared value. Its default, if any, is the schema's; its spellings follow from where it stands in a tree. */
export interface Setting<S extends z.ZodType = z.ZodType> {
  readonly [settingMark]: true;
  readonly schema: S;
  readonly help: string;
  readonly secret: boolean;
  readonly aliases: readonly string[];
  readonly env: string | null;
  readonly flag: string | null;
}

/** Settings by snake_case key; the unit ends the name (`_ms`, `_seconds`, `_hours`, `_bytes`, `_chars`). */
export interface SettingTree {
  readonly [key: string]: Setting | SettingTree;
}

/** Settings that stand together under one name: a section of the file, a prefix of environment names and flags. */
export interface SettingsGroup<T extends SettingTree = SettingTree> {
  readonly name: string;
  readonly tree: T;
  /** Strict over snake_case keys at every level, with defaults filled in. */
  readonly schema: z.ZodType<SnakeValuesOf<T>>;
}

/**
 * Declares one value. A key whose schema has neither a default nor `.optional()` must be given.
 *
 * @param schema - keys of objects inside it are snake_case too; a secret inside it is marked with {@link secret}
 */
export function setting<S extends z.ZodType>(schema: S, about: SettingAbout): Setting<S> {
  const { help, secret: isSecret = false, aliases = [], env = null, flag = null } = about;
  return Object.freeze({ [settingMark]: true as const, schema, help, secret: isSecret, aliases, env, flag });
}

/**
 * Marks a schema inside a setting's list or map as secret, e.g. `z.object({ name: z.string(), key: secret(z.string()) })`.
 * Apply it last: a schema derived from a marked one (`.min(1)`) is not marked, a wrapper around it (`.optional()`) is fine.
 */
export function secret<S extends z.ZodType>(schema: S): S {
  secretSchemas.add(schema);
  return schema;
}

/** Whether {@link secret} marked this schema. */
export function isSecretSchema(schema: z.core.$ZodType): boolean {
  return secretSchemas.has(schema);
}

export function isSetting(node: Setting | SettingTree): node is Setting {
  return settingMark in node;
}

/** Declares a group, e.g. `settingsGroup('slack', { bot_token: setting(…), socket: { connections: setting(…) } })`. */
export function settingsGroup<const T extends SettingTree>(name: string, tree: T): SettingsGroup<T> {
  return Object.freeze({ name, tree, schema: treeSchema(tree) as unknown as z.ZodType<SnakeValuesOf<T>> });
}

/**
 * Reads the options that a caller gave a class, spelled in camelCase.
 *
 * @param title - names the options in the error; default the group's name
 * @returns parsed values with defaults filled in, camelCase at every level
 * @throws {ValidationError} with one issue per problem; an unknown key is `Extra inputs are not permitted`
 */
export function parseOptions<T extends SettingTree>(
  group: SettingsGroup<T>,
  input: OptionsInputOf<SettingsGroup<T>> | undefined,
  title: string = group.name,
): OptionsOf<SettingsGroup<T>> {
  const issues: SettingIssue[] = [];
  if (input !== undefined && !isPlainObject(input)) {
    throw new ValidationError(title, [{ path: [], message: 'Input should be an object', type: 'object_type', input }]);
  }
  const snake = respell(group.schema, input ?? {}, 'snake', (path, value) => {
    issues.push(extraInput(path.map(snakeCase), value));
  });
  return finish(group, snake, title, issues);
}

/**
 * Reads values spelled as in the file, with secrets already resolved.
 *
 * @throws {ValidationError} as {@link parseOptions}
 */
export function optionsFromSnake<T extends SettingTree>(
  group: SettingsGroup<T>,
  values: unknown,
): OptionsOf<SettingsGroup<T>> {
  return finish(group, values, group.name, []);
}

/** One problem with a value; the path is in snake_case. */
export interface SettingIssue {
  readonly path: string[];
  readonly message: string;
  readonly type: string;
  readonly input: unknown;
}

/** A schema's problems, an unknown key each on its own. The offending value is left out: it may be a secret. */
export function settingIssues(error: z.ZodError): SettingIssue[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => extraInput([...path, key], undefined));
    return [{ path, message: messageOf(issue), type: issue.code, input: undefined }];
  });
}

/** What a union would have taken, since `Invalid input` helps nobody. */
function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code !== 'invalid_union') return issue.message;
  const wishes = issue.errors.flat().map(({ message }) => message.replace(/^Invalid input: (expected )?/, ''));
  return wishes.length > 0 ? `expected one of: ${[...new Set(wishes)].join('; ')}` : issue.message;
}

function finish<T extends SettingTree>(
  group: SettingsGroup<T>,
  snake: unknown,
  title: string,
  issues: readonly SettingIssue[],
): OptionsOf<SettingsGroup<T>> {
  const parsed = group.schema.safeParse(snake);
  const all = [...issues, ...(parsed.success ? [] : settingIssues(parsed.error))];
  if (all.length > 0 || !parsed.success) throw new ValidationError(title, all);
  return respell(group.schema, parsed.data, 'camel', () => undefined) as OptionsOf<SettingsGroup<T>>;
}

function treeSchema(tree: SettingTree): z.ZodObject {
  const shape: Record<string, z.ZodType> = {};
  for (const [key, node] of Object.entries(tree)) {
    shape[key] = isSetting(node) ? node.schema : treeSchema(node).prefault({});
  }
  return z.strictObject(shape);
}

function extraInput(path: string[], input: unknown): SettingIssue {
  return { path, message: 'Extra inputs are not permitted', type: 'extra_forbidden', input };
}

function snakeCase(camel: string): string {
  return camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

// Types: what a tree holds in snake_case, and what a class sees of it in camelCase.

type Opaque = string | number | boolean | bigint | symbol | null | undefined | Date | RegExp | URL | Uint8Array;
type AnyFunction = (...args: never[]) => unknown;

/** The same value with the keys of its objects in camelCase; keys of records stay. */
type Camelized<V> = V extends Opaque | AnyFunction
  ? V
  : V extends readonly unknown[]
    ? { [I in keyof V]: Camelized<V[I]> }
    : string extends keyof V
      ? { [K in keyof V]: Camelized<V[K]> }
      : { [K in keyof V as K extends string ? CamelCase<K> : K]: Camelized<V[K]> };

type Output<N> = N extends Setting<infer S> ? z.output<S> : N extends SettingTree ? SnakeValuesOf<N> : never;
type Input<N> = N extends Setting<infer S> ? Camelized<z.input<S>> : N extends SettingTree ? CamelInput<N> : never;

type SnakeValuesOf<T extends SettingTree> = { readonly [K in keyof T]: Output<T[K]> };

type CamelOutput<T extends SettingTree> = {
  readonly [K in keyof T as K extends string ? CamelCase<K> : never]: T[K] extends Setting<infer S>
    ? Camelized<z.output<S>>
    : T[K] extends SettingTree
      ? CamelOutput<T[K]>
      : never;
};

type RequiredKeys<T extends SettingTree> = {
  [K in keyof T]: T[K] extends Setting<infer S> ? (undefined extends z.input<S> ? never : K) : never;
}[keyof T];

type CamelInput<T extends SettingTree> = {
  readonly [K in RequiredKeys<T> as K extends string ? CamelCase<K> : never]: Input<T[K]>;
} & {
  readonly [K in Exclude<keyof T, RequiredKeys<T>> as K extends string ? CamelCase<K> : never]?:
    Input<T[K]> | undefined;
};

/** Parsed options of a group: camelCase keys at every level, defaults filled in. */
export type OptionsOf<G> = G extends SettingsGroup<infer T> ? CamelOutput<T> : never;

/** What a library caller may pass: camelCase keys, optional where there is a default. */
export type OptionsInputOf<G> = G extends SettingsGroup<infer T> ? CamelInput<T> : never;

import type { z } from 'zod';
import { camelCase } from './spelling.js';

/** `camel`: snake_case keys become camelCase; `snake`: the way back. */
export type Casing = 'camel' | 'snake';

/** Told the path, in the value's own spelling, of a key that the schema does not have; the key is left out. */
export type OnUnknownKey = (path: readonly string[], value: unknown) => void;

/**
 * Respells the keys that a schema names, at every depth, and leaves the keys of records as they are: those are
 * somebody's data.
 *
 * @param schema - declares its keys in snake_case
 */
export function respell(
  schema: z.core.$ZodType,
  value: unknown,
  casing: Casing,
  onUnknown: OnUnknownKey,
  path: readonly string[] = [],
): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const same = (next: z.core.$ZodType) => respell(next, value, casing, onUnknown, path);
  const below = (next: z.core.$ZodType, key: string, item: unknown) =>
    respell(next, item, casing, onUnknown, [...path, key]);
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'nonoptional':
    case 'readonly':
    case 'catch':
      return same(def.innerType);
    case 'lazy':
      return same(def.getter());
    case 'pipe':
      return same(casing === 'snake' ? def.in : def.out);
    case 'union': {
      const option = def.options.find((one) => holds(one, value, casing));
      return option ? same(option) : value;
    }
    case 'array':
      return Array.isArray(value) ? value.map((item, index) => below(def.element, String(index), item)) : value;
    case 'record':
      if (!isPlainObject(value)) return value;
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, below(def.valueType, key, item)]));
    case 'object': {
      if (!isPlainObject(value)) return value;
      const known = spellings(def.shape, casing);
      const out: Record<string, unknown> = {};
      for (const [key, item] of Object.entries(value)) {
        if (item === undefined) continue;
        const to = known.get(key);
        if (to) out[to.key] = below(to.schema, key, item);
        else onUnknown([...path, key], item);
      }
      return out;
    }
    default:
      return value;
  }
}

/** A mapping made by a literal, a parser or `Object.create(null)`; no class instance. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const proto: unknown = Object.getPrototypeOf(value);
  return proto === null || proto === Object.prototype;
}

function spellings(
  shape: Readonly<Record<string, z.core.$ZodType>>,
  casing: Casing,
): Map<string, { key: string; schema: z.core.$ZodType }> {
  return new Map(
    Object.entries(shape).map(([snake, schema]) =>
      casing === 'camel' ? [snake, { key: camelCase(snake), schema }] : [camelCase(snake), { key: snake, schema }],
    ),
  );
}

/** Whether a member of a union has the shape of `value`: the same kind of container, with no key it does not know. */
function holds(schema: z.core.$ZodType, value: unknown, casing: Casing): boolean {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case 'object': {
      if (!isPlainObject(value)) return false;
      const known = spellings(def.shape, casing);
      return Object.keys(value).every((key) => known.has(key));
    }
    case 'array':
      return Array.isArray(value);
    case 'record':
      return isPlainObject(value);
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'readonly':
      return holds(def.innerType, value, casing);
    default:
      return false;
  }
}

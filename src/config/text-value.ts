import type { z } from 'zod';

/** A text that could not be read at all; what it should mean is the schema's affair. */
export class TextValueError extends Error {}

const YES = new Set(['true', '1', 'yes', 'on', 't', 'y']);
const NO = new Set(['false', '0', 'no', 'off', 'f', 'n']);

/**
 * Reads the text of a flag or an environment variable as the schema's kind of value: numbers, booleans, lists of plain
 * values separated by commas, deeper values as JSON. A text that does not fit stays text, for the schema to refuse.
 *
 * @throws {TextValueError} for a deeper value that is not JSON
 */
export function valueFromText(schema: z.core.$ZodType, text: string): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case 'optional':
    case 'default':
    case 'prefault':
    case 'nonoptional':
    case 'readonly':
    case 'catch':
      return valueFromText(def.innerType, text);
    case 'nullable':
      return text === 'null' ? null : valueFromText(def.innerType, text);
    case 'lazy':
      return valueFromText(def.getter(), text);
    case 'pipe':
      return valueFromText(def.in, text);
    case 'number':
      return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : text;
    case 'boolean':
      return booleanFromText(text) ?? text;
    case 'literal': {
      const found = def.values.find((value) => String(value) === text);
      return found === undefined ? text : found;
    }
    case 'union':
      return unionFromText(def.options, text);
    case 'array':
      return text.trimStart().startsWith('[') ? json(text) : listFromText(def.element, text);
    case 'object':
    case 'record':
    case 'tuple':
      return json(text);
    default:
      return text;
  }
}

/** true/1/yes/on/t/y and false/0/no/off/f/n in any case; undefined for anything else. */
export function booleanFromText(text: string): boolean | undefined {
  const word = text.trim().toLowerCase();
  if (YES.has(word)) return true;
  return NO.has(word) ? false : undefined;
}

function unionFromText(options: readonly z.core.$ZodType[], text: string): unknown {
  for (const option of options) {
    try {
      const value = valueFromText(option, text);
      if ((option as z.ZodType).safeParse(value).success) return value;
    } catch (error) {
      if (!(error instanceof TextValueError)) throw error;
    }
  }
  return text;
}

function listFromText(element: z.core.$ZodType, text: string): unknown[] {
  const items = text.split(',').map((item) => item.trim());
  return items.filter((item) => item !== '').map((item) => valueFromText(element, item));
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own words quote the text, which may hold a secret.
    throw new TextValueError('is not valid JSON');
  }
}

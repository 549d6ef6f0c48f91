import { z } from 'zod';
import { BandToolError } from '../base/band-errors.js';
import { toError } from '../base/errors.js';
import type { JsonSchema, ToolCallOutcome, ToolFormat, ToolSchemaByFormat } from './tools.js';

/**
 * One call of a tool as an outcome: arguments checked, the work done, whatever goes wrong said in one line that a
 * model can act on.
 *
 * @throws {BandToolError} as the tool threw it: it is meant for the adapter
 */
export async function callTool<Arguments extends z.ZodObject>(
  name: string,
  parameters: Arguments,
  args: Record<string, unknown>,
  run: (parsed: z.output<Arguments>) => Promise<unknown>,
): Promise<ToolCallOutcome> {
  const parsed = await parameters.safeParseAsync(args);
  if (!parsed.success) return failed(`Invalid arguments for ${name}: ${problemsOf(parsed.error)}`);
  try {
    return { value: await run(parsed.data), ok: true, errorMessage: null };
  } catch (error) {
    if (error instanceof BandToolError) throw error;
    return failed(`Error executing ${name}: ${toError(error).message}`);
  }
}

export function failed(message: string): ToolCallOutcome {
  return { value: message, ok: false, errorMessage: message };
}

function problemsOf(error: z.ZodError): string {
  return error.issues
    .map((issue) => {
      const field = issue.path.map(String).join('.');
      const message = issue.message.replace(/\s*\n\s*/g, ' ');
      return field === '' ? message : `${field}: ${message}`;
    })
    .join(', ');
}

/** A tool as a model's API wants to see it, from the one zod source. */
export function schemaOf<F extends ToolFormat>(
  format: F,
  name: string,
  description: string,
  parameters: z.ZodObject,
): ToolSchemaByFormat[F] {
  return SHAPES[format](name, description, jsonSchemaOf(parameters));
}

const SHAPES: { [F in ToolFormat]: (name: string, description: string, schema: JsonSchema) => ToolSchemaByFormat[F] } =
  {
    openai: (name, description, parameters) => ({ type: 'function', function: { name, description, parameters } }),
    anthropic: (name, description, input_schema) => ({ name, description, input_schema }),
  };

const ADVERTISED = new WeakMap<z.ZodObject, JsonSchema>();

/** Made once per tool; handed out as a copy, since callers adapt schemas to their model. */
function jsonSchemaOf(parameters: z.ZodObject): JsonSchema {
  let schema = ADVERTISED.get(parameters);
  if (!schema) {
    schema = withoutBounds(z.toJSONSchema(parameters, { target: 'draft-7', io: 'input' })) as JsonSchema;
    delete schema['$schema'];
    ADVERTISED.set(parameters, schema);
  }
  return structuredClone(schema);
}

const UNADVERTISED: ReadonlySet<string> = new Set(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum']);

/** Several model APIs refuse number bounds; they are enforced at execution instead. */
function withoutBounds(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutBounds);
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      // A parameter may itself be called "minimum"; then its value is a schema.
      .filter(([key, value]) => !(UNADVERTISED.has(key) && typeof value === 'number'))
      .map(([key, value]) => [key, withoutBounds(value)]),
  );
}

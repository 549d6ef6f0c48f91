import type { z } from 'zod';
import { BandConfigError } from '../base/band-errors.js';
import type { Capability } from './features.js';
import { callTool, schemaOf } from './tool-call.js';
import type { AgentToolsProtocol, ToolCallOutcome, ToolFormat, ToolSchemaByFormat } from './tools.js';
import type { TurnEffect } from './turn.js';

/** A tool that an adapter offers beside Band's own. */
export interface CustomTool<Arguments extends z.ZodObject = z.ZodObject> {
  /** Not one that begins like Band's own, `band_` or `band-`. */
  readonly name: string;
  readonly description: string;
  readonly parameters: Arguments;
  /** What a successful call means for the turn; default `observe`, which completes nothing. */
  readonly effect?: TurnEffect;
  /** A throw, `{ ok: false }`, and a text that opens with `Error:` or `Error executing ` are failures. */
  run(args: z.output<Arguments>): Promise<unknown>;
}

/** The tool as given; the arguments of `run` have the types that `parameters` says. */
export function customTool<Arguments extends z.ZodObject>(tool: CustomTool<Arguments>): CustomTool<Arguments> {
  return tool;
}

/**
 * The same tools with more of them: offered in every format, run by the same two methods, noted on the same turn.
 *
 * @throws {BandConfigError} when a name is Band's or given twice
 */
export function withCustomTools(tools: AgentToolsProtocol, custom: readonly CustomTool[]): AgentToolsProtocol {
  const byName = new Map<string, CustomTool>();
  for (const tool of custom) {
    if (/^band[_-]/i.test(tool.name)) throw new BandConfigError(`A custom tool cannot redefine Band's ${tool.name}`);
    if (byName.has(tool.name)) throw new BandConfigError(`Two custom tools are named ${tool.name}`);
    byName.set(tool.name, tool);
  }

  const structured = async (name: string, args: Record<string, unknown>): Promise<ToolCallOutcome> => {
    const tool = byName.get(name);
    if (!tool) return tools.executeToolCallStructured(name, args);
    if (tools.turn.ended && tool.effect !== undefined && tool.effect !== 'observe') {
      return { value: 'Error: turn_ended', ok: false, errorMessage: 'This turn has ended' };
    }
    const outcome = failedByContent(await callTool(name, tool.parameters, args, (parsed) => tool.run(parsed)));
    if (outcome.ok) tools.turn.record(tool.effect ?? 'observe');
    return outcome;
  };
  const own = {
    getToolSchemas: <F extends ToolFormat>(
      format: F,
      options?: { readonly capabilities?: ReadonlySet<Capability> },
    ): ToolSchemaByFormat[F][] => [
      ...tools.getToolSchemas(format, options),
      ...custom.map((tool) => schemaOf(format, tool.name, tool.description, tool.parameters)),
    ],
    executeToolCallStructured: structured,
    executeToolCall: async (name: string, args: Record<string, unknown>) => (await structured(name, args)).value,
  };
  return new Proxy(tools, {
    get(target, key) {
      if (Object.hasOwn(own, key)) return own[key as keyof typeof own];
      // Private fields live on the target, so that is what its methods and getters must see.
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A tool that says it failed did fail, although it returned. */
function failedByContent(outcome: ToolCallOutcome): ToolCallOutcome {
  const { value } = outcome;
  if (!outcome.ok) return outcome;
  if (typeof value === 'string' && /^\s*error(:| executing )/i.test(value)) {
    return { value, ok: false, errorMessage: value };
  }
  if (typeof value === 'object' && value !== null && 'ok' in value && value.ok === false) {
    const text = 'error' in value && typeof value.error === 'string' ? value.error : 'The tool failed';
    return { value, ok: false, errorMessage: text };
  }
  return outcome;
}

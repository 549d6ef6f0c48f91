import type { z } from 'zod';
import type { AgentToolsProtocol } from '../../core/tools.js';
import type { TurnEffect } from '../../core/turn.js';

export type ToolCategory = 'chat' | 'contacts' | 'memory';

/** One tool of the catalogue: what a model reads, what is checked, and the method behind it. */
export interface ToolSpec<Arguments extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly category: ToolCategory;
  /** What a successful call means for the turn; the method behind the tool notes it. */
  readonly effect: TurnEffect;
  readonly description: string;
  /** Wire spelling. The one source of the checks and of every advertised form. */
  readonly parameters: Arguments;
  /** Other names for a parameter, as models are used to them. */
  readonly aliases?: Readonly<Record<string, keyof z.input<Arguments> & string>>;
  run(tools: AgentToolsProtocol, args: z.output<Arguments>): Promise<unknown>;
}

/** Keeps the argument types of one tool together while the catalogue forgets them. */
export function toolSpec<Arguments extends z.ZodObject>(spec: ToolSpec<Arguments>): ToolSpec {
  return spec;
}

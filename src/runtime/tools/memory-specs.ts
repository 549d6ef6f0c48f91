import { z } from 'zod';
import type { MemoryFilters } from '../../core/tools.js';
import { toolSpec, type ToolSpec } from './tool-spec.js';

const system = z.enum(['sensory', 'working', 'long_term']).describe('Memory system.');
const segment = z.enum(['user', 'agent', 'tool', 'guideline']).describe('What the memory is about.');
const type = z
  .enum(['iconic', 'echoic', 'haptic', 'episodic', 'semantic', 'procedural'])
  .describe('Sensory: iconic, echoic or haptic. Working and long_term: episodic, semantic or procedural.');
const memoryId = { memory_id: z.string().describe('Id of the memory.') };

/** The agent's memories: on offer with the capability `memory`; the platform answers 403 without the plan for it. */
export const MEMORY_TOOLS: readonly ToolSpec[] = [
  toolSpec({
    name: 'band_list_memories',
    category: 'memory',
    effect: 'observe',
    description: 'Finds memories, newest first. Without filters it lists all that you may see.',
    parameters: z.object({
      subject_id: z.string().optional().describe('Whom the memories are about.'),
      scope: z.enum(['subject', 'organization', 'all']).optional().describe('Whose memories.'),
      system: system.optional(),
      type: type.optional(),
      segment: segment.optional(),
      content_query: z.string().optional().describe('Text to look for.'),
      page_size: z.int().min(1).max(50).default(50).describe('Entries to return.'),
      status: z.enum(['active', 'superseded', 'archived', 'all']).optional().describe('State of the memories.'),
    }),
    run: (tools, args) =>
      tools.listMemories(
        withoutAbsent({
          subjectId: args.subject_id,
          scope: args.scope,
          system: args.system,
          type: args.type,
          segment: args.segment,
          contentQuery: args.content_query,
          pageSize: args.page_size,
          status: args.status,
        }) satisfies MemoryFilters,
      ),
  }),
  toolSpec({
    name: 'band_store_memory',
    category: 'memory',
    effect: 'act',
    description: 'Keeps something for later conversations.',
    parameters: z.object({
      content: z.string().describe('What to remember.'),
      system,
      type,
      segment,
      thought: z.string().describe('Why it is worth remembering.'),
      scope: z.enum(['subject', 'organization']).describe('Who may recall it; subject needs subject_id.'),
      subject_id: z.string().optional().describe('Whom it is about.'),
      metadata: z.record(z.string(), z.unknown()).optional().describe('Tags and references.'),
    }),
    run: (tools, { subject_id, metadata, ...memory }) =>
      tools.storeMemory({ ...memory, subjectId: subject_id ?? null, metadata: metadata ?? null }),
  }),
  toolSpec({
    name: 'band_get_memory',
    category: 'memory',
    effect: 'observe',
    description: 'Reads one memory.',
    parameters: z.object(memoryId),
    run: (tools, { memory_id }) => tools.getMemory(memory_id),
  }),
  toolSpec({
    name: 'band_supersede_memory',
    category: 'memory',
    effect: 'act',
    description: 'Marks a memory as replaced by a newer one.',
    parameters: z.object(memoryId),
    run: (tools, { memory_id }) => tools.supersedeMemory(memory_id),
  }),
  toolSpec({
    name: 'band_archive_memory',
    category: 'memory',
    effect: 'act',
    description: 'Puts a memory away without replacing it.',
    parameters: z.object(memoryId),
    run: (tools, { memory_id }) => tools.archiveMemory(memory_id),
  }),
];

type Present<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** The same object without keys whose value is undefined. */
function withoutAbsent<T extends object>(object: T): Present<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Present<T>;
}

import { ValueError } from '../../base/band-errors.js';
import type { MemoryFilters, MemoryType, NewMemory } from '../../core/tools.js';
import type { WireRecord } from '../../platform/rest/band-rest.js';

const TYPES_BY_SYSTEM: Readonly<Record<NewMemory['system'], readonly MemoryType[]>> = {
  sensory: ['iconic', 'echoic', 'haptic'],
  working: ['episodic', 'semantic', 'procedural'],
  long_term: ['episodic', 'semantic', 'procedural'],
};

/**
 * A new memory in the wire's spelling; what is absent is left out.
 *
 * @throws {ValueError} for a type that does not fit the system, or scope `subject` without a subject
 */
export function memoryBody({ subjectId, metadata, ...memory }: NewMemory): WireRecord {
  const types = TYPES_BY_SYSTEM[memory.system];
  if (!types.includes(memory.type)) {
    throw new ValueError(`type '${memory.type}' does not fit system '${memory.system}': one of ${types.join(', ')}`);
  }
  if (memory.scope === 'subject' && !subjectId) throw new ValueError("scope 'subject' needs subject_id");
  return { ...memory, ...(subjectId ? { subject_id: subjectId } : {}), ...(metadata ? { metadata } : {}) };
}

/** Filters in the wire's spelling. */
export function memoryQuery(filters: MemoryFilters): WireRecord {
  const { subjectId, contentQuery, pageSize = 50, ...same } = filters;
  return { ...same, subject_id: subjectId, content_query: contentQuery, page_size: pageSize };
}

import { ValueError } from '../../base/band-errors.js';
import { bareHandle, type Participant } from '../../core/participants.js';
import type { Mention } from '../../core/tools.js';
import type { MentionInput } from '../../platform/rest/band-rest.js';

/** Handles that a message may mention, each with its `@`: everyone who has one, except this agent. */
export function mentionHandles(participants: readonly Participant[], selfId: string | null): string[] {
  return participants.flatMap(({ id, handle }) => (handle && id !== selfId ? [`@${bareHandle(handle)}`] : []));
}

/**
 * Whom a message goes to, each once. A text is looked up as a handle, then as a name, then as an id; an object with an
 * id goes out as it is, whoever is in the room.
 *
 * @throws {ValueError} for somebody who is not in the room, a name that several participants share, or this agent
 */
export function resolveMentions(
  mentions: readonly Mention[],
  participants: readonly Participant[],
  selfId: string | null,
): MentionInput[] {
  const byId = new Map<string, MentionInput>();
  for (const mention of mentions) {
    const resolved = typeof mention === 'string' ? lookUp(mention, participants, selfId) : mention;
    if (!byId.has(resolved.id)) byId.set(resolved.id, resolved);
  }
  return [...byId.values()];
}

function lookUp(
  text: string,
  participants: readonly Participant[],
  selfId: string | null,
): MentionInput & { readonly id: string } {
  const choice = () => {
    const handles = mentionHandles(participants, selfId);
    return `available handles: ${handles.length > 0 ? handles.join(', ') : '(none)'}`;
  };
  const found = matching(text, participants);
  const others = found.filter(({ id }) => id !== selfId);
  const [first, second] = others;
  if (!first && found.length > 0) throw new ValueError(`'${text}' is this agent itself; ${choice()}`);
  if (!first) throw new ValueError(`'${text}' is not in the room; ${choice()}`);
  if (second) throw new ValueError(`'${text}' names several participants; ${choice()}`);
  return { id: first.id, ...(first.handle ? { handle: bareHandle(first.handle) } : {}) };
}

interface Named {
  readonly id: string;
  readonly name?: string | null | undefined;
  readonly handle?: string | null | undefined;
}

/** Everyone whom `text` names: by handle if anyone has it, else by name, else by id; case and a leading `@` aside. */
export function matching<T extends Named>(text: string, among: readonly T[]): T[] {
  const wanted = folded(text);
  if (wanted === '') return [];
  const by = (part: (one: T) => string | null | undefined) => among.filter((one) => folded(part(one) ?? '') === wanted);
  for (const part of PARTS) {
    const found = by(part);
    if (found.length > 0) return found;
  }
  return [];
}

const PARTS: readonly ((one: Named) => string | null | undefined)[] = [
  ({ handle }) => handle,
  ({ name }) => name,
  ({ id }) => id,
];

function folded(text: string): string {
  return bareHandle(text.trim()).toLowerCase();
}

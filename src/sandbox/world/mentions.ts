import { isUuid } from '../../base/ids.js';
import { invalid, refused } from './problem.js';
import { principalByHandle, principalById, type Mention, type Principal, type Room, type World } from './world.js';

/**
 * Whom a message names, checked against the room, in the order given.
 *
 * @param entries - `mentions` as posted
 * @throws {Problem} 422 with one of the mention codes
 */
export function resolveMentions(world: World, room: Room, senderId: string, entries: readonly unknown[]): Mention[] {
  const seen = new Set<string>();
  const mentions = entries.map((entry, index): Mention => {
    const pointer = `/message/mentions/${index}`;
    if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
      throw invalid(pointer, 'must be an object');
    const kind = kindOf(entry, pointer);
    const who = resolve(world, room, entry, pointer);
    if (who.id === senderId) throw refused('cannot_mention_self', pointer);
    if (seen.has(who.id)) throw refused('duplicate_mentions', pointer);
    seen.add(who.id);
    return { id: who.id, handle: who.handle, name: who.name, kind };
  });
  if (!mentions.some(({ kind }) => kind === 'mention')) {
    throw refused('mentions_required', '/message/mentions');
  }
  return mentions;
}

function kindOf(entry: object, pointer: string): Mention['kind'] {
  if (!('kind' in entry)) return 'mention';
  if (entry.kind === 'mention' || entry.kind === 'reference') return entry.kind;
  throw refused('invalid_mention_kind', `${pointer}/kind`);
}

function resolve(world: World, room: Room, entry: object, pointer: string): Principal {
  const id = 'id' in entry ? entry.id : null;
  if (id !== null && id !== undefined) {
    if (!isUuid(id)) throw invalid(`${pointer}/id`, 'is invalid');
    const who = principalById(world, id.toLowerCase());
    return inRoom(room, who, pointer);
  }
  const handle = 'handle' in entry ? entry.handle : null;
  if (handle !== null && handle !== undefined && typeof handle !== 'string') {
    throw invalid(`${pointer}/handle`, 'must be a string');
  }
  if (handle == null || handle.trim() === '') {
    throw refused('mention_missing_identifier', pointer);
  }
  const who = principalByHandle(world, handle);
  if (!who) throw refused('handle_not_found', `${pointer}/handle`);
  return inRoom(room, who, pointer);
}

function inRoom(room: Room, who: Principal | undefined, pointer: string): Principal {
  if (who && room.members.has(who.id)) return who;
  throw refused('mentioned_participant_not_in_room', pointer);
}

const WORD = /[\p{L}\p{N}\p{M}_]/u;
const CONTINUES_A_HANDLE = /[\p{L}\p{N}_\-/]/u;

/**
 * Message text as it is stored: every `@handle` and `@name` of a mention becomes `@[[id]]`, and whoever is mentioned
 * without standing in the text is put in front of it.
 */
export function normaliseContent(content: string, mentions: readonly Mention[]): string {
  const spellings = mentions
    .flatMap(({ id, handle, name }) => [handle, name].map((text) => ({ text, token: `@[[${id}]]` })))
    .filter(({ text }) => text !== '')
    .sort((a, b) => b.text.length - a.text.length);

  let out = '';
  let from = 0;
  for (let at = content.indexOf('@'); at !== -1; at = content.indexOf('@', at + 1)) {
    // Text that already is a token is left alone, with whatever its brackets hold.
    if (content.startsWith('[[', at + 1)) continue;
    if (at > 0 && WORD.test(characterBefore(content, at))) continue;
    const found = spellings.find(
      ({ text }) => content.startsWith(text, at + 1) && !continues(content, at + 1 + text.length),
    );
    if (!found) continue;
    out += content.slice(from, at) + found.token;
    from = at + 1 + found.text.length;
    at = from - 1;
  }
  out += content.slice(from);

  const missing = mentions.filter(({ id, kind }) => kind === 'mention' && !out.includes(`@[[${id}]]`));
  return missing.length === 0 ? out : `${missing.map(({ id }) => `@[[${id}]]`).join(' ')} ${out}`;
}

function continues(content: string, end: number): boolean {
  return end < content.length && CONTINUES_A_HANDLE.test(String.fromCodePoint(content.codePointAt(end) ?? 0));
}

function characterBefore(content: string, at: number): string {
  const unit = content.charCodeAt(at - 1);
  const isLowSurrogate = unit >= 0xdc00 && unit <= 0xdfff;
  return content.slice(at - (isLowSurrogate && at > 1 ? 2 : 1), at);
}

/** Tokens turned back into names, for a text that people read (a room's title). */
export function readableContent(content: string, mentions: readonly Mention[]): string {
  const names = new Map(mentions.map(({ id, name }) => [id, name]));
  return content.replace(/@\[\[([^\]]+)\]\]/g, (token, id: string) => {
    const name = names.get(id);
    return name === undefined ? token : `@${name}`;
  });
}

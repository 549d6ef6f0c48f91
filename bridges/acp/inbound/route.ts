import { hasVisibleText } from '../../../src/core/visible-text.js';
import type { FlatPrompt } from '../parse.js';
import { findPerson, isAgent, slugOf, spell, type Lookup, type Person } from '../roster.js';
import { parseCommand, type BuiltIn, type Command } from './commands.js';

/** Why a prompt was answered here instead of being posted. */
export type LocalReason = 'no_recipient' | 'peer_not_found' | 'peer_ambiguous' | 'invite_refused' | 'command';

export type Route =
  /** `text` is what the person said, without the command that chose the recipients. */
  | { readonly kind: 'post'; readonly recipients: readonly Person[]; readonly text: string }
  | { readonly kind: 'built-in'; readonly name: BuiltIn; readonly args: string }
  | { readonly kind: 'local'; readonly reason: LocalReason; readonly text: string };

export interface RouteInput {
  readonly prompt: FlatPrompt;
  readonly commands: ReadonlyMap<string, Command>;
  /** In the room, this agent left out. */
  readonly participants: readonly Person[];
  /** May be invited, this agent left out. */
  readonly roster: readonly Person[];
  /** `auto`, `all` or a handle. */
  readonly target: string;
  readonly modePeer: string | null;
  readonly peers: readonly string[];
  readonly fallback: 'all' | 'none';
}

/**
 * Decides whom a prompt is for; the first rule that applies: slash command, mention, target option, mode, configured
 * peers in the room, the only agent in the room, everyone in the room, the only agent of the roster.
 */
export function routePrompt(input: RouteInput): Route {
  const { prompt, participants } = input;
  const people = mergePeople(participants, input.roster);
  const post = (recipients: readonly Person[], text = prompt.text): Route => ({ kind: 'post', recipients, text });

  const command = prompt.text.startsWith('/') ? parseCommand(prompt.spoken[0] ?? '') : null;
  const chosen = command && input.commands.get(command.name);
  if (command && chosen?.kind === 'built-in') return { kind: 'built-in', name: chosen.name, args: command.body.trim() };
  if (command && chosen?.kind === 'peer') {
    const rest = prompt.text.slice((prompt.spoken[0] ?? '').length);
    const text = (command.body + rest).replace(/^\n/, '');
    if (!hasVisibleText(text)) {
      return local('command', `Usage: /${chosen.name} <message> — the message goes to ${describe(chosen.peer)}.`);
    }
    if (typeof chosen.peer !== 'string') return post([chosen.peer], text);
    return one(findPerson(people, chosen.peer), chosen.peer, (person) => post([person], text));
  }

  const mentioned = findMentions(prompt.spoken, people);
  if (mentioned.kind === 'ambiguous') return ambiguous(mentioned.token, mentioned.people);
  if (mentioned.people.length > 0) return post(mentioned.people);

  const agentsHere = participants.filter(isAgent);
  if (input.target === 'all') {
    if (agentsHere.length > 0) return post(agentsHere);
  } else if (input.target !== 'auto') {
    return one(findPerson(people, input.target), input.target, (person) => post([person]));
  }

  if (input.modePeer !== null) {
    return one(findPerson(people, input.modePeer), input.modePeer, (person) => post([person]));
  }

  const configured = input.peers.flatMap((named) => {
    const found = findPerson(participants, named);
    return found.kind === 'one' ? [found.person] : [];
  });
  if (configured.length > 0) return post([...new Set(configured)]);
  if (agentsHere.length === 1) return post(agentsHere);
  if (input.fallback === 'all') {
    if (agentsHere.length > 1) return post(agentsHere);
    const humans = participants.filter((person) => person.type === 'User');
    if (agentsHere.length === 0 && humans.length > 0) return post(humans);
  }

  const recruits = input.roster.filter(isAgent);
  const [only] = recruits;
  if (agentsHere.length === 0 && only && recruits.length === 1) return post([only]);
  const choices = mergePeople(agentsHere, recruits);
  return local(
    'no_recipient',
    choices.length === 0
      ? 'Nobody to send this to: there is no other agent in this room and none that this agent may invite.'
      : `Nobody was addressed. Write @ and a name in front, or use /invite. You can talk to:\n${listPeople(choices)}`,
  );
}

/** People of both lists, the first one's entry winning. */
export function mergePeople(first: readonly Person[], second: readonly Person[]): readonly Person[] {
  const merged = new Map(first.map((person) => [person.id, person]));
  for (const person of second) if (!merged.has(person.id)) merged.set(person.id, person);
  return [...merged.values()];
}

export function listPeople(people: readonly Person[]): string {
  return people
    .map((person) => `- @${spell(person)} — ${person.name}${person.description ? `: ${person.description}` : ''}`)
    .join('\n');
}

function one(found: Lookup, named: string, then: (person: Person) => Route): Route {
  switch (found.kind) {
    case 'one':
      return then(found.person);
    case 'many':
      return ambiguous(named, found.people);
    case 'none':
      return local('peer_not_found', `There is no peer "${named}" that this agent knows. /peers lists them.`);
  }
}

function ambiguous(token: string, people: readonly Person[]): Route {
  return local('peer_ambiguous', `"${token}" could be several peers; write the full handle:\n${listPeople(people)}`);
}

function local(reason: LocalReason, text: string): Route {
  return { kind: 'local', reason, text };
}

const describe = (peer: string | Person): string => (typeof peer === 'string' ? peer : `@${spell(peer)}`);

export type Mentions =
  | { readonly kind: 'people'; readonly people: readonly Person[] }
  | { readonly kind: 'ambiguous'; readonly token: string; readonly people: readonly Person[] };

/**
 * Who is addressed with `@` in what the person typed: by handle, slug or name, the longest match first. Code, links
 * and addresses are not speech; a word that names nobody stays text.
 */
export function findMentions(spoken: readonly string[], people: readonly Person[]): Mentions {
  const found = new Map<string, Person>();
  const spellings = people.flatMap((person) =>
    [person.handle, slugOf(person), person.name].flatMap((text) =>
      text ? [{ text: text.toLowerCase(), person }] : [],
    ),
  );
  for (const text of spoken) {
    const masked = maskCode(text);
    for (const at of masked.matchAll(/(?<![\p{L}\p{N}_@/.-])@/gu)) {
      const rest = masked.slice(at.index + 1).toLowerCase();
      const hits = spellings.filter(
        (spelling) => rest.startsWith(spelling.text) && !/^[\p{L}\p{N}_/-]/u.test(rest.slice(spelling.text.length)),
      );
      const longest = Math.max(0, ...hits.map((hit) => hit.text.length));
      if (longest === 0) continue;
      const lookup = findPerson(people, rest.slice(0, longest));
      if (lookup.kind === 'many') {
        return { kind: 'ambiguous', token: text.slice(at.index, at.index + 1 + longest), people: lookup.people };
      }
      if (lookup.kind === 'one') found.set(lookup.person.id, lookup.person);
    }
  }
  return { kind: 'people', people: [...found.values()] };
}

/** Blanks out code and links, keeping every other character at its place. */
function maskCode(text: string): string {
  const blank = (part: string) => ' '.repeat(part.length);
  return text
    .replace(/^(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^\1[`~]*[ \t]*$|$(?![\s\S]))/gm, blank)
    .replace(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, blank)
    .replace(/\[[^\]\n]*\]\([^)\n]*\)/g, blank)
    .replace(/<[a-z][a-z0-9+.-]*:[^>\s]*>/gi, blank)
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, blank);
}

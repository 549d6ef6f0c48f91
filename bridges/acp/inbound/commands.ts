import type { AvailableCommand } from '@agentclientprotocol/sdk';
import { oneLine } from '../parse.js';
import { isAgent, slugOf, spell, type Person } from '../roster.js';

export type BuiltIn = 'peers' | 'invite' | 'room' | 'help';

const BUILT_INS: readonly (AvailableCommand & { readonly name: BuiltIn })[] = [
  { name: 'peers', description: 'List the Band peers you can talk to' },
  { name: 'invite', description: 'Add a peer to this room', input: { hint: 'peer handle' } },
  { name: 'room', description: 'Show the Band room behind this thread' },
  { name: 'help', description: 'How messages are routed' },
];

const MAX_ROSTER_COMMANDS = 50;
const MAX_DESCRIPTION_CHARS = 120;

export type Command =
  | { readonly kind: 'built-in'; readonly name: BuiltIn }
  /** `peer` is a name to look up; a roster command carries the person itself. */
  | { readonly kind: 'peer'; readonly name: string; readonly peer: string | Person };

/** The commands of a session by lower-case name: built-in ones win over configured ones, those over the roster's. */
export function commandTable(
  configured: Readonly<Record<string, string>>,
  roster: readonly Person[] | null,
): ReadonlyMap<string, Command> {
  const table = new Map<string, Command>(BUILT_INS.map(({ name }) => [name, { kind: 'built-in', name }]));
  const add = (name: string, peer: string | Person) => {
    const key = name.toLowerCase();
    if (table.has(key)) return false;
    table.set(key, { kind: 'peer', name, peer });
    return true;
  };
  for (const [name, peer] of Object.entries(configured)) add(name, peer);
  const agents = (roster ?? []).filter(isAgent);
  const slugs = new Map<string, number>();
  for (const agent of agents) {
    const slug = slugOf(agent)?.toLowerCase();
    if (slug !== undefined) slugs.set(slug, (slugs.get(slug) ?? 0) + 1);
  }
  let offered = 0;
  for (const agent of agents) {
    const slug = slugOf(agent);
    if (slug === null || agent.handle === null || offered >= MAX_ROSTER_COMMANDS) continue;
    const long = agent.handle.replaceAll('/', '-');
    const alone = slugs.get(slug.toLowerCase()) === 1;
    if ((alone && add(slug, agent)) || add(long, agent)) offered += 1;
  }
  return table;
}

/** What an editor shows behind `/`. */
export function availableCommands(table: ReadonlyMap<string, Command>, people: readonly Person[]): AvailableCommand[] {
  const commands: AvailableCommand[] = [...BUILT_INS];
  for (const command of table.values()) {
    if (command.kind === 'built-in') continue;
    const { peer } = command;
    const person =
      typeof peer === 'string' ? people.find((one) => one.handle?.toLowerCase() === peer.toLowerCase()) : peer;
    const name = person?.name ?? (typeof peer === 'string' ? peer : spell(peer));
    const about = person?.description ? `Ask ${name}: ${oneLine(person.description)}` : `Ask ${name}`;
    commands.push({ name: command.name, description: cut(about), input: { hint: 'message' } });
  }
  return commands;
}

function cut(text: string): string {
  const chars = Array.from(text);
  return chars.length <= MAX_DESCRIPTION_CHARS ? text : `${chars.slice(0, MAX_DESCRIPTION_CHARS - 1).join('')}…`;
}

/** `/name rest` at the very start of a prompt; the rest is kept as typed. */
export function parseCommand(text: string): { readonly name: string; readonly body: string } | null {
  const found = /^\/([A-Za-z0-9][A-Za-z0-9_-]*)(?:[ \t]|(?=\r?\n)|$)/.exec(text);
  if (!found?.[1]) return null;
  return { name: found[1].toLowerCase(), body: text.slice(found[0].length).replace(/^\r?\n/, '') };
}

import type { BandRest } from '../../src/platform/rest/band-rest.js';
import type { ChatParticipant, Peer } from '../../src/platform/wire/objects.js';
import type { Clock } from '../../src/base/clock.js';

/** Somebody a prompt may be for. Ids are lower case, handles carry no `@`. */
export interface Person {
  readonly id: string;
  readonly name: string;
  readonly handle: string | null;
  readonly type: string;
  readonly description: string | null;
}

export function toPerson(wire: ChatParticipant | Peer): Person {
  return {
    id: wire.id.toLowerCase(),
    name: wire.name ?? wire.handle ?? wire.id,
    handle: wire.handle?.replace(/^@/, '') ?? null,
    type: wire.type,
    description: wire.description ?? null,
  };
}

export const isAgent = (person: Person): boolean => person.type === 'Agent';

/** The last part of a handle: `ana/codex` → `codex`. */
export function slugOf(person: Person): string | null {
  return person.handle?.split('/').at(-1) ?? null;
}

/** How a person is spelled in text: the handle, else the name. */
export const spell = (person: Person): string => person.handle ?? person.name;

export type Lookup =
  | { readonly kind: 'one'; readonly person: Person }
  | { readonly kind: 'many'; readonly people: readonly Person[] }
  | { readonly kind: 'none' };

/** Finds people by handle, then slug, then name, then id; case does not matter and a leading `@` is dropped. */
export function findPerson(people: readonly Person[], named: string): Lookup {
  const wanted = named.trim().replace(/^@/, '').toLowerCase();
  const ways: ((person: Person) => string | null)[] = [
    (person) => person.handle,
    slugOf,
    (person) => person.name,
    (person) => person.id,
  ];
  for (const way of ways) {
    const found = people.filter((person) => way(person)?.toLowerCase() === wanted);
    const [first] = found;
    if (first && found.length === 1) return { kind: 'one', person: first };
    if (found.length > 1) return { kind: 'many', people: found };
  }
  return { kind: 'none' };
}

const FRESH_MS = 60_000;
const PAGE_SIZE = 100;
const MAX_PAGES = 20;

/** Whom the agent may recruit, asked of Band at most once a minute. */
export interface Roster {
  /** All peers; the last known ones when Band cannot be asked now. */
  list(rest: BandRest, signal?: AbortSignal): Promise<readonly Person[]>;
  /** What is known without asking. */
  readonly known: readonly Person[];
}

export function createRoster(clock: Clock): Roster {
  let people: readonly Person[] = [];
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<readonly Person[]> | null = null;

  const ask = async (rest: BandRest, signal?: AbortSignal): Promise<readonly Person[]> => {
    const found: Person[] = [];
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const { data, totalPages } = await rest.listPeers({ page, pageSize: PAGE_SIZE, signal });
      found.push(...data.map(toPerson));
      if (page >= totalPages || data.length === 0) break;
    }
    people = found;
    askedAt = clock.now();
    return found;
  };
  return {
    get known() {
      return people;
    },
    async list(rest, signal) {
      if (clock.now() - askedAt < FRESH_MS) return people;
      asking ??= ask(rest, signal).finally(() => {
        asking = null;
      });
      try {
        return await asking;
      } catch (error) {
        if (askedAt === Number.NEGATIVE_INFINITY) throw error;
        return people;
      }
    },
  };
}

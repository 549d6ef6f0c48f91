import type { Clock } from '../../../src/base/clock.js';
import type { BandAccess, BandGate } from '../band.js';
import { mergePeople } from '../inbound/route.js';
import { spell, toPerson, type Person, type Roster } from '../roster.js';

const FRESH_MS = 60_000;

/** Who is in a session's room, as last read, and who else may be asked. This agent itself is left out. */
export class RoomPeople {
  readonly #deps: { readonly clock: Clock; readonly gate: BandGate; readonly roster: Roster };
  readonly #roomId: string;
  #here: Person[] = [];
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(deps: { readonly clock: Clock; readonly gate: BandGate; readonly roster: Roster }, roomId: string) {
    this.#deps = deps;
    this.#roomId = roomId;
  }

  get here(): readonly Person[] {
    return this.#here;
  }

  /** Everybody a prompt may be for, by handle. */
  get reachable(): readonly Person[] {
    const people = mergePeople(this.#here, this.#deps.roster.known);
    return [...people].sort((a, b) => spell(a).localeCompare(spell(b)));
  }

  handleOf(id: string): string | null {
    const isMeant = (one: Person) => one.id === id;
    const person = this.#here.find(isMeant) ?? this.#deps.roster.known.find(isMeant);
    if (person) return spell(person);
    const self = this.#deps.gate.access?.self;
    return self?.id === id ? spell(self) : null;
  }

  has(id: string): boolean {
    return this.#here.some((one) => one.id === id);
  }

  /** @param fresh - asks Band even when the last answer is young */
  async read({ rest, self }: BandAccess, signal: AbortSignal | null, fresh = false): Promise<readonly Person[]> {
    if (fresh || this.#deps.clock.now() - this.#readAt > FRESH_MS) {
      const listed = await rest.listParticipants(this.#roomId, { signal: signal ?? undefined });
      // The list tells less of a peer than the roster does.
      const described = new Map(this.#deps.roster.known.map((person) => [person.id, person]));
      this.#here = listed
        .map(toPerson)
        .filter(({ id }) => id !== self.id)
        .map((person) => ({
          ...person,
          description: person.description ?? described.get(person.id)?.description ?? null,
        }));
      this.#readAt = this.#deps.clock.now();
    }
    return this.#here;
  }

  /** What is known may be old: the next reader asks Band. */
  doubt(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  joined(person: Person): void {
    if (this.has(person.id)) return;
    this.#here = [...this.#here, this.#deps.roster.known.find(({ id }) => id === person.id) ?? person];
  }

  left(id: string): void {
    this.#here = this.#here.filter((one) => one.id !== id);
  }
}

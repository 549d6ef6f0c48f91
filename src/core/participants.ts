/** Someone in a room, this agent included. */
export interface Participant {
  readonly id: string;
  readonly name: string | null;
  /** `User` or `Agent`. */
  readonly type: string | null;
  /** Without a leading `@`. */
  readonly handle: string | null;
  readonly description: string | null;
}

/** What one source knows about a participant; missing and empty fields say nothing. */
export interface ParticipantNews {
  readonly id: string;
  readonly name?: string | null | undefined;
  readonly type?: string | null | undefined;
  readonly handle?: string | null | undefined;
  readonly description?: string | null | undefined;
}

/**
 * Who is in one room, by id. Sources know different parts of a participant, so a field that a source lacks never
 * erases a known one; who belongs to the room is decided by the REST list.
 */
export class Roster {
  readonly #byId = new Map<string, Participant>();
  #revision = 0;

  /** Grows with every difference in membership or in a field. */
  get revision(): number {
    return this.#revision;
  }

  /** In the order they came. */
  list(): readonly Participant[] {
    return [...this.#byId.values()];
  }

  get(id: string): Participant | undefined {
    return this.#byId.get(id);
  }

  /** Somebody came, or more is known about them. */
  merge(news: ParticipantNews): Participant {
    const known = this.#byId.get(news.id);
    const merged: Participant = Object.freeze({
      id: news.id,
      name: filled(news.name, known?.name),
      type: filled(news.type, known?.type),
      handle: filled(bareHandle(news.handle), known?.handle),
      description: filled(news.description, known?.description),
    });
    if (known && FIELDS.every((field) => known[field] === merged[field])) return known;
    this.#byId.set(merged.id, merged);
    this.#revision += 1;
    return merged;
  }

  /** Somebody left. @returns false when the id is not known */
  remove(id: string): boolean {
    const removed = this.#byId.delete(id);
    if (removed) this.#revision += 1;
    return removed;
  }

  /** The REST list: exactly these are in the room. */
  replace(everyone: readonly ParticipantNews[]): void {
    const present = new Set(everyone.map(({ id }) => id));
    for (const id of [...this.#byId.keys()]) if (!present.has(id)) this.remove(id);
    for (const news of everyone) this.merge(news);
  }
}

/** The first that says something. */
function filled(news: string | null | undefined, known: string | null | undefined): string | null {
  return [news, known].find((text) => text) ?? null;
}

const FIELDS = ['name', 'type', 'handle', 'description'] as const;

/** A handle without its leading `@`, whichever way the source spells it. */
export function bareHandle(handle: string | null | undefined): string {
  return (handle ?? '').replace(/^@+/, '');
}

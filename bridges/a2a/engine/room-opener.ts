import { KeyedLock } from '../../../src/base/keyed-lock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { ChatRoom } from '../../../src/platform/wire/objects.js';
import type { BandCalls } from '../band.js';
import type { Context } from './contexts.js';

export interface RoomOpenerDeps {
  readonly rest: Pick<BandCalls, 'createChat' | 'listChats' | 'getContext' | 'listParticipants'>;
  readonly contexts: {
    bindRoom(context: Context, roomId: string): Promise<void>;
    /** Whether a room is a context's. */
    knowsRoom(roomId: string): Promise<boolean>;
  };
  readonly selfId: string;
  /** Template of the titles of new rooms; undefined for none. */
  readonly roomTitle: string | undefined;
}

const PAGE_SIZE = 100;
const MAX_PAGES = 10;
/** What the platform's clock and ours may be apart. */
const SKEW_MS = 60_000;
const EVERY_LOOK = 'look';

/**
 * Opens the rooms of contexts. The platform counts an agent's rooms and no call deletes one, so a room whose making was
 * not answered is looked for before another is made.
 */
export class RoomOpener {
  readonly #deps: RoomOpenerDeps;
  readonly #opening = new Set<Promise<void>>();
  readonly #looks = new KeyedLock();

  constructor(deps: RoomOpenerDeps) {
    this.#deps = deps;
  }

  /** Makes a room and binds the context to it. @param peer - a name for the title */
  async open(context: Context, peer: string, signal: AbortSignal): Promise<void> {
    const opening = this.#open(context, peer, signal);
    this.#opening.add(opening);
    try {
      await opening;
    } finally {
      this.#opening.delete(opening);
    }
  }

  /**
   * Binds the context to a room that a call without an answer left behind: made since then, empty, nobody's, and with
   * nobody but this agent in it.
   *
   * @param since - when the first call was made
   * @returns false when there is none
   */
  takeLost(context: Context, since: number, signal: AbortSignal): Promise<boolean> {
    const { contexts } = this.#deps;
    return this.#looks.hold(
      EVERY_LOOK,
      async () => {
        for await (const { id } of this.#roomsSince(since - SKEW_MS, signal)) {
          if ((await contexts.knowsRoom(id)) || !(await this.#isUnused(id, signal))) continue;
          // It may be what a call of this process is about to be told of.
          await Promise.allSettled([...this.#opening]);
          signal.throwIfAborted();
          if (await contexts.knowsRoom(id)) continue;
          await contexts.bindRoom(context, id);
          return true;
        }
        return false;
      },
      signal,
    );
  }

  async #open(context: Context, peer: string, signal: AbortSignal): Promise<void> {
    const { rest, contexts, roomTitle } = this.#deps;
    const title = titleOf(roomTitle, peer, context.record.contextId);
    const room = await rest.createChat(title === '' ? {} : { title }, { signal });
    await contexts.bindRoom(context, room.id);
  }

  async *#roomsSince(since: number, signal: AbortSignal): AsyncGenerator<ChatRoom, void, undefined> {
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const rooms = await this.#deps.rest.listChats({ page, pageSize: PAGE_SIZE, signal });
      for (const room of rooms.data) {
        if (Date.parse(room.inserted_at ?? '') >= since) yield room;
      }
      if (page >= rooms.totalPages || rooms.data.length === 0) return;
    }
  }

  async #isUnused(roomId: string, signal: AbortSignal): Promise<boolean> {
    const { rest, selfId } = this.#deps;
    try {
      const { data } = await rest.getContext(roomId, { limit: 1, signal });
      if (data.length > 0) return false;
      const participants = await rest.listParticipants(roomId, { signal });
      return participants.length === 1 && participants[0]?.id === selfId;
    } catch (error) {
      if (isGatewayError(error, 'BAND_NOT_FOUND')) return false; // gone since it was listed
      throw error;
    }
  }
}

const MAX_TITLE_CHARS = 120;

/** A room's title by its template; empty for none. Nothing in it breaks a line, whatever names hold. */
function titleOf(template: string | undefined, peer: string, contextId: string): string {
  const names: Readonly<Record<string, string>> = { peer, context: contextId };
  const text = (template ?? '').replace(/\{(peer|context)\}/g, (_, name: string) => names[name] ?? '');
  const oneLine = text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim();
  return Array.from(oneLine).slice(0, MAX_TITLE_CHARS).join('').trim();
}

import { abortable, deferred } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError } from '../../../src/base/errors.js';
import { backoffMs } from '../../../src/base/backoff.js';
import type { Logger } from '../../../src/base/log.js';
import { readJson } from '../../../src/store/json.js';
import type { StateStore } from '../../../src/store/port.js';
import type { BandCalls } from '../band.js';
import { foundBindingSchema, ownerTag, type FoundBinding, type RecordKeys } from './records.js';

export interface BindingsDeps {
  readonly store: StateStore;
  readonly keys: RecordKeys;
  readonly rest: Pick<BandCalls, 'listChats' | 'getContext'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly selfId: string;
  /** Longest wait of a request for the end of the search. */
  readonly deadlineMs: number;
  /** Rooms that the Python reference bound name no owner; they count only where there is a single principal. */
  readonly isSinglePrincipal: () => boolean;
}

/** Stands for the missing owner in rooms of the reference. */
const NO_OWNER = '-';
const ROOM_PAGE = 100;
const RETRY = { baseMs: 1_000, maxMs: 60_000 } as const;

/**
 * Contexts that only the rooms remember. A store that was never filled has the agent's rooms searched once, in the
 * background; a request for a context that is not known waits for the end of the search, so that no second room is made.
 */
export class Bindings {
  readonly #deps: BindingsDeps;
  readonly #over = deferred();
  #done = false;

  constructor(deps: BindingsDeps) {
    this.#deps = deps;
  }

  /** Searches the rooms, if that was not done in this store's life; again and again until it succeeds. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, keys, clock, log } = this.#deps;
    const stopped = (): boolean => signal.aborted;
    for (let failures = 1; !stopped(); failures += 1) {
      try {
        if ((await store.get(keys.scanned)) === null) {
          const found = await this.#searchRooms(signal);
          await store.batch([{ kind: 'put', key: keys.scanned, value: JSON.stringify(clock.now()) }]);
          if (found > 0) log.info({ bindings: found }, 'contexts were rebuilt from rooms');
        }
        this.#done = true;
        this.#over.resolve();
        return;
      } catch (error) {
        if (stopped()) return;
        log.warn({ err: error }, 'the rooms could not be searched for bindings; it is tried again');
        await clock.sleep(backoffMs(failures, RETRY), signal).catch(() => undefined);
      }
    }
  }

  /**
   * The room that a context was bound to in an earlier life of the store, or null.
   *
   * @throws {GatewayError} `A2A_NOT_READY` when the search is not over within the deadline
   */
  async find(owner: string, contextId: string): Promise<FoundBinding | null> {
    if (!this.#done) await this.#wait();
    const { store, keys, isSinglePrincipal } = this.#deps;
    for (const tag of isSinglePrincipal() ? [ownerTag(owner), NO_OWNER] : [ownerTag(owner)]) {
      const stored = await store.get(keys.found(tag, contextId));
      if (stored) return readJson(stored.value, foundBindingSchema);
    }
    return null;
  }

  async #wait(): Promise<void> {
    const { clock, deadlineMs } = this.#deps;
    const late = new AbortController();
    const cancel = clock.after(deadlineMs, () => {
      late.abort(new GatewayError('A2A_NOT_READY', { retryAfterMs: 5_000 }));
    });
    try {
      await abortable(this.#over.promise, late.signal);
    } finally {
      cancel();
    }
  }

  async #searchRooms(signal: AbortSignal): Promise<number> {
    let found = 0;
    for (let page = 1; ; page += 1) {
      const rooms = await this.#deps.rest.listChats({ page, pageSize: ROOM_PAGE, signal });
      for (const room of rooms.data) found += await this.#searchRoom(room.id, signal);
      if (page >= rooms.totalPages || rooms.data.length === 0) return found;
    }
  }

  async #searchRoom(roomId: string, signal: AbortSignal): Promise<number> {
    const { rest, selfId, store, keys } = this.#deps;
    const bindings = new Map<string, FoundBinding>();
    for (let cursor: string | undefined; ;) {
      const page = await rest.getContext(roomId, { limit: ROOM_PAGE, signal, ...(cursor !== undefined && { cursor }) });
      for (const row of page.data) {
        const metadata = row.metadata ?? {};
        const contextId = metadata['gateway_context_id'];
        // Only what this agent wrote itself counts, and only in the room that it names.
        if (row.sender_id !== selfId || row.message_type !== 'task' || typeof contextId !== 'string') continue;
        if ((metadata['gateway_room_id'] ?? roomId) !== roomId) continue;
        const owner = metadata['gateway_owner'];
        const peer = metadata['gateway_peer_id'];
        const key = keys.found(typeof owner === 'string' ? owner : NO_OWNER, contextId);
        const peers = new Set(bindings.get(key)?.peers);
        if (typeof peer === 'string') peers.add(peer);
        bindings.set(key, { roomId, peers: [...peers] });
      }
      if (!page.hasMore || page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    if (bindings.size > 0) {
      await store.batch(
        [...bindings].map(([key, value]) => ({ kind: 'put', key, value: JSON.stringify(value) }) as const),
      );
    }
    return bindings.size;
  }
}

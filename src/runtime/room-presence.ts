import { backoffMs } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { isGatewayError } from '../base/errors.js';
import { Lanes } from '../base/lane.js';
import type { Logger } from '../base/log.js';
import type { CleanupReason } from '../core/framework-adapter.js';
import type { BandLink } from '../platform/link-port.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import { topics } from '../platform/topics.js';
import type { Deadlines, Timed } from './deadlines.js';
import { Gate } from './gate.js';
import { listRooms } from './list-rooms.js';

/** Rooms that are joined at the same time. */
const MAX_JOINING = 10;
const RETRY = { baseMs: 1_000, maxMs: 60_000 };

/** Who is told that a room came or went. */
export interface PresenceHooks {
  /** The end of an earlier session of the room; a new one does not begin before it. Rejects when it cannot be ended. */
  previousEnded(roomId: string): Promise<void>;
  /** Both channels are joined. */
  joined(roomId: string): void;
  /** The room was joined all the time, but one of its channels was not. */
  rejoined(roomId: string): void;
  /** The session ends now. */
  left(roomId: string, reason: CleanupReason): void;
}

export interface RoomPresenceDeps {
  readonly agentId: string;
  readonly link: Pick<BandLink, 'join' | 'leave'>;
  readonly rest: Pick<BandRest, 'listChats' | 'getChat'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly deadlines: Deadlines;
  readonly hooks: PresenceHooks;
}

interface RoomEntry {
  state: 'joining' | 'joined' | 'retrying';
  /** The room's session has begun. */
  live: boolean;
  retry: JoinRetry | null;
}

/**
 * Which rooms the agent is in, and their two channels: `absent → joining → joined → absent`, with `retrying` where a
 * join failed. What concerns one room happens in order, and no room waits for another.
 */
export class RoomPresence {
  readonly #deps: RoomPresenceDeps;
  readonly #rooms = new Map<string, RoomEntry>();
  readonly #perRoom = new Lanes({ maxWaitingPerLane: 1_000 });
  readonly #joining = new Gate(MAX_JOINING);
  readonly #closing = new AbortController();
  #listingTries = 0;
  #listing: Promise<void> | null = null;
  readonly #relist: Timed;

  constructor(deps: RoomPresenceDeps) {
    this.#deps = deps;
    this.#relist = {
      dueAt: 0,
      slot: -1,
      onDue: () => {
        void this.synchronise();
      },
    };
  }

  /** Rooms that are known, joined or not yet. */
  get size(): number {
    return this.#rooms.size;
  }

  isJoined(roomId: string): boolean {
    return this.#rooms.get(roomId)?.state === 'joined';
  }

  /**
   * Compares with the platform's listing: rooms that are gone are left, new ones joined. Calls share one run. A
   * listing that fails keeps every room, is logged, and is repeated in the background. Never rejects.
   *
   * @returns once every new room was joined or put off
   */
  synchronise(): Promise<void> {
    this.#listing ??= this.#synchronise().finally(() => {
      this.#listing = null;
    });
    return this.#listing;
  }

  /** The agent is in this room. Joining twice is joining once. */
  async add(roomId: string): Promise<void> {
    if (this.#closing.signal.aborted || this.#rooms.has(roomId)) return;
    const entry: RoomEntry = { state: 'joining', live: false, retry: null };
    this.#rooms.set(roomId, entry);
    await this.#enter(roomId, entry);
  }

  /** The agent is no longer in this room. */
  remove(roomId: string, reason: CleanupReason): void {
    const entry = this.#rooms.get(roomId);
    if (!entry) {
      this.#deps.log.debug({ roomId, reason }, 'a room that is not known was left');
      return;
    }
    this.#rooms.delete(roomId);
    if (entry.retry) this.#deps.deadlines.clear(entry.retry);
    if (entry.live) this.#deps.hooks.left(roomId, reason);
    this.#inTurn(roomId, () => this.#leaveChannels(roomId));
  }

  /** A joined channel of the room is no longer joined, and the link has given it up. */
  channelLost(roomId: string): void {
    const entry = this.#rooms.get(roomId);
    if (entry?.state === 'joined') this.#putOff(roomId, entry, 1);
  }

  /** The platform answered that it does not know the room: it is left, unless that was a mistake. */
  async doubt(roomId: string): Promise<void> {
    const entry = this.#rooms.get(roomId);
    if (entry) await this.#leaveIfGone(roomId, entry);
  }

  /** Joins nothing more. The channels end with the link. */
  close(): void {
    this.#closing.abort();
    this.#deps.deadlines.clear(this.#relist);
    for (const entry of this.#rooms.values()) if (entry.retry) this.#deps.deadlines.clear(entry.retry);
    this.#rooms.clear();
  }

  async #synchronise(): Promise<void> {
    const { rest, deadlines, clock, random, log } = this.#deps;
    const before = new Map(this.#rooms);
    try {
      const { ids, complete } = await listRooms(rest, this.#closing.signal);
      this.#listingTries = 0;
      const gone = complete ? [...before].filter(([roomId]) => !ids.has(roomId)) : [];
      if (!complete) log.warn({ rooms: ids.size }, 'the agent is in more rooms than are read');
      await Promise.all([
        ...[...ids].map((roomId) => this.add(roomId)),
        ...gone.map(([roomId, entry]) => this.#leaveIfGone(roomId, entry)),
      ]);
    } catch (error) {
      if (this.#closed()) return;
      this.#listingTries += 1;
      const waitMs = backoffMs(this.#listingTries, { ...RETRY, random });
      log.warn({ err: error, waitMs }, 'the rooms of the agent could not be listed; tried again later');
      deadlines.set(this.#relist, clock.now() + waitMs);
    }
  }

  /** A room can slip between two pages of a listing, so its absence is looked at once more. */
  async #leaveIfGone(roomId: string, entry: RoomEntry): Promise<void> {
    if (this.#rooms.get(roomId) !== entry) return;
    if ((await this.#isGone(roomId)) && this.#rooms.get(roomId) === entry) this.remove(roomId, 'room_removed');
  }

  async #isGone(roomId: string): Promise<boolean> {
    try {
      await this.#deps.rest.getChat(roomId, { signal: this.#closing.signal });
      return false;
    } catch (error) {
      return isGatewayError(error, 'BAND_NOT_FOUND');
    }
  }

  async #enter(roomId: string, entry: RoomEntry): Promise<void> {
    await this.#perRoom.run(roomId, () => this.#joining.pass(() => this.#join(roomId, entry)));
  }

  /** After everything that concerns the room already, with nobody waiting for it. */
  #inTurn(roomId: string, step: () => Promise<void>): void {
    this.#perRoom.run(roomId, step).catch((error: unknown) => {
      this.#deps.log.error({ err: error, roomId }, 'a room comes and goes faster than it can be followed');
    });
  }

  /** Never rejects: a room that cannot be joined is put off, and the others do not notice. */
  async #join(roomId: string, entry: RoomEntry): Promise<void> {
    const { link, hooks, log } = this.#deps;
    const { signal } = this.#closing;
    const tries = entry.retry?.tries ?? 0;
    if (!this.#isCurrent(roomId, entry)) return;
    entry.state = 'joining';
    try {
      if (!entry.live) await hooks.previousEnded(roomId);
      await link.join(topics.chatRoom(roomId), signal);
      await link.join(topics.participants(roomId), signal);
    } catch (error) {
      if (this.#closed()) return;
      await this.#leaveChannels(roomId);
      const gone = isGatewayError(error, 'BAND_JOIN_REFUSED') && (await this.#isGone(roomId));
      if (!this.#isCurrent(roomId, entry)) return;
      if (gone) {
        log.info({ roomId }, 'a room is gone and was forgotten');
        this.remove(roomId, 'room_removed');
        return;
      }
      log.warn({ err: error, roomId, tries: tries + 1 }, 'a room could not be joined; tried again later');
      this.#putOff(roomId, entry, tries + 1);
      return;
    }
    // Removed meanwhile: whoever removed it leaves the channels next.
    if (!this.#isCurrent(roomId, entry)) return;
    entry.state = 'joined';
    entry.retry = null;
    if (entry.live) {
      hooks.rejoined(roomId);
    } else {
      entry.live = true;
      hooks.joined(roomId);
    }
  }

  #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Nobody removed the room, or removed and added it, since `entry` was made. */
  #isCurrent(roomId: string, entry: RoomEntry): boolean {
    return !this.#closed() && this.#rooms.get(roomId) === entry;
  }

  #putOff(roomId: string, entry: RoomEntry, tries: number): void {
    const { deadlines, clock, random } = this.#deps;
    entry.state = 'retrying';
    entry.retry ??= new JoinRetry(() => {
      this.#inTurn(roomId, () => this.#joining.pass(() => this.#join(roomId, entry)));
    });
    entry.retry.tries = tries;
    deadlines.set(entry.retry, clock.now() + backoffMs(tries, { ...RETRY, random }));
  }

  async #leaveChannels(roomId: string): Promise<void> {
    const { link } = this.#deps;
    await Promise.all([link.leave(topics.chatRoom(roomId)), link.leave(topics.participants(roomId))]);
  }
}

/** The next try of a room that could not be joined. */
class JoinRetry implements Timed {
  dueAt = 0;
  slot = -1;
  tries = 0;
  readonly onDue: () => void;

  constructor(onDue: () => void) {
    this.onDue = onDue;
  }
}

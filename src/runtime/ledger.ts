/** Completed messages remembered per room. */
const MAX_COMPLETED_PER_ROOM = 500;
/** Completed messages remembered in all rooms together; the rooms that were quiet longest give theirs up first. */
const MAX_COMPLETED = 100_000;

interface RoomLedger {
  inFlight: Set<string>;
  /** Message id to failed acknowledgement retries. */
  ackPending: Map<string, number>;
  /** In order of completion, oldest first. */
  completed: Set<string>;
  /** Those of them that the platform was never heard to know; null while there are none. */
  unconfirmed: Set<string> | null;
  /** Message id to the text of a final `failed` mark that could not be made yet; null while there is none. */
  failPending: Map<string, string> | null;
}

/**
 * What is known about each message of each room: being worked on, done but not yet acknowledged, acknowledged. One
 * ledger serves all rooms of an Agent and outlives a room's execution, so a room that is left and joined again
 * repeats the acknowledgement and not the work. Every operation is O(1); rooms without entries cost nothing.
 */
export class Ledger {
  /** The room that completed something last comes last. */
  readonly #rooms = new Map<string, RoomLedger>();
  #completed = 0;
  readonly #maxAckRetries: number;

  /** @param maxAckRetries - failed acknowledgement retries after which a message counts as completed */
  constructor(maxAckRetries: number) {
    this.#maxAckRetries = maxAckRetries;
  }

  /** Takes the message for this process. @returns false when it is already being worked on */
  claim(roomId: string, messageId: string): boolean {
    const room = this.#open(roomId);
    if (room.inFlight.has(messageId)) return false;
    room.inFlight.add(messageId);
    return true;
  }

  release(roomId: string, messageId: string): void {
    const room = this.#rooms.get(roomId);
    if (!room) return;
    room.inFlight.delete(messageId);
    this.#dropIfEmpty(roomId, room);
  }

  /** Records that the work is done, before the platform is told: a crash of the call cannot repeat the work (W-21). */
  intendAck(roomId: string, messageId: string): void {
    const room = this.#open(roomId);
    if (!room.ackPending.has(messageId)) room.ackPending.set(messageId, 0);
  }

  isAckPending(roomId: string, messageId: string): boolean {
    return this.#rooms.get(roomId)?.ackPending.has(messageId) ?? false;
  }

  /** Ids whose acknowledgement is outstanding, oldest first, as a copy. */
  ackPendingOf(roomId: string): readonly string[] {
    const pending = this.#rooms.get(roomId)?.ackPending;
    return pending && pending.size > 0 ? [...pending.keys()] : [];
  }

  /** Counts a failed retry. @returns `given_up` when the message counts as completed from now on */
  ackRetryFailed(roomId: string, messageId: string): 'pending' | 'given_up' {
    const room = this.#rooms.get(roomId);
    const failed = room?.ackPending.get(messageId);
    if (!room || failed === undefined) return 'given_up';
    if (failed + 1 >= this.#maxAckRetries) {
      this.complete(roomId, messageId);
      room.unconfirmed ??= new Set();
      room.unconfirmed.add(messageId);
      return 'given_up';
    }
    room.ackPending.set(messageId, failed + 1);
    return 'pending';
  }

  /** The platform knows that the message is done. */
  complete(roomId: string, messageId: string): void {
    const room = this.#open(roomId);
    this.#rooms.delete(roomId);
    this.#rooms.set(roomId, room);
    room.ackPending.delete(messageId);
    confirm(room, messageId);
    if (!room.completed.delete(messageId)) this.#completed += 1;
    room.completed.add(messageId);
    if (room.completed.size > MAX_COMPLETED_PER_ROOM) {
      const [oldest] = room.completed;
      if (oldest !== undefined && room.completed.delete(oldest)) this.#completed -= 1;
      if (oldest !== undefined) confirm(room, oldest);
    }
    if (this.#completed > MAX_COMPLETED) this.#forgetQuietest();
  }

  isCompleted(roomId: string, messageId: string): boolean {
    return this.#rooms.get(roomId)?.completed.has(messageId) ?? false;
  }

  /** A message failed for good, and the platform could not be told yet. */
  intendFail(roomId: string, messageId: string, text: string): void {
    const room = this.#open(roomId);
    room.failPending ??= new Map();
    room.failPending.set(messageId, text);
  }

  /** Outstanding `failed` marks with their texts, as a copy. */
  failPendingOf(roomId: string): readonly (readonly [string, string])[] {
    return [...(this.#rooms.get(roomId)?.failPending ?? [])];
  }

  failMarked(roomId: string, messageId: string): void {
    const room = this.#rooms.get(roomId);
    if (!room?.failPending?.delete(messageId)) return;
    if (room.failPending.size === 0) room.failPending = null;
    this.#dropIfEmpty(roomId, room);
  }

  /** The room was left: what the platform does not know to be done stays, also where nobody tells it any more. */
  forgetCompleted(roomId: string): void {
    const room = this.#rooms.get(roomId);
    if (!room) return;
    const kept = [...room.completed].filter((messageId) => room.unconfirmed?.has(messageId));
    this.#completed += kept.length - room.completed.size;
    room.completed = new Set(kept);
    this.#dropIfEmpty(roomId, room);
  }

  #forgetQuietest(): void {
    for (const [roomId, room] of this.#rooms) {
      if (room.completed.size === 0) continue;
      room.unconfirmed = null;
      this.forgetCompleted(roomId);
      return;
    }
  }

  /** Rooms that have any entry. */
  get rooms(): number {
    return this.#rooms.size;
  }

  #open(roomId: string): RoomLedger {
    let room = this.#rooms.get(roomId);
    if (!room) {
      room = { inFlight: new Set(), ackPending: new Map(), completed: new Set(), unconfirmed: null, failPending: null };
      this.#rooms.set(roomId, room);
    }
    return room;
  }

  #dropIfEmpty(roomId: string, room: RoomLedger): void {
    const entries = room.inFlight.size + room.ackPending.size + room.completed.size + (room.failPending?.size ?? 0);
    if (entries === 0) this.#rooms.delete(roomId);
  }
}

function confirm(room: RoomLedger, messageId: string): void {
  if (room.unconfirmed?.delete(messageId) && room.unconfirmed.size === 0) room.unconfirmed = null;
}

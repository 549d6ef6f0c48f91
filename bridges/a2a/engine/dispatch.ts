import { KeyedLock } from '../../../src/base/keyed-lock.js';
import { backoffMs } from '../../../src/base/backoff.js';
import { withDeadline } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { BandCalls } from '../band.js';
import type { PublishedPeer } from '../peers/directory.js';
import type { Context } from './contexts.js';
import { readForward } from './delivery.js';
import { TaskFailure, type Reason } from './reasons.js';
import { ownerTag } from './records.js';
import { RoomOpener, type RoomOpenerDeps } from './room-opener.js';

export interface DispatchDeps extends RoomOpenerDeps {
  readonly rest: BandCalls;
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly random: () => number;
}

export interface Post {
  readonly context: Context;
  readonly peer: PublishedPeer;
  readonly taskId: string;
  /** The client's id of the message. */
  readonly messageId: string;
  readonly text: string;
  /** It may stand in the room already: an earlier process may have posted it. */
  readonly lookFirst: boolean;
  /** When its task was taken in. */
  readonly acceptedAt: number;
  /** False as soon as nobody wants it posted any more. */
  readonly stillWanted: () => boolean;
  /** Told when the message may stand in the room, and when it certainly does not after all. */
  readonly onFlight: (underWay: boolean) => void;
  /** Told which room it goes into. */
  readonly onRoom: (roomId: string) => void;
}

/**
 * `dropped`: nobody wanted it any more, and nothing was posted. `peerLeft`: the peer was taken out of the room while the
 * message was on its way into it.
 */
export type Posted =
  | { readonly kind: 'posted'; readonly bandMessageId: string; readonly peerLeft?: boolean }
  | { readonly kind: 'dropped' };

/** The message may stand in the room all the same: a post of this or of an earlier process may have arrived. */
export class UncertainPost extends TaskFailure {}

/** Band does not know the peer any more. */
export class PeerUnknown extends TaskFailure {}

interface Found {
  readonly marked: boolean;
  readonly bandMessageId: string | null;
  /** Nobody wants it any more, and it does not stand in the room. */
  readonly dropped?: true;
}

/** One thing that is written into a room. */
interface Write {
  /** How long after a failure of unknown outcome it may still come to stand there. */
  readonly arrivesWithinMs: number;
  readonly isWritten: (found: Found) => boolean;
  readonly write: () => Promise<Found>;
}

/** Whether the message may stand in the room by now. */
interface Progress {
  mayStand: boolean;
}

const RETRY = { baseMs: 250, maxMs: 5_000 } as const;
/** What a broken connection carried is in its room after this time, or never. */
const ARRIVES_WITHIN_MS = 2_000;
const NOTHING: Found = { marked: false, bandMessageId: null };
const MARKER_TEXT = 'A2A gateway context';
const CANCEL_TEXT = 'A2A request cancelled';

/** The bridge's own keys on the events it writes; the first two are the reference's. */
export interface MarkerMetadata {
  readonly gateway_context_id: string;
  readonly gateway_room_id: string;
  readonly gateway_v: 1;
  readonly gateway_task_id: string;
  readonly gateway_message_id: string;
  readonly gateway_peer_id: string;
  readonly gateway_owner: string;
}

/**
 * Puts requests into rooms: room, participant, marker, message, in this order and within one deadline. What cannot be
 * known to have failed is looked up in the room before it is tried again, so nothing is posted twice.
 */
export class Dispatcher {
  readonly #deps: DispatchDeps;
  readonly #contexts = new KeyedLock();
  readonly #rooms: RoomOpener;

  constructor(deps: DispatchDeps) {
    this.#deps = deps;
    this.#rooms = new RoomOpener(deps);
  }

  /**
   * @throws {TaskFailure} with the reason the task ends for; {@link UncertainPost} when the message may stand there,
   *   otherwise it certainly does not
   */
  async post(post: Post, signal: AbortSignal): Promise<Posted> {
    const progress: Progress = { mayStand: post.lookFirst };
    try {
      return await withDeadline(this.#deps.clock, this.#deps.deadlineMs, signal, (inner) =>
        this.#postSteps(post, progress, inner),
      );
    } catch (error) {
      if (error instanceof TaskFailure) throw error;
      if (signal.aborted) throw error;
      const reason = reasonOf(error);
      throw progress.mayStand ? new UncertainPost(reason, { cause: error }) : new TaskFailure(reason, { cause: error });
    }
  }

  /** Tells a room that a request was withdrawn. */
  async notice(
    notice: { context: Context; taskId: string; peer: PublishedPeer | null; kind: 'event' | 'message' | 'both' },
    signal: AbortSignal,
  ): Promise<void> {
    const { context, taskId, peer, kind } = notice;
    const { roomId, contextId } = context.record;
    if (roomId === null) return;
    await withDeadline(this.#deps.clock, this.#deps.deadlineMs, signal, async (inner) => {
      if (kind !== 'message') {
        const metadata = {
          gateway_task_id: taskId,
          gateway_cancelled: true,
          gateway_context_id: contextId,
          gateway_room_id: roomId,
        };
        await this.#deps.rest.postEvent(
          roomId,
          { content: CANCEL_TEXT, messageType: 'task', metadata },
          { signal: inner },
        );
      }
      if (kind !== 'event' && peer) {
        const content = `@${peer.name} The requester cancelled this request. Please stop.`;
        await this.#deps.rest.postMessage(
          roomId,
          { content, mentions: [{ id: peer.id, name: peer.name }] },
          { signal: inner },
        );
      }
    });
  }

  async #postSteps(post: Post, progress: Progress, signal: AbortSignal): Promise<Posted> {
    const { context, peer } = post;
    const roomId = await this.#room(post, signal);
    post.onRoom(roomId);
    let found = post.lookFirst ? await this.#tries(signal, () => this.#look(post, roomId, signal)) : NOTHING;
    if (found.bandMessageId !== null) return { kind: 'posted', bandMessageId: found.bandMessageId };
    progress.mayStand = false;
    const assumedPresent = context.record.peers.includes(peer.id);
    if (!assumedPresent) await this.#addPeer(context, roomId, peer, signal);
    if (!post.stillWanted()) return { kind: 'dropped' };
    if (!found.marked) {
      found = await this.#retried(post, roomId, signal, {
        // A second one says nothing new.
        arrivesWithinMs: 0,
        isWritten: ({ marked, bandMessageId }) => marked || bandMessageId !== null,
        write: async () => {
          await this.#mark(post, roomId, signal);
          return { marked: true, bandMessageId: null };
        },
      });
    }
    let added = !assumedPresent;
    while (found.bandMessageId === null) {
      if (found.dropped) return { kind: 'dropped' };
      try {
        found = await this.#retried(post, roomId, signal, {
          arrivesWithinMs: ARRIVES_WITHIN_MS,
          isWritten: ({ bandMessageId }) => bandMessageId !== null,
          write: async () => ({
            marked: true,
            bandMessageId: await this.#message(post, roomId, progress, signal),
          }),
        });
      } catch (error) {
        // Somebody took the peer out of the room while nobody was listening: it is brought back once.
        if (added || !isGatewayError(error, 'BAND_INVALID')) throw error;
        added = true;
        await this.#addPeer(context, roomId, peer, signal);
      }
    }
    const peerLeft = !context.record.peers.includes(peer.id);
    return { kind: 'posted', bandMessageId: found.bandMessageId, peerLeft };
  }

  async #room(post: Post, signal: AbortSignal): Promise<string> {
    const { context } = post;
    if (context.record.roomId === null) {
      await this.#contexts.hold(context.key, () => this.#openRoom(post, signal), signal);
    }
    const { roomId } = context.record;
    // It was bound a moment ago; who closes rooms may be faster.
    if (roomId === null) throw new TaskFailure('ROOM_CLOSED');
    return roomId;
  }

  /** Makes a room, after a look for one that an earlier call may have made without being told so. */
  async #openRoom({ context, peer, lookFirst, acceptedAt }: Post, signal: AbortSignal): Promise<void> {
    let mayStandSince = lookFirst ? acceptedAt : null;
    await this.#tries(signal, async () => {
      if (context.record.roomId !== null) return;
      if (mayStandSince !== null && (await this.#rooms.takeLost(context, mayStandSince, signal))) return;
      const begun = this.#deps.clock.now();
      try {
        await this.#rooms.open(context, peer.name, signal);
      } catch (error) {
        if (isGatewayError(error) && !error.undelivered) mayStandSince ??= begun;
        throw error;
      }
    });
  }

  async #addPeer(context: Context, roomId: string, peer: PublishedPeer, signal: AbortSignal): Promise<void> {
    try {
      await this.#tries(signal, () =>
        this.#deps.rest.addParticipant(roomId, { participantId: peer.id, role: 'member' }, { signal }),
      );
    } catch (error) {
      if (isGatewayError(error, 'BAND_FORBIDDEN')) throw new TaskFailure('PEER_UNREACHABLE', { cause: error });
      if (isGatewayError(error, 'BAND_NOT_FOUND')) {
        // The same answer tells of a room that is gone; only where the room is there, it is the peer.
        await this.#tries(signal, () => this.#deps.rest.getContext(roomId, { limit: 1, signal }));
        throw new PeerUnknown('PEER_UNREACHABLE', { cause: error });
      }
      if (!isGatewayError(error, 'BAND_CONFLICT')) throw error;
    }
    const { peers } = context.record;
    if (!peers.includes(peer.id)) context.record = { ...context.record, peers: [...peers, peer.id] };
  }

  async #mark({ context, peer, taskId, messageId }: Post, roomId: string, signal: AbortSignal): Promise<void> {
    const { contextId, owner } = context.record;
    const metadata: MarkerMetadata = {
      gateway_context_id: contextId,
      gateway_room_id: roomId,
      gateway_v: 1,
      gateway_task_id: taskId,
      gateway_message_id: messageId,
      gateway_peer_id: peer.id,
      gateway_owner: ownerTag(owner),
    };
    await this.#deps.rest.postEvent(
      roomId,
      { content: MARKER_TEXT, messageType: 'task', metadata: { ...metadata } },
      { signal },
    );
  }

  async #message(
    { peer, text, onFlight }: Post,
    roomId: string,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<string> {
    onFlight(true);
    const before = progress.mayStand;
    progress.mayStand = true;
    try {
      const sent = await this.#deps.rest.postMessage(
        roomId,
        { content: `@${peer.name} ${text}`, mentions: [{ id: peer.id, name: peer.name }] },
        { signal },
      );
      return sent.id;
    } catch (error) {
      if (isGatewayError(error) && error.undelivered) {
        onFlight(false);
        progress.mayStand = before;
      }
      throw error;
    }
  }

  /**
   * A write that is repeated on transient faults, after a look into the room where it may have happened, and only as
   * long as somebody wants it: a request that was cancelled meanwhile is not written.
   */
  async #retried(post: Post, roomId: string, signal: AbortSignal, { arrivesWithinMs, isWritten, write }: Write) {
    const { clock } = this.#deps;
    let unclearAt: number | null = null;
    return this.#tries(signal, async (): Promise<Found> => {
      if (unclearAt !== null) {
        let found = await this.#look(post, roomId, signal);
        const wait = unclearAt + arrivesWithinMs - clock.now();
        if (!isWritten(found) && wait > 0) {
          await clock.sleep(Math.min(wait, arrivesWithinMs), signal);
          found = await this.#look(post, roomId, signal);
        }
        if (isWritten(found)) return found;
      }
      if (!post.stillWanted()) return { ...NOTHING, dropped: true };
      try {
        return await write();
      } catch (error) {
        if (isGatewayError(error) && !error.undelivered) unclearAt = clock.now();
        throw error;
      }
    });
  }

  async #tries<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (signal.aborted || !isGatewayError(error) || !error.retryable) throw error;
        const wait = error.retryAfterMs ?? backoffMs(failures, { ...RETRY, random: this.#deps.random });
        await this.#deps.clock.sleep(wait, signal);
      }
    }
  }

  /** Looks for this message's marker, and for the text behind it, among what the agent wrote into the room. */
  async #look({ context, taskId, messageId, peer }: Post, roomId: string, signal: AbortSignal): Promise<Found> {
    let marked = false;
    // A text belongs to the last marker for its peer: one peer's requests are posted one after the other.
    let isOurs = false;
    for await (const row of readForward(this.#deps.rest, context, roomId, signal)) {
      if (row.sender_id !== this.#deps.selfId) continue;
      const metadata = row.metadata ?? {};
      if (row.message_type === 'task' && metadata['gateway_peer_id'] === peer.id) {
        isOurs = metadata['gateway_task_id'] === taskId && metadata['gateway_message_id'] === messageId;
        marked ||= isOurs;
      } else if (isOurs && row.message_type === 'text' && mentions(row, peer.id)) {
        return { marked, bandMessageId: row.id };
      }
    }
    // A marker that another one followed without a text of its own is no longer the last: it is written again.
    return { marked: marked && isOurs, bandMessageId: null };
  }
}

function mentions(
  row: { content: string; metadata?: Record<string, unknown> | null | undefined },
  id: string,
): boolean {
  const list = row.metadata?.['mentions'];
  const listed = Array.isArray(list) && list.some((one) => (one as { id?: unknown } | null)?.id === id);
  return listed || row.content.includes(`@[[${id}]]`);
}

/** The reason a task ends for, by what the platform said; what is not the platform's doing is ours. */
function reasonOf(error: unknown): Reason {
  if (!isGatewayError(error)) return 'INTERNAL';
  switch (error.code) {
    case 'ROOM_LIMIT':
      return 'BAND_QUOTA';
    case 'BAND_ROOM_STOPPED':
      return 'GATEWAY_STOPPED';
    case 'BAND_INVALID':
    case 'BAND_FORBIDDEN':
    case 'BAND_CONFLICT':
      return 'BAND_REJECTED';
    case 'BAND_NOT_FOUND':
      return 'ROOM_CLOSED';
    case 'BAND_UNAUTHORIZED':
      return 'BAND_UNAUTHORIZED';
    case 'DEADLINE_EXCEEDED':
      return 'BAND_UNAVAILABLE';
    default:
      return error.code.startsWith('BAND_') ? 'BAND_UNAVAILABLE' : 'INTERNAL';
  }
}

import type { GatewayError } from '../base/errors.js';
import type {
  AgentControl,
  ContactAdded,
  ContactRemoved,
  ContactRequestReceived,
  ContactRequestUpdated,
  MessageCreated,
  ParticipantAdded,
  ParticipantRemoved,
  RoomChanged,
} from './wire/socket-events.js';

/**
 * What comes over the link, in the order it arrived. Payloads are checked and keep the wire's spelling.
 *
 * Nothing is replayed over a socket: whatever was pushed while the link was down, while a topic was not joined, or
 * while a buffer was full is found by REST only. The link says so: `reconnected`, `resync` and `topic_lost` are always
 * queued after the join answer they speak of, so a catch-up that starts on them misses nothing (PHX-04).
 */
export type LinkEvent =
  | { readonly kind: 'message_created'; readonly roomId: string; readonly message: MessageCreated }
  | { readonly kind: 'room_added'; readonly roomId: string; readonly room: RoomChanged }
  | { readonly kind: 'room_removed'; readonly roomId: string; readonly room: RoomChanged }
  | { readonly kind: 'room_deleted'; readonly roomId: string }
  | { readonly kind: 'participant_added'; readonly roomId: string; readonly participant: ParticipantAdded }
  | { readonly kind: 'participant_removed'; readonly roomId: string; readonly participant: ParticipantRemoved }
  | { readonly kind: 'contact_request_received'; readonly request: ContactRequestReceived }
  | { readonly kind: 'contact_request_updated'; readonly request: ContactRequestUpdated }
  | { readonly kind: 'contact_added'; readonly contact: ContactAdded }
  | { readonly kind: 'contact_removed'; readonly contact: ContactRemoved }
  /** The socket is gone; the link is already on its way back. Topics stay known and are joined again by the link. */
  | { readonly kind: 'disconnected'; readonly why: string }
  /** The socket is back and every topic's join was answered (or is reported by `topic_lost`): list rooms, catch up. */
  | { readonly kind: 'reconnected' }
  /**
   * Something of one room (or, with a null room, of anything: rooms, contacts, any room) may be missing although the
   * socket lived on: its channel crashed and was joined again, or a full buffer dropped events. Catch up by REST.
   */
  | { readonly kind: 'resync'; readonly roomId: string | null; readonly why: 'rejoined' | 'overflow' }
  /** The platform closed a joined topic or refused to let it be joined again; the link forgot it. Joining again is the hearer's choice. */
  | {
      readonly kind: 'topic_lost';
      readonly topic: string;
      readonly roomId: string | null;
      readonly error: GatewayError;
    };

export type LinkEventKind = LinkEvent['kind'];

export interface LinkState {
  /** `waiting`: between two tries. `closed`: for good, see {@link BandLink.closed}. */
  readonly kind: 'new' | 'connecting' | 'connected' | 'waiting' | 'closed';
  /**
   * Since when it is up, or since when it is not: milliseconds since the epoch. The tries and waits of one outage
   * share it.
   */
  readonly sinceMs: number;
  /** Why it is not connected, in a few words that carry no secret; null while connected. */
  readonly why: string | null;
  /** When the next try starts, in milliseconds since the epoch; only while waiting. */
  readonly nextTryAtMs: number | null;
  /** Failed tries and lost connections since the link was last stable; 0 once it has been up for a minute. */
  readonly failures: number;
  /** Topics that are joined at this moment, and all that should be. */
  readonly topicsJoined: number;
  readonly topicsKnown: number;
}

/** An agent's live connection to Band: one socket that heals itself, and the topics joined on it. */
export interface BandLink {
  /**
   * Opens the first connection, trying again with backoff. Call it once.
   *
   * @throws {GatewayError} `BAND_ALREADY_CONNECTED` (409 under the policy `reject`), `BAND_INVALID` (400),
   *   `BAND_UNREACHABLE` or another wire code after the last of `initialTries`; `BAND_LINK_CLOSED` after `close()`;
   *   the signal's reason when it aborts. The link is closed then, and leaves no socket or timer.
   */
  connect(signal?: AbortSignal): Promise<void>;

  /** Leaves all topics, closes with 1000, ends `events`. Never rejects; safe to call twice and before `connect`. */
  close(): Promise<void>;

  /**
   * Joins a topic and keeps it joined over reconnects until it is left or lost. While the socket is down the call
   * waits for the next one. A topic that is already joined, or being joined, is joined once.
   *
   * @throws {GatewayError} `BAND_JOIN_REFUSED` with `details.reason` (`unauthorized`, `unmatched topic`),
   *   `BAND_TIMEOUT` when the join is not answered within 10 s, `BAND_LINK_CLOSED` when the link ends or the topic is
   *   left meanwhile; the signal's reason. In each case the topic is not joined and not tried again.
   */
  join(topic: string, signal?: AbortSignal): Promise<void>;

  /** Leaves a topic; resolves once the platform answered, after 5 s, or at once when the socket is down. Never rejects. */
  leave(topic: string): Promise<void>;

  /** Everything but control signals, for one consumer. Ends when the link is closed and the buffer is drained. */
  readonly events: AsyncIterable<LinkEvent>;

  /** Control signals, called synchronously as the frame arrives, ahead of queued events. Install before `connect`. */
  onControl(handler: (control: AgentControl) => void): void;

  readonly state: LinkState;
  /** Called after each change of `state.kind`. @returns stops the calls */
  onState(handler: (state: LinkState) => void): () => void;

  /**
   * Resolves when the link has ended for good: null after `close()`, otherwise why it will not come back:
   * `BAND_SUPERSEDED` (a newer connection took over), `BAND_ALREADY_CONNECTED` (somebody else holds the identity after
   * a bare close), `BAND_FORBIDDEN` (close code 1008), `BAND_INVALID` (400). Never rejects.
   */
  readonly closed: Promise<GatewayError | null>;
}

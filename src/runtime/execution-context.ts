import { BoundedMap } from '../base/bounded.js';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { AgentInput } from '../core/agent-input.js';
import { HistoryProvider, NO_HISTORY } from '../core/history.js';
import { Roster, type Participant } from '../core/participants.js';
import { PlatformMessage } from '../core/platform-message.js';
import type { ExecutionContext as PreprocessorContext } from '../core/preprocessor.js';
import type { AgentToolsProtocol } from '../core/tools.js';
import type { MessageCreatedEvent } from '../core/events.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import type { ChatMessage } from '../platform/wire/objects.js';
import { historyBefore, readContext } from './history.js';
import { readableMentions } from './mention-tokens.js';
import { RosterNews } from './participants-block.js';
import { createdAt, deliveryStatus, senderName, type WireMessage } from './wire-message.js';

export interface ExecutionContextDeps {
  readonly agentId: string;
  readonly rest: Pick<BandRest, 'getContext' | 'listParticipants'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly enableContextHydration: boolean;
  readonly contextCacheTtlSeconds: number;
  /** The platform says that a message of the room's past is done. */
  readonly onProcessed: (roomId: string, messageId: string) => void;
}

/** What belongs to the turn in progress. */
export interface TurnInHand {
  readonly signal: AbortSignal;
  readonly tools: AgentToolsProtocol;
}

const NO_TURN = AbortSignal.abort(new Error('No turn is in progress in this room.'));
/** Notices that wait for a turn; the oldest give way. */
const MAX_NOTICES = 100;
/** Posts that are remembered, for the one whose answer is lost. */
const MAX_POSTED = 500;

/**
 * What one room session knows: who is in the room, what was said before it began, which notices wait. It is made at
 * the room's first message, so a quiet room has none.
 *
 * A turn's view of it counts as delivered once the adapter took the input (`commitContext`); until then the next
 * input carries the same again (W-17).
 */
export class ExecutionContext implements PreprocessorContext {
  readonly roomId: string;
  readonly isHubRoom: boolean;
  readonly roster = new Roster();
  /** Ids of what this session wrote into the room. */
  readonly posted = new BoundedMap<string, true>(MAX_POSTED);
  readonly #deps: ExecutionContextDeps;
  readonly #news = new RosterNews(this.roster);
  #notices: { readonly text: string }[] = [];
  /** Reasons so far to ask who is in the room, the beginning being the first; and those that were met. */
  #doubts = 1;
  #rosterDoubts = 0;
  #bootstrapped = false;
  #past: { readonly rows: readonly ChatMessage[]; readonly readAt: number } | null = null;
  #turn: TurnInHand | null = null;
  /** What was said before, for the turn in hand; null when it could not be read, or is not needed. */
  #turnPast: readonly ChatMessage[] | null = null;

  constructor(roomId: string, deps: ExecutionContextDeps, options: { readonly isHubRoom?: boolean } = {}) {
    this.roomId = roomId;
    this.isHubRoom = options.isHubRoom ?? false;
    this.#deps = deps;
  }

  get agentId(): string {
    return this.#deps.agentId;
  }

  get participants(): readonly Participant[] {
    return this.roster.list();
  }

  get isSessionBootstrap(): boolean {
    return !this.#bootstrapped;
  }

  get signal(): AbortSignal {
    return this.#turn?.signal ?? NO_TURN;
  }

  /** Waits to be shown with the next turn, as one line of `contactsMsg`. */
  addNotice(notice: string): void {
    this.#notices.push({ text: notice });
    if (this.#notices.length > MAX_NOTICES) this.#notices.shift();
  }

  beginTurn(turn: TurnInHand): void {
    this.#turn = turn;
  }

  endTurn(): void {
    this.#turn = null;
    this.#turnPast = null;
  }

  /**
   * Loads what the turn in hand needs: who is in the room, also with hydration off, and on the session's first
   * turn what was said before. A failure is met again at the next message.
   */
  async load(signal: AbortSignal): Promise<void> {
    if (this.#bootstrapped && this.#rosterDoubts === this.#doubts) return;
    const past = this.#bootstrapped ? null : this.#readPast(signal);
    await Promise.all([past, this.#loadParticipants(signal)]);
    this.#turnPast = past === null ? null : await past;
  }

  async #loadParticipants(signal: AbortSignal): Promise<void> {
    const doubts = this.#doubts;
    if (this.#rosterDoubts === doubts) return;
    try {
      this.roster.replace(await this.#deps.rest.listParticipants(this.roomId, { signal }));
      this.#rosterDoubts = doubts;
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.log.warn({ err: error, roomId: this.roomId }, 'participants could not be loaded');
    }
  }

  /** Somebody may have come or gone unseen: the next message asks who is there. */
  doubtParticipants(): void {
    this.#doubts += 1;
  }

  toMessage(event: MessageCreatedEvent): PlatformMessage {
    return this.messageOf(event.message);
  }

  messageOf(message: WireMessage): PlatformMessage {
    return new PlatformMessage({
      id: message.id,
      roomId: this.roomId,
      content: readableMentions(message.content, this.roster),
      senderId: message.sender_id,
      senderType: message.sender_type,
      senderName: senderName(message, this.roster),
      messageType: message.message_type,
      metadata: message.metadata ?? {},
      createdAt: createdAt(message),
    });
  }

  createInput(msg: PlatformMessage): Promise<AgentInput> {
    const turn = this.#turn;
    if (!turn) throw new Error('createInput() belongs into a turn: call it from Preprocessor.process()');
    const isSessionBootstrap = !this.#bootstrapped;
    const past = isSessionBootstrap ? this.#turnPast : null;
    const participants = this.#news.take();
    const notices = new Set(this.#notices);
    const input = Object.freeze<AgentInput>({
      msg,
      tools: turn.tools,
      history: past ? new HistoryProvider(historyBefore(past, msg, this.roster)) : NO_HISTORY,
      participantsMsg: participants?.message ?? null,
      contactsMsg: notices.size > 0 ? [...notices].map(({ text }) => text).join('\n') : null,
      isSessionBootstrap,
      roomId: this.roomId,
      signal: turn.signal,
      commitContext: () => {
        // A past that could not be read is asked for again, so the session is not yet under way.
        if (isSessionBootstrap && past) {
          this.#bootstrapped = true;
          this.#past = null;
        }
        participants?.commit();
        this.#notices = this.#notices.filter((notice) => !notices.has(notice));
      },
    });
    return Promise.resolve(input);
  }

  /** Every row of the room's past, empty when hydration is off, null when it cannot be read now. */
  async #readPast(signal: AbortSignal): Promise<readonly ChatMessage[] | null> {
    const { rest, clock, log, enableContextHydration, contextCacheTtlSeconds, agentId, onProcessed } = this.#deps;
    if (!enableContextHydration || this.isHubRoom) return [];
    const age = this.#past ? clock.now() - this.#past.readAt : Number.POSITIVE_INFINITY;
    if (this.#past && age < contextCacheTtlSeconds * 1_000) return this.#past.rows;
    try {
      const { rows, complete } = await readContext(rest, this.roomId, signal);
      if (!complete)
        log.warn({ roomId: this.roomId, rows: rows.length }, 'the newest part of a long past was not read');
      this.#past = { rows, readAt: clock.now() };
      for (const row of rows) if (deliveryStatus(row, agentId) === 'processed') onProcessed(this.roomId, row.id);
      return rows;
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, roomId: this.roomId }, 'the past of a room could not be read; the turn runs without it');
      return null;
    }
  }
}

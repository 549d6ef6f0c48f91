import {
  BandToolError,
  RoomExecutionStoppedError,
  TurnEndedError,
  publicError,
  ValueError,
} from '../../base/band-errors.js';
import { isGatewayError } from '../../base/errors.js';
import { createRedactor } from '../../base/redact.js';
import { NO_FEATURES, type AdapterFeatures, type Capability } from '../../core/features.js';
import { Roster, type Participant } from '../../core/participants.js';
import { schemaOf } from '../../core/tool-call.js';
import type {
  AgentFailure,
  AgentToolsProtocol,
  ChatMessage,
  ContactAction,
  ContactPages,
  ContactTools,
  CursorPage,
  EventCreated,
  EventType,
  MemoryFilters,
  Mention,
  MessageSent,
  NewMemory,
  Page,
  ParticipantChange,
  ParticipantRole,
  Peer,
  SentStatus,
  ToolCallOutcome,
  ToolFormat,
  ToolSchemaByFormat,
  WireRecord,
} from '../../core/tools.js';
import { Turn, type TurnEffect } from '../../core/turn.js';
import { hasVisibleText } from '../../core/visible-text.js';
import type { BandRest, CallOptions, MentionInput } from '../../platform/rest/band-rest.js';
import { offeredTools, runTool, warnUnknownFilters } from './catalogue.js';
import { createContactTools } from './contact-tools.js';
import { eventText } from './event-text.js';
import { failureEvent } from './failure.js';
import { isSentEvent, isSentText, postOnce, type LookBack, type PostOnceDeps } from './lost-answer.js';
import { memoryBody, memoryQuery } from './memory-tools.js';
import { matching, mentionHandles, resolveMentions } from './mentions.js';
import { PeerDirectory } from './peers.js';

export interface AgentToolsOptions {
  readonly rest: BandRest;
  readonly roomId: string;
  /** Who this agent is; null where nobody knows, then no mention counts as its own. */
  readonly agentId?: string | null;
  /** The room session's own, so that changes made here are seen by later turns; default an empty one. */
  readonly roster?: Roster;
  /** Default a turn without a signal. */
  readonly turn?: Turn;
  readonly isHubRoom?: boolean;
  /** The adapter's: which tools it wants. Default the tools of the room, unfiltered. */
  readonly features?: AdapterFeatures;
  /** How a post whose answer was lost is looked for in the room; default not at all, it counts as failed then. */
  readonly lookBack?: LookBack | null;
  /** Hides secrets in what is posted about failures; default by shape alone. */
  readonly redact?: (text: string) => string;
  /** The platform refused a post because the agent is stopped in the room: the cycle is to be aborted, not failed. */
  readonly onRoomStopped?: (error: RoomExecutionStoppedError) => void;
}

/**
 * The tools of one turn in one room, over REST; see {@link AgentToolsProtocol} for each.
 *
 * A call: turn still on? → platform → roster and turn note what succeeded; a refusal surfaces as a public error.
 */
export class AgentTools implements AgentToolsProtocol {
  readonly roomId: string;
  readonly agentId: string | null;
  readonly isHubRoom: boolean;
  readonly turn: Turn;
  readonly #rest: BandRest;
  readonly #roster: Roster;
  readonly #features: AdapterFeatures;
  readonly #redact: (text: string) => string;
  readonly #onRoomStopped: (error: RoomExecutionStoppedError) => void;
  readonly #call: CallOptions;
  readonly #peers: PeerDirectory;
  readonly #once: PostOnceDeps;

  constructor(options: AgentToolsOptions) {
    this.roomId = options.roomId;
    this.agentId = options.agentId ?? null;
    this.isHubRoom = options.isHubRoom ?? false;
    this.turn = options.turn ?? new Turn();
    this.#rest = options.rest;
    this.#roster = options.roster ?? new Roster();
    this.#features = options.features ?? NO_FEATURES;
    this.#redact = options.redact ?? createRedactor();
    this.#onRoomStopped = options.onRoomStopped ?? (() => undefined);
    this.#call = this.turn.signal ? { signal: this.turn.signal } : {};
    this.#peers = new PeerDirectory(options.rest, this.#call);
    const { rest, roomId, lookBack = null } = options;
    this.#once = { rest, roomId, agentId: this.agentId, turn: this.turn, call: this.#call, lookBack };
  }

  get participants(): readonly Participant[] {
    return this.#roster.list();
  }

  get #contacts(): ContactTools {
    return createContactTools(this.#rest.contacts, this.turn.signal);
  }

  availableMentionHandles(): string[] {
    return mentionHandles(this.participants, this.agentId);
  }

  async sendMessage(content: string, mentions?: readonly Mention[] | null): Promise<MessageSent | null> {
    return this.#postMessage(content, mentions, 'reply');
  }

  async sendNotice(content: string, mentions?: readonly Mention[] | null): Promise<MessageSent | null> {
    return this.#postMessage(content, mentions, 'observe');
  }

  async sendEvent(
    content: string,
    messageType: EventType,
    metadata: Record<string, unknown> | null = null,
  ): Promise<EventCreated | null> {
    if (!hasVisibleText(content)) return null;
    return this.#doing('observe', () => this.#postEvent(eventText(content), messageType, metadata));
  }

  async sendFailure(failure: AgentFailure): Promise<EventCreated> {
    const event = failureEvent(failure, this.#redact);
    const posted = await this.#doing('observe', () => this.#postEvent(event.content, 'error', event.metadata));
    this.turn.noteReported();
    return posted;
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- one of a family of calls that a model may await
  async noReply(reason: string | null = null): Promise<{ status: 'no_reply' }> {
    this.turn.record('decline');
    this.turn.log.info({ roomId: this.roomId, reason }, 'the agent chose not to reply');
    return { status: 'no_reply' };
  }

  async addParticipant(identifier: string, role: ParticipantRole = 'member'): Promise<ParticipantChange> {
    return this.#doing('act', async () => {
      const [present] = this.#present(identifier, await this.#readRoster());
      if (present) return alreadyInRoom(present);
      const peer = await this.#peers.find(identifier);
      if (this.#roster.get(peer.id)) return alreadyInRoom(peer);
      try {
        const added = await this.#rest.addParticipant(this.roomId, { participantId: peer.id, role }, this.#call);
        this.#roster.merge(peer);
        this.#roster.merge(added);
      } catch (error) {
        if (!isGatewayError(error, 'BAND_CONFLICT')) throw error;
        this.#roster.merge(peer); // somebody else was faster
        return alreadyInRoom(peer);
      }
      return { id: peer.id, name: peer.name, role, status: 'added' };
    });
  }

  async removeParticipant(identifier: string): Promise<ParticipantChange> {
    return this.#doing('act', async () => {
      const [found, another] = this.#present(identifier, await this.#readRoster());
      if (!found) throw new ValueError(`'${identifier}' is not in the room`);
      if (another) throw new ValueError(`'${identifier}' names several participants; use a handle`);
      await this.#rest.removeParticipant(this.roomId, found.id, this.#call);
      this.#roster.remove(found.id);
      return { id: found.id, name: found.name, status: 'removed' };
    });
  }

  async getParticipants(): Promise<readonly Participant[]> {
    return this.#reading(() => this.#readRoster());
  }

  async lookupPeers(page = 1, pageSize = 50): Promise<Page<Peer>> {
    return this.#reading(() => this.#rest.listPeers({ page, pageSize, notInChat: this.roomId, ...this.#call }));
  }

  async createChatroom(taskId: string | null = null): Promise<string> {
    const room = await this.#doing('act', () => this.#rest.createChat(taskId === null ? {} : { taskId }, this.#call));
    return room.id;
  }

  async fetchRoomContext(options: {
    roomId: string;
    cursor?: string;
    limit?: number;
  }): Promise<CursorPage<ChatMessage>> {
    const { roomId, cursor, limit = 50 } = options;
    return this.#reading(() => this.#rest.getContext(roomId, { cursor, limit, ...this.#call }));
  }

  async listContacts(pages?: ContactPages): Promise<Page<WireRecord>> {
    return this.#contacts.listContacts(pages);
  }

  async addContact(handle: string, message: string | null = null): Promise<WireRecord> {
    return this.#doing('act', () => this.#contacts.addContact(handle, message));
  }

  async removeContact(contact: { handle?: string | null; contactId?: string | null }): Promise<WireRecord> {
    return this.#doing('act', () => this.#contacts.removeContact(contact));
  }

  async listContactRequests(
    options?: ContactPages & { readonly sentStatus?: SentStatus },
  ): Promise<{ readonly data: WireRecord; readonly metadata: WireRecord }> {
    return this.#contacts.listContactRequests(options);
  }

  async respondContactRequest(
    action: ContactAction,
    request: { handle?: string | null; requestId?: string | null },
  ): Promise<WireRecord> {
    return this.#doing('act', () => this.#contacts.respondContactRequest(action, request));
  }

  async listMemories(
    filters: MemoryFilters = {},
  ): Promise<{ readonly data: readonly WireRecord[]; readonly metadata: WireRecord }> {
    return this.#reading(() => this.#rest.memories.list(memoryQuery(filters), this.#call));
  }

  async storeMemory(memory: NewMemory): Promise<WireRecord> {
    const body = memoryBody(memory);
    return this.#doing('act', () => this.#rest.memories.store(body, this.#call));
  }

  async getMemory(memoryId: string): Promise<WireRecord> {
    return this.#reading(() => this.#rest.memories.get(memoryId, this.#call));
  }

  async supersedeMemory(memoryId: string): Promise<WireRecord> {
    return this.#doing('act', () => this.#rest.memories.supersede(memoryId, this.#call));
  }

  async archiveMemory(memoryId: string): Promise<WireRecord> {
    return this.#doing('act', () => this.#rest.memories.archive(memoryId, this.#call));
  }

  getToolSchemas<F extends ToolFormat>(
    format: F,
    options: { readonly capabilities?: ReadonlySet<Capability> } = {},
  ): ToolSchemaByFormat[F][] {
    warnUnknownFilters(this.#features, this.turn.log);
    const capabilities = options.capabilities ?? this.#features.capabilities;
    return offeredTools(capabilities, this.#features, this.isHubRoom).map((spec) =>
      schemaOf(format, spec.name, spec.description, spec.parameters),
    );
  }

  async executeToolCall(name: string, args: Record<string, unknown>): Promise<unknown> {
    return (await this.executeToolCallStructured(name, args)).value;
  }

  async executeToolCallStructured(name: string, args: Record<string, unknown>): Promise<ToolCallOutcome> {
    return runTool(this, this.#features, name, args);
  }

  async #postMessage(
    content: string,
    mentions: readonly Mention[] | null | undefined,
    effect: TurnEffect,
  ): Promise<MessageSent | null> {
    if (!hasVisibleText(content)) return null;
    return this.#doing(effect, async () => {
      const resolved = resolveMentions(mentions ?? [], this.participants, this.agentId);
      if (resolved.length === 0) {
        const handles = this.availableMentionHandles().join(', ');
        throw new BandToolError(`a message needs at least one mention; available handles: ${handles || '(none)'}`);
      }
      return postOnce(
        this.#once,
        () => this.#rest.postMessage(this.roomId, { content, mentions: resolved }, this.#call),
        (row) => isSentText(row, content, resolved, this.participants),
        ({ id }) => ({ id, success: true, recipients: resolved.flatMap(toRecipient) }),
      );
    });
  }

  async #postEvent(
    content: string,
    messageType: EventType,
    metadata: Record<string, unknown> | null,
  ): Promise<EventCreated> {
    return postOnce(
      this.#once,
      () => this.#rest.postEvent(this.roomId, { content, messageType, metadata }, this.#call),
      (row) => isSentEvent(row, content, messageType, metadata),
      ({ id }) => ({ id, message_type: messageType, success: true }),
    );
  }

  /** Everyone in the room, from the platform; an answer without anybody (not even this agent) changes nothing. */
  async #readRoster(): Promise<readonly Participant[]> {
    const rows = await this.#rest.listParticipants(this.roomId, this.#call).catch((error: unknown) => {
      if (isGatewayError(error, 'BAND_BAD_ANSWER')) return [];
      throw error;
    });
    if (rows.length === 0) return [];
    this.#roster.replace(rows);
    return this.participants;
  }

  /** Whom `identifier` names, by the fresh list, or by what was known where the list was empty. */
  #present(identifier: string, fresh: readonly Participant[]): Participant[] {
    return matching(identifier, fresh.length > 0 ? fresh : this.participants);
  }

  /** A call that changes something: refused once the turn has ended, noted on it when it succeeded. */
  async #doing<T>(effect: TurnEffect, work: () => Promise<T>): Promise<T> {
    if (this.turn.ended) throw new TurnEndedError();
    const result = await this.#reading(work);
    this.turn.record(effect);
    return result;
  }

  async #reading<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const surfaced = publicError(error, this.roomId);
      if (surfaced instanceof RoomExecutionStoppedError) this.#onRoomStopped(surfaced);
      throw surfaced;
    }
  }
}

function toRecipient({ id, handle, name }: MentionInput): { id: string; handle: string | null; name: string | null }[] {
  return id === undefined ? [] : [{ id, handle: handle ?? null, name: name ?? null }];
}

function alreadyInRoom({ id, name }: { readonly id: string; readonly name: string | null }): ParticipantChange {
  return { id, name, status: 'already_in_room' };
}

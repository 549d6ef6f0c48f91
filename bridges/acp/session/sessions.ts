import type {
  ListSessionsResponse,
  LoadSessionResponse,
  NewSessionResponse,
  PromptResponse,
} from '@agentclientprotocol/sdk';
import { abortable, withDeadline, type Background } from '../../../src/base/async.js';
import type { CancelTimer, Clock } from '../../../src/base/clock.js';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { Logger } from '../../../src/base/log.js';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import type { BandAccess, BandGate } from '../band.js';
import type { Editor } from '../client/editor.js';
import { checkCwd, markerEvent, sessionIdOf, summarizeMcp } from '../conversation.js';
import { AcpFault, isAcpFault, type AcpReason } from '../errors.js';
import type { DeliverySupport } from '../inbound/delivery.js';
import type { LinkWatch } from '../inbound/link-watch.js';
import type { Person, Roster } from '../roster.js';
import type { AcpOptions } from '../settings.js';
import type { Attachment } from './attachment.js';
import { invitePeers } from './invite-peers.js';
import { firstChoices } from './options.js';
import type { Job } from './prompt-queue.js';
import { isHidden, locateRoom, refill } from './reopen.js';
import { readRoom } from './replay.js';
import { entryOf, type SessionIndex } from './session-index.js';
import { Session } from './session.js';
import { meta } from './updates.js';

const DETACHED_LIFE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
/** How long a list with something to show waits for the first look at Band. */
const LIST_PATIENCE_MS = 2_000;

/** What sessions need of the world and of each other. */
export interface SessionDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly options: AcpOptions;
  readonly gate: BandGate;
  readonly roster: Roster;
  readonly index: SessionIndex;
  readonly background: Background;
  readonly deliverySupport: DeliverySupport;
  readonly link: LinkWatch;
  readonly runPrompt: (session: Session, job: Job, deps: SessionDeps) => Promise<PromptResponse>;
}

export interface OpenParams {
  readonly cwd: unknown;
  readonly mcpServers: readonly unknown[];
}

/** An answer, and what follows once it is on the wire. */
export interface Introduced<T> {
  readonly response: T;
  afterAnswer(): void;
}

/** All sessions of one agent. */
export class Sessions {
  readonly #deps: SessionDeps;
  readonly #byRoom = new Map<string, Session>();
  readonly #unknownRooms = new BoundedMap<string, true>(1_000);
  /** Rooms made for a session that could not be marked; the next one takes them. */
  readonly #orphans: string[] = [];
  #opening = 0;
  #openings: Promise<unknown> = Promise.resolve();
  readonly #sweep: CancelTimer;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.#sweep = deps.clock.every(SWEEP_MS, () => {
      this.#dropLongDetached();
    });
  }

  get size(): number {
    return this.#byRoom.size;
  }

  /** Prompts that run or wait. */
  get openPrompts(): number {
    return this.all.reduce((sum, session) => sum + session.openPrompts, 0);
  }

  get all(): readonly Session[] {
    return [...this.#byRoom.values()];
  }

  /** The session an editor has opened. @throws {AcpFault} `unknown_session` */
  attached(editor: Editor, sessionId: string): { session: Session; attachment: Attachment } {
    for (const session of this.#byRoom.values()) {
      const attachment = session.attachmentOf(editor);
      if (attachment && (attachment.sessionId === sessionId || session.roomId === sessionId.toLowerCase())) {
        return { session, attachment };
      }
    }
    throw new AcpFault('unknown_session', { sessionId });
  }

  find(editor: Editor, sessionId: string): { session: Session; attachment: Attachment } | null {
    try {
      return this.attached(editor, sessionId);
    } catch (error) {
      if (isAcpFault(error, 'unknown_session')) return null;
      throw error;
    }
  }

  // session/new

  async create(editor: Editor, params: OpenParams, signal: AbortSignal): Promise<Introduced<NewSessionResponse>> {
    const cwd = checkCwd(params.cwd);
    const access = await this.#deps.gate.ready(signal);
    this.#opening += 1;
    const work = this.#create(editor, cwd, params, access, signal).finally(() => {
      this.#opening -= 1;
    });
    // What Band pushes for a room before its creation is answered waits for this.
    this.#openings = Promise.allSettled([this.#openings, work]).then(() => undefined);
    return work;
  }

  async #create(
    editor: Editor,
    cwd: string,
    params: OpenParams,
    access: BandAccess,
    signal: AbortSignal,
  ): Promise<Introduced<NewSessionResponse>> {
    this.#makeRoom();
    const { rest, self } = access;
    const [roomId, known] = await Promise.all([
      this.#newRoom(access, signal),
      this.#deps.roster.list(rest, signal).catch(() => this.#deps.roster.known),
    ]);
    try {
      const session = new Session(this.#deps, {
        roomId,
        sessionId: sessionIdOf(roomId),
        cwd,
        mcpServers: summarizeMcp(params.mcpServers),
        client: editor.client,
        principal: editor.principal,
        choices: firstChoices(this.#deps.options),
        isFresh: true,
      });
      const warnings = await invitePeers(session, access, known, this.#deps, signal);
      await rest.postEvent(roomId, markerEvent(session.marker()), { signal });
      session.markers.posted();
      signal.throwIfAborted();
      const attachment = session.attach(editor, session.sessionId);
      this.#byRoom.set(roomId, session);
      this.#deps.index.put(entryOf(session.marker(), null, new Date(this.#deps.clock.now()).toISOString()));
      this.#deps.log.info({ roomId, self: self.handle, editor: editor.client?.name }, 'ACP session opened');
      return {
        response: {
          sessionId: session.sessionId,
          modes: session.modeState(),
          configOptions: session.configOptions(),
          _meta: meta({ roomId }),
        },
        afterAnswer: () => {
          attachment.open();
          session.announceCommands(attachment);
          for (const warning of warnings) session.notice('warning', warning);
        },
      };
    } catch (error) {
      this.#orphans.push(roomId);
      throw error;
    }
  }

  async #newRoom({ rest }: BandAccess, signal: AbortSignal): Promise<string> {
    const orphan = this.#orphans.shift();
    if (orphan !== undefined) return orphan;
    return (await rest.createChat({}, { signal })).id.toLowerCase();
  }

  // session/load, session/resume

  /** Opens an existing session; with `replay`, the editor sees all that was said before the answer comes. */
  async reopen(
    editor: Editor,
    sessionId: string,
    params: OpenParams,
    signal: AbortSignal,
    replay: boolean,
  ): Promise<Introduced<LoadSessionResponse>> {
    const cwd = checkCwd(params.cwd);
    const access = await this.#deps.gate.ready(signal);
    const found = await locateRoom(access, sessionId, editor.principal, this.#deps.index, signal);
    let session = this.#byRoom.get(found.roomId);
    if (session && session.principal !== editor.principal) throw new AcpFault('unknown_session', { sessionId });
    if (!session) {
      this.#makeRoom();
      session = new Session(this.#deps, {
        roomId: found.roomId,
        sessionId: sessionIdOf(found.roomId),
        cwd: null,
        mcpServers: [],
        client: editor.client,
        principal: editor.principal,
        choices: firstChoices(this.#deps.options),
        isFresh: false,
      });
      this.#byRoom.set(found.roomId, session);
    }
    const wasAttached = session.attachmentOf(editor) !== null;
    const attachment = session.attach(editor, sessionId);
    try {
      return await refill(session, attachment, found.room, access, { cwd, params, signal, replay }, this.#deps);
    } catch (error) {
      if (!wasAttached) session.detach(editor);
      if (!session.isAttached && session.openPrompts === 0 && session.cwd === null) this.#byRoom.delete(session.roomId);
      throw error;
    }
  }

  // session/list, session/close, session/delete

  async list(
    editor: Editor,
    query: { readonly cwd: string | null; readonly cursor: string | null },
    signal: AbortSignal,
  ): Promise<ListSessionsResponse> {
    const { index, gate, log } = this.#deps;
    const cwd = query.cwd === null ? null : checkCwd(query.cwd);
    index.page({ principal: editor.principal, cwd, cursor: query.cursor });
    let stale = false;
    try {
      // With nothing to show yet the person waits for the first look; afterwards looking is done behind the answer.
      const access = gate.access ?? (index.isEmpty ? await gate.ready(signal) : null);
      stale = access === null;
      if (access) {
        const isFirst = index.isUnscanned;
        const scan = index.scan(access.rest, access.self.id);
        this.#deps.background.run(() => scan);
        if (isFirst) {
          const patienceMs = index.isEmpty ? this.#deps.options.readyTimeoutMs : LIST_PATIENCE_MS;
          await withDeadline(this.#deps.clock, patienceMs, signal, () => scan);
        }
      }
    } catch (error) {
      signal.throwIfAborted();
      if (isAcpFault(error, 'credentials_missing') || isAcpFault(error, 'credentials_rejected')) throw error;
      log.warn({ err: error }, 'sessions could not be looked up on Band; the list may be old');
      stale = true;
    }
    const { entries, nextCursor } = index.page({ principal: editor.principal, cwd, cursor: query.cursor });
    return {
      sessions: entries.map(({ sessionId, cwd: folder, title, updatedAt }) => ({
        sessionId,
        cwd: folder ?? '/',
        ...(title === null ? {} : { title }),
        ...(updatedAt === null ? {} : { updatedAt }),
      })),
      ...(nextCursor === null ? {} : { nextCursor }),
      ...(stale ? { _meta: meta({ stale: true }) } : {}),
    };
  }

  close(editor: Editor, sessionId: string): void {
    const found = this.find(editor, sessionId);
    if (!found) return;
    found.session.detach(editor);
    if (!found.session.isAttached) this.#forget(found.session);
  }

  /** Ends a session for good: its room stays, with a tombstone. An id that is no session of this editor's is fine. */
  async delete(editor: Editor, sessionId: string, signal: AbortSignal): Promise<void> {
    const access = await this.#deps.gate.ready(signal);
    const { rest, self } = access;
    try {
      const { roomId } = await locateRoom(access, sessionId, editor.principal, this.#deps.index, signal);
      const { marker } = await readRoom(rest, roomId, self.id, { keep: 0, signal });
      if (!marker || marker.deleted || marker.principal !== editor.principal) return;
      this.#byRoom.get(roomId)?.breakTurn('cancelled');
      await rest.postEvent(roomId, markerEvent({ ...marker, deleted: true }), { signal });
      this.#drop(roomId);
    } catch (error) {
      if (!isAcpFault(error, 'unknown_session') && !isHidden(error)) throw error;
    }
  }

  // From the runtime and the connections

  /** One message of a room. Resolves when it needs no more care. */
  async deliver(row: ChatMessage, roomId: string, signal: AbortSignal | null): Promise<void> {
    const room = roomId.toLowerCase();
    if (!this.#byRoom.has(room) && this.#opening > 0) await abortable(this.#openings, signal);
    const session = this.#byRoom.get(room);
    const self = this.#deps.gate.access?.self;
    if (!session || !self) {
      if (!this.#unknownRooms.has(room)) {
        this.#unknownRooms.set(room, true);
        this.#deps.log.info({ roomId: room }, 'messages of this room have no editor; they stay in its history');
      }
      return;
    }
    this.#deps.index.touch(room, { updatedAt: row.inserted_at ?? new Date(this.#deps.clock.now()).toISOString() });
    await session.receive(row, self, signal);
  }

  /** The agent is no longer in a room, or the room is gone. */
  roomGone(roomId: string): void {
    const room = roomId.toLowerCase();
    this.#byRoom.get(room)?.notice('error', 'The Band room behind this thread is gone; the thread has ended.');
    this.#drop(room);
  }

  participantsChanged(roomId: string, change: { readonly kind: 'added' | 'removed'; readonly person: Person }): void {
    if (change.person.id === this.#deps.gate.access?.self.id) return;
    this.#byRoom.get(roomId.toLowerCase())?.participantsChanged(change);
  }

  /** An editor is gone: what it ran ends, sessions stay for others and for later. */
  detach(editor: Editor): void {
    for (const session of this.#byRoom.values()) session.detach(editor);
  }

  breakTurns(reason: AcpReason): void {
    for (const session of this.#byRoom.values()) session.breakTurn(reason);
  }

  stop(): void {
    this.#sweep();
    for (const session of this.all) {
      session.end();
      this.#byRoom.delete(session.roomId);
    }
  }

  #drop(roomId: string): void {
    const session = this.#byRoom.get(roomId);
    if (session) {
      session.end();
      this.#byRoom.delete(roomId);
    }
    this.#deps.index.drop(roomId);
  }

  #forget(session: Session): void {
    session.end();
    this.#byRoom.delete(session.roomId);
  }

  /** Leaves room for one more session. @throws {AcpFault} `session_limit` */
  #makeRoom(): void {
    const { maxSessions } = this.#deps.options;
    while (this.#byRoom.size + Math.max(0, this.#opening - 1) >= maxSessions) {
      const oldest = this.all
        .filter((session) => !session.isAttached && session.openPrompts === 0)
        .sort((a, b) => a.lastUsedAt - b.lastUsedAt)[0];
      if (!oldest) throw new AcpFault('session_limit', { maxSessions });
      this.#forget(oldest);
    }
  }

  #dropLongDetached(): void {
    const before = this.#deps.clock.now() - DETACHED_LIFE_MS;
    for (const session of this.all) {
      if (!session.isAttached && session.openPrompts === 0 && session.lastUsedAt < before) this.#forget(session);
    }
  }
}

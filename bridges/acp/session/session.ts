import type { PromptResponse, SessionUpdate } from '@agentclientprotocol/sdk';
import { deferred, type Deferred } from '../../../src/base/async.js';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { CancelTimer } from '../../../src/base/clock.js';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import type { BandAccess } from '../band.js';
import type { Editor } from '../client/editor.js';
import type { ClientInfo, McpSummary } from '../conversation.js';
import { markerEvent, type Marker } from '../conversation.js';
import { AcpFault, type AcpReason } from '../errors.js';
import type { HistoryTail } from '../inbound/delivery.js';
import { availableCommands, commandTable, type Command } from '../inbound/commands.js';
import { Debts, Turn } from '../inbound/turn.js';
import type { FlatPrompt } from '../parse.js';
import { isAgent, spell, toPerson, type Person } from '../roster.js';
import { mergePeople } from '../inbound/route.js';
import { Attachment } from './attachment.js';
import { configOptions, modeState, type Choices } from './options.js';
import type { SessionDeps } from './sessions.js';
import { meta, replyUpdates, thoughtUpdate } from './updates.js';

const REMEMBERED_MESSAGES = 2_000;
const MAX_KEPT_PUSHES = 100;
const MARKER_GAP_MS = 2_000;
const PARTICIPANTS_FRESH_MS = 60_000;

/** One prompt from arrival to answer. */
export interface Job {
  /** Order of arrival on the wire, over all connections. */
  readonly seq: number;
  readonly attachment: Attachment;
  readonly prompt: FlatPrompt;
  readonly cancel: AbortController;
  readonly answer: Deferred<PromptResponse>;
}

export interface SessionSeed {
  readonly roomId: string;
  readonly sessionId: string;
  readonly cwd: string | null;
  readonly mcpServers: readonly McpSummary[];
  readonly client: ClientInfo | null;
  readonly principal: string | null;
  readonly choices: Choices;
  /** No prompt was posted yet, so the room has neither title nor context block. */
  readonly isFresh: boolean;
}

/** Ends a turn from outside: the reason an aborted job carries. */
export class TurnCancelled extends Error {
  constructor() {
    super('The turn was cancelled');
    this.name = 'TurnCancelled';
  }
}

/** One room and the editors that look at it: who is there, which prompt runs, which wait, what is owed. */
export class Session {
  readonly roomId: string;
  readonly sessionId: string;
  readonly principal: string | null;
  readonly debts = new Debts();
  readonly tail: HistoryTail = { cursor: undefined };
  cwd: string | null;
  mcpServers: readonly McpSummary[];
  client: ClientInfo | null;
  choices: Choices;
  /** The next prompt carries the editor context. */
  contextDue: boolean;
  titleDue: boolean;
  lastUsedAt: number;

  readonly #deps: SessionDeps;
  readonly #attachments = new Set<Attachment>();
  readonly #seen = new BoundedMap<string, true>(REMEMBERED_MESSAGES);
  readonly #queue: Job[] = [];
  #running: Job | null = null;
  #turn: Turn | null = null;
  #cancelledUpTo = 0;
  #addressed: ReadonlySet<string> = new Set();
  #participants: Person[] = [];
  #participantsAt = Number.NEGATIVE_INFINITY;
  #keptPushes: SessionUpdate[] = [];
  #shownCommands = '';
  #shownOptions = '';
  #markerTimer: CancelTimer | null = null;
  #markerAt = Number.NEGATIVE_INFINITY;
  #gone = false;

  constructor(deps: SessionDeps, seed: SessionSeed) {
    this.#deps = deps;
    this.roomId = seed.roomId;
    this.sessionId = seed.sessionId;
    this.principal = seed.principal;
    this.cwd = seed.cwd;
    this.mcpServers = seed.mcpServers;
    this.client = seed.client;
    this.choices = seed.choices;
    this.contextDue = seed.isFresh;
    this.titleDue = seed.isFresh;
    this.lastUsedAt = deps.clock.now();
  }

  get isAttached(): boolean {
    return this.#attachments.size > 0;
  }

  /** Nothing runs or waits here. */
  get isIdle(): boolean {
    return this.#running === null && this.#queue.length === 0;
  }

  get openPrompts(): number {
    return this.#queue.length + (this.#running ? 1 : 0);
  }

  get isGone(): boolean {
    return this.#gone;
  }

  get attachments(): readonly Attachment[] {
    return [...this.#attachments];
  }

  attachmentOf(editor: Editor): Attachment | null {
    return [...this.#attachments].find((one) => one.editor === editor) ?? null;
  }

  /** An editor begins to look; one that already did begins anew, so that a replay and live messages do not mix. */
  attach(editor: Editor, sessionId: string): Attachment {
    const before = this.attachmentOf(editor);
    if (before) {
      this.#attachments.delete(before);
      before.open();
    }
    const attachment = new Attachment(editor, sessionId);
    this.#attachments.add(attachment);
    this.lastUsedAt = this.#deps.clock.now();
    return attachment;
  }

  /** One editor leaves; its prompts end. */
  detach(editor: Editor): void {
    const attachment = this.attachmentOf(editor);
    if (!attachment) return;
    this.#attachments.delete(attachment);
    // Whoever waits for it to open waits for nothing now.
    attachment.open();
    this.lastUsedAt = this.#deps.clock.now();
    this.#cancelWhere((job) => job.attachment.editor === editor);
  }

  // Prompts

  /** @throws {AcpFault} `prompt_queue_full` */
  enqueue(job: Job): Promise<PromptResponse> {
    this.lastUsedAt = this.#deps.clock.now();
    if (this.#gone) throw new AcpFault('unknown_session', { sessionId: this.sessionId });
    if (job.seq < this.#cancelledUpTo || job.cancel.signal.aborted) return Promise.resolve(cancelledResponse());
    if (this.#running && this.#queue.length >= this.#deps.options.maxQueuedPrompts) {
      throw new AcpFault('prompt_queue_full', { maxQueuedPrompts: this.#deps.options.maxQueuedPrompts });
    }
    const at = this.#queue.findIndex(({ seq }) => seq > job.seq);
    this.#queue.splice(at < 0 ? this.#queue.length : at, 0, job);
    job.cancel.signal.addEventListener(
      'abort',
      () => {
        this.#dropQueued(job);
      },
      { once: true },
    );
    this.#pump();
    return job.answer.promise;
  }

  /** Ends the running prompt and those that arrived before `seq`; later ones are not touched. */
  cancel(seq: number): void {
    this.#cancelledUpTo = Math.max(this.#cancelledUpTo, seq);
    this.#cancelWhere((job) => job.seq < seq);
  }

  /** Takes the session's word back: everything that runs ends with `reason`, later calls find nothing. */
  end(reason: 'cancelled' | AcpReason): void {
    this.#gone = true;
    this.breakTurn(reason);
    if (this.#markerTimer) {
      this.#markerTimer();
      this.#markerTimer = null;
      this.#postMarker();
    }
    for (const attachment of this.#attachments) attachment.open();
    this.#attachments.clear();
  }

  breakTurn(reason: 'cancelled' | AcpReason): void {
    if (reason === 'cancelled') this.#cancelWhere(() => true);
    else {
      for (const job of this.#queue.splice(0)) job.answer.reject(new AcpFault(reason));
      this.#turn?.finish({ kind: 'broken', reason });
    }
  }

  #cancelWhere(isMeant: (job: Job) => boolean): void {
    for (const job of [...this.#queue, ...(this.#running ? [this.#running] : [])]) {
      if (isMeant(job)) job.cancel.abort(new TurnCancelled());
    }
  }

  #dropQueued(job: Job): void {
    const at = this.#queue.indexOf(job);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    job.answer.resolve(cancelledResponse());
  }

  #pump(): void {
    if (this.#running) return;
    const job = this.#queue.shift();
    if (!job) return;
    this.#running = job;
    this.#deps.background.run(async () => {
      try {
        job.answer.resolve(await this.#deps.runPrompt(this, job, this.#deps));
      } catch (error) {
        job.answer.reject(error);
      } finally {
        this.#running = null;
        this.lastUsedAt = this.#deps.clock.now();
        this.#pump();
      }
    });
  }

  /** Begins the waiting part of a prompt. */
  openTurn(recipients: readonly Person[]): Turn {
    this.#addressed = new Set(recipients.map(({ id }) => id));
    const turn = new Turn(this.#deps.clock, this.#deps.options.turn, recipients);
    this.#turn = turn;
    return turn;
  }

  closeTurn(turn: Turn): void {
    if (this.#turn === turn) this.#turn = null;
  }

  // Room → editor

  /**
   * Shows one message of the room. Resolves when it was handed to every editor, kept for later, or found to be for
   * nobody; a slow editor makes its own room wait.
   */
  async receive(row: ChatMessage, self: Person, signal: AbortSignal | null): Promise<void> {
    for (;;) {
      const opening = [...this.#attachments].find((one) => !one.isOpen);
      if (!opening) break;
      await opening.opened(signal);
    }
    const senderId = row.sender_id.toLowerCase();
    if (senderId === self.id || this.#seen.has(row.id)) return;
    this.#seen.set(row.id, true);
    const late = row.message_type === 'text' && this.debts.take(senderId, this.#deps.clock.now());
    const turn = this.#turn;
    if (!this.isAttached) return;
    if (!this.#participants.some(({ id }) => id === senderId)) this.#participantsAt = Number.NEGATIVE_INFINITY;

    const updates = replyUpdates(row, {
      self,
      handleOf: (id) => this.handleOf(id),
      attribute: this.#attributes(senderId),
      late,
    });
    if (turn && !turn.isOver) this.#show(row.id, updates);
    else this.#push(row.id, updates);
    if (turn) this.#tellTurn(turn, row, senderId, late);
    await Promise.all([...this.#attachments].map((attachment) => attachment.drained(signal)));
  }

  #tellTurn(turn: Turn, row: ChatMessage, senderId: string, late: boolean): void {
    if (row.message_type === 'error') turn.failed(senderId);
    else if (row.message_type !== 'text') turn.activity();
    else if (row.sender_type === 'Agent' || turn.isRecipient(senderId)) turn.text(senderId, late);
    else turn.activity();
  }

  #show(messageId: string, updates: readonly SessionUpdate[]): void {
    for (const attachment of this.#attachments) {
      if (attachment.hasReplayed(messageId)) continue;
      for (const update of updates) attachment.send(update);
    }
  }

  #push(messageId: string, updates: readonly SessionUpdate[]): void {
    switch (this.#deps.options.push) {
      case 'always':
        this.#show(messageId, updates);
        break;
      case 'next-turn':
        this.#keptPushes.push(...updates);
        if (this.#keptPushes.length > MAX_KEPT_PUSHES)
          this.#keptPushes.splice(0, this.#keptPushes.length - MAX_KEPT_PUSHES);
        break;
      case 'never':
        break;
    }
  }

  /** Shows what was kept for the next turn, and waits until it is written. */
  async flushPushes(signal: AbortSignal): Promise<void> {
    const kept = this.#keptPushes.splice(0);
    if (kept.length === 0) return;
    for (const update of kept) this.broadcast(update);
    await Promise.all([...this.#attachments].map((attachment) => attachment.flushed(signal)));
  }

  broadcast(update: SessionUpdate): void {
    for (const attachment of this.#attachments) attachment.send(update);
  }

  /** Tells every editor, as a notice where it shows notices; otherwise as a thought, or not at all when `quiet`. */
  notice(severity: 'info' | 'warning' | 'error', title: string, quiet = false): void {
    for (const attachment of this.#attachments) {
      if (attachment.editor.showsNotices) attachment.send({ sessionUpdate: 'notice', severity, title });
      else if (!quiet) attachment.send(thoughtUpdate(title));
    }
  }

  #attributes(senderId: string): boolean {
    switch (this.#deps.options.attribution) {
      case 'always':
        return true;
      case 'never':
        return false;
      case 'auto':
        return this.others.length > 1 || !this.#addressed.has(senderId);
    }
  }

  // People

  /** In the room as last read, this agent left out. */
  get others(): readonly Person[] {
    return this.#participants;
  }

  /** Everybody a prompt of this session may be for. */
  get reachable(): readonly Person[] {
    const people = mergePeople(this.#participants, this.#deps.roster.known);
    return [...people].sort((a, b) => spell(a).localeCompare(spell(b)));
  }

  handleOf(id: string): string | null {
    const isMeant = (one: Person) => one.id === id;
    const person = this.#participants.find(isMeant) ?? this.#deps.roster.known.find(isMeant);
    if (person) return spell(person);
    const self = this.#deps.gate.access?.self;
    return self?.id === id ? spell(self) : null;
  }

  /** @param fresh - asks Band even when the last answer is young */
  async participants(
    { rest, self }: BandAccess,
    signal: AbortSignal | null,
    fresh = false,
  ): Promise<readonly Person[]> {
    if (fresh || this.#deps.clock.now() - this.#participantsAt > PARTICIPANTS_FRESH_MS) {
      const listed = await rest.listParticipants(this.roomId, { signal: signal ?? undefined });
      this.setParticipants(listed.map(toPerson).filter(({ id }) => id !== self.id));
    }
    return this.#participants;
  }

  setParticipants(people: readonly Person[]): void {
    const described = new Map(this.#deps.roster.known.map((person) => [person.id, person]));
    this.#participants = people.map((person) => ({ ...described.get(person.id), ...withoutNulls(person) }) as Person);
    this.#participantsAt = this.#deps.clock.now();
  }

  joined(person: Person): void {
    if (this.#participants.some(({ id }) => id === person.id)) return;
    this.#participants = [...this.#participants, this.#deps.roster.known.find(({ id }) => id === person.id) ?? person];
  }

  left(personId: string): void {
    this.#participants = this.#participants.filter(({ id }) => id !== personId);
  }

  /** Somebody came or went: commands and targets change, and editors that show notices are told. */
  participantsChanged(change: { readonly kind: 'added' | 'removed'; readonly person: Person }): void {
    if (change.kind === 'added') this.joined(change.person);
    else this.left(change.person.id);
    this.#participantsAt = Number.NEGATIVE_INFINITY;
    if (!this.isAttached) return;
    this.announceCommands();
    const before = this.#shownOptions;
    const configOptions = this.configOptions();
    if (before !== this.#shownOptions) this.broadcast({ sessionUpdate: 'config_option_update', configOptions });
    const verb = change.kind === 'added' ? 'joined' : 'left';
    this.notice('info', `@${spell(change.person)} ${verb} the room`, true);
  }

  // Modes, options, commands

  modeState() {
    return modeState(this.#deps.options, this.choices);
  }

  configOptions() {
    const options = configOptions(this.#deps.options, this.choices, this.reachable);
    this.#shownOptions = JSON.stringify(options);
    return options;
  }

  get modePeer(): string | null {
    return this.#deps.options.modes.find(({ id }) => id === this.choices.modeId)?.peer ?? null;
  }

  commands(): ReadonlyMap<string, Command> {
    const { slashCommands, rosterCommands } = this.#deps.options;
    return commandTable(slashCommands, rosterCommands ? this.reachable.filter(isAgent) : null);
  }

  /** Sends the command list to all editors if it changed, or to one that has not seen it. */
  announceCommands(to: Attachment | null = null): void {
    const update: SessionUpdate = {
      sessionUpdate: 'available_commands_update',
      availableCommands: availableCommands(this.commands(), this.reachable),
    };
    const text = JSON.stringify(update);
    if (to) to.send(update);
    else if (text !== this.#shownCommands) this.broadcast(update);
    this.#shownCommands = text;
  }

  /** Mode or target changed, or the editor's context: the room is marked anew, at most once in two seconds. */
  markerDue(): void {
    if (this.#markerTimer || this.#gone) return;
    const wait = Math.max(0, this.#markerAt + MARKER_GAP_MS - this.#deps.clock.now());
    this.#markerTimer = this.#deps.clock.after(wait, () => {
      this.#markerTimer = null;
      this.#markerAt = this.#deps.clock.now();
      this.#postMarker();
    });
  }

  #postMarker(): void {
    const event = markerEvent(this.marker());
    this.#deps.background.run(async () => {
      await this.#deps.gate.access?.rest.postEvent(this.roomId, event);
    });
  }

  /** The marker was just posted by other means. */
  marked(): void {
    this.#markerAt = this.#deps.clock.now();
  }

  marker(deleted = false): Marker {
    return {
      sessionId: this.sessionId,
      roomId: this.roomId,
      cwd: this.cwd,
      mcpServers: this.mcpServers,
      client: this.client ? { name: this.client.name, version: this.client.version } : null,
      mode: this.choices.modeId,
      target: this.choices.target,
      principal: this.principal,
      deleted,
    };
  }
}

export function cancelledResponse(about: Readonly<Record<string, unknown>> = { delivered: false }): PromptResponse {
  return { stopReason: 'cancelled', _meta: meta(about) };
}

export function newJob(seq: number, attachment: Attachment, prompt: FlatPrompt): Job {
  return { seq, attachment, prompt, cancel: new AbortController(), answer: deferred<PromptResponse>() };
}

function withoutNulls<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null)) as Partial<T>;
}

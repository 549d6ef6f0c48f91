import type { PromptResponse, SessionUpdate } from '@agentclientprotocol/sdk';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import type { Editor } from '../client/editor.js';
import type { ClientInfo, McpSummary } from '../conversation.js';
import { markerEvent, type Marker } from '../conversation.js';
import { AcpFault, type AcpReason } from '../errors.js';
import type { HistoryTail } from '../inbound/delivery.js';
import { availableCommands, commandTable, type Command } from '../inbound/commands.js';
import { Debts, Turn } from '../inbound/turn.js';
import { isAgent, spell, type Person } from '../roster.js';
import { Attachment } from './attachment.js';
import { MarkerSchedule } from './marker-schedule.js';
import { configOptions, modeState, type Choices } from './options.js';
import { PromptQueue, type Job } from './prompt-queue.js';
import { RoomPeople } from './room-people.js';
import type { SessionDeps } from './sessions.js';
import { replyUpdates, thoughtUpdate } from './updates.js';

const REMEMBERED_MESSAGES = 2_000;
const MAX_KEPT_PUSHES = 100;

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

/** One room and the editors that look at it: who is there, which prompt runs, which wait, what is owed. */
export class Session {
  readonly roomId: string;
  /** What the newest marker calls it: the room's id, or the id that another bridge gave. */
  sessionId: string;
  readonly principal: string | null;
  readonly debts = new Debts();
  readonly people: RoomPeople;
  readonly markers: MarkerSchedule;
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
  readonly #prompts: PromptQueue;
  #turn: Turn | null = null;
  #addressed: ReadonlySet<string> = new Set();
  #keptPushes: SessionUpdate[] = [];
  #shownCommands = '';
  #shownOptions = '';
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
    this.people = new RoomPeople(deps, seed.roomId);
    this.markers = new MarkerSchedule(deps.clock, () => {
      const event = markerEvent(this.marker());
      deps.background.run(async () => {
        await deps.gate.access?.rest.postEvent(this.roomId, event);
      });
    });
    this.#prompts = new PromptQueue(deps.options.maxQueuedPrompts, deps.background, async (job) => {
      try {
        return await deps.runPrompt(this, job, deps);
      } finally {
        this.lastUsedAt = deps.clock.now();
      }
    });
  }

  get isAttached(): boolean {
    return this.#attachments.size > 0;
  }

  /** Prompts that run or wait. */
  get openPrompts(): number {
    return this.#prompts.size;
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
      before.abandon();
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
    attachment.abandon();
    this.lastUsedAt = this.#deps.clock.now();
    this.#prompts.cancelWhere((job) => job.attachment.editor === editor);
  }

  // Prompts

  /** @throws {AcpFault} `prompt_queue_full`, or `unknown_session` once the session has ended */
  enqueue(job: Job): Promise<PromptResponse> {
    this.lastUsedAt = this.#deps.clock.now();
    if (this.#gone) throw new AcpFault('unknown_session', { sessionId: this.sessionId });
    return this.#prompts.add(job);
  }

  /** Ends the running prompt and those that arrived before `seq`; later ones are not touched. */
  cancel(seq: number): void {
    this.#prompts.cancelBefore(seq);
  }

  /** Takes the session's word back: everything that runs is cancelled, later calls find nothing. */
  end(): void {
    this.#gone = true;
    this.breakTurn('cancelled');
    this.markers.flush();
    for (const attachment of this.#attachments) attachment.abandon();
    this.#attachments.clear();
  }

  breakTurn(reason: 'cancelled' | AcpReason): void {
    if (reason === 'cancelled') this.#prompts.cancelWhere(() => true);
    else {
      this.#prompts.refuseWaiting(new AcpFault(reason));
      this.#turn?.finish({ kind: 'broken', reason });
    }
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
    if (!this.people.has(senderId)) this.people.doubt();

    const updates = replyUpdates(row, {
      self,
      handleOf: (id) => this.people.handleOf(id),
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
        return this.people.here.length > 1 || !this.#addressed.has(senderId);
    }
  }

  /** Somebody came or went: commands and targets change, and editors that show notices are told. */
  participantsChanged(change: { readonly kind: 'added' | 'removed'; readonly person: Person }): void {
    if (change.kind === 'added') this.people.joined(change.person);
    else this.people.left(change.person.id);
    this.people.doubt();
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
    const options = configOptions(this.#deps.options, this.choices, this.people.reachable);
    this.#shownOptions = JSON.stringify(options);
    return options;
  }

  get modePeer(): string | null {
    return this.#deps.options.modes.find(({ id }) => id === this.choices.modeId)?.peer ?? null;
  }

  commands(): ReadonlyMap<string, Command> {
    const { slashCommands, rosterCommands } = this.#deps.options;
    return commandTable(slashCommands, rosterCommands ? this.people.reachable.filter(isAgent) : null);
  }

  /** Sends the command list to all editors if it changed, or to one that has not seen it. */
  announceCommands(to: Attachment | null = null): void {
    const update: SessionUpdate = {
      sessionUpdate: 'available_commands_update',
      availableCommands: availableCommands(this.commands(), this.people.reachable),
    };
    const text = JSON.stringify(update);
    if (to) to.send(update);
    else if (text !== this.#shownCommands) this.broadcast(update);
    this.#shownCommands = text;
  }

  /** What the room is marked with now. */
  marker(): Marker {
    return {
      sessionId: this.sessionId,
      roomId: this.roomId,
      cwd: this.cwd,
      mcpServers: this.mcpServers,
      client: this.client ? { name: this.client.name, version: this.client.version } : null,
      mode: this.choices.modeId,
      target: this.choices.target,
      principal: this.principal,
      deleted: false,
    };
  }
}

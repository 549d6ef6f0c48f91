import { abortable } from '../base/async.js';
import type { ControlMode } from './control.js';
import { catchUp, recoverStuck, type CatchUpResult } from './catch-up.js';
import type { AbortKind, Cycle } from './cycle.js';
import type { Timed } from './deadlines.js';
import type { ExecutionContext } from './execution-context.js';
import type { ParticipantEvent, RoomEnvironment, RoomState } from './room-state.js';
import { ResyncSchedule } from './schedule.js';
import { isForAgent, isSyntheticMessage, type WireMessage } from './wire-message.js';
import { workMessage } from './work-message.js';

/** Messages that wait in one room; beyond, the platform's work list is asked instead. */
const MAX_QUEUED_MESSAGES = 1_000;

const DONE = Promise.resolve();

export type ExecutionState = 'starting' | 'idle' | 'processing';

/**
 * One room's work, one message at a time: startup synchronisation, then whatever comes first of a pushed message, a
 * change of participants, a due look for missed messages, a wish for one.
 *
 *     push → queue → (pass wanted? catch up) → workMessage → queue …
 *
 * No loop waits in an idle room: whatever happens wakes it, and it runs until nothing is left. An idle room therefore
 * costs this object and its place among the deadlines.
 */
export class RoomExecution implements RoomState, Timed {
  dueAt = 0;
  slot = -1;
  readonly roomId: string;
  cycle: Cycle | null = null;
  readonly #env: RoomEnvironment;
  readonly #schedule: ResyncSchedule;
  /**
   * Insertion time of the newest message that was worked off, and the session's own beginning at least: what was
   * inserted before that is handed out by the work list. A clock that is ahead costs looks there, nothing else.
   */
  #doneUpTo: string;
  #context: ExecutionContext | null = null;
  #messages: WireMessage[] | null = null;
  #changes: ParticipantEvent[] | null = null;
  #active = false;
  #running: Promise<void> = DONE;
  #reads: AbortController | null = null;
  #controls = 0;
  #paused = false;
  #ended = false;
  /** False until the startup synchronisation succeeded. */
  #synced = false;
  /** Pushed messages wait: something older may be missing, and the next pass tells. */
  #held = true;
  /** Reasons to hold so far: a pass lifts only those that it began with. */
  #holds = 0;
  #passWanted = true;
  /** The first push asks the work list, which had nothing to hand out while the agent may have been stopped. */
  #firstPushAsks: boolean;

  /** @param leftPaused - the room's session before ended in a stop, and whether that is over nobody told */
  constructor(roomId: string, env: RoomEnvironment, { leftPaused = false }: { readonly leftPaused?: boolean } = {}) {
    this.roomId = roomId;
    this.#env = env;
    this.#firstPushAsks = leftPaused;
    this.#schedule = new ResyncSchedule(env.times);
    this.#doneUpTo = new Date(env.clock.now()).toISOString();
  }

  get state(): ExecutionState {
    if (!this.#synced) return 'starting';
    return this.#active ? 'processing' : 'idle';
  }

  get paused(): boolean {
    return this.#paused;
  }

  set paused(paused: boolean) {
    this.#paused = paused;
  }

  get controls(): number {
    return this.#controls;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get reads(): AbortSignal {
    this.#reads ??= new AbortController();
    return this.#reads.signal;
  }

  /** The session's context, if a message made one. */
  get context(): ExecutionContext | null {
    return this.#context;
  }

  openContext(): ExecutionContext {
    this.#context ??= this.#env.openContext(this.roomId);
    return this.#context;
  }

  start(): void {
    this.#wake();
  }

  /** A message came over the socket, or was made of a contact event. */
  push(message: WireMessage): void {
    if (this.#ended || !isForAgent(message, this.#env.agentId)) return;
    if (this.#paused && !isSyntheticMessage(message)) return; // found in the work list at play
    if (this.#firstPushAsks) {
      this.#firstPushAsks = false;
      this.hold();
      this.#passWanted = true;
    }
    this.#messages ??= [];
    if (this.#messages.length >= MAX_QUEUED_MESSAGES) {
      this.#env.log.warn({ roomId: this.roomId }, 'too many messages wait in a room; the work list is asked instead');
      this.#env.counters.overflows.inc();
      this.#dropListed();
      this.hold();
      this.#passWanted = true;
    } else {
      this.#messages.push(message);
    }
    this.#wake();
  }

  participantChanged(change: ParticipantEvent): void {
    if (this.#ended) return;
    this.#changes ??= [];
    this.#changes.push(change);
    this.#wake();
  }

  /** A pass follows as soon as the room is free; wishes during a pass make one more. */
  requestPass(): void {
    if (this.#ended) return;
    this.#schedule.requested();
    this.#passWanted = true;
    this.#wake();
  }

  /** Something may have been missed. */
  catchUp(): void {
    this.#context?.doubtParticipants();
    this.requestPass();
  }

  /** A line for the next turn. */
  addNotice(notice: string): void {
    if (!this.#ended) this.openContext().addNotice(notice);
  }

  /** The connection broke: what is pushed from now on may come after something that was not. */
  hold(): void {
    this.#held = true;
    this.#holds += 1;
  }

  /** A person's signal, ahead of everything queued. */
  control(mode: ControlMode): void {
    if (this.#ended) return;
    this.#controls += 1;
    switch (mode) {
      case 'interrupt':
        this.cycle?.abort('interrupt');
        return;
      case 'stop':
        this.#pause();
        this.cycle?.abort('stop');
        return;
      case 'play':
        this.#paused = false;
        this.requestPass();
        return;
    }
  }

  noteDone(insertedAt: string): void {
    if (insertedAt > this.#doneUpTo) this.#doneUpTo = insertedAt;
  }

  isLate(insertedAt: string): boolean {
    return insertedAt <= this.#doneUpTo;
  }

  sawWork(): void {
    this.#schedule.sawWork(this.#env.clock.now());
  }

  stoppedByPlatform(controls: number): void {
    if (this.#controls === controls) this.#pause();
    else this.#passWanted = true;
  }

  onDue(): void {
    this.#passWanted = true;
    this.#wake();
  }

  /** Takes no new work from now on. A cycle that runs goes on, a message that was only claimed stays as it is. */
  close(by: AbortKind): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#messages = null;
    this.#changes = null;
    this.#env.deadlines.clear(this);
    this.#reads?.abort();
    if (this.cycle && !this.cycle.running) this.cycle.abort(by);
  }

  /** Ends the running cycle. @returns false when there was none */
  cancel(by: AbortKind): boolean {
    const running = this.cycle?.running ?? false;
    this.cycle?.abort(by);
    return running;
  }

  /** Resolves when nothing runs any more; only for a room that was closed. */
  async settled(): Promise<void> {
    await this.#running;
  }

  #pause(): void {
    this.#paused = true;
    this.hold();
    this.#dropListed();
    this.#schedule.stopped(this.#env.clock.now());
    this.#arm();
  }

  /** Drops what the work list holds as well, in order; a contact event is held nowhere else. */
  #dropListed(): void {
    const kept = this.#messages?.filter(isSyntheticMessage).slice(0, MAX_QUEUED_MESSAGES - 1) ?? [];
    this.#messages = kept.length > 0 ? kept : null;
  }

  #wake(): void {
    if (this.#active || this.#ended) return;
    this.#active = true;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    // Whatever woke the room may have more to say before the work begins.
    await DONE;
    while (this.#hasWork()) {
      try {
        await this.#workOff();
      } catch (error) {
        // No line below is meant to throw. Should one, the work list still has what was in hand.
        this.#env.log.error(
          { err: error, roomId: this.roomId },
          'a room met an unexpected error; it looks again later',
        );
        this.#schedule.retryAfterBase(this.#env.clock.now());
      }
    }
    // From the last look to here nothing waits, so no wake-up can be lost.
    this.#active = false;
    this.#arm();
  }

  #hasWork(): boolean {
    if (this.#ended) return false;
    return this.#passWanted || this.#changes !== null || (this.#mayWorkPushed() && this.#messages !== null);
  }

  #mayWorkPushed(): boolean {
    return !this.#held && !this.#paused;
  }

  /** One thing, the most urgent one. */
  async #workOff(): Promise<void> {
    if (this.#passWanted) {
      this.#passWanted = false;
      await this.#pass();
      return;
    }
    const change = this.#changes?.shift();
    if (this.#changes?.length === 0) this.#changes = null;
    if (change) {
      await this.#applyChange(change);
      return;
    }
    const message = this.#messages?.shift();
    if (this.#messages?.length === 0) this.#messages = null;
    if (message) await this.#workPushed(message);
  }

  #arm(): void {
    if (this.#ended || this.#passWanted) return;
    const at = this.#schedule.deadline;
    if (!Number.isFinite(at) || (this.slot !== -1 && this.dueAt === at)) return;
    this.#env.deadlines.set(this, at);
  }

  async #workPushed(message: WireMessage): Promise<void> {
    switch (await workMessage(this.#env, this, message, 'push')) {
      case 'retry':
      case 'unsure':
        // Whatever the pass finds comes first, also when it takes several to succeed.
        this.hold();
        this.#passWanted = true;
        return;
      case 'deferred':
        this.hold();
        this.#schedule.retryAfterBase(this.#env.clock.now());
        if (this.#paused) this.#schedule.stopped(this.#env.clock.now());
        return;
      case 'halted':
        // No work list has it, so it keeps its place here.
        if (isSyntheticMessage(message) && !this.#ended) this.#messages = [message, ...(this.#messages ?? [])];
        return;
      case 'done':
      case 'skipped':
      case 'unacknowledged':
        return;
    }
  }

  async #pass(): Promise<void> {
    const { clock, random } = this.#env;
    const holds = this.#holds;
    const result = await this.#catchUp();
    // A room at rest keeps no signal; the messages between two passes share one.
    this.#reads = null;
    this.#env.counters.passes.inc({ result });
    if (this.#ended || result === 'void') {
      if (this.#paused) this.#schedule.pausedPassEnded(clock.now());
      else this.#schedule.retryAfterBase(clock.now());
      return;
    }
    if (this.#paused) {
      this.#schedule.pausedPassEnded(clock.now());
      return;
    }
    const complete = result !== 'deferred' && result !== 'failed';
    if (complete && this.#holds === holds) this.#held = false;
    if (result === 'deferred') this.hold();
    if (this.#synced) {
      this.#schedule.passEnded(complete ? result : 'failed', clock.now());
    } else if (complete) {
      this.#synced = true;
      this.#schedule.started(clock.now(), random);
    } else {
      this.#schedule.retryAfterBase(clock.now());
    }
  }

  async #catchUp(): Promise<CatchUpResult> {
    if (!this.#synced && !this.#paused) {
      const recovered = await recoverStuck(this.#env, this);
      if (recovered !== 'empty' && recovered !== 'worked') return recovered;
    }
    return catchUp(this.#env, this);
  }

  async #applyChange(change: ParticipantEvent): Promise<void> {
    if (change.kind === 'participant_added') this.#context?.roster.merge(change.participant);
    else this.#context?.roster.remove(change.participant.id);
    // A callback that never returns must not keep the room from ending.
    await abortable(this.#env.participantChanged(this.roomId, change), this.reads).catch(() => undefined);
  }
}

import { context, ROOT_CONTEXT, type Context as TraceContext } from '@opentelemetry/api';
import { Background } from '../../../src/base/async.js';
import { backoffMs } from '../../../src/base/backoff.js';
import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { StateStore } from '../../../src/store/port.js';
import type { BandCalls, BandHealth } from '../band.js';
import type { ReadReply } from '../convert/directive.js';
import type { Self } from '../convert/from-band.js';
import { toBandText } from '../convert/to-band.js';
import type { PublishedPeer } from '../peers/directory.js';
import { conversationOf, type A2AOptions, type ConversationSettings } from '../settings.js';
import { isInterrupted, isTerminal, type Message } from '../wire.js';
import { TaskBook, type Change, type FoundTask, type OpenTask } from './book.js';
import { Completion } from './completion.js';
import { Contexts, type Context } from './contexts.js';
import { DeliveryStates } from './delivery.js';
import { stateLabel, TaskFigures } from './figures.js';
import { Lanes, removeFromLane, tasksOf, type Lane } from './lanes.js';
import type { Reason } from './reasons.js';
import type { RecordKeys, TaskRow } from './records.js';
import { completion, failure, parking } from './steps.js';
import { TaskTimers } from './timers.js';

export interface EngineDeps {
  readonly store: StateStore;
  /** The store outlives the process, so open tasks wait for the next start. */
  readonly durable: boolean;
  readonly keys: RecordKeys;
  readonly rest: BandCalls;
  readonly health: BandHealth;
  readonly options: A2AOptions;
  readonly self: Self;
  readonly peers: {
    byId(peerId: string): PublishedPeer | null;
    remove(peerId: string): void;
    /** Reads the directory again, unless that was done a moment ago. */
    lookAgain(): void;
    /** Resolves once the directory was read. */
    whenReady(signal: AbortSignal): Promise<void>;
  };
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly newId: () => string;
  readonly random: () => number;
  readonly readReply: ReadReply;
  readonly findBinding: (
    owner: string,
    contextId: string,
  ) => Promise<{ roomId: string; peers: readonly string[] } | null>;
}

const STORE_RETRY = { baseMs: 50, maxMs: 2_000 } as const;

/**
 * What every part of the engine works with: the tasks, their lanes and timers, and the one way to change a task. After
 * each change the task gets its place in its lane and its timers anew.
 */
export class EngineCore {
  readonly deps: EngineDeps;
  readonly book: TaskBook;
  readonly contexts: Contexts;
  readonly lanes: Lanes;
  readonly delivery: DeliveryStates;
  readonly completion: Completion;
  readonly timers: TaskTimers;
  readonly background: Background;
  /** Aborts what is still under way at the end of a stop. */
  readonly work = new AbortController();
  /** Aborts waits and streams at the beginning of a stop. */
  readonly readers = new AbortController();
  /** Tasks of this process, whose posts no earlier process can have made. */
  readonly fresh = new Set<string>();
  readonly figures: TaskFigures;
  /** The trace in which a task was last asked something, so that its post is part of it. */
  readonly traces = new Map<string, TraceContext>();
  stopping = false;
  /** Wakes a lane's worker; set once, by the worker. */
  kick: (lane: Lane) => void = () => undefined;

  constructor(deps: EngineDeps) {
    this.deps = deps;
    const { store, keys, clock, rest, log, metrics } = deps;
    this.figures = new TaskFigures(metrics);
    this.book = new TaskBook(
      store,
      keys,
      (state, count) => {
        this.figures.counted(state, count);
      },
      (task) => {
        this.#caughtUp(task);
      },
    );
    this.contexts = new Contexts({
      store,
      keys,
      clock,
      retentionMs: deps.options.tasks.retentionSeconds * 1_000,
      findBinding: deps.findBinding,
    });
    this.lanes = new Lanes(store, keys, this.contexts, clock);
    this.delivery = new DeliveryStates(rest);
    this.timers = new TaskTimers(clock);
    this.background = new Background((error) => {
      if (!this.work.signal.aborted) log.error({ err: error }, 'a step of the task engine failed');
    });
    this.completion = new Completion({
      clock,
      timers: this.timers,
      delivery: this.delivery,
      signal: this.work.signal,
      background: (work) => {
        this.background.run(work);
      },
      complete: (taskId, owing) => {
        this.later(() => this.complete(taskId, owing));
      },
      peerFailed: (taskId) => {
        this.later(() => this.fail(taskId, 'PEER_FAILED'));
      },
      find: (taskId) => this.book.find(taskId),
      taken: (task, replyId) => this.laneOf(task)?.record.taken.includes(replyId) ?? true,
    });
  }

  // Ends and timers

  async complete(taskId: string, owing: boolean): Promise<void> {
    await this.durably(() =>
      this.change(taskId, (task) => {
        const change = completion(task, this.now());
        const lane = this.laneOf(task);
        return change && lane && owing ? this.withDebt(lane, task, change) : change;
      }),
    );
  }

  /**
   * Ends a task with a reason.
   *
   * @param standing - whether its message may stand in the room, where the caller knows
   */
  async fail(taskId: string, reason: Reason, standing?: boolean): Promise<void> {
    const { newId } = this.deps;
    await this.durably(() =>
      this.change(taskId, (task) => {
        const lane = this.laneOf(task);
        const unposted = task.row.posted === 0 && !(standing ?? this.#mayStand(lane, task.row));
        const change = failure(task, { reason, unposted }, newId, this.now());
        // A room that is closed answers nothing.
        const uncertainPost = standing === true && reason !== 'ROOM_CLOSED';
        const owes = reason === 'PEER_TIMEOUT' || reason === 'EXPIRED' || uncertainPost;
        return change && lane && owes ? this.withDebt(lane, task, change, uncertainPost) : change;
      }),
    );
  }

  /** A context's room is gone, and with it the answers to all that was asked in it. */
  async roomGone(context: Context, roomId: string): Promise<void> {
    if (context.record.roomId === roomId) {
      for (const lane of [...this.lanes.all()]) {
        if (lane.context !== context) continue;
        lane.record = { ...lane.record, debt: null };
        for (const taskId of tasksOf(lane)) await this.fail(taskId, 'ROOM_CLOSED');
      }
    }
    await this.durably(() => this.contexts.unbindRoom(context, roomId));
  }

  async #silence(taskId: string): Promise<void> {
    const task = this.book.find(taskId);
    if (!task) return;
    const settings = this.settingsOf(task.row.peerId);
    if (settings.onTimeout === 'fail') {
      await this.fail(taskId, 'PEER_TIMEOUT');
      return;
    }
    const name = this.deps.peers.byId(task.row.peerId)?.name ?? 'The agent';
    const parked = await this.durably(() =>
      this.change(taskId, (open) => parking(open, name, this.deps.newId, this.now())),
    );
    if (parked) this.deps.log.info({ ...this.idsOf(parked), reason: 'WAITING_FOR_BAND' }, 'a2a task parked');
  }

  armSilence({ row }: OpenTask, { responseTimeoutMs }: ConversationSettings, elapsedMs = 0): void {
    if (responseTimeoutMs === null || row.state !== 'TASK_STATE_WORKING' || row.posted === 0) return;
    this.timers.set(row.id, 'silence', responseTimeoutMs - elapsedMs, () => {
      this.later(() => this.#silence(row.id));
    });
  }

  armExpiry({ row }: OpenTask, elapsedMs = 0): void {
    this.timers.set(row.id, 'expiry', this.deps.options.tasks.ttlSeconds * 1_000 - elapsedMs, () => {
      this.later(() => this.fail(row.id, 'EXPIRED'));
    });
  }

  // The common end of every step

  /** One step of a task, and what follows from it. @returns null when nothing was done */
  async change(taskId: string, decide: (task: OpenTask) => Change | null): Promise<OpenTask | null> {
    const after = await this.book.change(taskId, decide);
    if (after) this.#arrange(after);
    else if (!this.book.find(taskId) && this.timers.knows(taskId)) this.#letGo(taskId);
    return after;
  }

  /** Gives a task its place in its lane, and its timers, after a step. */
  #arrange(task: OpenTask): void {
    const { row } = task;
    const lane = this.laneOf(task);
    if (isTerminal(row.state)) {
      this.#forget(row.id);
      this.figures.ended(row, this.now());
      const { status, statusMetadata } = task.view;
      const reason = status.message?.metadata?.['band_reason'] ?? statusMetadata?.['band_reason'];
      this.deps.log.info({ ...this.idsOf(task), state: stateLabel(row.state), reason }, 'a2a task ended');
      if (lane) {
        removeFromLane(lane, row.id);
        this.kick(lane);
      }
      return;
    }
    if (!this.stopping) this.armExpiry(task);
    if (!lane) return;
    if (isInterrupted(row.state)) {
      this.timers.clear(row.id, 'silence', 'settle', 'hold', 'poll');
      if (lane.interrupted.includes(row.id)) return;
      removeFromLane(lane, row.id);
      lane.interrupted.push(row.id);
      this.kick(lane);
    } else if (lane.interrupted.includes(row.id) && row.pending.length === 0) {
      removeFromLane(lane, row.id);
      lane.running = row.id;
    }
  }

  /** A step that was thought to have failed is done: what follows from it is made up for. */
  #caughtUp(task: OpenTask): void {
    this.#arrange(task);
    const { row } = task;
    const lane = this.laneOf(task);
    if (row.state !== 'TASK_STATE_WORKING' || !lane || this.stopping) return;
    const settings = this.settingsOf(row.peerId);
    this.armSilence(task, settings);
    if (row.replies > 0) this.completion.afterReply(task, lane.context, settings);
    else if (row.posted > 0) this.completion.awaitReply(task, lane.context, settings);
  }

  /** A task was stored. */
  accepted(): void {
    this.figures.accepted.inc();
  }

  /** What joins the lines of the log that belong to one task. */
  idsOf(task: FoundTask): Record<string, string | null> {
    const { id, contextId, owner, peerId } = task.row;
    const roomId = this.laneOf(task)?.context.record.roomId ?? null;
    return { taskId: id, contextId, peer: peerId, principal: owner, roomId };
  }

  /** The task was asked something just now: what follows from it belongs to the trace of this moment. */
  trace(taskId: string): void {
    const active = context.active();
    if (active !== ROOT_CONTEXT) this.traces.set(taskId, active);
  }

  #forget(taskId: string): void {
    this.timers.clearAll(taskId);
    this.completion.forget(taskId);
    this.fresh.delete(taskId);
    this.traces.delete(taskId);
  }

  /** A task whose end became known only by reading its record again, after a write of unknown outcome. */
  #letGo(taskId: string): void {
    this.#forget(taskId);
    for (const lane of [...this.lanes.all()]) {
      removeFromLane(lane, taskId);
      this.kick(lane);
    }
  }

  /** Adds the lane's debt to a step that ends a task whose message may still be answered. */
  withDebt(lane: Lane, { row }: OpenTask, change: Change, uncertainPost = false): Change {
    const awaited = (lane.running === row.id && row.posted > 0) || row.parked;
    if (!awaited && !uncertainPost) return change;
    lane.record = { ...lane.record, debt: { messageId: row.lastPostId, at: this.now() } };
    return { ...change, also: [...(change.also ?? []), this.lanes.put(lane)] };
  }

  /** Whether a message of the task may stand in a room: one is on its way, or an earlier process may have posted it. */
  #mayStand(lane: Lane | null, { id, pending }: TaskRow): boolean {
    const inFlight = lane?.inFlight ?? null;
    return !this.fresh.has(id) || (inFlight !== null && pending.includes(inFlight));
  }

  laneOf({ contextKey, row }: FoundTask): Lane | null {
    return this.lanes.find(contextKey, row.peerId);
  }

  settingsOf(peerId: string): ConversationSettings {
    return this.deps.peers.byId(peerId)?.conversation ?? conversationOf(this.deps.options, undefined, 'Agent');
  }

  textOf(message: Message, peer: PublishedPeer): string {
    const { options } = this.deps;
    return toBandText(message.parts, {
      inputModes: peer.override?.inputModes ?? options.inputModes,
      inlineChars: options.files.inlineChars,
      maxChars: peer.conversation.maxMessageChars,
    });
  }

  /** Repeats a step while the store is out of order, until the engine stops. */
  async durably<T>(step: () => Promise<T>): Promise<T> {
    const { clock, log, random } = this.deps;
    for (let failures = 1; ; failures += 1) {
      try {
        return await step();
      } catch (error) {
        const transient = isGatewayError(error, 'STORE_IO') || isGatewayError(error, 'STORE_TRIPPED');
        if (!transient || this.work.signal.aborted) throw error;
        if (failures === 1) log.error({ err: error }, 'the store refused a step; it is tried again');
        await clock.sleep(backoffMs(failures, { ...STORE_RETRY, random }), this.work.signal);
      }
    }
  }

  later(work: () => Promise<void>): void {
    this.background.run(work);
  }

  now(): number {
    return this.deps.clock.now();
  }
}

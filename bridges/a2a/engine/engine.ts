import { Background, withDeadline } from '../../../src/base/async.js';
import { backoffMs } from '../../../src/base/backoff.js';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { StateStore } from '../../../src/store/port.js';
import type { BandCalls, BandHealth } from '../band.js';
import { plainReply, type ReadReply } from '../convert/directive.js';
import { fromBandText, type MentionName, type Self } from '../convert/from-band.js';
import { toBandText } from '../convert/to-band.js';
import { refusal, taskEnded, taskUnknown } from '../errors.js';
import type { PublishedPeer } from '../peers/directory.js';
import { conversationOf, type A2AOptions, type ConversationSettings } from '../settings.js';
import { isInterrupted, isTerminal, type Message } from '../wire.js';
import { TaskBook, type Change, type OpenTask } from './book.js';
import { Completion } from './completion.js';
import { Contexts, type Context } from './contexts.js';
import { DeliveryStates } from './delivery.js';
import { Dispatcher, PeerUnknown, UncertainPost } from './dispatch.js';
import { Lanes, removeFromLane, takeReply, type Lane } from './lanes.js';
import type { TaskView } from './log.js';
import { TaskFailure, type Reason } from './reasons.js';
import { contextKeyOf, type RecordKeys, type TaskRow } from './records.js';
import { claimPuts, findRepeat, fingerprintOf, type Claim } from './repeats.js';
import { answer, cancellation, completion, failure, followUp, parking, posting, remark } from './steps.js';
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

export interface SendRequest {
  readonly owner: string;
  readonly peer: PublishedPeer;
  /** In the 1.0 form, checked; `taskId` continues a task. */
  readonly message: Message;
}

/** A text of a room that mentions the gateway agent. */
export interface BandReply {
  readonly id: string;
  readonly roomId: string;
  readonly senderId: string;
  readonly senderName: string | null;
  readonly content: string;
  readonly mentions: readonly MentionName[];
}

export interface FoundTask {
  readonly row: TaskRow;
  readonly view: TaskView;
}

const DEBT_QUIET_MS = 5_000;
const DEBT_POLLS_MS: readonly number[] = [50, 150, 400, 1_000, 2_000];
const DEBT_POLLS_LATER_MS = 5_000;
const STORE_RETRY = { baseMs: 50, maxMs: 2_000 } as const;
const RETRY_AFTER_MS = 5_000;

/**
 * The tasks of all peers and what moves them: a request becomes a task in the lane of its context and peer, the lane
 * posts it into the room, a reply of the peer is appended to it, timers and room events end it.
 *
 * send → book (stored) → lane → dispatcher (room, marker, message) → WORKING … reply → book → COMPLETED
 */
export class TaskEngine {
  readonly book: TaskBook;
  readonly #deps: EngineDeps;
  readonly #contexts: Contexts;
  readonly #lanes: Lanes;
  readonly #dispatcher: Dispatcher;
  readonly #delivery: DeliveryStates;
  readonly #completion: Completion;
  readonly #timers: TaskTimers;
  readonly #background: Background;
  readonly #work = new AbortController();
  readonly #readers = new AbortController();
  /** Tasks of this process, whose posts no earlier process can have made. */
  readonly #fresh = new Set<string>();
  readonly #counters;
  #accepting = 0;
  #order = 0;
  #stopping = false;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    const { store, keys, clock, rest, log, metrics } = deps;
    this.book = new TaskBook(store, keys);
    this.#contexts = new Contexts({ store, keys, clock, findBinding: deps.findBinding });
    this.#lanes = new Lanes(store, keys, this.#contexts);
    this.#delivery = new DeliveryStates(rest);
    this.#timers = new TaskTimers(clock);
    this.#background = new Background((error) => {
      if (!this.#work.signal.aborted) log.error({ err: error }, 'a step of the task engine failed');
    });
    this.#dispatcher = new Dispatcher({
      rest,
      contexts: this.#contexts,
      clock,
      selfId: deps.self.id,
      deadlineMs: deps.options.dispatchDeadlineMs,
      random: deps.random,
    });
    this.#completion = new Completion({
      clock,
      timers: this.#timers,
      delivery: this.#delivery,
      signal: this.#work.signal,
      background: (work) => {
        this.#background.run(work);
      },
      complete: (taskId, owing) => {
        this.#later(() => this.#complete(taskId, owing));
      },
      peerFailed: (taskId) => {
        this.#later(() => this.#fail(taskId, 'PEER_FAILED'));
      },
      find: (taskId) => this.book.find(taskId),
    });
    this.#counters = {
      accepted: metrics.counter('band_a2a_tasks_total', 'Tasks accepted'),
      ended: metrics.counter('band_a2a_tasks_ended_total', 'Tasks ended, by state', ['state']),
      late: metrics.counter('band_a2a_late_replies_total', 'Replies that came after the end of their task'),
      unmatched: metrics.counter('band_a2a_unmatched_replies_total', 'Replies that belong to no task'),
    };
  }

  /** Aborts when waits and streams have to end because the gateway stops. */
  get readers(): AbortSignal {
    return this.#readers.signal;
  }

  /** What is held in memory, for tests and the status page. */
  get held(): { tasks: number; lanes: number; timers: number } {
    return { tasks: this.book.openCount, lanes: this.#lanes.size, timers: this.#timers.size };
  }

  /** Takes up the open tasks of an earlier run: queued ones go back into their lanes, timers go on from stored times. */
  async start(): Promise<void> {
    const open = await this.book.load();
    open.sort((a, b) => a.row.order - b.row.order);
    const lanes = new Set<Lane>();
    for (const task of open) lanes.add(await this.#restore(task));
    for (const lane of lanes) {
      // Its reply may be the first thing that comes, so the head is ready for it before its post was looked for.
      if (lane.running === null && lane.record.debt === null) lane.running = lane.queue.shift() ?? null;
      this.#kick(lane);
    }
    if (open.length > 0) this.#deps.log.info({ tasks: open.length }, 'open tasks of an earlier run were taken up');
  }

  /** Ends waits and streams, lets steps under way finish, and fails what a memory store would lose. */
  async stop(deadlineMs: number): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    const { clock, log } = this.#deps;
    if (!this.#deps.durable) {
      for (const task of [...this.book.openTasks()])
        await this.#fail(task.row.id, 'GATEWAY_SHUTDOWN').catch(() => undefined);
    }
    this.#readers.abort(new GatewayError('A2A_STOPPING'));
    this.#timers.stop();
    try {
      await withDeadline(clock, deadlineMs, null, () => this.#background.drain());
    } catch {
      log.warn({ waiting: this.#background.size }, 'steps were still under way at the end of the shutdown time');
    }
    this.#work.abort(new GatewayError('A2A_STOPPING'));
    this.#timers.stop();
    await this.#background.drain();
  }

  /**
   * Stores a message as a new task, or adds it to the one it names; a repeat finds the first one's task. The task is
   * on disk when this resolves; the post into the room follows.
   *
   * @throws {GatewayError} `A2A_MESSAGE_ID_REUSED`, `A2A_TASK_UNKNOWN`, `A2A_TASK_ENDED`, `A2A_TASK_BUSY`,
   *   `A2A_PARAMS` (the context does not fit the task, the text is empty or too long), `A2A_CONTENT_TYPE`,
   *   `A2A_CONTEXT_BUSY`, `A2A_TASK_LIMIT`, `A2A_CAPACITY`, `A2A_BAND_DOWN`, `A2A_NOT_READY`, `A2A_STOPPING`
   */
  async send(request: SendRequest): Promise<string> {
    const { owner, peer, message } = request;
    this.#textOf(message, peer);
    const claim: Claim = {
      key: this.#deps.keys.repeat(owner, peer.id, message.messageId),
      messageId: message.messageId,
      fingerprint: fingerprintOf(message),
    };
    const earlier = await this.#repeat(claim);
    if (earlier !== null) return earlier;
    if (this.#stopping) throw new GatewayError('A2A_STOPPING');
    try {
      return message.taskId === undefined
        ? await this.#accept(request, claim)
        : await this.#append(request, message.taskId, claim);
    } catch (error) {
      // A copy of the same message was faster.
      const first = isGatewayError(error, 'STORE_CONFLICT') ? await this.#repeat(claim) : null;
      if (first === null) throw error;
      return first;
    }
  }

  /** The principal's task at this peer. @throws {GatewayError} `A2A_TASK_UNKNOWN` */
  async read(owner: string, peerId: string, taskId: string): Promise<FoundTask> {
    const found = await this.book.read(taskId);
    if (found?.row.owner !== owner || found.row.peerId !== peerId) throw taskUnknown();
    return found;
  }

  /** @throws {GatewayError} `A2A_TASK_UNKNOWN`; `A2A_NOT_CANCELABLE` when it has ended */
  async cancel(owner: string, peerId: string, taskId: string): Promise<FoundTask> {
    const found = await this.read(owner, peerId, taskId);
    const lane = this.#laneOf(found.row);
    const after = await this.#changeAndArrange(taskId, (task) => {
      const change = cancellation(task, this.#now());
      return change && lane ? this.#withDebt(lane, task, change) : change;
    });
    if (!after) {
      const { row } = await this.read(owner, peerId, taskId);
      throw refusal('A2A_NOT_CANCELABLE', { taskId, state: row.state });
    }
    if (lane) this.#noticeCancel(lane, after.row);
    return after;
  }

  /**
   * Takes a message of a room. Resolves when it was taken or belongs to nobody, so that it can be marked as processed;
   * while the store is down it waits.
   */
  async reply(reply: BandReply): Promise<void> {
    await this.#durably(() => this.#takeReply(reply));
  }

  /** The gateway agent is not in the room any more. */
  async roomGone(roomId: string): Promise<void> {
    const context = await this.#contexts.openByRoom(roomId);
    if (!context) return;
    try {
      for (const lane of [...this.#lanes.all()]) {
        if (lane.context !== context) continue;
        lane.record = { ...lane.record, debt: null };
        for (const taskId of tasksOf(lane)) await this.#fail(taskId, 'ROOM_CLOSED');
      }
      await this.#durably(() => this.#contexts.unbindRoom(context));
    } finally {
      this.#contexts.close(context);
    }
  }

  /** Somebody took a peer out of a room. */
  async peerLeft(roomId: string, peerId: string): Promise<void> {
    const context = await this.#contexts.openByRoom(roomId);
    if (!context) return;
    try {
      context.record = { ...context.record, peers: context.record.peers.filter((id) => id !== peerId) };
      const running = this.#lanes.find(context.key, peerId)?.running;
      if (running && (this.book.find(running)?.row.posted ?? 0) > 0) await this.#fail(running, 'PEER_LEFT');
      else await this.#durably(() => this.#contexts.save(context));
    } finally {
      this.#contexts.close(context);
    }
  }

  /** A peer is gone from the directory. */
  async peerRemoved(peerId: string): Promise<void> {
    for (const task of [...this.book.openTasks()]) {
      if (task.row.peerId === peerId) await this.#fail(task.row.id, 'PEER_REMOVED');
    }
  }

  // Accepting

  async #accept(request: SendRequest, claim: Claim): Promise<string> {
    const { owner, message } = request;
    const { newId } = this.#deps;
    this.#requireCapacity(owner);
    this.#accepting += 1;
    try {
      const isNew = message.contextId === undefined;
      const context = await this.#contexts.open(owner, message.contextId ?? newId(), isNew);
      try {
        return await this.#acceptInto(context, request, claim);
      } finally {
        this.#contexts.close(context);
      }
    } finally {
      this.#accepting -= 1;
    }
  }

  async #acceptInto(context: Context, { owner, peer, message }: SendRequest, claim: Claim): Promise<string> {
    const { newId, keys, options } = this.#deps;
    const lane = await this.#lanes.enter(context, peer.id);
    try {
      const held = (lane.running === null ? 0 : 1) + lane.queue.length + lane.coming;
      if (held > options.laneQueue) throw new GatewayError('A2A_CONTEXT_BUSY', { retryAfterMs: RETRY_AFTER_MS });
      lane.coming += 1;
      const now = this.#now();
      const { contextId } = context.record;
      const ids = { id: newId(), owner, peerId: peer.id, contextId, order: this.#nextOrder(now) };
      const row = newRow(ids, message.messageId, now);
      const stored: Message = { ...message, taskId: row.id, contextId: row.contextId };
      const { addressed } = context.record;
      context.record = {
        ...context.record,
        lastUsedAt: now,
        addressed: addressed.includes(peer.id) ? addressed : [...addressed, peer.id],
      };
      try {
        const status = { state: 'TASK_STATE_SUBMITTED', timestamp: new Date(now).toISOString() } as const;
        const task = await this.book.create(
          row,
          [
            { kind: 'message', message: stored },
            { kind: 'status', status },
          ],
          [
            ...this.#contexts.puts(context),
            ...claimPuts(claim, row.id, keys, now, options.idempotency.windowSeconds * 1_000),
          ],
        );
        this.#fresh.add(row.id);
        lane.queue.push(row.id);
        this.#armExpiry(task);
      } catch (error) {
        context.saved = null;
        throw error;
      } finally {
        lane.coming -= 1;
      }
      this.#counters.accepted.inc();
      this.#deps.log.info(
        { taskId: row.id, contextId: row.contextId, peer: peer.id, principal: owner, messageId: message.messageId },
        'a2a task accepted',
      );
      this.#kick(lane);
      return row.id;
    } finally {
      this.#lanes.leave(lane);
    }
  }

  async #append({ owner, peer, message }: SendRequest, taskId: string, claim: Claim): Promise<string> {
    const found = await this.read(owner, peer.id, taskId);
    if (message.contextId !== undefined && message.contextId !== found.row.contextId) {
      throw new GatewayError('A2A_PARAMS', {
        details: { violations: [{ field: 'message.contextId', description: 'does not belong to message.taskId' }] },
      });
    }
    if (isTerminal(found.row.state)) throw taskEnded(found.row.state);
    this.#requireBand();
    const { keys, options } = this.#deps;
    const stored: Message = { ...message, taskId, contextId: found.row.contextId };
    const lane = this.#laneOf(found.row);
    const now = this.#now();
    const after = await this.#changeAndArrange(taskId, (task) => {
      const { state } = task.row;
      if (!isInterrupted(state) && peer.conversation.followup === 'reject') throw refusal('A2A_TASK_BUSY', { state });
      const change = followUp(task, stored, now);
      return {
        ...change,
        also: claimPuts(claim, taskId, keys, now, options.idempotency.windowSeconds * 1_000),
      };
    });
    if (!after) throw taskEnded((await this.read(owner, peer.id, taskId)).row.state);
    this.#deps.log.info(
      { taskId, contextId: stored.contextId, peer: peer.id, principal: owner, messageId: message.messageId },
      'a2a follow-up accepted',
    );
    if (lane) {
      if (lane.running !== taskId && !lane.queue.includes(taskId)) {
        removeFromLane(lane, taskId);
        lane.queue.push(taskId);
      }
      this.#kick(lane);
    }
    return taskId;
  }

  #repeat(claim: Claim): Promise<string | null> {
    return findRepeat(this.#deps.store, claim, this.#now(), this.#deps.options.idempotency.windowSeconds * 1_000);
  }

  #requireCapacity(owner: string): void {
    const { limits } = this.#deps.options;
    this.#requireBand();
    if (this.book.openCountOf(owner) >= limits.openTasksPerPrincipal) {
      throw new GatewayError('A2A_TASK_LIMIT', { retryAfterMs: RETRY_AFTER_MS });
    }
    if (this.book.openCount + this.#accepting >= limits.openTasks) {
      throw new GatewayError('A2A_CAPACITY', { retryAfterMs: RETRY_AFTER_MS });
    }
  }

  #requireBand(): void {
    if (this.#deps.health.refuses) throw new GatewayError('A2A_BAND_DOWN', { retryAfterMs: RETRY_AFTER_MS });
  }

  // Lanes: one worker each, while there is something to do

  #kick(lane: Lane): void {
    if (lane.busy || this.#stopping) return;
    lane.busy = true;
    this.#background.run(async () => {
      try {
        await this.#workOn(lane);
      } finally {
        lane.busy = false;
        this.#lanes.settle(lane);
      }
    });
  }

  async #workOn(lane: Lane): Promise<void> {
    while (!this.#stopping) {
      const notice = lane.notices.shift();
      if (notice) {
        await notice();
        continue;
      }
      const running = lane.running === null ? null : this.book.find(lane.running);
      if (running) {
        if (running.row.pending.length === 0) return;
        await this.#post(lane, running);
        continue;
      }
      lane.running = null;
      const next = lane.queue[0];
      if (next === undefined) return;
      if (!this.book.find(next)) lane.queue.shift();
      else if (lane.record.debt) await this.#settleDebt(lane);
      else lane.running = lane.queue.shift() ?? null;
    }
  }

  async #post(lane: Lane, task: OpenTask): Promise<void> {
    const { id, peerId } = task.row;
    const [messageId] = task.row.pending;
    if (messageId === undefined) return;
    await this.#deps.peers.whenReady(this.#work.signal);
    const peer = this.#deps.peers.byId(peerId);
    const message = task.view.history.findLast((one) => one.messageId === messageId && one.role === 'ROLE_USER');
    if (!peer || !message) {
      await this.#fail(id, peer ? 'INTERNAL' : 'PEER_REMOVED');
      return;
    }
    try {
      const posted = await this.#dispatcher.post(
        {
          context: lane.context,
          peer,
          taskId: id,
          messageId,
          text: this.#textOf(message, peer),
          lookFirst: !this.#fresh.has(id),
          stillWanted: () => this.book.find(id)?.row.pending.includes(messageId) ?? false,
          onFlight: (underWay) => {
            lane.inFlight = underWay ? messageId : null;
          },
        },
        this.#work.signal,
      );
      if (posted.kind === 'posted') await this.#posted(lane, id, messageId, posted.bandMessageId);
    } catch (error) {
      if (this.#work.signal.aborted || !(error instanceof TaskFailure)) throw error;
      this.#deps.log.warn(
        { err: error.cause, taskId: id, peer: peerId, roomId: lane.context.record.roomId, reason: error.reason },
        'a request could not be put into its room',
      );
      await this.#fail(id, error.reason, error instanceof UncertainPost);
      if (error instanceof PeerUnknown) this.#deps.peers.remove(peerId);
      if (error.reason === 'ROOM_CLOSED') await this.#durably(() => this.#contexts.unbindRoom(lane.context));
    } finally {
      lane.inFlight = null;
    }
  }

  async #posted(lane: Lane, taskId: string, messageId: string, bandMessageId: string): Promise<void> {
    const now = this.#now();
    const after = await this.#durably(() =>
      this.#changeAndArrange(taskId, (task) => {
        const change = posting(task, messageId, bandMessageId, now);
        return change && { ...change, also: this.#contexts.puts(lane.context) };
      }).catch((error: unknown) => {
        lane.context.saved = null;
        throw error;
      }),
    );
    this.#deps.log.info(
      { taskId, messageId, bandMessageId, roomId: lane.context.record.roomId, peer: lane.peerId },
      'a2a request posted',
    );
    if (!after) {
      await this.#owePost(lane, taskId, bandMessageId);
      return;
    }
    const settings = this.#settingsOf(lane.peerId);
    this.#armSilence(after, settings);
    if (after.row.replies > 0) this.#completion.afterReply(after, lane.context, settings);
    else this.#completion.awaitReply(after, lane.context, settings);
  }

  /** The task ended while its message was on its way. Unless the peer ended it, the answer to it may still come. */
  async #owePost(lane: Lane, taskId: string, bandMessageId: string): Promise<void> {
    const ended = await this.book.read(taskId);
    if (ended?.row.state !== 'TASK_STATE_CANCELED' && ended?.row.state !== 'TASK_STATE_FAILED') return;
    lane.record = { ...lane.record, debt: { messageId: bandMessageId, at: this.#now() } };
    await this.#durably(() => this.#lanes.save(lane));
    if (ended.row.state === 'TASK_STATE_CANCELED') this.#noticeCancel(lane, { ...ended.row, posted: 1 });
  }

  /** Waits one step for the answer that an ended task may still get. */
  async #settleDebt(lane: Lane): Promise<void> {
    const { clock } = this.#deps;
    const started = clock.now();
    const longest = this.#settingsOf(lane.peerId).responseTimeoutMs ?? this.#deps.options.tasks.ttlSeconds * 1_000;
    for (let tries = 0; lane.record.debt !== null; tries += 1) {
      const { messageId, at } = lane.record.debt;
      const look = messageId === null ? 'none' : await this.#debtLook(lane, messageId);
      const quietFor = clock.now() - Math.max(at, lane.lateAt ?? at);
      const unreadable = look === 'none' || look === 'unknown';
      if (look === 'processed' || look === 'failed' || (unreadable && quietFor >= DEBT_QUIET_MS)) break;
      if (clock.now() - started >= longest || lane.queue.length === 0) break;
      const wait = unreadable ? DEBT_QUIET_MS - quietFor : (DEBT_POLLS_MS[tries] ?? DEBT_POLLS_LATER_MS);
      if (this.#stopping) return;
      // A stop does not wait for what is owed: the record of it is kept.
      await clock.sleep(Math.max(1, wait), this.#readers.signal).catch(() => undefined);
    }
    if (lane.queue.length > 0) lane.record = { ...lane.record, debt: null };
  }

  #debtLook(lane: Lane, messageId: string): Promise<string> {
    return this.#delivery
      .look(lane.context, messageId, lane.peerId, false, this.#work.signal)
      .catch((error: unknown) => {
        this.#deps.log.debug({ err: error }, 'the delivery state of an ended request could not be read');
        return 'unknown';
      });
  }

  #noticeCancel(lane: Lane, row: TaskRow): void {
    const kind = this.#settingsOf(row.peerId).cancelNotice;
    if (kind === 'none' || row.posted === 0) return;
    const { context } = lane;
    lane.notices.push(async () => {
      try {
        const notice = { context, taskId: row.id, peer: this.#deps.peers.byId(row.peerId), kind };
        await this.#dispatcher.notice(notice, this.#work.signal);
      } catch (error) {
        this.#deps.log.warn({ err: error, taskId: row.id }, 'the room could not be told of a cancelled request');
      }
    });
    this.#kick(lane);
  }

  // Replies

  async #takeReply(reply: BandReply): Promise<void> {
    const context = await this.#contexts.openByRoom(reply.roomId);
    if (!context) {
      this.#unmatched(reply);
      return;
    }
    try {
      if (context.record.addressed.includes(reply.senderId)) await this.#replyOfPeer(context, reply.senderId, reply);
      else await this.#replyOfOther(context, reply);
    } finally {
      this.#contexts.close(context);
    }
  }

  async #replyOfPeer(context: Context, peerId: string, reply: BandReply): Promise<void> {
    const lane = await this.#lanes.enter(context, peerId);
    try {
      if (lane.record.taken.includes(reply.id)) return;
      const taskId = lane.running ?? this.#parkedOrInterrupted(lane);
      if (taskId === null || (lane.running === null && lane.record.debt !== null)) {
        await this.#lateReply(lane, reply);
        return;
      }
      const settings = this.#settingsOf(peerId);
      const sameTurn = await this.#isSameTurn(context, taskId, settings);
      const after = await this.#changeWithReply(lane, taskId, reply, settings, sameTurn);
      if (!after) {
        if (!lane.record.taken.includes(reply.id)) await this.#lateReply(lane, reply);
        return;
      }
      this.#deps.log.info(
        { taskId, bandMessageId: reply.id, roomId: reply.roomId, peer: peerId, state: after.row.state },
        'a2a reply taken',
      );
      if (after.row.state !== 'TASK_STATE_WORKING') return;
      this.#armSilence(after, settings);
      if (after.row.lastReplyAt !== null && after.row.replies > 0) {
        this.#completion.afterReply(after, context, settings);
      }
    } finally {
      this.#lanes.leave(lane);
    }
  }

  /** @returns null also when the reply says nothing that counts; it is marked as taken then */
  #changeWithReply(
    lane: Lane,
    taskId: string,
    reply: BandReply,
    settings: ConversationSettings,
    sameTurn: boolean,
  ): Promise<OpenTask | null> {
    const { options, self } = this.#deps;
    const text = fromBandText(reply.content, self, reply.mentions);
    const read = settings.directives ? this.#deps.readReply : plainReply;
    const metadata = options.exposeBandIds
      ? { band_room_id: reply.roomId, band_message_id: reply.id, band_sender_id: reply.senderId }
      : undefined;
    let untake: (() => void) | null = null;
    return this.#changeAndArrange(taskId, (task) => {
      const change = answer(task, {
        bandMessageId: reply.id,
        reply: read(text),
        settings,
        inFlight: lane.inFlight,
        sameTurn,
        now: this.#now(),
        ...(metadata && { metadata }),
      });
      untake = takeReply(lane, reply.id);
      return { ...(change ?? {}), also: [this.#lanes.put(lane)] };
    }).catch((error: unknown) => {
      untake?.();
      throw error;
    });
  }

  async #isSameTurn(context: Context, taskId: string, settings: ConversationSettings): Promise<boolean> {
    const task = this.book.find(taskId);
    if (!task || !isInterrupted(task.row.state) || task.row.parked) return false;
    if (this.#now() - task.row.stateAt < settings.settleMs) return true;
    const { lastPostId, peerId } = task.row;
    if (lastPostId === null || this.#delivery.readable === false) return false;
    const look = await this.#delivery
      .look(context, lastPostId, peerId, true, this.#work.signal)
      .catch(() => 'unknown' as const);
    return look === 'processing';
  }

  async #lateReply(lane: Lane, reply: BandReply): Promise<void> {
    const untake = takeReply(lane, reply.id);
    lane.lateAt = this.#now();
    try {
      await this.#lanes.save(lane);
    } catch (error) {
      untake();
      throw error;
    }
    this.#counters.late.inc();
    this.#deps.log.info(
      { bandMessageId: reply.id, roomId: reply.roomId, peer: lane.peerId },
      'a late reply was dropped',
    );
  }

  async #replyOfOther(context: Context, reply: BandReply): Promise<void> {
    const lanes = [...this.#lanes.all()].filter((lane) => lane.context === context && lane.running !== null);
    if (lanes.length === 0) {
      this.#unmatched(reply);
      return;
    }
    for (const lane of lanes) {
      const settings = this.#settingsOf(lane.peerId);
      if (settings.others === 'answer' && lanes.length === 1) {
        await this.#replyOfPeer(context, lane.peerId, reply);
      } else if (settings.others !== 'ignore' && !lane.record.taken.includes(reply.id)) {
        await this.#remarkOn(lane, reply, settings);
      }
    }
  }

  async #remarkOn(lane: Lane, reply: BandReply, settings: ConversationSettings): Promise<void> {
    const text = fromBandText(reply.content, this.#deps.self, reply.mentions);
    const name = reply.senderName ?? 'Someone';
    const untake = takeReply(lane, reply.id);
    try {
      const after = await this.#changeAndArrange(lane.running ?? '', (task) => {
        const change = remark(task, { messageId: reply.id, name, text }, this.#now());
        return change && { ...change, also: [this.#lanes.put(lane)] };
      });
      if (after) this.#armSilence(after, settings);
    } catch (error) {
      untake();
      throw error;
    }
  }

  #unmatched(reply: BandReply): void {
    this.#counters.unmatched.inc();
    this.#deps.log.info({ bandMessageId: reply.id, roomId: reply.roomId }, 'a message belongs to no task');
  }

  #parkedOrInterrupted(lane: Lane): string | null {
    const parked = lane.interrupted.findLast((id) => this.book.find(id)?.row.parked === true);
    return parked ?? lane.interrupted.at(-1) ?? null;
  }

  // Ends and timers

  async #complete(taskId: string, owing: boolean): Promise<void> {
    await this.#durably(() =>
      this.#changeAndArrange(taskId, (task) => {
        const change = completion(task, this.#now());
        const lane = this.#laneOf(task.row);
        return change && lane && owing ? this.#withDebt(lane, task, change) : change;
      }),
    );
  }

  async #fail(taskId: string, reason: Reason, uncertainPost = false): Promise<void> {
    const { newId } = this.#deps;
    const after = await this.#durably(() =>
      this.#changeAndArrange(taskId, (task) => {
        const change = failure(task, reason, newId, this.#now());
        const lane = this.#laneOf(task.row);
        const owes = reason === 'PEER_TIMEOUT' || reason === 'EXPIRED' || uncertainPost;
        return change && lane && owes ? this.#withDebt(lane, task, change, uncertainPost) : change;
      }),
    );
    if (after) this.#deps.log.info({ taskId, reason, peer: after.row.peerId }, 'a2a task failed');
  }

  async #silence(taskId: string): Promise<void> {
    const task = this.book.find(taskId);
    if (!task) return;
    const settings = this.#settingsOf(task.row.peerId);
    if (settings.onTimeout === 'fail') {
      await this.#fail(taskId, 'PEER_TIMEOUT');
      return;
    }
    const name = this.#deps.peers.byId(task.row.peerId)?.name ?? 'The agent';
    await this.#durably(() =>
      this.#changeAndArrange(taskId, (open) => parking(open, name, this.#deps.newId, this.#now())),
    );
  }

  #armSilence({ row }: OpenTask, { responseTimeoutMs }: ConversationSettings, elapsedMs = 0): void {
    if (responseTimeoutMs === null || row.state !== 'TASK_STATE_WORKING' || row.posted === 0) return;
    this.#timers.set(row.id, 'silence', responseTimeoutMs - elapsedMs, () => {
      this.#later(() => this.#silence(row.id));
    });
  }

  #armExpiry({ row }: OpenTask, elapsedMs = 0): void {
    this.#timers.set(row.id, 'expiry', this.#deps.options.tasks.ttlSeconds * 1_000 - elapsedMs, () => {
      this.#later(() => this.#fail(row.id, 'EXPIRED'));
    });
  }

  // The common end of every step

  async #changeAndArrange(taskId: string, decide: (task: OpenTask) => Change | null): Promise<OpenTask | null> {
    const after = await this.book.change(taskId, decide);
    if (after) this.#arrange(after);
    return after;
  }

  /** Gives a task its place in its lane, and its timers, after a step. */
  #arrange(task: OpenTask): void {
    const { row } = task;
    const lane = this.#laneOf(row);
    if (isTerminal(row.state)) {
      this.#timers.clearAll(row.id);
      this.#completion.forget(row.id);
      this.#fresh.delete(row.id);
      this.#counters.ended.inc({ state: row.state.slice('TASK_STATE_'.length).toLowerCase() });
      if (lane) {
        removeFromLane(lane, row.id);
        this.#kick(lane);
      }
      return;
    }
    if (!this.#stopping) this.#armExpiry(task);
    if (!lane) return;
    if (isInterrupted(row.state)) {
      this.#timers.clear(row.id, 'silence', 'settle', 'hold', 'poll');
      if (lane.interrupted.includes(row.id)) return;
      removeFromLane(lane, row.id);
      lane.interrupted.push(row.id);
      this.#kick(lane);
    } else if (lane.interrupted.includes(row.id) && row.pending.length === 0) {
      removeFromLane(lane, row.id);
      lane.running = row.id;
    }
  }

  /** Adds the lane's debt to a step that ends a task whose message may still be answered. */
  #withDebt(lane: Lane, { row }: OpenTask, change: Change, uncertainPost = false): Change {
    const awaited = (lane.running === row.id && row.posted > 0) || row.parked;
    if (!awaited && !uncertainPost) return change;
    lane.record = { ...lane.record, debt: { messageId: row.lastPostId, at: this.#now() } };
    return { ...change, also: [...(change.also ?? []), this.#lanes.put(lane)] };
  }

  #laneOf(row: TaskRow): Lane | null {
    return this.#lanes.find(contextKeyOf(row.owner, row.contextId), row.peerId);
  }

  #settingsOf(peerId: string): ConversationSettings {
    return this.#deps.peers.byId(peerId)?.conversation ?? conversationOf(this.#deps.options, undefined, 'Agent');
  }

  #textOf(message: Message, peer: PublishedPeer): string {
    const { options } = this.#deps;
    return toBandText(message.parts, {
      inputModes: peer.override?.inputModes ?? options.inputModes,
      inlineChars: options.files.inlineChars,
      maxChars: peer.conversation.maxMessageChars,
    });
  }

  async #restore(task: OpenTask): Promise<Lane> {
    const { row } = task;
    const context = await this.#contexts.open(row.owner, row.contextId);
    const lane = await this.#lanes.enter(context, row.peerId);
    if (isInterrupted(row.state)) lane.interrupted.push(row.id);
    else if (row.state === 'TASK_STATE_WORKING' && row.pending.length === 0) lane.running = row.id;
    else lane.queue.push(row.id);
    this.#lanes.leave(lane);
    this.#contexts.close(context);
    const settings = this.#settingsOf(row.peerId);
    const since = (at: number): number => Math.max(0, this.#now() - at);
    this.#armExpiry(task, since(row.lastEventAt));
    if (row.state !== 'TASK_STATE_WORKING') return lane;
    this.#armSilence(task, settings, since(row.lastActivityAt));
    if (row.replies > 0) this.#completion.afterReply(task, context, settings);
    else this.#completion.awaitReply(task, context, settings);
    return lane;
  }

  /** Repeats a step while the store is out of order, until the engine stops. */
  async #durably<T>(step: () => Promise<T>): Promise<T> {
    const { clock, log, random } = this.#deps;
    for (let failures = 1; ; failures += 1) {
      try {
        return await step();
      } catch (error) {
        const transient = isGatewayError(error, 'STORE_IO') || isGatewayError(error, 'STORE_TRIPPED');
        if (!transient || this.#work.signal.aborted) throw error;
        if (failures === 1) log.error({ err: error }, 'the store refused a step; it is tried again');
        await clock.sleep(backoffMs(failures, { ...STORE_RETRY, random }), this.#work.signal);
      }
    }
  }

  #nextOrder(now: number): number {
    this.#order = Math.max(this.#order + 1, now * 1_000);
    return this.#order;
  }

  #later(work: () => Promise<void>): void {
    this.#background.run(work);
  }

  #now(): number {
    return this.#deps.clock.now();
  }
}

function tasksOf(lane: Lane): string[] {
  return [...(lane.running === null ? [] : [lane.running]), ...lane.queue, ...lane.interrupted];
}

function newRow(
  ids: Pick<TaskRow, 'id' | 'owner' | 'peerId' | 'contextId' | 'order'>,
  messageId: string,
  now: number,
): TaskRow {
  return {
    v: 1,
    ...ids,
    state: 'TASK_STATE_SUBMITTED',
    seq: 0,
    createdAt: now,
    stateAt: now,
    lastEventAt: now,
    lastActivityAt: now,
    pending: [messageId],
    posted: 0,
    lastPostId: null,
    replies: 0,
    unanswered: 0,
    lastReplyAt: null,
    moreFollows: false,
    parked: false,
    resultTexts: [],
  };
}

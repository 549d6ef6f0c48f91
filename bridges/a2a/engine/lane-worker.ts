import { context as trace, ROOT_CONTEXT } from '@opentelemetry/api';
import type { OpenTask } from './book.js';
import type { EngineCore } from './core.js';
import { Dispatcher, PeerUnknown, UncertainPost, type Post } from './dispatch.js';
import { DEBT_QUIET_MS, quietFor, type Lane } from './lanes.js';
import { TaskFailure } from './reasons.js';
import type { TaskRow } from './records.js';
import { posting } from './steps.js';

const DEBT_POLLS_MS: readonly number[] = [50, 150, 400, 1_000, 2_000];
const DEBT_POLLS_LATER_MS = 5_000;

/**
 * Works on lanes, one step after the other in each: notices, posts of the running task, the debt of an ended one, the
 * next task.
 */
export class LaneWorker {
  readonly #core: EngineCore;
  readonly #dispatcher: Dispatcher;

  constructor(core: EngineCore) {
    this.#core = core;
    const { rest, clock, self, options, random } = core.deps;
    this.#dispatcher = new Dispatcher({
      rest,
      contexts: {
        knowsRoom: (roomId) => core.contexts.knowsRoom(roomId),
        bindRoom: (context, roomId) => core.durably(() => core.contexts.bindRoom(context, roomId)),
      },
      clock,
      selfId: self.id,
      deadlineMs: options.dispatchDeadlineMs,
      roomTitle: options.roomTitle,
      random,
    });
    core.kick = (lane) => {
      this.#kick(lane);
    };
  }

  #kick(lane: Lane): void {
    if (lane.busy || this.#core.stopping) return;
    lane.busy = true;
    this.#core.background.run(async () => {
      try {
        await this.#workOn(lane);
      } finally {
        lane.busy = false;
        this.#core.lanes.settle(lane);
      }
    });
  }

  async #workOn(lane: Lane): Promise<void> {
    while (!this.#core.stopping) {
      const notice = lane.notices.shift();
      if (notice) {
        await notice();
        continue;
      }
      const running = lane.running === null ? null : this.#core.book.find(lane.running);
      if (running) {
        if (running.row.pending.length === 0) return;
        await this.#post(lane, running);
        continue;
      }
      lane.running = null;
      const next = lane.queue[0];
      if (next === undefined) return;
      if (!this.#core.book.find(next)) lane.queue.shift();
      else if (lane.record.debt) await this.#settleDebt(lane);
      else lane.running = lane.queue.shift() ?? null;
    }
  }

  async #post(lane: Lane, task: OpenTask): Promise<void> {
    const { id, peerId } = task.row;
    const [messageId] = task.row.pending;
    if (messageId === undefined) return;
    await this.#core.deps.peers.whenReady(this.#core.work.signal);
    const peer = this.#core.deps.peers.byId(peerId);
    const message = task.view.history.findLast((one) => one.messageId === messageId && one.role === 'ROLE_USER');
    if (!peer || !message) {
      await this.#core.fail(id, peer ? 'INTERNAL' : 'PEER_REMOVED');
      return;
    }
    let { roomId } = lane.context.record;
    try {
      const post: Post = {
        context: lane.context,
        peer,
        taskId: id,
        messageId,
        text: this.#core.textOf(message, peer),
        lookFirst: !this.#core.fresh.has(id),
        acceptedAt: task.row.createdAt,
        stillWanted: () => this.#core.book.find(id)?.row.pending.includes(messageId) ?? false,
        onFlight: (underWay) => {
          lane.inFlight = underWay ? messageId : null;
        },
        onRoom: (used) => {
          roomId = used;
        },
      };
      // The worker may have been woken by another task; the calls belong to the trace of this one.
      const posted = await trace.with(this.#core.traces.get(id) ?? ROOT_CONTEXT, () =>
        this.#dispatcher.post(post, this.#core.work.signal),
      );
      if (posted.kind === 'dropped') return;
      await this.#posted(lane, id, messageId, posted.bandMessageId);
      if (posted.peerLeft) await this.#core.fail(id, 'PEER_LEFT');
    } catch (error) {
      if (this.#core.work.signal.aborted || !(error instanceof TaskFailure)) throw error;
      this.#core.deps.log[error.reason === 'INTERNAL' ? 'error' : 'warn'](
        { err: error.cause, ...this.#core.idsOf(task), roomId, messageId, reason: error.reason },
        'a request could not be put into its room',
      );
      await this.#core.fail(id, error.reason, error instanceof UncertainPost);
      if (error instanceof PeerUnknown) this.#core.deps.peers.remove(peerId);
      if (error.reason === 'ROOM_CLOSED' && roomId !== null) await this.#core.roomGone(lane.context, roomId);
    } finally {
      lane.inFlight = null;
    }
  }

  async #posted(lane: Lane, taskId: string, messageId: string, bandMessageId: string): Promise<void> {
    const now = this.#core.now();
    const after = await this.#core.durably(() =>
      this.#core
        .change(taskId, (task) => {
          const change = posting(task, messageId, bandMessageId, now);
          return change && { ...change, also: this.#core.contexts.puts(lane.context) };
        })
        .catch((error: unknown) => {
          lane.context.saved = null;
          throw error;
        }),
    );
    const { contextId, owner: principal, roomId } = lane.context.record;
    this.#core.deps.log.info(
      { taskId, contextId, peer: lane.peerId, principal, roomId, messageId, bandMessageId },
      'a2a request posted',
    );
    if (after?.row.posted === 1) this.#core.figures.posted(after.row, now);
    if (!after) {
      await this.#owePost(lane, taskId, bandMessageId);
      return;
    }
    const settings = this.#core.settingsOf(lane.peerId);
    this.#core.armSilence(after, settings);
    if (after.row.replies > 0) this.#core.completion.afterReply(after, lane.context, settings);
    else this.#core.completion.awaitReply(after, lane.context, settings);
  }

  /** The task ended while its message was on its way. Unless the peer ended it, the answer to it may still come. */
  async #owePost(lane: Lane, taskId: string, bandMessageId: string): Promise<void> {
    const ended = await this.#core.book.read(taskId);
    if (ended?.row.state !== 'TASK_STATE_CANCELED' && ended?.row.state !== 'TASK_STATE_FAILED') return;
    lane.record = { ...lane.record, debt: { messageId: bandMessageId, at: this.#core.now() } };
    await this.#core.durably(() => this.#core.lanes.save(lane));
    if (ended.row.state === 'TASK_STATE_CANCELED') this.noticeCancel(lane, { ...ended.row, posted: 1 });
  }

  /** Waits one step for the answer that an ended task may still get. */
  async #settleDebt(lane: Lane): Promise<void> {
    const { clock } = this.#core.deps;
    const started = clock.now();
    const longest =
      this.#core.settingsOf(lane.peerId).responseTimeoutMs ?? this.#core.deps.options.tasks.ttlSeconds * 1_000;
    for (let tries = 0; lane.record.debt !== null; tries += 1) {
      const { messageId } = lane.record.debt;
      const look = messageId === null ? 'none' : await this.#debtLook(lane, messageId);
      const quiet = quietFor(lane, clock.now());
      const unreadable = look === 'none' || look === 'unknown';
      if (look === 'processed' || look === 'failed' || (unreadable && quiet >= DEBT_QUIET_MS)) break;
      if (clock.now() - started >= longest || lane.queue.length === 0) break;
      const wait = unreadable ? DEBT_QUIET_MS - quiet : (DEBT_POLLS_MS[tries] ?? DEBT_POLLS_LATER_MS);
      if (this.#core.stopping) return;
      // A stop does not wait for what is owed: the record of it is kept.
      await clock.sleep(Math.max(1, wait), this.#core.readers.signal).catch(() => undefined);
    }
    if (lane.queue.length > 0) lane.record = { ...lane.record, debt: null };
  }

  #debtLook(lane: Lane, messageId: string): Promise<string> {
    return this.#core.delivery
      .look(lane.context, messageId, lane.peerId, false, this.#core.work.signal)
      .catch((error: unknown) => {
        this.#core.deps.log.debug({ err: error }, 'the delivery state of an ended request could not be read');
        return 'unknown';
      });
  }

  /** Has the room told of a cancelled request, as the setting says; not of one that it never saw. */
  noticeCancel(lane: Lane, row: TaskRow): void {
    const kind = this.#core.settingsOf(row.peerId).cancelNotice;
    if (kind === 'none' || row.posted === 0) return;
    const { context } = lane;
    lane.notices.push(async () => {
      try {
        const notice = { context, taskId: row.id, peer: this.#core.deps.peers.byId(row.peerId), kind };
        await this.#dispatcher.notice(notice, this.#core.work.signal);
      } catch (error) {
        this.#core.deps.log.warn({ err: error, taskId: row.id }, 'the room could not be told of a cancelled request');
      }
    });
    this.#kick(lane);
  }
}

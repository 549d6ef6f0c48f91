import type { Clock } from '../../../src/base/clock.js';
import type { ConversationSettings } from '../settings.js';
import type { OpenTask } from './book.js';
import type { Context } from './contexts.js';
import type { DeliveryStates, WholeLook } from './delivery.js';
import { isAnswered } from './steps.js';
import type { TaskTimers } from './timers.js';

export interface CompletionDeps {
  readonly clock: Clock;
  readonly timers: TaskTimers;
  readonly delivery: DeliveryStates;
  readonly signal: AbortSignal;
  /** Runs work whose failures are logged and drained at stop. */
  background(work: () => Promise<void>): void;
  /** The answer is complete; `owing` when the peer had not ended its turn. */
  complete(taskId: string, owing: boolean): void;
  /** The peer's delivery failed and stayed so. */
  peerFailed(taskId: string): void;
  find(taskId: string): OpenTask | null;
  /** Whether a reply has come through the room's queue to the lane of its task. */
  taken(task: OpenTask, replyId: string): boolean;
}

const POLLS_AFTER_REPLY_MS = [50, 150, 400, 1_000, 2_000] as const;
const POLL_LATER_MS = 5_000;
const POLL_WITHOUT_REPLY_MS = 15_000;
const FAILED_FOR_MS = 10_000;

/**
 * Decides when an answer is complete: by quiet, or by the platform's word on the delivery where it can be read. Without
 * any reply it watches for a peer whose delivery failed.
 */
export class Completion {
  readonly #deps: CompletionDeps;
  /** Tasks whose peer is known to be at work still. */
  readonly #holding = new Set<string>();
  readonly #failedOnce = new Set<string>();

  constructor(deps: CompletionDeps) {
    this.#deps = deps;
  }

  /** A reply was taken and the task is still working. */
  afterReply(task: OpenTask, context: Context, settings: ConversationSettings): void {
    const { timers } = this.#deps;
    const { id, moreFollows } = task.row;
    timers.clear(id, 'settle', 'hold', 'poll');
    this.#holding.delete(id);
    if (moreFollows || settings.completion === 'first') return;
    timers.set(id, 'settle', settings.settleMs, () => {
      if (!this.#holding.has(id)) this.#quiet(id, context, settings.settleMs);
    });
    if (!isAnswered(task.row)) this.#holding.add(id);
    timers.set(id, 'hold', settings.holdMaxMs, () => {
      this.#deps.complete(id, true);
    });
    if (settings.completion !== 'auto') return;
    // Where states can be read, quiet alone says nothing until the first look has been answered, however slow that is.
    if (this.#deps.delivery.readable !== false && task.row.lastPostId !== null) this.#holding.add(id);
    this.#poll(task, context, settings.settleMs, 0, this.#deps.clock.now());
  }

  /** The task was posted, and nobody has answered. */
  awaitReply(task: OpenTask, context: Context, settings: ConversationSettings): void {
    if (settings.completion !== 'auto' || this.#deps.delivery.readable === false) return;
    const { id } = task.row;
    this.#deps.timers.set(id, 'poll', this.#failedOnce.has(id) ? FAILED_FOR_MS : POLL_WITHOUT_REPLY_MS, () => {
      this.#look(id, context, false, ({ look }) => {
        const open = this.#deps.find(id);
        if (open?.row.state !== 'TASK_STATE_WORKING' || open.row.replies > 0) return;
        if (look === 'failed' && this.#failedOnce.has(id)) {
          this.#deps.peerFailed(id);
          return;
        }
        if (look === 'failed') this.#failedOnce.add(id);
        else this.#failedOnce.delete(id);
        this.awaitReply(open, context, settings);
      });
    });
  }

  /**
   * The quiet time is over. Where the platform's word can't be had, a reply that stands in the room may still be on its
   * way through the room's queue, which takes longer than the quiet time on a slow platform: then quiet begins anew.
   */
  #quiet(id: string, context: Context, settleMs: number): void {
    const { delivery, timers, signal } = this.#deps;
    if (delivery.readable !== false) {
      this.#deps.complete(id, false);
      return;
    }
    this.#deps.background(async () => {
      const asked = this.#deps.find(id);
      if (!asked?.row.lastPostId) return;
      const { lastPostId, peerId } = asked.row;
      let lastReplyId: string | null = null;
      try {
        lastReplyId = await delivery.lastReply(context, lastPostId, peerId, signal);
      } finally {
        const open = signal.aborted ? null : this.#deps.find(id);
        // A reply taken meanwhile has begun a quiet time of its own.
        if (open?.row.state === 'TASK_STATE_WORKING' && !timers.has(id, 'settle')) {
          if (lastReplyId === null || this.#deps.taken(open, lastReplyId)) this.#deps.complete(id, false);
          else {
            timers.set(id, 'settle', settleMs, () => {
              this.#quiet(id, context, settleMs);
            });
          }
        }
      }
    });
  }

  forget(taskId: string): void {
    this.#holding.delete(taskId);
    this.#failedOnce.delete(taskId);
  }

  #poll(task: OpenTask, context: Context, settleMs: number, tries: number, repliedAt: number): void {
    const { id, lastPostId } = task.row;
    if (this.#deps.delivery.readable === false || lastPostId === null) return;
    const { clock, timers } = this.#deps;
    const at = POLLS_AFTER_REPLY_MS[tries];
    const wait = at === undefined ? POLL_LATER_MS : repliedAt + at - clock.now();
    timers.set(id, 'poll', wait, () => {
      this.#look(id, context, true, ({ look, lastReplyId }) => {
        const open = this.#deps.find(id);
        if (open?.row.state !== 'TASK_STATE_WORKING' || open.row.lastPostId !== lastPostId) return;
        if (look === 'processed' || look === 'failed') {
          if (lastReplyId !== null && !this.#deps.taken(open, lastReplyId)) {
            // The turn is over, and its end stands in the room; it has not come through the room's queue yet.
            this.#holding.add(id);
            this.#poll(open, context, settleMs, tries + 1, repliedAt);
            return;
          }
          if (open.row.pending.length === 0) this.#deps.complete(id, false);
          return;
        }
        if (look === 'processing') this.#holding.add(id);
        else if (isAnswered(open.row)) {
          this.#holding.delete(id);
          // The quiet time passed while the peer was still at work; now nothing is known to be going on.
          if (!timers.has(id, 'settle')) this.#quiet(id, context, settleMs);
        }
        if (look === 'processing' || look === 'delivered') this.#poll(open, context, settleMs, tries + 1, repliedAt);
      });
    });
  }

  #look(id: string, context: Context, replied: boolean, then: (look: WholeLook) => void): void {
    this.#deps.background(async () => {
      const open = this.#deps.find(id);
      if (!open?.row.lastPostId) return;
      const { delivery, signal } = this.#deps;
      try {
        then(await delivery.lookWhole(context, open.row.lastPostId, open.row.peerId, replied, signal));
      } catch (error) {
        if (!signal.aborted) then({ look: 'unknown', lastReplyId: null, endedAt: null });
        throw error;
      }
    });
  }
}

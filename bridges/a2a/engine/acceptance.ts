import { trace } from '@opentelemetry/api';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import { refusal, taskEnded, taskUnknown } from '../errors.js';
import type { PublishedPeer } from '../peers/directory.js';
import { isInterrupted, isTerminal, type Message } from '../wire.js';
import type { FoundTask } from './book.js';
import type { Context } from './contexts.js';
import type { EngineCore } from './core.js';
import { removeFromLane } from './lanes.js';
import type { TaskRow } from './records.js';
import { claimPuts, findRepeat, fingerprintOf, type Claim, type Repeat } from './repeats.js';
import { settleDoubt } from './restore.js';
import { followUp } from './steps.js';

export interface SendRequest {
  /** Joins the lines of the log that one HTTP request makes. */
  readonly requestId: string;
  readonly owner: string;
  readonly peer: PublishedPeer;
  /** In the 1.0 form, checked; `taskId` continues a task. */
  readonly message: Message;
}

const RETRY_AFTER_MS = 5_000;

/** Takes requests in: as a new task, as a further message of one, or as a repeat of what was taken in before. */
export class Acceptance {
  readonly #core: EngineCore;
  /** By principal: tasks that are being stored. */
  readonly #accepting = new Map<string, number>();
  #acceptingCount = 0;
  #order = 0;

  constructor(core: EngineCore) {
    this.#core = core;
  }

  /**
   * Stores a message as a new task, or adds it to the one it names; a repeat finds the first one's task. The task is
   * on disk when this resolves; the post into the room follows. A messageId whose task failed before anything of it can
   * have stood in a room is not spent: the repeat is a new task.
   *
   * @throws {GatewayError} `A2A_MESSAGE_ID_REUSED`, `A2A_TASK_UNKNOWN`, `A2A_TASK_ENDED`, `A2A_TASK_BUSY`,
   *   `A2A_PARAMS` (the context does not fit the task, the text is empty or too long), `A2A_CONTENT_TYPE`,
   *   `A2A_CONTEXT_BUSY`, `A2A_TASK_LIMIT`, `A2A_CAPACITY`, `A2A_BAND_DOWN`, `A2A_NOT_READY`, `A2A_STOPPING`
   */
  async send(request: SendRequest): Promise<string> {
    const { owner, peer, message } = request;
    this.#core.textOf(message, peer);
    const claim: Claim = {
      key: this.#core.deps.keys.repeat(owner, peer.id, message.messageId),
      messageId: message.messageId,
      fingerprint: fingerprintOf(message),
      replaces: null,
    };
    const earlier = await this.#repeat(claim);
    if (earlier !== null && !(await this.#isUnspent(earlier, message))) return earlier.taskId;
    if (this.#core.stopping) throw new GatewayError('A2A_STOPPING');
    const fresh: Claim = { ...claim, replaces: earlier?.revision ?? null };
    try {
      return message.taskId === undefined
        ? await this.#accept(request, fresh)
        : await this.#append(request, message.taskId, fresh);
    } catch (error) {
      // A copy of the same message was faster.
      const first = isGatewayError(error, 'STORE_CONFLICT') ? await this.#repeat(claim) : null;
      if (first === null || first.revision === earlier?.revision) throw error;
      return first.taskId;
    }
  }

  /** The principal's task at this peer. @throws {GatewayError} `A2A_TASK_UNKNOWN` */
  async read(owner: string, peerId: string, taskId: string): Promise<FoundTask> {
    const found = await this.#core.book.read(taskId);
    if (found?.row.owner !== owner || found.row.peerId !== peerId) throw taskUnknown();
    return found;
  }

  async #accept(request: SendRequest, claim: Claim): Promise<string> {
    const { owner, message } = request;
    const { newId } = this.#core.deps;
    this.#requireCapacity(owner);
    this.#countAccepting(owner, 1);
    try {
      const isNew = message.contextId === undefined;
      const context = await this.#core.contexts.open(owner, message.contextId ?? newId(), isNew);
      try {
        return await this.#acceptInto(context, request, claim);
      } finally {
        this.#core.contexts.close(context);
      }
    } finally {
      this.#countAccepting(owner, -1);
    }
  }

  async #acceptInto(context: Context, { requestId, owner, peer, message }: SendRequest, claim: Claim): Promise<string> {
    const { newId, keys, options } = this.#core.deps;
    const lane = await this.#core.lanes.enter(context, peer.id);
    try {
      const held = (lane.running === null ? 0 : 1) + lane.queue.length + lane.coming;
      if (held > options.laneQueue) throw new GatewayError('A2A_CONTEXT_BUSY', { retryAfterMs: RETRY_AFTER_MS });
      lane.coming += 1;
      const now = this.#core.now();
      const { contextId } = context.record;
      const ids = { id: newId(), owner, peerId: peer.id, contextId, order: this.#nextOrder(now) };
      const row = newRow(ids, message.messageId, now);
      const stored: Message = { ...message, taskId: row.id, contextId: row.contextId };
      this.#core.contexts.use(context, peer.id);
      try {
        const status = { state: 'TASK_STATE_SUBMITTED', timestamp: new Date(now).toISOString() } as const;
        const task = await this.#core.book.create(
          row,
          [
            { kind: 'message', message: stored },
            { kind: 'status', status },
          ],
          [
            ...this.#core.contexts.puts(context),
            ...claimPuts(claim, row.id, keys, now, options.idempotency.windowSeconds * 1_000),
          ],
        );
        this.#core.fresh.add(row.id);
        this.#core.trace(row.id);
        lane.queue.push(row.id);
        this.#core.armExpiry(task);
      } catch (error) {
        context.saved = null;
        settleDoubt(this.#core, row.id, error);
        throw error;
      } finally {
        lane.coming -= 1;
      }
      this.#core.accepted();
      this.#core.deps.log.info(
        {
          requestId,
          taskId: row.id,
          contextId: row.contextId,
          peer: peer.id,
          principal: owner,
          messageId: message.messageId,
          ...traceIds(),
        },
        'a2a task accepted',
      );
      this.#core.kick(lane);
      return row.id;
    } finally {
      this.#core.lanes.leave(lane);
    }
  }

  async #append({ requestId, owner, peer, message }: SendRequest, taskId: string, claim: Claim): Promise<string> {
    const found = await this.read(owner, peer.id, taskId);
    if (message.contextId !== undefined && message.contextId !== found.row.contextId) {
      throw new GatewayError('A2A_PARAMS', {
        details: { violations: [{ field: 'message.contextId', description: 'does not belong to message.taskId' }] },
      });
    }
    if (isTerminal(found.row.state)) throw taskEnded(found.row.state);
    this.#requireBand();
    const { keys, options } = this.#core.deps;
    const stored: Message = { ...message, taskId, contextId: found.row.contextId };
    const lane = this.#core.laneOf(found);
    const now = this.#core.now();
    const after = await this.#core
      .change(taskId, (task) => {
        const { state } = task.row;
        if (!isInterrupted(state) && peer.conversation.followup === 'reject') throw refusal('A2A_TASK_BUSY', { state });
        const change = followUp(task, stored, now);
        return {
          ...change,
          also: claimPuts(claim, taskId, keys, now, options.idempotency.windowSeconds * 1_000),
        };
      })
      .catch((error: unknown) => {
        settleDoubt(this.#core, taskId, error);
        throw error;
      });
    if (!after) throw taskEnded((await this.read(owner, peer.id, taskId)).row.state);
    this.#core.trace(taskId);
    this.#core.deps.log.info(
      { requestId, ...this.#core.idsOf(after), messageId: message.messageId, ...traceIds() },
      'a2a follow-up accepted',
    );
    if (lane) {
      if (lane.running !== taskId && !lane.queue.includes(taskId)) {
        removeFromLane(lane, taskId);
        lane.queue.push(taskId);
      }
      this.#core.kick(lane);
    }
    return taskId;
  }

  /** Whether the earlier copy no longer counts: its window is over, or its task failed before anything was posted. */
  async #isUnspent({ taskId, expired }: Repeat, message: Message): Promise<boolean> {
    if (expired) return true;
    if (message.taskId !== undefined || this.#core.book.find(taskId)) return false;
    const found = await this.#core.book.read(taskId);
    return found?.row.unposted === true;
  }

  #repeat(claim: Claim): Promise<Repeat | null> {
    return findRepeat(
      this.#core.deps.store,
      claim,
      this.#core.now(),
      this.#core.deps.options.idempotency.windowSeconds * 1_000,
    );
  }

  #requireCapacity(owner: string): void {
    const { limits } = this.#core.deps.options;
    this.#requireBand();
    if (this.#core.book.openCountOf(owner) + (this.#accepting.get(owner) ?? 0) >= limits.openTasksPerPrincipal) {
      throw new GatewayError('A2A_TASK_LIMIT', { retryAfterMs: RETRY_AFTER_MS });
    }
    if (this.#core.book.openCount + this.#acceptingCount >= limits.openTasks) {
      throw new GatewayError('A2A_CAPACITY', { retryAfterMs: RETRY_AFTER_MS });
    }
  }

  #countAccepting(owner: string, change: number): void {
    this.#acceptingCount += change;
    const count = (this.#accepting.get(owner) ?? 0) + change;
    if (count > 0) this.#accepting.set(owner, count);
    else this.#accepting.delete(owner);
  }

  #requireBand(): void {
    if (!this.#core.deps.health.refuses) return;
    // Nobody else may be asking Band anything: who is sent away now finds it back at the next try.
    this.#core.deps.peers.lookAgain();
    throw new GatewayError('A2A_BAND_DOWN', { retryAfterMs: RETRY_AFTER_MS });
  }

  #nextOrder(now: number): number {
    this.#order = Math.max(this.#order + 1, now * 1_000);
    return this.#order;
  }
}

/** The trace that a request belongs to, where the process traces. */
function traceIds(): { traceId?: string } {
  const traceId = trace.getActiveSpan()?.spanContext().traceId;
  return traceId === undefined ? {} : { traceId };
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

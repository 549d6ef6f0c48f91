import { withDeadline } from '../../../src/base/async.js';
import { GatewayError } from '../../../src/base/errors.js';
import { refusal } from '../errors.js';
import { Acceptance, type SendRequest } from './acceptance.js';
import type { FoundTask, TaskBook } from './book.js';
import { EngineCore, type EngineDeps } from './core.js';
import { LaneWorker } from './lane-worker.js';
import type { Lane } from './lanes.js';
import { Replies, type BandReply } from './replies.js';
import { restore, settleDoubt } from './restore.js';
import { cancellation } from './steps.js';

/**
 * The tasks of all peers and what moves them: a request becomes a task in the lane of its context and peer, the lane
 * posts it into the room, a reply of the peer is appended to it, timers and room events end it.
 *
 * send → book (stored) → lane → dispatcher (room, marker, message) → WORKING … reply → book → COMPLETED
 */
export class TaskEngine {
  readonly #core: EngineCore;
  readonly #acceptance: Acceptance;
  readonly #worker: LaneWorker;
  readonly #replies: Replies;

  constructor(deps: EngineDeps) {
    this.#core = new EngineCore(deps);
    this.#acceptance = new Acceptance(this.#core);
    this.#worker = new LaneWorker(this.#core);
    this.#replies = new Replies(this.#core);
  }

  get book(): TaskBook {
    return this.#core.book;
  }

  /** Aborts when waits and streams have to end because the gateway stops. */
  get readers(): AbortSignal {
    return this.#core.readers.signal;
  }

  /** What is held in memory, for tests and the status page. */
  get held(): { tasks: number; lanes: number; timers: number } {
    return { tasks: this.#core.book.openCount, lanes: this.#core.lanes.size, timers: this.#core.timers.size };
  }

  /** Takes up the open tasks of an earlier run: queued ones go back into their lanes, timers go on from stored times. */
  async start(): Promise<void> {
    const open = await this.#core.book.load();
    open.sort((a, b) => a.row.order - b.row.order);
    const lanes = new Set<Lane>();
    for (const task of open) lanes.add(await restore(this.#core, task));
    for (const lane of lanes) {
      // Its reply may be the first thing that comes, so the head is ready for it before its post was looked for.
      if (lane.running === null && lane.record.debt === null) lane.running = lane.queue.shift() ?? null;
      this.#core.kick(lane);
    }
    if (open.length > 0) this.#core.deps.log.info({ tasks: open.length }, 'open tasks of an earlier run were taken up');
  }

  /** Ends waits and streams, lets steps under way finish, and fails what a memory store would lose. */
  async stop(deadlineMs: number): Promise<void> {
    if (this.#core.stopping) return;
    this.#core.stopping = true;
    const { clock, log } = this.#core.deps;
    if (!this.#core.deps.durable) {
      for (const task of [...this.#core.book.openTasks()])
        await this.#core.fail(task.row.id, 'GATEWAY_SHUTDOWN').catch(() => undefined);
    }
    this.#core.readers.abort(new GatewayError('A2A_STOPPING'));
    this.#core.timers.stop();
    try {
      await withDeadline(clock, deadlineMs, null, () => this.#core.background.drain());
    } catch {
      log.warn({ waiting: this.#core.background.size }, 'steps were still under way at the end of the shutdown time');
    }
    this.#core.work.abort(new GatewayError('A2A_STOPPING'));
    this.#core.timers.stop();
    this.#core.lanes.close();
    await this.#core.background.drain();
  }

  /** As {@link Acceptance.send}. */
  send(request: SendRequest): Promise<string> {
    return this.#acceptance.send(request);
  }

  /** The principal's task at this peer. @throws {GatewayError} `A2A_TASK_UNKNOWN` */
  read(owner: string, peerId: string, taskId: string): Promise<FoundTask> {
    return this.#acceptance.read(owner, peerId, taskId);
  }

  /** @throws {GatewayError} `A2A_TASK_UNKNOWN`; `A2A_NOT_CANCELABLE` when it has ended */
  async cancel(owner: string, peerId: string, taskId: string): Promise<FoundTask> {
    const found = await this.read(owner, peerId, taskId);
    const lane = this.#core.laneOf(found);
    const after = await this.#core
      .change(taskId, (task) => {
        const change = cancellation(task, this.#core.now());
        return change && lane ? this.#core.withDebt(lane, task, change) : change;
      })
      .catch((error: unknown) => {
        settleDoubt(this.#core, taskId, error);
        throw error;
      });
    if (!after) {
      const { row } = await this.read(owner, peerId, taskId);
      throw refusal('A2A_NOT_CANCELABLE', { taskId, state: row.state });
    }
    if (lane) this.#worker.noticeCancel(lane, after.row);
    return after;
  }

  /**
   * Takes a message of a room. Resolves when it was taken or belongs to nobody, so that it can be marked as processed;
   * while the store is down it waits.
   */
  async reply(reply: BandReply): Promise<void> {
    await this.#core.durably(() => this.#replies.take(reply));
  }

  /** The gateway agent is not in the room any more. */
  async roomGone(roomId: string): Promise<void> {
    const context = await this.#core.contexts.openByRoom(roomId);
    if (!context) return;
    try {
      await this.#core.roomGone(context, roomId);
    } finally {
      this.#core.contexts.close(context);
    }
  }

  /** Somebody took a peer out of a room. */
  async peerLeft(roomId: string, peerId: string): Promise<void> {
    const context = await this.#core.contexts.openByRoom(roomId);
    if (!context) return;
    try {
      context.record = { ...context.record, peers: context.record.peers.filter((id) => id !== peerId) };
      const running = this.#core.lanes.find(context.key, peerId)?.running;
      if (running && (this.#core.book.find(running)?.row.posted ?? 0) > 0) await this.#core.fail(running, 'PEER_LEFT');
      else await this.#core.durably(() => this.#core.contexts.save(context));
    } finally {
      this.#core.contexts.close(context);
    }
  }

  /** A peer is gone from the directory. */
  async peerRemoved(peerId: string): Promise<void> {
    for (const task of [...this.#core.book.openTasks()]) {
      if (task.row.peerId === peerId) await this.#core.fail(task.row.id, 'PEER_REMOVED');
    }
  }
}

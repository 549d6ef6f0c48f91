import { isGatewayError } from '../../../src/base/errors.js';
import { plainReply, type Reply } from '../convert/directive.js';
import { fromBandText, type MentionName } from '../convert/from-band.js';
import type { ConversationSettings } from '../settings.js';
import { isInterrupted } from '../wire.js';
import type { OpenTask } from './book.js';
import type { Context } from './contexts.js';
import type { EngineCore } from './core.js';
import type { WholeLook } from './delivery.js';
import { stateLabel } from './figures.js';
import { DEBT_QUIET_MS, quietFor, takeReply, tasksOf, type Lane } from './lanes.js';
import { answer, remark } from './steps.js';

/** A text of a room that mentions the gateway agent. */
export interface BandReply {
  readonly id: string;
  readonly roomId: string;
  readonly senderId: string;
  readonly senderName: string | null;
  readonly content: string;
  readonly mentions: readonly MentionName[];
  /** By the platform's clock. */
  readonly writtenAt: number;
}

const UNKNOWN: WholeLook = { look: 'unknown', lastReplyId: null, endedAt: null };

/** Finds the task that a message of a room belongs to, and adds what it says. */
export class Replies {
  readonly #core: EngineCore;

  constructor(core: EngineCore) {
    this.#core = core;
  }

  async take(reply: BandReply): Promise<void> {
    const context = await this.#core.contexts.openByRoom(reply.roomId);
    if (!context) {
      this.#unmatched(reply);
      return;
    }
    try {
      if (context.record.addressed.includes(reply.senderId)) await this.#replyOfPeer(context, reply.senderId, reply);
      else await this.#replyOfOther(context, reply);
    } finally {
      this.#core.contexts.close(context);
    }
  }

  async #replyOfPeer(context: Context, peerId: string, reply: BandReply): Promise<void> {
    const lane = await this.#core.lanes.enter(context, peerId);
    try {
      if (lane.doubtful) await this.#settle(lane);
      if (lane.record.taken.includes(reply.id)) return;
      const isOwed = lane.running === null && (await this.#isOwed(lane, reply));
      const taskId = lane.running ?? this.#parkedOrInterrupted(lane);
      if (taskId === null || (isOwed && lane.running === null)) {
        await this.#lateReply(lane, reply);
        return;
      }
      const settings = this.#core.settingsOf(peerId);
      const sameTurn = await this.#isSameTurn(context, taskId, settings);
      const after = await this.#changeWithReply(lane, taskId, reply, settings, sameTurn);
      if (!after) {
        if (!lane.record.taken.includes(reply.id)) await this.#lateReply(lane, reply);
        return;
      }
      this.#core.deps.log.info(
        { ...this.#core.idsOf(after), bandMessageId: reply.id, state: stateLabel(after.row.state) },
        'a2a reply taken',
      );
      if (after.row.state !== 'TASK_STATE_WORKING') return;
      this.#core.armSilence(after, settings);
      if (after.row.lastReplyAt !== null && after.row.replies > 0) {
        this.#core.completion.afterReply(after, context, settings);
      }
    } finally {
      this.#core.lanes.leave(lane);
    }
  }

  /**
   * Whether what comes now is the answer to a task that has ended, and not a word about one that waits. Paid is the debt
   * when the peer's turn is over and its answer was dropped or never written, or, where turns can't be seen, after a time
   * of quiet.
   */
  async #isOwed(lane: Lane, { writtenAt }: BandReply): Promise<boolean> {
    const { debt } = lane.record;
    if (debt === null || this.#parkedOrInterrupted(lane) === null) return debt !== null;
    const { delivery, work } = this.#core;
    const { look, endedAt } =
      debt.messageId === null
        ? UNKNOWN
        : await delivery
            .lookWhole(lane.context, debt.messageId, lane.peerId, false, work.signal)
            .catch((): WholeLook => UNKNOWN);
    if (look === 'processing' || look === 'delivered') return true;
    const isOfLaterTurn = endedAt !== null && writtenAt > endedAt;
    if (look === 'processed' && debt.answered !== true && !isOfLaterTurn) return true;
    const unreadable = look === 'none' || look === 'unknown';
    if (unreadable && quietFor(lane, this.#core.now()) < DEBT_QUIET_MS) return true;
    if (lane.record.debt === debt) lane.record = { ...lane.record, debt: null };
    return false;
  }

  /** @returns null also when the reply says nothing that counts; it is marked as taken then */
  #changeWithReply(
    lane: Lane,
    taskId: string,
    reply: BandReply,
    settings: ConversationSettings,
    sameTurn: boolean,
  ): Promise<OpenTask | null> {
    const { options, self } = this.#core.deps;
    const text = fromBandText(reply.content, self, reply.mentions);
    const read = settings.directives ? this.#core.deps.readReply : plainReply;
    const metadata = options.exposeBandIds
      ? { band_room_id: reply.roomId, band_message_id: reply.id, band_sender_id: reply.senderId }
      : undefined;
    let said: Reply;
    try {
      said = read(text);
    } catch (error) {
      // A bug of the reader, not of the reply: it would fail again, so the task does not wait for more.
      this.#core.deps.log.error({ err: error, taskId, bandMessageId: reply.id }, 'a reply could not be read');
      return this.#core.fail(taskId, 'INTERNAL').then(() => null);
    }
    let untake: (() => void) | null = null;
    let askedAt: number | null = null;
    return this.#core
      .change(taskId, (task) => {
        askedAt = task.row.lastReplyAt === null ? task.row.lastActivityAt : null;
        const change = answer(task, {
          bandMessageId: reply.id,
          reply: said,
          settings,
          inFlight: lane.inFlight,
          sameTurn,
          now: this.#core.now(),
          ...(metadata && { metadata }),
        });
        untake = takeReply(lane, reply.id);
        return { ...(change ?? {}), also: [this.#core.lanes.put(lane)] };
      })
      .then(
        (after) => {
          if (askedAt !== null && after?.row.lastReplyAt != null) {
            this.#core.figures.replied(askedAt, after.row.lastReplyAt);
          }
          return after;
        },
        (error: unknown) => {
          untake?.();
          lane.doubtful ||= isGatewayError(error, 'STORE_IO');
          throw error;
        },
      );
  }

  /** A reply whose write failed may have been taken all the same: lane and task are brought to what the store has. */
  async #settle(lane: Lane): Promise<void> {
    await this.#core.lanes.reread(lane);
    for (const taskId of tasksOf(lane)) await this.#core.change(taskId, () => null);
  }

  async #isSameTurn(context: Context, taskId: string, settings: ConversationSettings): Promise<boolean> {
    const task = this.#core.book.find(taskId);
    if (!task || !isInterrupted(task.row.state) || task.row.parked) return false;
    if (this.#core.now() - task.row.stateAt < settings.settleMs) return true;
    const { lastPostId, peerId } = task.row;
    if (lastPostId === null || this.#core.delivery.readable === false) return false;
    const look = await this.#core.delivery
      .look(context, lastPostId, peerId, true, this.#core.work.signal)
      .catch(() => 'unknown' as const);
    return look === 'processing';
  }

  async #lateReply(lane: Lane, reply: BandReply): Promise<void> {
    const untake = takeReply(lane, reply.id);
    lane.lateAt = this.#core.now();
    const { debt } = lane.record;
    if (debt) lane.record = { ...lane.record, debt: { ...debt, answered: true } };
    try {
      await this.#core.lanes.save(lane);
    } catch (error) {
      untake();
      throw error;
    }
    this.#core.figures.late.inc();
    this.#core.deps.log.info(
      { bandMessageId: reply.id, roomId: reply.roomId, peer: lane.peerId },
      'a late reply was dropped',
    );
  }

  async #replyOfOther(context: Context, reply: BandReply): Promise<void> {
    const lanes = [...this.#core.lanes.all()].filter((lane) => lane.context === context && lane.running !== null);
    if (lanes.length === 0) {
      this.#unmatched(reply);
      return;
    }
    for (const lane of lanes) {
      if (lane.doubtful) await this.#settle(lane);
      const settings = this.#core.settingsOf(lane.peerId);
      if (settings.others === 'answer' && lanes.length === 1) {
        await this.#replyOfPeer(context, lane.peerId, reply);
      } else if (settings.others !== 'ignore' && !lane.record.taken.includes(reply.id)) {
        await this.#remarkOn(lane, reply, settings);
      }
    }
  }

  async #remarkOn(lane: Lane, reply: BandReply, settings: ConversationSettings): Promise<void> {
    const text = fromBandText(reply.content, this.#core.deps.self, reply.mentions);
    const name = reply.senderName ?? 'Someone';
    const untake = takeReply(lane, reply.id);
    try {
      const after = await this.#core.change(lane.running ?? '', (task) => {
        const change = remark(task, { messageId: reply.id, name, text }, this.#core.now());
        return change && { ...change, also: [this.#core.lanes.put(lane)] };
      });
      if (after) this.#core.armSilence(after, settings);
    } catch (error) {
      untake();
      lane.doubtful ||= isGatewayError(error, 'STORE_IO');
      throw error;
    }
  }

  #unmatched(reply: BandReply): void {
    this.#core.figures.unmatched.inc();
    this.#core.deps.log.info({ bandMessageId: reply.id, roomId: reply.roomId }, 'a message belongs to no task');
  }

  #parkedOrInterrupted(lane: Lane): string | null {
    const parked = lane.interrupted.findLast((id) => this.#core.book.find(id)?.row.parked === true);
    return parked ?? lane.interrupted.at(-1) ?? null;
  }
}

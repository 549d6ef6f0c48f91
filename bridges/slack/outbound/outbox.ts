import { childSignal, deferred, type Deferred } from '../../../src/base/async.js';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { CancelTimer, Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { DeadLetters } from '../../../src/core/bridge.js';
import type { Outcome, QueueItem, StagedPut } from '../../../src/store/durable-queue.js';
import { Inbox } from '../../../src/store/inbox.js';
import type { StateStore, StoreChange } from '../../../src/store/port.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import { slackKey } from '../conversation.js';
import { FAULT_ROWS } from '../fault-table.js';
import type { DeadEnd, WriteEnd } from './faults.js';
import { jobSchema, laneOf, referenceOf, type Job } from './jobs.js';
import { TooEarly } from './landing.js';
import type { OutboundMeters } from './meters.js';
import type { Notes } from './notes.js';
import { previewItem, roomErrorItem, tellItem } from './outbox-items.js';
import type { ThreadRef } from './port.js';
import type { Claim, Tells } from './tells.js';

/** What Slack gave for a write. */
export interface Done {
  readonly ts: readonly string[];
  readonly permalink: string | null;
  readonly fileId: string | null;
}
export type JobEnd = WriteEnd<Done> & { readonly preview?: string };
/** How a record left the queue. */
export type Ended = { readonly state: 'sent'; readonly done: Done } | (DeadEnd & { readonly state: 'failed' });

export interface OutboxDeps {
  readonly store: StateStore;
  /** E.g. `slack/helpdesk/outbox`. */
  readonly prefix: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly meters: OutboundMeters;
  readonly notes: Notes;
  readonly tells: Tells;
  readonly write: (record: QueueRecord<Job>, signal: AbortSignal) => Promise<JobEnd>;
  /** What else of a finished record is removed with it. */
  readonly leavings: (record: QueueRecord<Job>) => readonly StoreChange[];
}

export const NOTHING: Done = { ts: [], permalink: null, fileId: null };

const SEEN_MS = 48 * 3_600_000;
const PRUNE_MS = 3_600_000;
const MAX_WAITING = 10_000;
const MAX_ENDED = 1_000;
const LONGEST_WAIT_MS = 30_000;
const OWN_FAULT = 'Writing this failed too often for a reason of our own.';
const CRASH_LOOP: DeadEnd = {
  kind: 'dead',
  slackError: 'crash_loop',
  detail: OWN_FAULT,
  notice: OWN_FAULT,
  direct: false,
};

/**
 * Every write into Slack, on disk before anyone is told that it was taken. A record leaves the queue when Slack has it,
 * or as a dead letter together with what tells the room and the person (S-106).
 */
export class Outbox {
  readonly inbox: Inbox<Job>;
  readonly #deps: OutboxDeps;
  readonly #stopping = new AbortController();
  readonly #waiters = new Map<string, Deferred<Ended>[]>();
  readonly #ended = new BoundedMap<string, Ended>(MAX_ENDED);
  /** Lanes whose head waits: for an event of the outside, or for its next try. */
  readonly #stuck = new Map<string, 'event' | 'try'>();
  #onMove: (() => void)[] = [];
  #cancelPrune: CancelTimer = () => undefined;

  private constructor(inbox: Inbox<Job>, deps: OutboxDeps) {
    this.inbox = inbox;
    this.#deps = deps;
  }

  static async open(deps: OutboxDeps): Promise<Outbox> {
    const { store, prefix, clock, log } = deps;
    const inbox = await Inbox.open<Job>({
      store,
      prefix,
      bodySchema: jobSchema,
      clock,
      log,
      seenRetentionMs: SEEN_MS,
      maxRunning: Number.POSITIVE_INFINITY,
      maxWaiting: MAX_WAITING,
      // Every write is judged by the fault table, which knows for each refusal how long to go on.
      maxFailures: Number.POSITIVE_INFINITY,
    });
    return new Outbox(inbox, deps);
  }

  /** Aborts when the bridge stops. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  get depth(): number {
    return this.inbox.queue.depth;
  }

  get deadCount(): number {
    return this.inbox.queue.deadCount;
  }

  has(id: string): boolean {
    return this.inbox.queue.has(id);
  }

  laneDepth(lane: string): number {
    return this.inbox.queue.laneDepth(lane);
  }

  /**
   * Puts a job on disk, then waits for its end as long as asked.
   *
   * @returns null when the end is not known yet
   */
  async put(id: string, body: Job, waitMs: number): Promise<Ended | null> {
    const known = this.#ended.get(id);
    if (known) return known;
    const waiter = waitMs > 0 ? deferred<Ended>() : null;
    if (waiter) this.#waiters.set(id, [...(this.#waiters.get(id) ?? []), waiter]);
    try {
      const accepted = await this.inbox.accept({ id, lane: laneOf(body), body });
      this.#moved();
      const done = this.#ended.get(id);
      if (done) return done;
      if (accepted === 'repeat' && !this.has(id)) return { state: 'sent', done: NOTHING };
      return waiter ? await this.#within(waiter.promise, waitMs) : null;
    } finally {
      const others = this.#waiters.get(id)?.filter((other) => other !== waiter) ?? [];
      if (others.length > 0) this.#waiters.set(id, others);
      else this.#waiters.delete(id);
    }
  }

  start(): void {
    const { clock, log } = this.#deps;
    this.inbox.queue.start(
      (record, signal) => this.#handle(record, signal),
      (record) => this.#giveUp(record, CRASH_LOOP),
    );
    this.#cancelPrune = clock.every(PRUNE_MS, () => {
      this.inbox.prune().catch((error: unknown) => {
        log.warn({ err: error }, 'old ids of the outbox were not forgotten');
      });
    });
    this.#moved();
  }

  /** Lets go out what can within `graceMs`; the rest stays on disk. */
  async stop(graceMs: number): Promise<void> {
    this.#cancelPrune();
    if (graceMs > 0) {
      using child = childSignal();
      await Promise.race([this.quiet(), this.#deps.clock.sleep(graceMs, child.signal).catch(() => undefined)]);
      child.abort();
    }
    this.#stopping.abort(new GatewayError('DEADLINE_EXCEEDED', { message: 'The bridge was stopped.' }));
    await this.inbox.queue.stop();
  }

  /** Resolves when every lane is empty or waits for an event or its next try. */
  async quiet(): Promise<void> {
    while (this.depth > this.#stuckDepth()) await new Promise<void>((resolve) => this.#onMove.push(resolve));
  }

  /** The lane's head waits for an event of the outside. */
  stick(lane: string): void {
    this.#stuck.set(lane, 'event');
    this.#moved();
  }

  unstick(lane: string): void {
    this.#stuck.delete(lane);
  }

  /** An event came: every head that waits looks again, and sticks again where it was not the one. */
  unstickWaiting(): void {
    for (const [lane, reason] of this.#stuck) if (reason === 'event') this.#stuck.delete(lane);
  }

  /** Says one line to the person who asked, once per thread and cause in an hour. */
  async tell(thread: ThreadRef, cause: string, notice: string, direct: boolean): Promise<void> {
    const told = thread.askerId === null ? null : this.#deps.tells.claim(thread, cause);
    if (!told) return;
    try {
      await this.inbox.queue.put(tellItem(thread, notice, direct), () => [told.change]);
    } catch (error) {
      told.abandoned();
      throw error;
    }
  }

  async #handle(record: QueueRecord<Job>, queueSignal: AbortSignal): Promise<Outcome> {
    const { notes, log, write, leavings } = this.#deps;
    using child = childSignal(queueSignal, this.#stopping.signal);
    this.unstick(record.lane);
    try {
      const end = await write(record, child.signal);
      switch (end.kind) {
        case 'sent':
          return {
            kind: 'done',
            changes: [notes.forget(record.id), ...leavings(record)],
            committed: () => {
              this.#settle(record.id, { state: 'sent', done: end.result });
            },
          };
        case 'again':
          this.#postpone(record.lane);
          return { kind: 'retry', afterMs: end.afterMs, error: end.error, maybeDelivered: end.maybeDelivered };
        case 'dead':
          return await this.#giveUp(record, end, end.preview);
      }
    } catch (error) {
      if (error instanceof TooEarly) {
        this.#postpone(record.lane);
        return { kind: 'wait', afterMs: error.afterMs };
      }
      const crashed = !child.signal.aborted && !isGatewayError(error);
      if (crashed) log.error({ err: error, id: record.id }, 'a write into Slack met a defect');
      this.#postpone(record.lane);
      return { kind: 'retry', error, maybeDelivered: true, crashed };
    }
  }

  /** Dead letter, the room's error, the person's line and a preview, all in one batch. */
  async #giveUp(record: QueueRecord<Job>, end: DeadEnd, preview?: string): Promise<Outcome> {
    const { notes, tells, clock, log, meters } = this.#deps;
    const { body, id } = record;
    const { thread, kind } = body;
    const { slackError, detail, notice, direct } = end;
    const ref = referenceOf(id);
    const { slug: app, team, channel, threadTs } = thread;
    log.error(
      { app, team, channel, thread: threadTs, kind, slackError, detail, ref },
      'a write into Slack was given up',
    );

    const changes: StoreChange[] = [notes.renew(id, await notes.get(id))];
    const items: QueueItem<Job>[] = preview === undefined ? [] : [previewItem(thread, id, preview)];
    let told: Claim | null = null;
    if (kind === 'post' || kind === 'upload' || kind === 'edit' || (kind === 'reaction' && direct)) {
      const text = `A message could not be posted in Slack: ${slackError}. ${detail}`;
      items.push(roomErrorItem(thread, `${id}:${clock.now()}`, { text, slackError, ref }));
      told = thread.askerId === null ? null : tells.claim(thread, slackError);
      if (told) {
        changes.push(told.change);
        items.push(tellItem(thread, `${notice} (${slackError}, reference ${ref})`, direct));
      }
    }
    let staged: readonly StagedPut[];
    try {
      staged = this.#stageAll(items);
    } catch (error) {
      told?.abandoned();
      throw error;
    }
    return {
      kind: 'dead',
      code: slackError,
      reason: detail,
      changes: [...changes, ...staged.flatMap((put) => put.changes)],
      committed: () => {
        for (const put of staged) put.committed();
        meters.dead.inc({ side: 'outbox', cause: FAULT_ROWS.has(slackError) ? slackError : 'other' });
        this.#settle(id, { state: 'failed', ...end });
      },
      abandoned: () => {
        told?.abandoned();
        for (const put of staged) put.abandoned();
      },
    };
  }

  /** All or none: what is staged and never put would count as known for ever. */
  #stageAll(items: readonly QueueItem<Job>[]): readonly StagedPut[] {
    const staged: StagedPut[] = [];
    try {
      for (const item of items) {
        const put = this.inbox.queue.stage(item);
        if (put) staged.push(put);
      }
      return staged;
    } catch (error) {
      for (const put of staged) put.abandoned();
      throw error;
    }
  }

  #postpone(lane: string): void {
    this.#stuck.set(lane, 'try');
    this.#moved();
  }

  #settle(id: string, end: Ended): void {
    this.#ended.set(id, end);
    for (const waiter of this.#waiters.get(id) ?? []) waiter.resolve(end);
    this.#waiters.delete(id);
    this.#moved();
  }

  async #within(end: Promise<Ended>, waitMs: number): Promise<Ended | null> {
    using child = childSignal(this.#stopping.signal);
    const over = this.#deps.clock.sleep(Math.min(waitMs, LONGEST_WAIT_MS), child.signal).then(
      () => null,
      () => null,
    );
    const first = await Promise.race([end, over]);
    child.abort();
    return first;
  }

  /** Something came or went: figures, and who waits for quiet. */
  #moved(): void {
    const { records } = this.#deps.meters;
    records.set({ state: 'waiting' }, this.depth);
    records.set({ state: 'dead' }, this.deadCount);
    records.set({ state: 'parked' }, this.#stuckDepth());
    const waiting = this.#onMove;
    this.#onMove = [];
    for (const resolve of waiting) resolve();
  }

  #stuckDepth(): number {
    let depth = 0;
    for (const lane of this.#stuck.keys()) depth += this.laneDepth(lane);
    return depth;
  }

  readonly deadLetters: DeadLetters = {
    list: async (limit) =>
      (await this.inbox.queue.deadRecords(limit)).map(({ id, body, code, reason, diedAt }) => ({
        id,
        queue: 'outbox',
        conversation: slackKey(body.thread),
        code,
        reason,
        at: diedAt,
      })),
    retry: async (id) => {
      this.#ended.delete(id);
      const found = await this.inbox.queue.retryDead(id);
      this.#moved();
      return found;
    },
    drop: async (id) => {
      const dead = (await this.inbox.queue.deadRecords(Number.MAX_SAFE_INTEGER)).find((one) => one.id === id);
      if (!dead || !(await this.inbox.queue.dropDead(id))) return false;
      const record = { ...dead, failures: 0, crashes: 0, maybeDelivered: false };
      await this.#deps.store.batch([this.#deps.notes.forget(id), ...this.#deps.leavings(record)]);
      this.#moved();
      return true;
    },
  };
}

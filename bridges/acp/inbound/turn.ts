import { deferred } from '../../../src/base/async.js';
import type { CancelTimer, Clock } from '../../../src/base/clock.js';
import type { AcpReason } from '../errors.js';
import { isAgent, spell, type Person } from '../roster.js';

export interface TurnTimes {
  readonly graceMs: number;
  readonly settleMs: number;
  readonly stragglerMs: number;
  readonly idleTimeoutMs: number;
  /** 0: no limit. */
  readonly maxMs: number;
}

/** A peer that answers an old and a new question in one message is not waited for longer than this. */
const LATE_SETTLE_MS = 10_000;

export type TurnEnd =
  | { readonly kind: 'ended' }
  | { readonly kind: 'timeout'; readonly waitedMs: number }
  | { readonly kind: 'failed' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'broken'; readonly reason: AcpReason };

interface Recipient {
  readonly person: Person;
  replied: boolean;
  failed: boolean;
  /** The delivery mark as last read; null while none was seen. */
  status: string | null;
  /** Answered an earlier question during this turn. */
  paidDebt: boolean;
}

/**
 * Decides when a prompt is answered. It ends exactly once, on the first of: everybody closed and quiet, everybody
 * replied and quiet, some replied and the rest silent for long, nobody replied for very long, the cap, or from outside.
 */
export class Turn {
  readonly #clock: Clock;
  readonly #times: TurnTimes;
  readonly #recipients: Map<string, Recipient>;
  readonly #end = deferred<TurnEnd>();
  readonly #startedAt: number;
  #lastActivity: number;
  #posted = false;
  #answered = false;
  #timer: CancelTimer = () => undefined;
  #over: TurnEnd | null = null;
  #heard: () => void = () => undefined;

  constructor(clock: Clock, times: TurnTimes, recipients: readonly Person[]) {
    this.#clock = clock;
    this.#times = times;
    this.#startedAt = clock.now();
    this.#lastActivity = this.#startedAt;
    this.#recipients = new Map(
      recipients
        .filter(isAgent)
        .map((person) => [person.id, { person, replied: false, failed: false, status: null, paidDebt: false }]),
    );
  }

  /** Resolves when the turn is over; never rejects. */
  get end(): Promise<TurnEnd> {
    return this.#end.promise;
  }

  get isOver(): boolean {
    return this.#over !== null;
  }

  /** True until somebody's text was taken as an answer. */
  get isSilent(): boolean {
    return !this.#answered;
  }

  /** Band has the message: from here on quiet times run. With people only, nobody is waited for. */
  posted(): void {
    this.#posted = true;
    if (this.#recipients.size === 0) this.finish({ kind: 'ended' });
    else this.#touch();
  }

  /** Calls `hear` at each text that answers, so that somebody can look at its delivery. */
  onText(hear: () => void): void {
    this.#heard = hear;
    if (this.#answered) hear();
  }

  isRecipient(id: string): boolean {
    return this.#recipients.has(id);
  }

  /** A text arrived; `late` when it pays for an earlier turn. */
  text(senderId: string, late: boolean): void {
    const recipient = this.#recipients.get(senderId);
    if (late && recipient) recipient.paidDebt = true;
    if (!late) {
      if (recipient) recipient.replied = true;
      this.#answered ||= this.#recipients.size > 0;
    }
    this.#touch();
    this.#heard();
  }

  /** A person who was not asked wrote: it is shown, but it answers nothing. */
  activity(): void {
    this.#touch();
  }

  /** An error report of a participant. */
  failed(senderId: string): void {
    const recipient = this.#recipients.get(senderId);
    if (recipient) recipient.failed = true;
    this.#touch();
  }

  /** Delivery marks as just read; a change counts as activity. */
  delivery(statuses: ReadonlyMap<string, string>): void {
    let changed = false;
    for (const [id, status] of statuses) {
      const recipient = this.#recipients.get(id);
      if (!recipient || recipient.status === status) continue;
      recipient.status = status;
      changed = true;
    }
    if (changed) this.#touch();
  }

  /** Handles of recipients that replied; of those nobody heard from. */
  get replied(): string[] {
    return this.#spell((one) => one.replied);
  }

  get pending(): string[] {
    return this.#spell((one) => !one.replied && !isClosed(one));
  }

  /** Recipients whose answer may still come after this turn. */
  get owing(): Person[] {
    return [...this.#recipients.values()].filter((one) => !one.replied && !isClosed(one)).map(({ person }) => person);
  }

  finish(end: TurnEnd): void {
    if (this.#over) return;
    this.#over = end;
    this.#timer();
    this.#end.resolve(end);
  }

  #spell(pick: (one: Recipient) => boolean): string[] {
    return [...this.#recipients.values()].filter(pick).map(({ person }) => spell(person));
  }

  #touch(): void {
    this.#lastActivity = this.#clock.now();
    this.#arm();
  }

  #arm(): void {
    if (!this.#posted || this.#over) return;
    this.#timer();
    const now = this.#clock.now();
    const quiet = this.#quietRule();
    const capAt = this.#times.maxMs > 0 ? this.#startedAt + this.#times.maxMs : Number.POSITIVE_INFINITY;
    const quietAt = this.#lastActivity + quiet.ms;
    this.#timer = this.#clock.after(Math.max(0, Math.min(quietAt, capAt) - now), () => {
      this.finish(quietAt <= capAt ? quiet.end() : this.#endAtCap());
    });
  }

  #quietRule(): { ms: number; end: () => TurnEnd } {
    const all = [...this.#recipients.values()];
    const ended = (): TurnEnd => ({ kind: 'ended' });
    const { graceMs, settleMs, stragglerMs, idleTimeoutMs } = this.#times;
    if (all.every(isClosed)) {
      const failed = all.every(hasFailed) && !this.#answered;
      return { ms: graceMs, end: () => (failed ? { kind: 'failed' } : { kind: 'ended' }) };
    }
    if (all.every((one) => isClosed(one) || (one.replied && one.status === null))) return { ms: settleMs, end: ended };
    const owing = all.filter((one) => !one.replied && !isClosed(one));
    if (owing.length === 0) return { ms: idleTimeoutMs, end: ended };
    if (owing.every((one) => one.paidDebt)) return { ms: LATE_SETTLE_MS, end: ended };
    if (this.#answered) return { ms: stragglerMs, end: ended };
    return { ms: idleTimeoutMs, end: () => this.#timedOut() };
  }

  #endAtCap(): TurnEnd {
    return this.#answered ? { kind: 'ended' } : this.#timedOut();
  }

  #timedOut(): TurnEnd {
    return { kind: 'timeout', waitedMs: this.#clock.now() - this.#startedAt };
  }
}

const hasFailed = (one: Recipient): boolean => one.failed || one.status === 'failed';
const isClosed = (one: Recipient): boolean => hasFailed(one) || one.status === 'processed';

/** Answers that peers still owe to earlier turns of a session, oldest first. */
export class Debts {
  readonly #owed = new Map<string, number[]>();

  /** @param expiresAt - milliseconds since the epoch */
  add(personId: string, expiresAt: number): void {
    const list = this.#owed.get(personId) ?? [];
    list.push(expiresAt);
    this.#owed.set(personId, list);
  }

  /** Takes one debt of this person, if it is still owed. */
  take(personId: string, now: number): boolean {
    const open = (this.#owed.get(personId) ?? []).filter((expiresAt) => expiresAt > now);
    const paid = open.shift() !== undefined;
    if (open.length > 0) this.#owed.set(personId, open);
    else this.#owed.delete(personId);
    return paid;
  }

  get size(): number {
    let count = 0;
    for (const list of this.#owed.values()) count += list.length;
    return count;
  }
}

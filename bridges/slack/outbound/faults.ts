import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError, toError, type GatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SlackAppConfig } from '../apps.js';
import type { SlackClient } from '../client.js';
import { judgeFault, methodFamily, slackErrorOf, type FaultVerdict, type Reshape, type RetryPlan } from '../errors.js';
import { remedyOf } from '../fault-table.js';
import { channelInfo } from '../web-methods.js';
import type { Job } from './jobs.js';
import type { Note } from './notes.js';
import type { ParkFault, Parks } from './parks.js';
import type { ThreadRef } from './port.js';
import { isPlanOver, planDelay } from './retry-plan.js';

/** An app in a workspace, as far as writing needs it. */
export interface OutInstallation {
  /** From `createThrottledClient`: this code waits for nothing but parks. */
  readonly client: SlackClient;
  readonly app: SlackAppConfig;
  /** E.g. `https://acme.slack.com/`. */
  readonly teamUrl: string;
  readonly botUserId: string;
  /** Null when Slack did not say. */
  readonly scopes: readonly string[] | null;
}

/** Waits until a record's channel may be written to. A string is why it never will be. */
export type Ready = (record: QueueRecord<Job>, signal: AbortSignal) => Promise<OutInstallation | string>;

/** How one record's try ended. */
export type WriteEnd<Result> =
  | { readonly kind: 'sent'; readonly result: Result }
  | { readonly kind: 'again'; readonly afterMs: number; readonly error: Error; readonly maybeDelivered: boolean }
  | DeadEnd;

export interface DeadEnd {
  readonly kind: 'dead';
  /** Slack's word, or a code of ours. */
  readonly slackError: string;
  readonly detail: string;
  /** One line for the person. */
  readonly notice: string;
  /** It goes by direct message: the channel takes nothing from us. */
  readonly direct: boolean;
}

/** What follows from a refused call. */
export type Step =
  /** The obstacle is out of the way, or will be when the lane goes on. */
  | { readonly kind: 'resend' }
  | {
      readonly kind: 'reshape';
      readonly to: Reshape;
      /** What the write ends with where there is no such other form. */
      readonly end: DeadEnd;
    }
  /** What was wished for is so already. */
  | { readonly kind: 'fulfilled' }
  | { readonly kind: 'ended'; readonly end: Extract<WriteEnd<never>, { kind: 'again' | 'dead' }> };

export interface FaultDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly parks: Parks;
  readonly autoJoin: boolean;
  readonly random: () => number;
  /** Refreshes a rotated token; false when there is nothing to refresh. */
  readonly refresh?: ((slug: string, team: string, signal: AbortSignal) => Promise<boolean>) | undefined;
  /** Tells the person, at most once per thread and cause in an hour; `direct` as in {@link DeadEnd}. */
  tell(thread: ThreadRef, cause: string, notice: string, direct: boolean): Promise<void>;
  /** The thread's channel is out of reach for good. */
  unreachable(thread: ThreadRef): Promise<void>;
}

/** What a fault is judged with. */
export interface Failing {
  readonly thread: ThreadRef;
  readonly note: Note;
  readonly install: OutInstallation;
  readonly method: string;
}

type Ended = Extract<Step, { kind: 'ended' }>;

/** One failed call, and what the table says about it. */
interface Judged extends Failing {
  readonly error: GatewayError;
  readonly word: string;
  readonly verdict: FaultVerdict;
}

/**
 * Does what the fault table says about a refused write (S-105): waits, mends, parks, gives another form, or gives up.
 * Every remedy is tried once per record, so nothing goes round in circles.
 */
export class FaultDesk {
  readonly #deps: FaultDeps;

  constructor(deps: FaultDeps) {
    this.#deps = deps;
  }

  /** @throws what is no failure of a call to Slack: the store's errors, defects, and the signal's reason */
  async judge(error: unknown, failing: Failing, signal: AbortSignal): Promise<Step> {
    if (signal.aborted) throw toError(signal.reason);
    if (!isGatewayError(error) || !error.code.startsWith('SLACK_')) throw error;
    const { thread, note, method } = failing;
    const word = slackErrorOf(error) ?? error.code;
    const verdict = specialCase(word, method, error) ?? judgeFault(error, method);
    const judged: Judged = { ...failing, error, word, verdict };
    const { fault } = verdict;
    if (verdict.unknown) this.#deps.log.error({ method, slackError: word }, 'Slack gave an error that is in no list');
    switch (fault.kind) {
      case 'wait':
        return this.#again(judged, false, 'usual');
      case 'again':
        return this.#again(judged, fault.ambiguous, fault.plan);
      case 'reshape':
        return this.#reshape(judged, fault.to);
      case 'park':
        await this.#park(judged, fault);
        // A word about direct messages said of a channel would keep nothing from being tried at once.
        return this.#deps.parks.find(thread) ? { kind: 'resend' } : this.#dead(judged);
      case 'join':
        return await this.#join(judged, signal);
      case 'refresh':
        if (once(note, 'refresh') && (await this.#deps.refresh?.(thread.slug, thread.team, signal)))
          return { kind: 'resend' };
        await this.#park(judged, { kind: 'park', what: 'installation', until: 'new_token', atMostMs: null });
        return { kind: 'resend' };
      case 'look_up_channel':
        return await this.#lookUpChannel(judged, signal);
      case 'done':
        // Words about reactions and deletions: to anything else they would say that it is lost.
        return ['delete', 'reaction'].includes(methodFamily(method)) ? { kind: 'fulfilled' } : this.#dead(judged);
      case 'interrupt':
      case 'dead':
      case 'without':
      case 'tool_result':
        return this.#dead(judged);
    }
  }

  /** Something other than a call to Slack failed: again as usual, given up after half an hour. */
  retry(error: unknown, note: Note): Ended['end'] {
    const failure = toError(error);
    return this.#againWith(note, 'other', failure, true, 'usual') ?? deadEnd(failure, GAVE_UP);
  }

  /** The lane's own limit is over. */
  expired(cause: string): DeadEnd {
    return {
      kind: 'dead',
      slackError: cause,
      detail: 'The channel did not become writable in time.',
      notice: 'The channel of our conversation stayed closed, so an answer was not posted there.',
      direct: true,
    };
  }

  #again({ note, method, error, verdict }: Judged, ambiguous: boolean, plan: RetryPlan): Ended {
    const end = this.#againWith(note, method, error, ambiguous, plan);
    const sentence = verdict.notice ?? (verdict.unknown ? NOT_POSTED : GAVE_UP);
    return { kind: 'ended', end: end ?? deadEnd(error, sentence, verdict.direct) };
  }

  /** @returns null when the plan is at its end */
  #againWith(
    note: Note,
    method: string,
    error: Error,
    ambiguous: boolean,
    plan: RetryPlan,
  ): Extract<WriteEnd<never>, { kind: 'again' }> | null {
    const { clock, random } = this.#deps;
    note.tries += 1;
    // Slack says itself how long it wants to be left alone: that ends no plan.
    const putOffMs = isGatewayError(error, 'SLACK_RATE_LIMITED') ? error.retryAfterMs : null;
    if (putOffMs !== null) return { kind: 'again', afterMs: putOffMs, error, maybeDelivered: false };
    note.since ??= clock.now();
    const afterMs = planDelay(plan, note.tries, random);
    if (isPlanOver(plan, note.tries, clock.now() + afterMs - note.since)) return null;
    const writes = methodFamily(method) !== 'read';
    return { kind: 'again', afterMs, error, maybeDelivered: ambiguous && writes };
  }

  #dead({ error, verdict }: Judged): Ended {
    return { kind: 'ended', end: deadEnd(error, verdict.notice ?? NOT_POSTED, verdict.direct) };
  }

  #reshape({ note, method, error, word, verdict }: Judged, to: Reshape): Step {
    const end = deadEnd(error, verdict.notice ?? NO_FORM, verdict.direct);
    // Which workspace is meant goes with every call from here on, see `withTeam`.
    if (to === 'with-team') return once(note, to) ? { kind: 'resend' } : { kind: 'ended', end };
    const { needed, messages } = error.details;
    this.#deps.log.warn({ method, slackError: word, needed, messages, to }, 'Slack wants another form of a write');
    return { kind: 'reshape', to, end };
  }

  async #park({ thread, error, word, verdict }: Judged, fault: ParkFault): Promise<void> {
    const { parks, log } = this.#deps;
    const isNew = await parks.add(thread, fault, word);
    const { slug, team, channel } = thread;
    const { needed, provided } = error.details;
    const about = { app: slug, team, channel, slackError: word, needed, provided, until: fault.until };
    if (isNew) log.error({ ...about, remedy: remedyOf(word) }, 'Slack lane parked');
    if (verdict.notice !== null) await this.#deps.tell(thread, word, verdict.notice, verdict.direct);
  }

  async #join(judged: Judged, signal: AbortSignal): Promise<Step> {
    const { thread, note, install } = judged;
    const mayJoin = this.#deps.autoJoin && (install.scopes?.includes('channels:join') ?? true);
    if (mayJoin && once(note, 'join')) {
      try {
        await install.client.call('conversations.join', { channel: thread.channel }, { signal });
        return { kind: 'resend' };
      } catch (error) {
        if (signal.aborted) throw error;
        if (isGatewayError(error) && error.retryable) return this.#tryRemedyLater(judged, 'join', error);
        this.#deps.log.info({ err: error, channel: thread.channel }, 'the channel could not be joined');
      }
    }
    await this.#park(judged, { kind: 'park', what: 'channel', until: 'member_joined', atMostMs: null });
    return { kind: 'resend' };
  }

  /** Looks at the channel once, as the conversation's workspace sees it: a refusal may be of the moment. */
  async #lookUpChannel(judged: Judged, signal: AbortSignal): Promise<Step> {
    const { thread, note, install } = judged;
    if (once(note, 'channel')) {
      once(note, 'with-team');
      try {
        await channelInfo(withTeam(install, thread, note).client, thread.channel, { signal });
        return { kind: 'resend' };
      } catch (error) {
        if (signal.aborted) throw error;
        // Whether the channel is out of reach is not known yet, and its binding is not given up for an outage.
        if (isGatewayError(error) && error.retryable) return this.#tryRemedyLater(judged, 'channel', error);
      }
    }
    await this.#deps.unreachable(thread);
    return this.#dead(judged);
  }

  /** A remedy that Slack could not be asked for: the whole write is tried again, and the remedy with it. */
  #tryRemedyLater(judged: Judged, remedy: string, error: GatewayError): Ended {
    judged.note.tried = judged.note.tried.filter((one) => one !== remedy);
    return this.#again({ ...judged, error }, false, 'usual');
  }
}

const NO_FORM = 'Slack did not take an answer in any form I know, so it was not posted; it was recorded.';
const NOT_POSTED = 'I could not post an answer in our conversation; it was recorded.';
const GAVE_UP = 'Slack could not be reached for too long, so an answer was not posted; it was recorded.';

/** Words whose meaning depends on more than the word. */
function specialCase(word: string, method: string, { details }: GatewayError): FaultVerdict | null {
  if (word !== 'missing_scope') return null;
  if (details['needed'] === 'chat:write.customize') {
    return { fault: { kind: 'reshape', to: 'without-persona' }, notice: NO_FORM, direct: false, unknown: false };
  }
  if (methodFamily(method) !== 'upload') return null;
  const notice = 'This app may not send files here, so I posted what fits as text.';
  return { fault: { kind: 'reshape', to: 'text-instead-of-file' }, notice, direct: false, unknown: false };
}

/** Marks a remedy as tried. @returns whether it was the first time */
export function once(note: Note, remedy: string): boolean {
  if (note.tried.includes(remedy)) return false;
  note.tried.push(remedy);
  return true;
}

/** The same installation, whose calls name the conversation's workspace once Slack could not tell it by the token. */
export function withTeam(install: OutInstallation, { team }: Pick<ThreadRef, 'team'>, note: Note): OutInstallation {
  if (!note.tried.includes('with-team')) return install;
  const { client } = install;
  const named: SlackClient = {
    ...client,
    call: (method, args, options) => client.call(method, { ...args, team_id: team }, options),
  };
  return { ...install, client: named };
}

function deadEnd(error: Error, notice: string, direct = false): DeadEnd {
  const slackError = slackErrorOf(error) ?? codeOf(error);
  return { kind: 'dead', slackError, detail: detailOf(error), notice, direct };
}

const codeOf = (error: Error): string => (isGatewayError(error) ? error.code : 'UNKNOWN');

/** What Slack said beside its word; never text of a message. */
function detailOf(error: unknown): string {
  const failure = toError(error);
  if (!isGatewayError(failure)) return failure.message;
  const { slackError, needed, messages } = failure.details;
  const parts = [
    failure.message,
    typeof slackError === 'string' ? slackError : null,
    typeof needed === 'string' ? `needed: ${needed}` : null,
    Array.isArray(messages) ? messages.join('; ').slice(0, 500) : null,
  ];
  return parts.filter((part) => part !== null).join(' ');
}

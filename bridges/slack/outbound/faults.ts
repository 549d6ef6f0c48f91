import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError, toError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SlackAppConfig } from '../apps.js';
import type { SlackClient } from '../client.js';
import { judgeFault, methodFamily, slackErrorOf, type Reshape, type RetryPlan } from '../errors.js';
import { channelInfo } from '../web-methods.js';
import type { Job } from './jobs.js';
import type { Note } from './notes.js';
import type { Parks } from './parks.js';
import type { ThreadRef } from './port.js';

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
}

/** What follows from a refused call. */
export type Step =
  /** The obstacle is out of the way, or will be when the lane goes on. */
  | { readonly kind: 'resend' }
  | {
      readonly kind: 'reshape';
      readonly to: Reshape;
      /** What the write ends with where there is no such other form. */
      readonly slackError: string;
      readonly detail: string;
      readonly notice: string;
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
  /** Tells the person, at most once per thread and cause in an hour. */
  tell(thread: ThreadRef, cause: string, notice: string): Promise<void>;
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

const SECOND_MS = 1_000;
const USUAL_SECONDS = [1, 2, 4, 8, 15, 30, 60] as const;
const JITTER = 0.2;
const USUAL_LIMIT_MS = 30 * 60_000;
const MIGRATION_STEP_MS = 5 * 60_000;
const MIGRATION_LIMIT_MS = 24 * 3_600_000;
const UNKNOWN_TRIES = 3;

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
    const special = specialCase(word, method, error.details);
    if (special) return special;
    const { fault, notice, unknown } = judgeFault(error, method);
    if (unknown) this.#deps.log.error({ method, slackError: word }, 'Slack gave an error that is in no list');
    const end = (): Step => this.#dead(word, error, notice);
    switch (fault.kind) {
      case 'wait':
        return this.#again(note, method, error, notice, false, 'usual');
      case 'again':
        return this.#again(note, method, error, notice, fault.ambiguous, fault.plan);
      case 'reshape':
        return { kind: 'reshape', to: fault.to, slackError: word, detail: detailOf(error), notice: notice ?? NO_FORM };
      case 'park':
        await this.#park(thread, fault, word, notice);
        // A word about direct messages said of a channel would keep nothing from being tried at once.
        return this.#deps.parks.find(thread) ? { kind: 'resend' } : end();
      case 'join':
        return await this.#join(failing, word, notice, signal);
      case 'refresh':
        if (once(note, 'refresh') && (await this.#deps.refresh?.(thread.slug, thread.team, signal)))
          return { kind: 'resend' };
        await this.#park(
          thread,
          { kind: 'park', what: 'installation', until: 'new_token', atMostMs: null },
          word,
          null,
        );
        return { kind: 'resend' };
      case 'look_up_channel':
        if (once(note, 'channel') && (await this.#seesChannel(failing, signal))) return { kind: 'resend' };
        await this.#deps.unreachable(thread);
        return end();
      case 'done':
        // Words about reactions and deletions: to anything else they would say that it is lost.
        return ['delete', 'reaction'].includes(methodFamily(method)) ? { kind: 'fulfilled' } : end();
      case 'interrupt':
      case 'dead':
      case 'without':
      case 'tool_result':
        return end();
    }
  }

  /** Something other than a call to Slack failed: again as usual, given up after half an hour. */
  retry(error: unknown, note: Note): Extract<WriteEnd<never>, { kind: 'again' | 'dead' }> {
    const step = this.#again(note, 'other', toError(error), null, true, 'usual');
    return step.end;
  }

  /** The lane's own limit is over. */
  expired(cause: string): DeadEnd {
    return {
      kind: 'dead',
      slackError: cause,
      detail: 'The channel did not become writable in time.',
      notice: 'The channel of our conversation stayed closed, so an answer was not posted there.',
    };
  }

  #again(
    note: Note,
    method: string,
    error: Error,
    notice: string | null,
    ambiguous: boolean,
    plan: RetryPlan,
  ): Extract<Step, { kind: 'ended' }> {
    const { clock, random } = this.#deps;
    note.since ??= clock.now();
    note.tries += 1;
    const afterMs = planDelay(plan, note.tries, random);
    const over =
      plan === 'three-tries'
        ? note.tries >= UNKNOWN_TRIES
        : clock.now() + afterMs - note.since > (plan === 'migration' ? MIGRATION_LIMIT_MS : USUAL_LIMIT_MS);
    if (over) return this.#dead(slackErrorOf(error) ?? codeOf(error), error, notice ?? GAVE_UP);
    const writes = methodFamily(method) !== 'read';
    return { kind: 'ended', end: { kind: 'again', afterMs, error, maybeDelivered: ambiguous && writes } };
  }

  #dead(slackError: string, error: Error, notice: string | null): Extract<Step, { kind: 'ended' }> {
    const end: DeadEnd = { kind: 'dead', slackError, detail: detailOf(error), notice: notice ?? NOT_POSTED };
    return { kind: 'ended', end };
  }

  async #park(
    thread: ThreadRef,
    fault: Parameters<Parks['add']>[1],
    cause: string,
    notice: string | null,
  ): Promise<void> {
    const { parks, log } = this.#deps;
    const isNew = await parks.add(thread, fault, cause);
    const { slug, team, channel } = thread;
    if (isNew) log.error({ app: slug, team, channel, slackError: cause, until: fault.until }, 'Slack lane parked');
    if (notice !== null) await this.#deps.tell(thread, cause, notice);
  }

  async #join(
    { thread, note, install }: Failing,
    word: string,
    notice: string | null,
    signal: AbortSignal,
  ): Promise<Step> {
    const mayJoin = this.#deps.autoJoin && (install.scopes?.includes('channels:join') ?? true);
    if (mayJoin && once(note, 'join')) {
      try {
        await install.client.call('conversations.join', { channel: thread.channel }, { signal });
        return { kind: 'resend' };
      } catch (error) {
        if (signal.aborted) throw error;
        this.#deps.log.info({ err: error, channel: thread.channel }, 'the channel could not be joined');
      }
    }
    await this.#park(thread, { kind: 'park', what: 'channel', until: 'member_joined', atMostMs: null }, word, notice);
    return { kind: 'resend' };
  }

  /** Looks at the channel once: a refusal may be of the moment. */
  async #seesChannel({ thread, install }: Failing, signal: AbortSignal): Promise<boolean> {
    try {
      await channelInfo(install.client, thread.channel, { signal });
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      return false;
    }
  }
}

const NO_FORM = 'Slack did not take an answer in any form I know, so it was not posted; it was recorded.';
const NOT_POSTED = 'I could not post an answer in our conversation; it was recorded.';
const GAVE_UP = 'Slack could not be reached for too long, so an answer was not posted; it was recorded.';

/** Words whose meaning depends on more than the word. */
function specialCase(word: string, method: string, details: Readonly<Record<string, unknown>>): Step | null {
  if (word !== 'missing_scope') return null;
  const detail = `${word}: ${String(details['needed'])}`;
  if (details['needed'] === 'chat:write.customize') {
    return { kind: 'reshape', to: 'without-persona', slackError: word, detail, notice: NO_FORM };
  }
  if (methodFamily(method) !== 'upload') return null;
  const notice = 'This app may not send files here, so I posted what fits as text.';
  return { kind: 'reshape', to: 'text-instead-of-file', slackError: word, detail, notice };
}

/** Marks a remedy as tried. @returns whether it was the first time */
export function once(note: Note, remedy: string): boolean {
  if (note.tried.includes(remedy)) return false;
  note.tried.push(remedy);
  return true;
}

/** @param tries - failures so far, this one included */
export function planDelay(plan: RetryPlan, tries: number, random: () => number): number {
  if (plan === 'migration') return MIGRATION_STEP_MS;
  const step = plan === 'message-limit' ? USUAL_SECONDS.length : tries;
  const seconds = USUAL_SECONDS[Math.min(step, USUAL_SECONDS.length) - 1] ?? 60;
  return seconds * SECOND_MS * (1 - JITTER + 2 * JITTER * random());
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

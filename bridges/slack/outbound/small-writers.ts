import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError, toError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SlackArguments } from '../client.js';
import { slackKey } from '../conversation.js';
import { judgeFault } from '../errors.js';
import { mrkdwnMessage, ownMetadata, shortMessage, withControls } from './compose.js';
import { once, type FaultDesk, type OutInstallation, type Ready, type WriteEnd } from './faults.js';
import { digest, mentionPolicy, NOBODY, type EditJob, type EphemeralJob, type Job, type ReactionJob } from './jobs.js';
import type { Note, Notes } from './notes.js';
import type { ThreadRef } from './port.js';
import { respond, type RespondDeps } from './respond.js';

export interface SmallWriterDeps {
  readonly desk: FaultDesk;
  readonly notes: Notes;
  readonly log: Logger;
  readonly clock: Clock;
  readonly files: RespondDeps;
  ready: Ready;
  /** The installation alone: a closed channel does not keep a person from being told. */
  readonly installed: (record: QueueRecord<Job>, signal: AbortSignal) => Promise<OutInstallation>;
}

export type SmallEnd = WriteEnd<null>;
const SENT: SmallEnd = { kind: 'sent', result: null };
const nobody = mentionPolicy(NOBODY);
/** Tries at one `response_url`, of the five that Slack allows; then the usual way is gone. */
const MOST_RESPONSES = 2;
const MAX_OFF = 5_000;
const THREAD_TAKES_NONE: ReadonlySet<string> = new Set([
  'too_many_emoji',
  'too_many_reactions',
  'invalid_name',
  'not_reactable',
  'bad_timestamp',
]);

/** Writes what needs no order beyond its own channel: what one person sees, edits, reactions. */
export function createSmallWriters({ desk, notes, log, clock, files, ready, installed }: SmallWriterDeps) {
  /** Emojis that Slack refused in a thread. */
  const reactionsOff = new BoundedMap<string, true>(MAX_OFF);
  const offKey = (thread: ThreadRef, emoji: string): string => `${slackKey(thread)}:${emoji}`;

  /** What only one person sees, in the channel, else as a direct message. */
  async function ephemeral(record: QueueRecord<EphemeralJob>, signal: AbortSignal): Promise<SmallEnd> {
    const { body: job, id } = record;
    const { thread, userId, text, buttons } = job;
    const note = await notes.get(id);
    const message = mrkdwnMessage(text, nobody, buttons);
    const answered = await answer(record, note, message, signal);
    if (answered) return answered;
    for (;;) {
      const { client, ...install } = await installed(record, signal);
      const direct = note.tried.includes('direct');
      const method = direct ? 'chat.postMessage' : 'chat.postEphemeral';
      try {
        const args = direct
          ? { channel: userId, metadata: ownMetadata(digest(id), 'notice'), unfurl_links: false, unfurl_media: false }
          : { channel: thread.channel, user: userId, ...inThread(thread, note) };
        await client.call(method, { ...message, ...args }, { signal });
        return SENT;
      } catch (error) {
        const step = await calm(error, method, { thread, note, install: { client, ...install } }, signal);
        if (step) {
          await notes.put(id, note);
          if (step === 'resend') continue;
          return step;
        }
        if (!direct && isThreadFault(error, method) && once(note, 'outside')) continue;
        if (once(note, 'direct')) continue;
        return { kind: 'dead', slackError: wordOf(error), detail: toError(error).message, notice: '' };
      }
    }
  }

  /** By the way that came with an interaction, which takes no token and no membership; null where that is closed. */
  async function answer(
    { body: { thread, response }, id }: QueueRecord<EphemeralJob>,
    note: Note,
    message: SlackArguments,
    signal: AbortSignal,
  ): Promise<SmallEnd | null> {
    // Every try may have used the way up by one; others answer the same interaction.
    if (!response || response.until <= clock.now() || note.tries >= MOST_RESPONSES) return null;
    const body = { ...message, response_type: 'ephemeral', replace_original: response.replace ?? false };
    try {
      return (await respond(response.url, body, files, signal)) ? SENT : null;
    } catch (error) {
      if (signal.aborted) throw toError(signal.reason);
      log.debug({ err: error, app: thread.slug }, 'an interaction could not be answered yet');
      const end = desk.retry(error, note);
      await notes.put(id, note);
      return end;
    }
  }

  /** One of our own short messages, rewritten; posted anew where Slack does not let it be. */
  async function edit(record: QueueRecord<EditJob>, signal: AbortSignal): Promise<SmallEnd> {
    const { body: job, id } = record;
    const { thread, ts, markdown, buttons } = job;
    const note = await notes.get(id);
    for (;;) {
      const install = await ready(record, signal);
      if (typeof install === 'string') return desk.expired(install);
      const anew = note.tried.includes('new-post');
      const short = shortMessage(markdown, nobody, buttons);
      const message = note.tried.includes('mrkdwn') ? { ...short, blocks: withControls(short.text, buttons) } : short;
      let method = 'chat.update';
      try {
        if (note.tried.includes('delete-and-post') && once(note, 'deleted')) {
          method = 'chat.delete';
          await install.client.call(method, { channel: thread.channel, ts }, { signal });
        }
        method = anew ? 'chat.postMessage' : 'chat.update';
        const args = anew
          ? {
              thread_ts: thread.threadTs,
              metadata: ownMetadata(digest(id), 'notice'),
              unfurl_links: false,
              unfurl_media: false,
            }
          : { ts };
        await install.client.call(method, { channel: thread.channel, ...message, ...args }, { signal });
        return SENT;
      } catch (error) {
        const step = await desk.judge(error, { thread, note, install, method }, signal);
        if (step.kind === 'ended') {
          await notes.put(id, note);
          return step.end;
        }
        if (step.kind === 'resend' || step.kind === 'fulfilled') continue;
        const known = step.to === 'mrkdwn' || step.to === 'new-post' || step.to === 'delete-and-post';
        if (!known || !once(note, step.to)) {
          const { slackError, detail, notice } = step;
          return { kind: 'dead', slackError, detail, notice };
        }
        if (step.to === 'delete-and-post') once(note, 'new-post');
        await notes.put(id, note);
      }
    }
  }

  /** A reaction that Slack does not take is not worth anybody's attention. */
  async function reaction(record: QueueRecord<ReactionJob>, signal: AbortSignal): Promise<SmallEnd> {
    const { body: job, id } = record;
    const { thread, ts, emoji, on } = job;
    if (reactionsOff.has(offKey(thread, emoji))) return SENT;
    const note = await notes.get(id);
    const method = on ? 'reactions.add' : 'reactions.remove';
    for (;;) {
      const install = await installed(record, signal);
      try {
        await install.client.call(method, { channel: thread.channel, timestamp: ts, name: emoji }, { signal });
        return SENT;
      } catch (error) {
        const step = await calm(error, method, { thread, note, install }, signal);
        if (step) {
          await notes.put(id, note);
          if (step === 'resend') continue;
          return step;
        }
        log.debug({ slackError: wordOf(error), channel: thread.channel }, 'reaction not taken');
        // What Slack does not take on one message of a thread it is not asked again and again.
        if (THREAD_TAKES_NONE.has(wordOf(error))) reactionsOff.set(offKey(thread, emoji), true);
        return SENT;
      }
    }
  }

  /** What is about Slack or the installation as a whole; null for a refusal of this very write. */
  async function calm(
    error: unknown,
    method: string,
    failing: { readonly thread: ThreadRef; readonly note: Note; readonly install: OutInstallation },
    signal: AbortSignal,
  ): Promise<Exclude<SmallEnd, { kind: 'sent' }> | 'resend' | null> {
    if (signal.aborted) throw toError(signal.reason);
    const { fault } = judgeFault(error, method);
    const general =
      fault.kind === 'again' ||
      fault.kind === 'wait' ||
      fault.kind === 'refresh' ||
      (fault.kind === 'park' && (fault.what === 'installation' || fault.what === 'team'));
    if (!general) return null;
    const step = await desk.judge(error, { ...failing, method }, signal);
    return step.kind === 'ended' ? step.end : 'resend';
  }

  return { ephemeral, edit, reaction };
}

/** Calls a hook of the bridge until it has worked. */
export async function runHook(
  { id }: QueueRecord<Job>,
  { desk, notes }: Pick<SmallWriterDeps, 'desk' | 'notes'>,
  hook: () => Promise<void>,
  signal: AbortSignal,
): Promise<SmallEnd> {
  try {
    await hook();
    return SENT;
  } catch (error) {
    if (signal.aborted) throw toError(signal.reason);
    const note = await notes.get(id);
    const end = desk.retry(error, note);
    await notes.put(id, note);
    return end;
  }
}

const inThread = ({ threadTs }: ThreadRef, note: Note): { thread_ts?: string } =>
  threadTs === '' || note.tried.includes('outside') ? {} : { thread_ts: threadTs };

const isThreadFault = (error: unknown, method: string): boolean => {
  const { fault } = judgeFault(error, method);
  return fault.kind === 'reshape' && (fault.to === 'new-root' || fault.to === 'into-channel');
};

const wordOf = (error: unknown): string => {
  const word = isGatewayError(error) ? error.details['slackError'] : null;
  return typeof word === 'string' ? word : isGatewayError(error) ? error.code : 'UNKNOWN';
};

import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError, toError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SlackArguments } from '../client.js';
import { slackKey } from '../conversation.js';
import { splitReply } from '../convert/index.js';
import { judgeFault, methodFamily, type Reshape } from '../errors.js';
import { mrkdwnMessage, ownMetadata, shortMessage, withControls } from './compose.js';
import { once, withTeam, type FaultDesk, type OutInstallation, type Ready, type WriteEnd } from './faults.js';
import { digest, mentionPolicy, NOBODY, type EditJob, type EphemeralJob, type Job, type ReactionJob } from './jobs.js';
import type { Note, Notes } from './notes.js';
import type { ControlButton, ThreadRef } from './port.js';
import { CONTROLS_TEXT } from './post-steps.js';
import type { Relocation } from './relocation.js';
import { respond, type RespondDeps } from './respond.js';

/** Another form of an edit. */
const EDIT_REMEDIES: Readonly<Partial<Record<Reshape, string>>> = {
  mrkdwn: 'mrkdwn',
  'plain-text': 'mrkdwn',
  'new-post': 'new-post',
  // As a post it is cut into as many messages as it takes.
  'smaller-parts': 'new-post',
  'delete-and-post': 'delete-and-post',
};

export interface SmallWriterDeps {
  readonly desk: FaultDesk;
  readonly notes: Notes;
  readonly log: Logger;
  readonly clock: Clock;
  readonly files: RespondDeps;
  readonly places: Pick<Relocation, 'threadTs'>;
  ready: Ready;
  /** The installation alone: a closed channel does not keep a person from being told. */
  readonly installed: (record: QueueRecord<Job>, signal: AbortSignal) => Promise<OutInstallation>;
  /** Queues a short message for the thread; one id is posted once. */
  readonly post: (id: string, thread: ThreadRef, markdown: string, buttons: readonly ControlButton[]) => Promise<void>;
}

export type SmallEnd = WriteEnd<null>;
const SENT: SmallEnd = { kind: 'sent', result: null };
const nobody = mentionPolicy(NOBODY);
/** Tries at one `response_url`, of the five that Slack allows; then the usual way is gone. */
const MOST_RESPONSES = 2;
const MAX_OFF = 5_000;
const HALVINGS = ['halved', 'halved twice', 'halved three times'] as const;
const MOST_PARTS = 20;
const THREAD_TAKES_NONE: ReadonlySet<string> = new Set([
  'too_many_emoji',
  'too_many_reactions',
  'invalid_name',
  'not_reactable',
  'bad_timestamp',
]);

/** Writes what needs no order beyond its own channel: what one person sees, edits, reactions. */
export function createSmallWriters({
  desk,
  notes,
  log,
  clock,
  files,
  places,
  ready,
  installed,
  post,
}: SmallWriterDeps) {
  /** Emojis that Slack refused in a thread. */
  const reactionsOff = new BoundedMap<string, true>(MAX_OFF);
  const offKey = (thread: ThreadRef, emoji: string): string => `${slackKey(thread)}:${emoji}`;

  /** What only one person sees, in the channel, else as a direct message; or the other way about. */
  async function ephemeral(record: QueueRecord<EphemeralJob>, signal: AbortSignal): Promise<SmallEnd> {
    const { body: job, id } = record;
    const { thread, userId, text, buttons } = job;
    const note = await notes.get(id);
    const answered = await answer(record, note, mrkdwnMessage(text, nobody, buttons), signal);
    if (answered) return answered;
    for (;;) {
      const parts = ephemeralParts(job, note);
      const part = parts[Object.keys(note.sent).length];
      if (!part) return SENT;
      const install = withTeam(await installed(record, signal), thread, note);
      const direct = job.direct !== note.tried.includes('other-way');
      const method = direct ? 'chat.postMessage' : 'chat.postEphemeral';
      try {
        const args = direct
          ? { channel: userId, ...ownMetadataOf(id, note), unfurl_links: false, unfurl_media: false }
          : { channel: thread.channel, user: userId, ...inThread(places.threadTs(thread), note) };
        await install.client.call(method, { ...part, ...args }, { signal });
        note.sent[String(parts.indexOf(part))] = '';
        if (part !== parts.at(-1)) await notes.put(id, note);
      } catch (error) {
        const step = await calm(error, method, { thread, note, install }, signal);
        if (step === null) {
          await noteClosedTab(error, method, { thread, note, install }, signal);
          if (part !== parts[0] && 'blocks' in part && formFor(error, method, note) === 'mrkdwn') {
            log.warn({ slackError: wordOf(error) }, 'Slack took no buttons');
            return SENT;
          }
          if (!otherForm(error, method, direct, note))
            return { kind: 'dead', slackError: wordOf(error), detail: toError(error).message, notice: '', direct };
        }
        await notes.put(id, note);
        if (step !== null && step !== 'resend') return step;
      }
    }
  }

  /** Direct messages are closed for the whole app: that is said and remembered, and this one goes another way. */
  async function noteClosedTab(
    error: unknown,
    method: string,
    failing: { readonly thread: ThreadRef; readonly note: Note; readonly install: OutInstallation },
    signal: AbortSignal,
  ): Promise<void> {
    const { fault } = judgeFault(error, method);
    if (fault.kind !== 'park' || fault.what !== 'direct_messages') return;
    await desk.judge(error, { ...failing, method }, signal);
  }

  /** @returns false where every form and every way was tried */
  function otherForm(error: unknown, method: string, direct: boolean, note: Note): boolean {
    const form = formFor(error, method, note);
    if (form === 'outside' && direct) return once(note, 'other-way');
    return (form !== null && once(note, form)) || once(note, 'other-way');
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
    const { channel } = thread;
    const note = await notes.get(id);
    for (;;) {
      const found = await ready(record, signal);
      if (typeof found === 'string') return desk.expired(found);
      const install = withTeam(found, thread, note);
      const isPlain = note.tried.includes('mrkdwn');
      const toDelete = note.tried.includes('delete-and-post') && !note.tried.includes('deleted');
      const method = toDelete ? 'chat.delete' : 'chat.update';
      try {
        if (toDelete) {
          await install.client.call(method, { channel, ts }, { signal });
          once(note, 'deleted');
        }
        if (note.tried.includes('new-post')) {
          await post(`anew:${digest(id)}`, thread, markdown, buttons);
          return SENT;
        }
        const short = shortMessage(markdown, nobody, buttons);
        // Without an empty list Slack would keep the blocks it has.
        const message = isPlain ? { text: short.text, blocks: [] } : short;
        await install.client.call(method, { channel, ts, ...message }, { signal });
        if (isPlain && buttons.length > 0) await post(`controls:${digest(id)}`, thread, CONTROLS_TEXT, buttons);
        return SENT;
      } catch (error) {
        const step = await desk.judge(error, { thread, note, install, method }, signal);
        if (step.kind === 'fulfilled') once(note, 'deleted');
        const remedy = step.kind === 'reshape' ? EDIT_REMEDIES[step.to] : undefined;
        if (step.kind === 'reshape' && (remedy === undefined || !once(note, remedy))) return step.end;
        if (remedy === 'delete-and-post') once(note, 'new-post');
        await notes.put(id, note);
        if (step.kind === 'ended') return step.end;
      }
    }
  }

  /** A reaction that Slack does not take is not worth anybody's attention, unless it says that no answer will come. */
  async function reaction(record: QueueRecord<ReactionJob>, signal: AbortSignal): Promise<SmallEnd> {
    const { body: job, id } = record;
    const { thread, ts, emoji, on } = job;
    if (reactionsOff.has(offKey(thread, emoji))) return SENT;
    const note = await notes.get(id);
    const method = on ? 'reactions.add' : 'reactions.remove';
    for (;;) {
      const install = withTeam(await installed(record, signal), thread, note);
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
      (fault.kind === 'reshape' && fault.to === 'with-team') ||
      (fault.kind === 'dead' && methodFamily(method) === 'reaction') ||
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

const inThread = (threadTs: string | null, note: Note): { thread_ts?: string } =>
  threadTs === null || threadTs === '' || note.tried.includes('outside') ? {} : { thread_ts: threadTs };

/** The text and its buttons at once; one after the other where Slack takes no blocks beside the text. */
function ephemeralParts({ text, buttons }: EphemeralJob, note: Note): readonly SlackArguments[] {
  const message = mrkdwnMessage(text, nobody, buttons);
  const halvings = HALVINGS.filter((halving) => note.tried.includes(halving)).length;
  if (halvings === 0 && (!note.tried.includes('mrkdwn') || buttons.length === 0)) return [message];
  const controls = buttons.length === 0 ? [] : [{ text: CONTROLS_TEXT, blocks: withControls(CONTROLS_TEXT, buttons) }];
  if (halvings === 0) return [{ text: message.text }, ...controls];
  const cut = { form: 'mrkdwn', maxParts: MOST_PARTS, scale: 1 / 2 ** halvings } as const;
  return [...splitReply(text, nobody, cut).parts.map((part) => ({ text: part.text })), ...controls];
}

const ownMetadataOf = (id: string, note: Note): SlackArguments =>
  note.tried.includes('without-metadata') ? {} : { metadata: ownMetadata(digest(id), 'notice') };

/** Another form of what one person sees: without blocks or metadata, in smaller parts, or outside of the thread. */
function formFor(error: unknown, method: string, note: Note): string | null {
  const { fault } = judgeFault(error, method);
  if (fault.kind !== 'reshape') return null;
  switch (fault.to) {
    case 'mrkdwn':
    case 'plain-text':
      return 'mrkdwn';
    case 'without-metadata':
      return fault.to;
    case 'smaller-parts':
      // What stands already is not cut anew.
      return Object.keys(note.sent).length > 0 ? null : (HALVINGS.find((one) => !note.tried.includes(one)) ?? null);
    case 'new-root':
    case 'into-channel':
      return 'outside';
    default:
      return null;
  }
}

const wordOf = (error: unknown): string => {
  const word = isGatewayError(error) ? error.details['slackError'] : null;
  return typeof word === 'string' ? word : isGatewayError(error) ? error.code : 'UNKNOWN';
};

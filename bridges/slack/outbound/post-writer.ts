import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Counter } from '../../../src/base/metrics.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SlackArguments } from '../client.js';
import { markdownToMrkdwn, type RenderForm } from '../convert/index.js';
import type { Reshape } from '../errors.js';
import { postMessage } from '../web-methods.js';
import {
  controlBlocks,
  namedMarkdown,
  ownMetadata,
  permalinkOf,
  personaArguments,
  withControls,
  type SlackBlockArgument,
} from './compose.js';
import { once, type FaultDesk, type OutInstallation, type Ready, type WriteEnd } from './faults.js';
import { digest, mentionPolicy, type PostJob } from './jobs.js';
import { lookUp, type FoundPosts, type LookUpPlace } from './look-up.js';
import type { Moves } from './moves.js';
import type { Note, Notes } from './notes.js';
import type { Persona, ThreadRef } from './port.js';
import { halvingsOf, MOST_HALVINGS, piecesOf, rootPath, type Piece } from './pieces.js';
import { sendFile, type SendFileDeps } from './send-file.js';

export interface PostResult {
  readonly ts: readonly string[];
  readonly permalink: string | null;
}

export interface PostOptions {
  readonly render: RenderForm;
  readonly maxParts: number;
  readonly unfurlLinks: boolean;
  readonly unfurlMedia: boolean;
}

export interface PostWriterDeps {
  readonly options: PostOptions;
  readonly desk: FaultDesk;
  readonly notes: Notes;
  readonly moves: Moves;
  readonly log: Logger;
  readonly ambiguous: Counter;
  readonly fallbacks: Counter;
  readonly files: Pick<SendFileDeps, 'dispatcher' | 'slackApiUrl'>;
  /** Installations in which a name of one's own was refused. */
  readonly personaOff: Set<string>;
  readonly ready: Ready;
  /** The conversation goes on under another first message. */
  moved(thread: ThreadRef, newTs: string): Promise<void>;
}

/** A message of the reply, a file, or the row of buttons that found no other place. */
type Step = (Piece & { readonly buttons: boolean }) | { readonly kind: 'controls'; readonly path: 'controls' };

/** Tries after which a look-up that fails is not waited for any longer. */
const LOOK_UPS = 3;
const CONTROLS_TEXT = 'Controls for the message above';

/**
 * Writes one reply: its pieces in order, each once. What an earlier try may have written is looked for before it is
 * written again; what Slack refuses is given another form, once each.
 */
export function createPostWriter(deps: PostWriterDeps) {
  const { desk, notes, options, log } = deps;

  return async function write(record: QueueRecord<PostJob>, signal: AbortSignal): Promise<WriteEnd<PostResult>> {
    const { body: job, id, putAt } = record;
    const note = await notes.get(id);
    const save = () => notes.put(id, note);
    let found: FoundPosts | 'unknown' | null = record.maybeDelivered ? null : 'unknown';
    let counted = !record.maybeDelivered;
    let steps: readonly Step[] = [];
    let formOfSteps = '';
    for (;;) {
      const install = await deps.ready(record, signal);
      if (typeof install === 'string') return desk.expired(install);
      const place = placeOf(job, note);
      // Cutting a long reply costs time, so it is done again only when something about it has changed.
      const named = isNamed(job, note, install);
      const form = JSON.stringify([note.place, named, note.reshaped]);
      if (form !== formOfSteps) steps = stepsOf(job, note, install, named);
      formOfSteps = form;
      const step = steps.find(({ path }) => note.sent[path] === undefined);
      if (!step) return { kind: 'sent', result: resultOf(job, note, steps, install, place) };

      let method = 'chat.postMessage';
      try {
        if (step.kind === 'file') {
          note.sent[step.path] = await sendPiece(step, job, note, install, place, save, signal);
        } else {
          found ??= await look(install, place, putAt, note, signal);
          const text = textOf(step);
          const earlier =
            found === 'unknown'
              ? null
              : (found.byKey(digest(id, step.path)) ??
                (note.tried.includes('without-metadata') ? found.byText(install.botUserId, text) : null));
          if (!counted) {
            deps.ambiguous.inc({ resolution: earlier === null ? 'resent' : 'found' });
            counted = earlier === null;
          }
          const args = argumentsOf(step, text, record, note, install, place, step.path === steps[0]?.path);
          const ts = earlier ?? (await postMessage(install.client, args, { signal })).ts;
          note.sent[step.path] = ts;
          await landed(job, note, place, ts, save);
        }
        if (step !== steps.at(-1)) await save();
        continue;
      } catch (error) {
        method = methodOf(error) ?? method;
        const next = await desk.judge(error, { thread: job.thread, note, install, method }, signal);
        if (next.kind === 'resend' || next.kind === 'fulfilled') continue;
        if (next.kind === 'ended') {
          await save();
          return next.end;
        }
        const { slackError, detail, notice } = next;
        if (!reshape(next.to, step, job, note, slackError)) {
          return { kind: 'dead', slackError, detail, notice };
        }
        await save();
      }
    }
  };

  /** What an earlier try left; `unknown` when nobody can tell. */
  async function look(
    install: OutInstallation,
    place: LookUpPlace,
    fromMs: number,
    note: Note,
    signal: AbortSignal,
  ): Promise<FoundPosts | 'unknown'> {
    try {
      return await lookUp(install.client, place, fromMs, signal);
    } catch (error) {
      // Without a connection the post would fail as well, and what fails for a moment may tell the truth the next.
      const isPassing = isGatewayError(error) && error.retryable && note.tries < LOOK_UPS;
      if (signal.aborted || isPassing || isGatewayError(error, 'SLACK_UNREACHABLE')) throw error;
      log.warn({ err: error, channel: place.channel }, 'own posts could not be looked up');
      return 'unknown';
    }
  }

  function placeOf({ thread }: PostJob, note: Note): LookUpPlace {
    const { channel } = thread;
    switch (note.place) {
      case 'thread':
        return { channel, threadTs: deps.moves.threadTs(thread) };
      case 'channel':
        return { channel, threadTs: null };
      case 'root':
        return { channel, threadTs: note.rootTs };
    }
  }

  function stepsOf(job: PostJob, note: Note, install: OutInstallation, named: boolean): readonly Step[] {
    const policy = mentionPolicy(
      note.place === 'root' && job.thread.askerId !== null
        ? { ...job.mentions, users: withUser(job.mentions.users, job.thread.askerId) }
        : job.mentions,
    );
    const markdown = named && job.speaker ? namedMarkdown(job.speaker, job.markdown) : job.markdown;
    const pieces = piecesOf(
      introduced(markdown, job, note, install),
      policy,
      { form: options.render, maxParts: options.maxParts },
      note.reshaped,
    );
    if (job.buttons.length === 0) return pieces.map((piece) => ({ ...piece, buttons: false }));
    const last = pieces.findLast((piece) => piece.kind === 'text' && canHoldButtons(piece, note));
    const steps: Step[] = pieces.map((piece) => ({ ...piece, buttons: piece === last }));
    return last ? steps : [...steps, { kind: 'controls', path: 'controls' }];
  }

  /** The speaker's name stands in the text where it may not stand above it; decided once per reply. */
  function isNamed(job: PostJob, note: Note, install: OutInstallation): boolean {
    const begun = Object.keys(note.sent).length > 0;
    if (job.speaker && !begun && !mayName(job, install) && !note.tried.includes('named')) note.tried.push('named');
    return note.tried.includes('named');
  }

  function mayName({ thread }: PostJob, install: OutInstallation): boolean {
    return !deps.personaOff.has(workspaceOf(thread)) && (install.scopes?.includes('chat:write.customize') ?? true);
  }

  /** Says what a post refers to when it does not stand in its thread. */
  function introduced(markdown: string, { thread }: PostJob, note: Note, install: OutInstallation): string {
    if (note.place === 'thread') return markdown;
    const link = note.place === 'channel' ? permalinkOf(install.teamUrl, thread.channel, thread.threadTs, null) : null;
    const intro =
      link === null ? (thread.askerId === null ? null : `<@${thread.askerId}>`) : `[In reply to this message](${link})`;
    return intro === null || (note.place === 'channel' && link === null) ? markdown : `${intro}\n\n${markdown}`;
  }

  function argumentsOf(
    step: Exclude<Step, { kind: 'file' }>,
    text: string,
    { id, body: job }: QueueRecord<PostJob>,
    note: Note,
    install: OutInstallation,
    place: LookUpPlace,
    isFirst: boolean,
  ): SlackArguments {
    const persona: Persona | null = job.speaker ?? install.app.persona;
    const tried = (remedy: Reshape) => note.tried.includes(remedy);
    const blocks = tried('plain-text') ? null : blocksOf(step, job, text);
    return {
      channel: place.channel,
      ...(place.threadTs === null ? {} : { thread_ts: place.threadTs }),
      text,
      ...(blocks === null ? {} : { blocks }),
      ...(tried('without-metadata') ? {} : { metadata: ownMetadata(digest(id, step.path), job.post) }),
      ...(persona !== null && mayName(job, install) ? personaArguments(persona) : {}),
      ...(job.broadcast && isFirst && place.threadTs !== null ? { reply_broadcast: true } : {}),
      ...(tried('with-team') ? { team_id: job.thread.team } : {}),
      unfurl_links: options.unfurlLinks,
      unfurl_media: options.unfurlMedia,
    };
  }

  async function sendPiece(
    step: Extract<Piece, { kind: 'file' }>,
    job: PostJob,
    note: Note,
    { client }: OutInstallation,
    place: LookUpPlace,
    save: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<string> {
    const file = {
      name: step.name,
      bytes: new TextEncoder().encode(step.content),
      title: null,
      comment: markdownToMrkdwn(step.comment, mentionPolicy(job.mentions)),
    };
    const fileId = await sendFile(file, place, { client, note, save, ...deps.files }, signal);
    note.fileId = null;
    return fileId;
  }

  /** The first post under a new root makes that root the thread. */
  async function landed(
    job: PostJob,
    note: Note,
    place: LookUpPlace,
    ts: string,
    save: () => Promise<void>,
  ): Promise<void> {
    if (note.place !== 'root' || place.threadTs !== null || ts === '') return;
    note.rootTs = ts;
    await save();
    await deps.moves.put(job.thread, ts);
    await deps.moved(job.thread, ts);
  }

  /** @returns false when there is no such other form, or it was tried */
  function reshape(to: Reshape, step: Step, job: PostJob, note: Note, cause: string): boolean {
    switch (to) {
      case 'mrkdwn':
        if (step.kind === 'file') return false;
        deps.fallbacks.inc({
          from: step.kind === 'controls' ? 'controls' : 'markdown',
          to: 'mrkdwn',
          cause,
        });
        if (step.kind === 'controls') {
          log.warn({ channel: job.thread.channel }, 'Slack took no buttons');
          note.sent[step.path] = '';
          return true;
        }
        if (note.reshaped[step.path] !== undefined || (step.source === null && !step.buttons)) return false;
        note.reshaped[step.path] = 'mrkdwn';
        return true;
      case 'smaller-parts':
        return smaller(step, note, cause);
      case 'without-persona':
        deps.personaOff.add(workspaceOf(job.thread));
        log.warn(
          { app: job.thread.slug, team: job.thread.team },
          'names and icons of posts are refused; going on without',
        );
        return once(note, to);
      case 'into-channel':
        note.place = 'channel';
        return once(note, to);
      case 'new-root':
        note.place = 'root';
        return once(note, to);
      case 'into-thread':
        note.place = 'thread';
        return once(note, to);
      case 'plain-text':
      case 'without-metadata':
      case 'without-attachments':
      case 'with-team':
        return once(note, to);
      case 'new-post':
      case 'delete-and-post':
      case 'stop-stream-first':
      case 'finish-stream':
      case 'edit-instead-of-stream':
      case 'text-instead-of-file':
      case 'new-trigger':
        return false;
    }
  }

  /** Half the length, three times at most, then a file. */
  function smaller(step: Step, note: Note, cause: string): boolean {
    if (step.kind !== 'text') return false;
    const halved = halvingsOf(step.path);
    const to = halved >= MOST_HALVINGS ? 'file' : 'smaller';
    deps.fallbacks.inc({ from: 'part', to, cause });
    if (step.source !== null) {
      note.reshaped[step.path] = to;
      return true;
    }
    const root = rootPath(note.reshaped);
    if (Object.keys(note.sent).length > 0) return false;
    note.reshaped[root] = to;
    return true;
  }
}

const canHoldButtons = (piece: Piece, note: Note): boolean =>
  piece.kind === 'text' && piece.source !== null && note.reshaped[piece.path] === undefined;

const textOf = (step: Exclude<Step, { kind: 'file' }>): string =>
  step.kind === 'controls' ? CONTROLS_TEXT : step.text;

const workspaceOf = ({ slug, team }: ThreadRef): string => `${slug}:${team}`;

function blocksOf(
  step: Exclude<Step, { kind: 'file' }>,
  { buttons }: PostJob,
  text: string,
): readonly SlackBlockArgument[] | null {
  if (step.kind === 'controls') return withControls(text, buttons);
  if (step.blocks === null) return null;
  return step.buttons ? [...step.blocks, ...controlBlocks(buttons)] : step.blocks;
}

function resultOf(
  { thread }: PostJob,
  note: Note,
  steps: readonly Step[],
  install: OutInstallation,
  place: LookUpPlace,
): PostResult {
  const ts = steps.flatMap(({ kind, path }) => {
    const at = note.sent[path];
    return kind === 'text' && at !== undefined && at !== '' ? [at] : [];
  });
  const [first] = ts;
  const permalink = first === undefined ? null : permalinkOf(install.teamUrl, thread.channel, first, place.threadTs);
  return { ts, permalink };
}

const withUser = (users: PostJob['mentions']['users'], user: string): PostJob['mentions']['users'] =>
  users === 'any' ? 'any' : [...(users === 'none' ? [] : users), user];

function methodOf(error: unknown): string | null {
  const method = isGatewayError(error) ? error.details['method'] : null;
  return typeof method === 'string' ? method : null;
}

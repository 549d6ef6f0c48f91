import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Counter } from '../../../src/base/metrics.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import { markdownToMrkdwn, type Guard } from '../convert/index.js';
import type { Reshape } from '../errors.js';
import { permalinkOf } from './compose.js';
import { once, withTeam, type FaultDesk, type OutInstallation, type Ready, type WriteEnd } from './faults.js';
import { mentionPolicy, type PostJob } from './jobs.js';
import type { LookUpPlace } from './look-up.js';
import type { Note, Notes } from './notes.js';
import { halvingsOf, MOST_HALVINGS, rootPath } from './pieces.js';
import type { PostOnce } from './post-once.js';
import type { ThreadRef } from './port.js';
import type { Relocation } from './relocation.js';
import { keyOf, postArguments, sentTs, stepsOf, textOf, type PostOptions, type Step } from './post-steps.js';
import { sendFile, type SendFileDeps } from './send-file.js';

export interface PostResult {
  readonly ts: readonly string[];
  readonly permalink: string | null;
}

export interface PostWriterDeps {
  readonly options: PostOptions;
  readonly desk: FaultDesk;
  readonly notes: Notes;
  readonly places: Relocation;
  readonly log: Logger;
  readonly postOnce: PostOnce;
  readonly fallbacks: Counter;
  readonly files: Pick<SendFileDeps, 'dispatcher' | 'slackApiUrl' | 'landing' | 'clock'>;
  readonly ready: Ready;
}

interface SendContext {
  readonly record: QueueRecord<PostJob>;
  readonly note: Note;
  readonly install: OutInstallation;
  readonly place: LookUpPlace;
  readonly isFirst: boolean;
}

/**
 * Writes one reply: its steps in order, each once, see {@link PostOnce}; what Slack refuses is given another form, once
 * each.
 */
export function createPostWriter(deps: PostWriterDeps) {
  const { desk, notes, places, options, log } = deps;
  const guarded = (guard: Guard) => {
    deps.fallbacks.inc({ from: 'markdown', to: 'plain', cause: guard });
  };
  /** Workspaces in which a name of one's own was refused. */
  const personaOff = new Set<string>();

  return async function write(record: QueueRecord<PostJob>, signal: AbortSignal): Promise<WriteEnd<PostResult>> {
    const { body: job, id } = record;
    const note = await notes.get(id);
    let steps: readonly Step[] = [];
    let formOfSteps = '';
    for (;;) {
      const found = await deps.ready(record, signal);
      if (typeof found === 'string') return desk.expired(found);
      const install = withTeam(found, job.thread, note);
      decideName(job, note, install);
      if (isClosed(job, note)) note.place = 'channel';
      // Cutting a long reply costs time, so it is done again only when something about it has changed.
      const form = JSON.stringify([note.place, note.tried, note.reshaped]);
      if (form !== formOfSteps) steps = stepsOf(job, note, install, options, guarded);
      formOfSteps = form;
      const place = placeOf(job, note);
      const step = steps.find(({ path }) => note.sent[path] === undefined);
      if (!step) return { kind: 'sent', result: resultOf(job, note, steps, install, place) };
      try {
        const isFirst = step === steps[0];
        note.sent[step.path] = await send(step, { record, note, install, place, isFirst }, signal);
        if (step !== steps.at(-1)) await notes.put(id, note);
      } catch (error) {
        const method = methodOf(error) ?? 'chat.postMessage';
        const next = await desk.judge(error, { thread: job.thread, note, install, method }, signal);
        if (next.kind === 'resend' || next.kind === 'fulfilled') continue;
        if (next.kind === 'reshape') {
          const cause = next.end.slackError;
          const isLeft = next.to === 'new-root' && (await toSurvivor(job, note, install, signal));
          if (!isLeft && !reshape(next.to, step, job, note, cause)) return next.end;
        }
        await notes.put(id, note);
        if (next.kind === 'ended') return next.end;
      }
    }
  };

  /** @returns the message's `ts`, or the file's id */
  async function send(step: Step, context: SendContext, signal: AbortSignal): Promise<string> {
    const { record, note, install, place, isFirst } = context;
    const { id, body: job } = record;
    if (step.kind === 'file') {
      const file = {
        name: step.name,
        bytes: new TextEncoder().encode(step.content),
        title: null,
        comment: markdownToMrkdwn(step.comment, mentionPolicy(job.mentions)),
      };
      const save = () => notes.put(id, note);
      const fileId = await sendFile(file, place, { client: install.client, note, save, ...deps.files }, signal);
      note.fileId = null;
      return fileId;
    }
    const args = postArguments(step, options, {
      id,
      job,
      note,
      install,
      place,
      isFirst,
      mayName: mayName(job, install),
    });
    const ts = await deps.postOnce(
      {
        id,
        note,
        path: step.path,
        key: keyOf(id, step),
        text: textOf(step),
        args,
        install,
        place: () => Promise.resolve(place),
      },
      signal,
    );
    return await landed(job, note, place, ts, id);
  }

  function placeOf({ thread }: PostJob, note: Note): LookUpPlace {
    const { channel } = thread;
    switch (note.place) {
      case 'thread':
        return { channel, threadTs: places.threadTs(thread) ?? thread.threadTs };
      case 'channel':
        return { channel, threadTs: null };
      case 'root':
        return { channel, threadTs: note.rootTs };
    }
  }

  /** The speaker's name stands in the text where it may not stand above it; decided before the first step. */
  function decideName(job: PostJob, note: Note, install: OutInstallation): void {
    if (job.speaker && Object.keys(note.sent).length === 0 && !mayName(job, install)) once(note, 'named');
  }

  function mayName({ thread }: PostJob, install: OutInstallation): boolean {
    return !personaOff.has(workspaceOf(thread)) && (install.scopes?.includes('chat:write.customize') ?? true);
  }

  /** A post stands where its conversation goes on: the first one under a new root makes that root the thread. @returns its `ts` */
  async function landed(job: PostJob, note: Note, place: LookUpPlace, ts: string, id: string): Promise<string> {
    if (note.place === 'thread') places.posted(job.thread, ts);
    if (note.place === 'channel') await places.toChannel(job.thread);
    if (note.place !== 'root' || place.threadTs !== null) return ts;
    note.rootTs = ts;
    await notes.put(id, note);
    await places.toRoot(job.thread, ts);
    return ts;
  }

  /** The channel took no replies before, and this reply was not sent back into its thread. */
  function isClosed({ thread }: PostJob, { place, tried }: Note): boolean {
    return place === 'thread' && places.threadTs(thread) === null && !tried.includes('into-thread');
  }

  /** The thread's first message is gone: an older reply carries on, where one is known. */
  async function toSurvivor(
    { thread }: PostJob,
    note: Note,
    { client }: OutInstallation,
    signal: AbortSignal,
  ): Promise<boolean> {
    return note.place === 'thread' && once(note, 'survivor') && (await places.toSurvivor(thread, client, signal));
  }

  /** @returns false when there is no such other form, or it was tried */
  function reshape(to: Reshape, step: Step, job: PostJob, note: Note, cause: string): boolean {
    switch (to) {
      case 'mrkdwn':
        return toMrkdwn(step, note, cause);
      case 'smaller-parts':
        return smaller(step, note, cause);
      case 'without-persona':
        personaOff.add(workspaceOf(job.thread));
        log.warn({ app: job.thread.slug, team: job.thread.team }, 'names and icons of posts are refused');
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
        return once(note, to);
      case 'new-post':
      case 'delete-and-post':
      case 'stop-stream-first':
      case 'finish-stream':
      case 'edit-instead-of-stream':
      case 'text-instead-of-file':
      case 'comment-instead-of-file':
      case 'with-team':
      case 'new-trigger':
        return false;
    }
  }

  function toMrkdwn(step: Step, note: Note, cause: string): boolean {
    if (step.kind === 'file' || (step.kind === 'text' && step.source === null)) return false;
    deps.fallbacks.inc({ from: step.kind === 'text' ? 'markdown' : 'controls', to: 'mrkdwn', cause });
    if (step.kind === 'text') {
      note.reshaped[step.path] = 'mrkdwn';
      return true;
    }
    log.warn({ slackError: cause }, 'Slack took no buttons');
    note.sent[step.path] = '';
    return true;
  }

  /** Half the length, three times at most, then a file. */
  function smaller(step: Step, note: Note, cause: string): boolean {
    if (step.kind !== 'text') return false;
    const to = halvingsOf(step.path) >= MOST_HALVINGS ? 'file' : 'smaller';
    // mrkdwn cannot be cut again by itself: the whole reply is, unless a part of it is out.
    if (step.source === null && Object.keys(note.sent).length > 0) return false;
    deps.fallbacks.inc({ from: 'part', to, cause });
    note.reshaped[step.source === null ? rootPath(note.reshaped) : step.path] = to;
    return true;
  }
}

const workspaceOf = ({ slug, team }: ThreadRef): string => `${slug}:${team}`;

function resultOf(
  { thread }: PostJob,
  note: Note,
  steps: readonly Step[],
  install: OutInstallation,
  place: LookUpPlace,
): PostResult {
  const ts = sentTs(note, steps);
  const [first] = ts;
  const permalink = first === undefined ? null : permalinkOf(install.teamUrl, thread.channel, first, place.threadTs);
  return { ts, permalink };
}

function methodOf(error: unknown): string | null {
  const method = isGatewayError(error) ? error.details['method'] : null;
  return typeof method === 'string' ? method : null;
}

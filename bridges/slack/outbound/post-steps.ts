import type { SlackArguments } from '../client.js';
import type { Guard, MentionPolicy, RenderForm } from '../convert/index.js';
import {
  controlBlocks,
  namedMarkdown,
  ownMetadata,
  permalinkOf,
  personaArguments,
  withControls,
  type SlackBlockArgument,
} from './compose.js';
import type { OutInstallation } from './faults.js';
import { digest, mentionPolicy, type PostJob } from './jobs.js';
import type { LookUpPlace } from './look-up.js';
import type { Note } from './notes.js';
import { piecesOf, type Piece } from './pieces.js';
import type { ThreadRef } from './port.js';

export interface PostOptions {
  readonly render: RenderForm;
  readonly maxParts: number;
  readonly unfurlLinks: boolean;
  readonly unfurlMedia: boolean;
}

/** A message of a reply, a file, or the row of buttons that found no other place. */
export type Step = (Piece & { readonly buttons: boolean }) | { readonly kind: 'controls'; readonly path: 'controls' };
export type MessageStep = Exclude<Step, { kind: 'file' }>;

export const CONTROLS_TEXT = 'Controls for the message above';

/** What a reply is written as, in order, after every change of form that its note tells of. */
export function stepsOf(
  job: PostJob,
  note: Note,
  install: OutInstallation,
  options: PostOptions,
  onGuard: (guard: Guard) => void,
): readonly Step[] {
  const { thread, speaker, buttons } = job;
  const named = note.tried.includes('named') && speaker ? namedMarkdown(speaker, job.markdown) : job.markdown;
  const pieces = piecesOf(
    introduced(named, thread, note, install),
    policyOf(job, note),
    { form: options.render, maxParts: options.maxParts, onGuard },
    note.reshaped,
  );
  const last = buttons.length === 0 ? undefined : pieces.findLast((piece) => canHoldButtons(piece, note));
  const steps: Step[] = pieces.map((piece) => ({ ...piece, buttons: piece === last }));
  return last || buttons.length === 0 ? steps : [...steps, { kind: 'controls', path: 'controls' }];
}

/** Whom a text may page; under a new first message its asker, who would not find it otherwise. */
export function policyOf({ mentions, thread }: Pick<PostJob, 'mentions' | 'thread'>, note: Note): MentionPolicy {
  const asker = note.place === 'root' ? thread.askerId : null;
  return mentionPolicy(asker === null ? mentions : { ...mentions, users: withUser(mentions.users, asker) });
}

/** Says what a post refers to when it does not stand in its thread. */
export function introduced(markdown: string, thread: ThreadRef, note: Note, install: OutInstallation): string {
  switch (note.place) {
    case 'thread':
      return markdown;
    case 'channel': {
      const link = permalinkOf(install.teamUrl, thread.channel, thread.threadTs, null);
      return link === null ? markdown : `[In reply to this message](${link})\n\n${markdown}`;
    }
    case 'root':
      return thread.askerId === null ? markdown : `<@${thread.askerId}>\n\n${markdown}`;
  }
}

/** Buttons need blocks. */
const canHoldButtons = (piece: Piece, note: Note): boolean =>
  piece.kind === 'text' && piece.source !== null && note.reshaped[piece.path] === undefined;

const withUser = (users: PostJob['mentions']['users'], user: string): PostJob['mentions']['users'] =>
  users === 'any' ? 'any' : [...(users === 'none' ? [] : users), user];

/** The key by which a step is recognised in Slack, whatever has happened since. */
export const keyOf = (id: string, step: Step): string => digest(id, step.path);

export const textOf = (step: MessageStep): string => (step.kind === 'controls' ? CONTROLS_TEXT : step.text);

export interface PostArgumentsInput {
  readonly id: string;
  readonly job: PostJob;
  readonly note: Note;
  readonly install: OutInstallation;
  readonly place: LookUpPlace;
  readonly isFirst: boolean;
  /** A name and an icon of one's own are allowed. */
  readonly mayName: boolean;
}

/** Arguments of `chat.postMessage` for one step. */
export function postArguments(step: MessageStep, options: PostOptions, input: PostArgumentsInput): SlackArguments {
  const { id, job, note, install, place } = input;
  const { tried } = note;
  const persona = job.speaker ?? install.app.persona;
  const blocks = tried.includes('plain-text') ? null : blocksOf(step, job);
  return {
    channel: place.channel,
    ...(place.threadTs === null ? {} : { thread_ts: place.threadTs }),
    text: textOf(step),
    ...(blocks === null ? {} : { blocks }),
    ...(tried.includes('without-metadata') ? {} : { metadata: ownMetadata(keyOf(id, step), job.post) }),
    ...(persona !== null && input.mayName ? personaArguments(persona) : {}),
    ...(isBroadcast(input) ? { reply_broadcast: true } : {}),
    unfurl_links: options.unfurlLinks,
    unfurl_media: options.unfurlMedia,
  };
}

/** Where the channel itself takes no posts, a reply that would stand in both stands in its thread. */
const isBroadcast = ({ job, note, isFirst, place }: PostArgumentsInput): boolean =>
  job.broadcast && isFirst && place.threadTs !== null && !note.tried.includes('into-thread');

function blocksOf(step: MessageStep, { buttons }: PostJob): readonly SlackBlockArgument[] | null {
  if (step.kind === 'controls') return withControls(CONTROLS_TEXT, buttons);
  if (step.blocks === null) return null;
  return step.buttons ? [...step.blocks, ...controlBlocks(buttons)] : step.blocks;
}

/** The `ts` of every message of the reply, in order. */
export function sentTs(note: Note, steps: readonly Step[]): readonly string[] {
  return steps.flatMap(({ kind, path }) => {
    const ts = note.sent[path];
    return kind === 'text' && ts !== undefined && ts !== '' ? [ts] : [];
  });
}

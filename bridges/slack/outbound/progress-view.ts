import { cutMrkdwn, escapeText, MRKDWN_CHARS } from '../convert/index.js';
import { controlBlocks, type SlackBlockArgument } from './compose.js';
import type { ControlButton } from './port.js';

export interface ProgressTask {
  readonly name: string;
  readonly state: 'running' | 'done' | 'failed' | 'left';
  readonly error: string | null;
}

export interface ProgressState {
  readonly tasks: readonly ProgressTask[];
  readonly writeTools: ReadonlySet<string>;
  readonly buttons: readonly ControlButton[];
  /** Who did what, e.g. `Stopped by Alice`. */
  readonly line: string | null;
  /** Shown once a turn takes long. */
  readonly minutes: number | null;
  readonly finished: boolean;
}

/** Tools that change something, as the reference names them. */
export const WRITE_TOOLS: readonly string[] = [
  'band_send_message',
  'band_add_participant',
  'band_remove_participant',
  'band_create_chatroom',
  'band_store_memory',
  'band_supersede_memory',
  'band_archive_memory',
  'band_add_contact',
  'band_remove_contact',
  'band_respond_contact_request',
];

const MOST_BLOCKS = 50;
const LONGEST_ERROR_CHARS = 240;
const LONGEST_LINE_CHARS = 500;
const MARKS = { running: '⏳', done: '✅', failed: '❌', left: '⏸' } as const;

/** The progress message of a turn: a header, a rule, one section per tool call (S-122). */
export function progressMessage(state: ProgressState): {
  readonly text: string;
  readonly blocks: readonly SlackBlockArgument[];
} {
  const { tasks, finished, line, minutes, buttons } = state;
  const failed = tasks.some((task) => task.state === 'failed');
  const header = !finished ? '🤖 Working on it…' : failed ? '⚠️ Done with errors' : '✅ Done';
  const notes = [
    ...(finished || minutes === null ? [] : [`Working for ${minutes} minutes`]),
    ...(line === null ? [] : [cutMrkdwn(escapeText(oneLine(line)), LONGEST_LINE_CHARS)]),
  ];
  const tail: SlackBlockArgument[] = [
    ...notes.map((text) => ({ type: 'context', elements: [{ type: 'mrkdwn', text, verbatim: true }] })),
    ...controlBlocks(finished ? [] : buttons),
  ];
  const room = MOST_BLOCKS - 2 - tail.length;
  const shown = tasks.length > room ? tasks.slice(0, room - 1) : tasks;
  const rest = tasks.length - shown.length;
  return {
    text: finished ? 'Done' : 'Working on it…',
    blocks: [
      section(`*${header}*`),
      { type: 'divider' },
      ...shown.map((task) => section(taskLine(task, state.writeTools))),
      ...(rest > 0 ? [section(`…and ${rest} more`)] : []),
      ...tail,
    ],
  };
}

/** The same as one text, where Slack takes no blocks; its buttons need blocks and stand elsewhere. */
export function progressText(state: ProgressState): ReturnType<typeof progressMessage> {
  const { blocks } = progressMessage(state);
  const lines = blocks.flatMap(({ type, text, elements }) => {
    const parts = type === 'section' ? [text] : type === 'context' ? (elements as readonly unknown[]) : [];
    return parts.map((part) => (part as { readonly text: string }).text);
  });
  // Without an empty list Slack would keep the blocks of an earlier drawing.
  return { text: cutMrkdwn(lines.join('\n'), MRKDWN_CHARS), blocks: [] };
}

function taskLine({ name, state, error }: ProgressTask, writeTools: ReadonlySet<string>): string {
  const label = escapeText(toolLabel(name));
  const shown = writeTools.has(name) ? `✏️ *${label}*` : label;
  const reason = error === null ? '' : `\n_${escapeText(cutError(oneLine(error)))}_`;
  return `${MARKS[state]} ${shown}${reason}`;
}

/** `band_send_message` → `Send message`. */
export function toolLabel(name: string): string {
  const words = oneLine(
    name
      .replace(/^(?:band|slack)_/, '')
      .replaceAll('_', ' ')
      .replace(/[*~`]/g, ''),
  );
  const label = words.slice(0, LONGEST_ERROR_CHARS);
  return label === '' ? oneLine(name) || 'Tool' : label.charAt(0).toUpperCase() + label.slice(1);
}

function cutError(error: string): string {
  if (error.length <= LONGEST_ERROR_CHARS) return error;
  return `${error.slice(0, LONGEST_ERROR_CHARS - 3).replace(/[\ud800-\udbff]$/, '')}…`;
}

const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ').trim();

const section = (text: string): SlackBlockArgument => ({
  type: 'section',
  text: { type: 'mrkdwn', text, verbatim: true },
});

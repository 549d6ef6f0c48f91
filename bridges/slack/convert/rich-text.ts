import { emojiNamed, fromCodePoints } from './emoji.js';
import {
  escapeLabel,
  escapeMarkdown,
  escapeMarkdownLine,
  markdownCode,
  markdownFence,
  markdownLink,
} from './escape-markdown.js';
import { mentionLink, type SlackNames } from './names.js';
import { cleanText } from './text.js';

type Loose = Readonly<Record<string, unknown>>;

/**
 * What a person composed, as Markdown. Total: an element of an unknown kind shows its text, one without any shows
 * nothing.
 *
 * @param blocks - blocks of type `rich_text`
 */
export function richTextToMarkdown(blocks: readonly Loose[], names: SlackNames): string {
  const elements = blocks.flatMap((block) => list(block['elements']));
  const out: { readonly text: string; readonly list: boolean }[] = [];
  const widths: number[] = [];
  for (const element of elements) {
    const isList = element['type'] === 'rich_text_list';
    if (!isList) widths.length = 0;
    const text = isList ? listText(element, widths, names) : blockText(element, names);
    if (text.trim() !== '') out.push({ text, list: isList });
  }
  return out
    .map(({ text, list: isList }, index) =>
      index === 0 ? text : `${isList && out[index - 1]?.list === true ? '\n' : '\n\n'}${text}`,
    )
    .join('')
    .trim();
}

function blockText(element: Loose, names: SlackNames): string {
  const children = list(element['elements']);
  switch (element['type']) {
    case 'rich_text_quote':
      return inlineText(children, names)
        .trim()
        .split('\n')
        .map((line) => `> ${line}`.trimEnd())
        .join('\n');
    case 'rich_text_preformatted':
      return markdownFence(cleanText(children.map((child) => codeText(child)).join('')), language(element));
    default:
      return inlineText(children, names).trim();
  }
}

const language = (element: Loose): string => {
  const named = str(element['language']);
  return /^[\w+#.-]{1,40}$/.test(named) ? named : '';
};

const DEEPEST_LIST = 32;

/** @param widths - how wide the markers of the levels above are, kept from list to list */
function listText(element: Loose, widths: number[], names: SlackNames): string {
  const ordered = element['style'] === 'ordered';
  const depth = Math.min(DEEPEST_LIST, count(element['indent']));
  widths.length = Math.min(widths.length, depth);
  while (widths.length < depth) widths.push(2);
  const indent = ' '.repeat(widths.reduce((sum, width) => sum + width, 0));
  widths.push(ordered ? 3 : 2);
  const first = count(element['offset']) + 1;
  return list(element['elements'])
    .map((item, index) => {
      const marker = ordered ? `${first + index}. ` : '- ';
      const lines = inlineText(list(item['elements']), names).trim().split('\n');
      return lines
        .map((line, number) =>
          (number === 0 ? `${indent}${marker}${line}` : `${indent}${' '.repeat(marker.length)}${line}`).trimEnd(),
        )
        .join('\n');
    })
    .join('\n');
}

interface Run {
  readonly text: string;
  /** Already Markdown. */
  readonly done: boolean;
  readonly style: string;
}

function inlineText(elements: readonly Loose[], names: SlackNames): string {
  const runs: Run[] = [];
  let afterOwn = false;
  for (const element of elements) {
    if (element['type'] === 'user' && element['user_id'] === names.ownUserId && names.ownUserId !== null) {
      afterOwn = true;
      continue;
    }
    const run = runOf(element, names);
    const text = afterOwn && !run.done ? run.text.replace(/^[:,]?[ \t]?/, '') : run.text;
    afterOwn = false;
    const last = runs.at(-1);
    if (last && !last.done && !run.done && last.style === run.style)
      runs[runs.length - 1] = { ...last, text: last.text + text };
    else runs.push({ ...run, text });
  }
  return runs.map((run, index) => styled(run, runs[index - 1]?.text ?? '', runs[index + 1]?.text ?? '')).join('');
}

function styled(run: Run, before: string, after: string): string {
  if (run.style.includes('c') && !run.done) return codeRun(run.text);
  const marks = `${run.style.includes('b') ? '**' : ''}${run.style.includes('i') ? '_' : ''}${run.style.includes('s') ? '~~' : ''}`;
  const escaped = run.done ? run.text : escapeRun(run.text, marks === '' ? before : '', marks === '' ? after : '');
  if (marks === '') return escaped;
  // Markdown wants its marks against the words, and none over a line's end.
  return escaped
    .split('\n')
    .map((line) => {
      const core = line.trim();
      if (core === '') return line;
      const start = line.indexOf(core);
      return `${line.slice(0, start)}${marks}${core}${[...marks.matchAll(/\*\*|_|~~/g)].reverse().join('')}${line.slice(start + core.length)}`;
    })
    .join('\n');
}

/** Spaces at the edges of code are hard to see and often stripped, so they stand outside as well. */
function codeRun(code: string): string {
  if (code.trim() === '') return code;
  return `${/^[ \t]/.test(code) ? ' ' : ''}${markdownCode(code)}${/[ \t]$/.test(code) ? ' ' : ''}`;
}

/** A stretch of text that may begin in the middle of a line. */
function escapeRun(text: string, before: string, after: string): string {
  const lines = text.split('\n');
  const atLineStart = before === '' || before.endsWith('\n');
  return lines
    .map((line, index) =>
      escapeMarkdownLine(line, {
        before: index === 0 ? before : '',
        after: index === lines.length - 1 ? (after.split('\n')[0] ?? '') : '',
        lineStart: index > 0 || atLineStart,
      }),
    )
    .join('\n');
}

function runOf(element: Loose, names: SlackNames): Run {
  const style = styleOf(element['style']);
  const done = (text: string): Run => ({ text, done: true, style: style.replace('c', '') });
  switch (element['type']) {
    case 'text':
      return { text: cleanText(str(element['text'])), done: false, style };
    case 'link':
      return done(linkText(str(element['url']), cleanText(str(element['text']))));
    case 'user':
      return done(mentionLink('user', str(element['user_id']), null, names));
    case 'usergroup':
      return done(mentionLink('group', str(element['usergroup_id']), null, names));
    case 'channel':
      return done(mentionLink('channel', str(element['channel_id']), null, names));
    case 'broadcast':
      return done(`@${str(element['range'])}`);
    case 'emoji':
      return done(
        fromCodePoints(str(element['unicode'])) ?? emojiNamed(str(element['name'])) ?? `:${str(element['name'])}:`,
      );
    case 'date':
      return { text: cleanText(str(element['fallback'])), done: false, style };
    case 'color':
      return { text: cleanText(str(element['value'])), done: false, style };
    case 'team':
      return done('@team');
    default:
      return { text: cleanText(str(element['text']) || str(element['fallback'])), done: false, style };
  }
}

const linkText = (url: string, label: string): string => {
  const target = cleanText(url).replace(/\s/g, encodeURIComponent);
  if (target === '') return escapeMarkdown(label);
  return label === '' || label === target ? target : markdownLink(escapeLabel(label), target);
};

const codeText = (element: Loose): string => str(element['text']) || str(element['url']);

/** One letter per style: code wins over the rest. */
function styleOf(style: unknown): string {
  if (typeof style !== 'object' || style === null) return '';
  const flags = style as Loose;
  if (flags['code'] === true) return 'c';
  return `${flags['bold'] === true ? 'b' : ''}${flags['italic'] === true ? 'i' : ''}${flags['strike'] === true ? 's' : ''}`;
}

const str = (value: unknown): string => (typeof value === 'string' ? value : '');
const count = (value: unknown): number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : 0;
const list = (value: unknown): readonly Loose[] =>
  Array.isArray(value)
    ? value.filter((item): item is Loose => typeof item === 'object' && item !== null && !Array.isArray(item))
    : [];

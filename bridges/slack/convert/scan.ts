export type BlockKind =
  'fence' | 'table' | 'list' | 'heading' | 'rule' | 'quote' | 'paragraph' | 'definition' | 'footnote';

/** A top-level block of a Markdown text, by its lines. */
export interface Block {
  readonly kind: BlockKind;
  readonly lines: readonly string[];
}

export const FENCE = /^( {0,3})(`{3,}|~{3,})(.*)$/;
const HEADING = /^ {0,3}#{1,6}(?:[ \t]|$)/;
const QUOTE = /^ {0,3}>/;
export const ITEM = /^( {0,3})([-+*]|\d{1,9}[.)])(?=[ \t]|$)/;
const DEFINITION = /^ {0,3}\[(?!\^)(?:[^\]\\]|\\.){1,999}\]:[ \t]*\S/;
const FOOTNOTE = /^ {0,3}\[\^[^\]\s]{1,999}\]:/;
const DELIMITER = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;

const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === '';

/** Three or more of one of `-`, `*`, `_`, and nothing else. */
function isRule(line: string): boolean {
  const marks = line.replace(/[ \t]/g, '');
  return marks.length >= 3 && !line.startsWith('    ') && /^(?:-+|\*+|_+)$/.test(marks);
}

export const isDelimiterRow = (line: string | undefined): boolean =>
  line !== undefined && line.includes('-') && DELIMITER.test(line.trim());

/** The fence a line opens, or null: its indent, its marks and what follows them. */
export function openFence(line: string): { indent: string; marks: string; info: string } | null {
  const [, indent, marks, info] = FENCE.exec(line) ?? [];
  if (indent === undefined || marks === undefined || info === undefined) return null;
  return marks.startsWith('`') && info.includes('`') ? null : { indent, marks, info: info.trim() };
}

export const closesFence = (line: string, marks: string): boolean => {
  const trimmed = line.trim();
  return trimmed.length >= marks.length && trimmed === marks.charAt(0).repeat(trimmed.length);
};

/** Whether a line ends a paragraph above it. */
function interrupts(line: string): boolean {
  if (HEADING.test(line) || QUOTE.test(line) || isRule(line) || openFence(line) !== null) return true;
  const item = ITEM.exec(line);
  return (
    item !== null &&
    line.slice(item[0].length).trim() !== '' &&
    (!/\d/.test(item[2] ?? '') || /^1[.)]$/.test(item[2] ?? ''))
  );
}

/** Cuts a Markdown text into its top-level blocks, in one pass over its lines. */
export function scanBlocks(source: string): Block[] {
  const lines = source.split('\n');
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (isBlank(line)) {
      at += 1;
      continue;
    }
    const [kind, end] = blockAt(lines, at, line);
    let last = end;
    while (last > at + 1 && kind !== 'fence' && isBlank(lines[last - 1])) last -= 1;
    blocks.push({ kind, lines: lines.slice(at, last) });
    at = end;
  }
  return blocks;
}

function blockAt(lines: readonly string[], at: number, line: string): [BlockKind, number] {
  const fence = openFence(line);
  if (fence) return ['fence', endOfFence(lines, at, fence.marks)];
  if (HEADING.test(line)) return ['heading', at + 1];
  if (isRule(line)) return ['rule', at + 1];
  if (ITEM.test(line)) return ['list', endOfList(lines, at)];
  if (QUOTE.test(line)) return ['quote', endOfQuote(lines, at)];
  if (FOOTNOTE.test(line)) return ['footnote', endOfIndented(lines, at)];
  if (DEFINITION.test(line)) return ['definition', at + 1];
  if (line.includes('|') && isDelimiterRow(lines[at + 1])) return ['table', endOfTable(lines, at)];
  return ['paragraph', endOfParagraph(lines, at)];
}

function endOfFence(lines: readonly string[], at: number, marks: string): number {
  for (let index = at + 1; index < lines.length; index += 1) {
    if (closesFence(lines[index] ?? '', marks)) return index + 1;
  }
  return lines.length;
}

/** A list goes on over indented lines, items of its kind, lazy lines, and blank lines before any of the first two. */
function endOfList(lines: readonly string[], at: number): number {
  const kind = markerKind(lines[at] ?? '');
  let fence: string | null = null;
  let index = at + 1;
  for (let blank = false; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    if (isBlank(line)) {
      blank = true;
      continue;
    }
    const indented = /^(?: {2,}|\t)/.test(line);
    if (!indented) {
      if (ITEM.test(line) && !isRule(line)) {
        if (markerKind(line) !== kind) break;
      } else if (blank || fence !== null || interrupts(line)) break;
      fence = null;
    } else {
      const trimmed = line.trimStart();
      if (fence !== null) fence = closesFence(trimmed, fence) ? null : fence;
      else fence = openFence(trimmed)?.marks ?? null;
    }
    blank = false;
  }
  return index;
}

/** `-`, `+`, `*`, `.` or `)`: items with different ones stand in different lists. */
export function markerKind(line: string): string {
  return ITEM.exec(line)?.[2]?.slice(-1) ?? '';
}

function endOfQuote(lines: readonly string[], at: number): number {
  let index = at + 1;
  for (; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    if (isBlank(line)) break;
    if (!QUOTE.test(line) && interrupts(line)) break;
  }
  return index;
}

function endOfIndented(lines: readonly string[], at: number): number {
  let index = at + 1;
  for (; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    if (!isBlank(line) && !/^(?: {2,}|\t)/.test(line)) break;
  }
  return index;
}

function endOfTable(lines: readonly string[], at: number): number {
  let index = at + 2;
  for (; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    if (isBlank(line) || interrupts(line)) break;
  }
  return index;
}

function endOfParagraph(lines: readonly string[], at: number): number {
  let index = at + 1;
  for (; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    if (isBlank(line)) break;
    // A row of dashes under text is its heading line, not a rule of its own.
    if (interrupts(line) && !(isRule(line) && /^ {0,3}-+[ \t]*$/.test(line))) break;
    if (line.includes('|') && isDelimiterRow(lines[index + 1])) break;
  }
  return index;
}

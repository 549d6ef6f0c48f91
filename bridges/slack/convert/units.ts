import { cutText } from './cut.js';
import type { Unit } from './pack.js';
import { closesFence, isDelimiterRow, ITEM, openFence, scanBlocks, type Block } from './scan.js';
import { layOutTable, type Alignment } from './table.js';

const MOST_TABLE_ROWS = 100;
const MOST_TABLE_COLUMNS = 20;

export interface UnitOptions {
  readonly chars: number;
  readonly measure: (text: string) => number;
  /** What becomes of a table with more columns than Slack takes. */
  readonly wideTables: 'fence' | 'keep';
}

const plain = (text: string, glue: string, more: Partial<Unit> = {}): Unit => ({
  text,
  glue,
  container: null,
  extraBlocks: 0,
  tables: 0,
  ...more,
});

/**
 * A Markdown text as the pieces that parts are made of: whole blocks where they fit, else their items, rows, lines,
 * sentences, words.
 *
 * @returns null when one thing that must not be cut is longer than a part
 */
export function unitsOf(source: string, options: UnitOptions): Unit[] | null {
  const units: Unit[] = [];
  for (const [index, block] of scanBlocks(source).entries()) {
    const made = blockUnits(block, index, options);
    if (made === null) return null;
    for (const unit of made) units.push(unit);
  }
  return units;
}

function blockUnits(block: Block, container: number, options: UnitOptions): Unit[] | null {
  const text = block.lines.join('\n');
  if (block.kind === 'table') return tableUnits(block, container, options);
  const extraBlocks = block.kind === 'heading' || block.kind === 'rule' ? 1 : nestedBlocks(block);
  if (options.measure(text) <= options.chars) return [plain(text, '\n\n', { extraBlocks })];
  switch (block.kind) {
    case 'fence':
      return fenceUnits(block, container, options);
    case 'list':
      return listUnits(block, container, options);
    default:
      return lineUnits(text, '\n\n', options);
  }
}

/** Headings and rules that stand inside a list or a quote, where the scan does not look, or under a paragraph. */
function nestedBlocks(block: Block): number {
  if (block.kind === 'fence') return 0;
  return block.lines.filter((line) =>
    /^[ \t>*+\d.)-]*(?:#{1,6}[ \t]|(?:-{3,}|={1,}|\*{3,}|_{3,})[ \t]*$)/.test(line.slice(0, 400)),
  ).length;
}

function fenceUnits(block: Block, container: number, options: UnitOptions): Unit[] {
  const first = block.lines[0] ?? '';
  const fence = openFence(first) ?? { indent: '', marks: '```', info: '' };
  const lastLine = block.lines.at(-1) ?? '';
  const closed = block.lines.length > 1 && closesFence(lastLine, fence.marks);
  const body = block.lines.slice(1, closed ? -1 : undefined);
  const open = `${first}\n`;
  const close = `\n${fence.indent}${fence.marks}`;
  const room = options.chars - open.length - close.length - 1;
  return body
    .flatMap((line) =>
      options.measure(line) <= room
        ? [line]
        : (cutText(line, { chars: room, measure: options.measure, atoms: false }) ?? [line]),
    )
    .map((line, index) => plain(line, index === 0 ? '\n\n' : '\n', { open, close, container }));
}

/** An item with what belongs to it; numbers are kept where an item begins a part. */
function listUnits(block: Block, container: number, options: UnitOptions): Unit[] | null {
  const items: string[][] = [];
  for (const line of block.lines) {
    if (items.length === 0 || ITEM.test(line)) items.push([line]);
    else items.at(-1)?.push(line);
  }
  const start = Number(/^ {0,3}(\d{1,9})/.exec(items[0]?.[0] ?? '')?.[1] ?? Number.NaN);
  const units: Unit[] = [];
  for (const [index, lines] of items.entries()) {
    const text = lines.join('\n').trimEnd();
    const glue = index === 0 ? '\n\n' : looseAfter(items[index - 1]) ? '\n\n' : '\n';
    const numbered = Number.isNaN(start) ? undefined : text.replace(/^( {0,3})\d{1,9}/, `$1${start + index}`);
    const extraBlocks = nestedBlocks({ kind: 'list', lines });
    if (options.measure(numbered ?? text) <= options.chars) {
      units.push(plain(text, glue, { container, extraBlocks, ...(numbered === undefined ? {} : { first: numbered }) }));
      continue;
    }
    const pieces = lineUnits(numbered ?? text, glue, options);
    if (pieces === null) return null;
    units.push(...pieces);
  }
  return units;
}

const looseAfter = (lines: readonly string[] | undefined): boolean => lines?.at(-1)?.trim() === '';

function tableUnits(block: Block, container: number, options: UnitOptions): Unit[] | null {
  const [header = '', delimiter = '', ...rows] = block.lines;
  const columns = cellsOf(header).length;
  if (columns > MOST_TABLE_COLUMNS && options.wideTables === 'fence') {
    const lines = ['```', ...layOutTable(plainTable(block)), '```'];
    return blockUnits({ kind: 'fence', lines }, container, options);
  }
  const open = `${header}\n${delimiter}\n`;
  if (!isDelimiterRow(delimiter) || rows.some((row) => options.measure(open + row) > options.chars)) {
    return lineUnits(block.lines.join('\n'), '\n\n', options);
  }
  if (rows.length === 0) return [plain(`${header}\n${delimiter}`, '\n\n', { extraBlocks: 1, tables: 1 })];
  return rows.map((row, index) =>
    plain(row, index === 0 ? '\n\n' : '\n', { open, container, extraBlocks: 1, tables: 1, rows: MOST_TABLE_ROWS - 1 }),
  );
}

function plainTable(block: Block): { align: Alignment[]; rows: string[][] } {
  const align = cellsOf(block.lines[1] ?? '').map((cell): Alignment => {
    const [left, right] = [cell.startsWith(':'), cell.endsWith(':')];
    return left && right ? 'center' : right ? 'right' : left ? 'left' : null;
  });
  const rows = block.lines.filter((_, index) => index !== 1).map(cellsOf);
  return { align, rows };
}

const cellsOf = (row: string): string[] =>
  row
    .trim()
    .replace(/^\||(?<!\\)\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));

/** Lines, and pieces of lines that are too long; a fence among them is closed and opened again around a cut. */
function lineUnits(text: string, glue: string, options: UnitOptions): Unit[] | null {
  const units: Unit[] = [];
  let fence: { reopen: string; close: string; marks: string } | null = null;
  for (const line of text.split('\n')) {
    const trimmed = line.trimStart();
    const before = fence;
    if (fence) fence = closesFence(trimmed, fence.marks) ? null : fence;
    else fence = nestedFence(line, trimmed);
    const wrap = fenceWrap(before, fence);
    const room = options.chars - (before?.reopen.length ?? 0) - (fence?.close.length ?? 0);
    const pieces =
      options.measure(line) <= room
        ? [line]
        : cutText(line, { chars: room, measure: options.measure, atoms: before === null });
    if (pieces === null) return null;
    for (const [index, piece] of pieces.entries()) {
      const own = units.length === 0 ? glue : index === 0 ? '\n' : '';
      units.push(plain(piece, own, wrap(piece)));
    }
  }
  return units;
}

interface NestedFence {
  readonly reopen: string;
  readonly close: string;
  readonly marks: string;
}

function nestedFence(line: string, trimmed: string): NestedFence | null {
  const body = trimmed.replace(/^(?:[-+*]|\d{1,9}[.)])[ \t]+/, '');
  const opened = openFence(body);
  if (!opened) return null;
  const indent = ' '.repeat(line.length - body.length);
  return { reopen: `${indent}${body}\n`, close: `\n${indent}${opened.marks}`, marks: opened.marks };
}

/** What a line needs where it begins or ends a part, given the fence before it and after it. */
function fenceWrap(before: NestedFence | null, after: NestedFence | null): (piece: string) => Partial<Unit> {
  return (piece) => {
    if (before === null) return after === null ? {} : { last: after.close };
    // A closing line that begins a part would open a fence there.
    if (after === null) return { first: '' };
    return { first: before.reopen + piece, last: after.close };
  };
}

import type { Placeholders } from './placeholders.js';
import { scanBlocks, type Block } from './scan.js';

export const LONGEST_PARAGRAPH_CHARS = 4_096;
const CHUNK_CHARS = 8_192;
const MOST_NESTING = 32;
const DEEPEST_INDENT_COLUMNS = 2 * MOST_NESTING;
const MOST_DEFINITIONS = 500;

/** A piece of a Markdown text that is parsed by itself. */
export interface Chunk {
  readonly source: string;
  /** Definitions that the piece refers to. */
  readonly appendix: string;
  /** The piece goes on with the block before it: no blank line between them. */
  readonly tight: boolean;
}

export interface ChunkedMarkdown {
  readonly chunks: readonly Chunk[];
  readonly definitions: ReadonlyMap<string, { readonly url: string; readonly line: string }>;
  /** Footnote texts by label. */
  readonly footnotes: ReadonlyMap<string, string>;
}

/** Why a piece of a text is shown as it was written instead of being formatted. */
export type Guard = 'length' | 'nesting' | 'budget' | 'exception';

const DEFINITION = /^ {0,3}\[((?:[^\]\\]|\\.){1,999})\]:[ \t]*<?([^\s>]+)/;
const FOOTNOTE = /^ {0,3}\[\^([^\]\s]{1,999})\]:[ \t]?(.*)$/;

/**
 * Cuts a text where its blocks end, so that each parse is small. The parser's cost grows with the square of a
 * paragraph and its stack with nesting, so long paragraphs and deep nesting are taken out first.
 */
export function chunkMarkdown(
  lifted: string,
  placeholders: Placeholders,
  onGuard: (guard: Guard) => void = () => undefined,
): ChunkedMarkdown {
  const definitions = new Map<string, { url: string; line: string }>();
  const footnotes = new Map<string, string>();
  const pieces: { source: string; tight: boolean }[] = [];
  for (const block of scanBlocks(lifted)) {
    if (block.kind === 'definition' && takeDefinition(block, definitions)) continue;
    if (block.kind === 'footnote' && takeFootnote(block, footnotes)) continue;
    for (const [index, lines] of cutLines(tame(block, placeholders, onGuard), block.kind).entries()) {
      const source = lines.join('\n');
      const last = pieces.at(-1);
      const joins = index === 0 && last && last.source.length + source.length < CHUNK_CHARS;
      if (joins) last.source += `\n\n${source}`;
      else pieces.push({ source, tight: index > 0 });
    }
  }
  const chunks = pieces.map(({ source, tight }) => ({
    source,
    tight,
    appendix: appendixFor(source, definitions, footnotes),
  }));
  return { chunks, definitions, footnotes };
}

function takeDefinition(block: Block, definitions: Map<string, { url: string; line: string }>): boolean {
  const line = block.lines[0] ?? '';
  const [, label, url] = DEFINITION.exec(line) ?? [];
  if (label === undefined || url === undefined || definitions.size >= MOST_DEFINITIONS) return false;
  const key = label.toLowerCase();
  if (!definitions.has(key)) definitions.set(key, { url, line });
  return true;
}

function takeFootnote(block: Block, footnotes: Map<string, string>): boolean {
  const [first = '', ...rest] = block.lines;
  const [, label, text] = FOOTNOTE.exec(first) ?? [];
  if (label === undefined || text === undefined || footnotes.size >= MOST_DEFINITIONS) return false;
  const key = label.toLowerCase();
  if (!footnotes.has(key))
    footnotes.set(key, [text, ...rest.map((line) => line.replace(/^ {1,4}/, ''))].join('\n').trim());
  return true;
}

/** Short definitions for what the piece refers to; without them a reference is no reference. */
function appendixFor(
  source: string,
  definitions: ReadonlyMap<string, { line: string }>,
  footnotes: ReadonlyMap<string, string>,
): string {
  if ((definitions.size === 0 && footnotes.size === 0) || !source.includes('[')) return '';
  const lower = source.toLowerCase();
  const lines = [...definitions].filter(([label]) => lower.includes(`[${label}]`)).map(([, { line }]) => line);
  const notes = [...footnotes.keys()].filter((label) => lower.includes(`[^${label}]`)).map((label) => `[^${label}]: x`);
  const all = [...lines, ...notes];
  return all.length === 0 ? '' : `\n\n${all.join('\n')}`;
}

/** Takes out of a block what would make the parser slow or deep. */
function tame(block: Block, placeholders: Placeholders, onGuard: (guard: Guard) => void): readonly string[] {
  if (block.kind === 'fence') return block.lines;
  const lines = block.lines.map((line) => limitNesting(line, onGuard));
  if (lines.every((line) => line.length < LONGEST_PARAGRAPH_CHARS) && size(lines) <= LONGEST_PARAGRAPH_CHARS)
    return lines;
  return takeOutLongRuns(lines, block.kind === 'table', placeholders, onGuard);
}

const size = (lines: readonly string[]): number => lines.reduce((sum, line) => sum + line.length + 1, 0);

const STARTS_BLOCK = /^[ \t]*(?:[-+*][ \t]|\d{1,9}[.)][ \t]|>|#{1,6}[ \t]|`{3}|~{3}|$)/;

/** A run of lines that one paragraph may hold, longer than allowed, becomes one mark. */
function takeOutLongRuns(
  lines: readonly string[],
  table: boolean,
  placeholders: Placeholders,
  onGuard: (guard: Guard) => void,
): string[] {
  const out: string[] = [];
  let run: string[] = [];
  const flush = () => {
    if (size(run) > LONGEST_PARAGRAPH_CHARS) {
      onGuard('length');
      const [, marker = '', rest = ''] =
        /^([ \t]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+|>[ \t]?)?)(.*)$/s.exec(run.join('\n')) ?? [];
      out.push(marker + placeholders.mark({ kind: 'plain', raw: rest }));
    } else out.push(...run);
    run = [];
  };
  for (const line of lines) {
    if (table || STARTS_BLOCK.test(line)) flush();
    run.push(line);
  }
  flush();
  return out;
}

/** A mark at the start, or an indent as deep as only nesting makes it. */
const MAY_NEST = /^(?:[ \t]{0,64}[>*+\d-]|[ \t]{65})/;

/** More than 32 quote or list marks on one line, or an indent that could only come of them, are literal. */
function limitNesting(line: string, onGuard: (guard: Guard) => void): string {
  if (!MAY_NEST.test(line)) return line;
  const indent = /^[ \t]*/.exec(line)?.[0] ?? '';
  let at = indent.length;
  let depth = 0;
  for (; depth < MOST_NESTING; depth += 1) {
    const marker = /^(?:>[ \t]?|(?:[-+*]|\d{1,9}[.)])[ \t]+)/.exec(line.slice(at, at + 16))?.[0];
    if (marker === undefined) break;
    at += marker.length;
  }
  const rest = line.slice(at);
  const shallow = indent.length > DEEPEST_INDENT_COLUMNS ? indent.slice(0, DEEPEST_INDENT_COLUMNS) : indent;
  const tooDeep = depth === MOST_NESTING && /^[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])/.test(rest);
  if (tooDeep) onGuard('nesting');
  return shallow + line.slice(indent.length, at) + (tooDeep ? escapeMarkers(rest) : rest);
}

const escapeMarkers = (rest: string): string => rest.replace(/[>*+-]|(?<=\d)[.)]/g, '\\$&');

/** Cuts a large list, table or quote between its lines; a table repeats its header. */
function cutLines(lines: readonly string[], kind: Block['kind']): (readonly string[])[] {
  if (kind === 'fence' || size(lines) <= CHUNK_CHARS) return [lines];
  const header = kind === 'table' ? lines.slice(0, 2) : [];
  const cuttable = (line: string) => kind !== 'list' || /^(?: {0,3})(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)/.test(line);
  const pieces: string[][] = [];
  let piece: string[] = [];
  let length = 0;
  for (const line of lines) {
    const full = length + line.length + 1 > CHUNK_CHARS;
    if (full && (cuttable(line) || length > 4 * CHUNK_CHARS)) {
      pieces.push(piece);
      piece = [...header];
      length = size(header);
    }
    piece.push(line);
    length += line.length + 1;
  }
  if (piece.length > 0) pieces.push(piece);
  return pieces;
}

import { findCode } from './code-ranges.js';

export interface CutOptions {
  readonly chars: number;
  readonly measure: (text: string) => number;
  /** Links, code spans and control sequences must stay whole. */
  readonly atoms: boolean;
}

const SEGMENTER = new Intl.Segmenter('en', { granularity: 'grapheme' });
/** Enough to hold any joined emoji; a longer run of combining marks may be cut. */
const GRAPHEME_WINDOW_CHARS = 128;
/** A cut that leaves less than this share of a part is no better than one inside a word. */
const SMALLEST_SHARE = 0.25;
const ATOM =
  /!?\[(?:[^\][\\\n]|\\.){0,2000}\]\((?:<[^<>\n]{0,30000}>|[^\s()]{0,30000}(?:\([^\s()]{0,1000}\)[^\s()]{0,1000})?)[^()\n]{0,500}\)|<[^<>\s][^<>\n]{0,30000}>|https?:\/\/[^\s<>]{1,30000}/g;
const OPENS_BLOCK = /^(?:#{1,6}\s|[-+*]\s|\d{1,9}[.)]\s|>|\||={3,}|-{3,}|`{3}|~{3})/;

/**
 * One line as pieces of at most `chars`, each as long as possible: after a sentence, else after a space, else between
 * two characters. Joined, the pieces are the line.
 *
 * @returns null when something that must stay whole is longer than a piece
 */
export function cutText(line: string, options: CutOptions): string[] | null {
  const { chars, measure } = options;
  const atoms = options.atoms ? findAtoms(line) : [];
  const pieces: string[] = [];
  let at = 0;
  let atom = 0;
  while (at < line.length) {
    const limit = farthest(line, at, chars, measure);
    if (limit >= line.length) {
      pieces.push(line.slice(at));
      break;
    }
    while ((atoms[atom]?.[1] ?? Number.POSITIVE_INFINITY) <= at) atom += 1;
    const end = cutPoint(line, at, limit, atoms, atom);
    if (end <= at) return null;
    pieces.push(line.slice(at, end));
    at = end;
  }
  return pieces;
}

/** The farthest end of a piece that begins at `at`. */
function farthest(line: string, at: number, chars: number, measure: (text: string) => number): number {
  let end = Math.min(line.length, at + chars);
  // Escaping can only lengthen, so a few halvings of what is too much find the end.
  for (
    let over = measure(line.slice(at, end)) - chars;
    over > 0 && end > at + 1;
    over = measure(line.slice(at, end)) - chars
  ) {
    end -= Math.max(1, Math.ceil(over / 4));
  }
  return Math.max(at + 1, end);
}

function cutPoint(line: string, at: number, limit: number, atoms: readonly [number, number][], from: number): number {
  const smallest = at + Math.floor((limit - at) * SMALLEST_SHARE);
  const good = (end: number) =>
    end > at && end <= limit && !insideAtom(end, atoms, from) && !OPENS_BLOCK.test(line.slice(end, end + 16));
  let space = -1;
  for (let end = limit; end > smallest; end -= 1) {
    const before = line.charAt(end - 1);
    if (before !== ' ' && before !== '\t') continue;
    if (/[ \t]/.test(line.charAt(end)) || !good(end)) continue;
    if (/[.!?…。！？]["')\]]?$/.test(line.slice(Math.max(at, end - 4), end).trimEnd())) return end;
    if (space < 0) space = end;
  }
  if (space > 0) return space;
  const whole = atoms.find(([start, end], index) => index >= from && start < limit && end > limit);
  const most = whole ? whole[0] : limit;
  return most > at ? graphemeBoundary(line, at, most) : -1;
}

const insideAtom = (position: number, atoms: readonly [number, number][], from: number): boolean => {
  for (let index = from; index < atoms.length; index += 1) {
    const [start, end] = atoms[index] ?? [0, 0];
    if (start >= position) return false;
    if (end > position) return true;
  }
  return false;
};

/** The last place at or before `limit` between two characters as people count them. */
function graphemeBoundary(line: string, at: number, limit: number): number {
  const from = Math.max(at, limit - GRAPHEME_WINDOW_CHARS);
  const start = /[\udc00-\udfff]/.test(line.charAt(from)) ? from - 1 : from;
  let boundary = -1;
  for (const { index, segment } of SEGMENTER.segment(line.slice(start, limit + GRAPHEME_WINDOW_CHARS))) {
    const end = start + index + segment.length;
    if (end > limit) break;
    boundary = end;
  }
  if (boundary > at) return boundary;
  // One character alone fills the window: cut between its code points.
  return /[\ud800-\udbff]/.test(line.charAt(limit - 1)) && limit - 1 > at ? limit - 1 : limit;
}

/** What must not be cut, in order, without overlap. */
function findAtoms(line: string): [number, number][] {
  const found = [
    ...findCode(line),
    ...[...line.matchAll(ATOM)].map((match): [number, number] => [match.index, match.index + match[0].length]),
  ];
  found.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const atoms: [number, number][] = [];
  for (const range of found) {
    if (range[0] >= (atoms.at(-1)?.[1] ?? 0)) atoms.push(range);
  }
  return atoms;
}

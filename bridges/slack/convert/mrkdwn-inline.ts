import type { PhrasingContent } from 'mdast';
import { isOtherUrl } from './honest-links.js';
import {
  isMentionUrl,
  liveMention,
  mentionFromUrl,
  visibleName,
  type Mention,
  type MentionPolicy,
} from './mentions.js';
import type { Placeholders } from './placeholders.js';
import { escapeText, firstChar, isWordChar, lastChar, ZWSP } from './text.js';

/** A stretch of one output line. `formatted` begins and ends with a marker, `literal` may hold stray markers. */
interface Piece {
  readonly text: string;
  readonly kind: 'literal' | 'formatted' | 'atom';
}
type Line = Piece[];

export interface InlineContext {
  readonly policy: MentionPolicy;
  readonly placeholders: Placeholders;
  /** Number shown for a footnote. */
  readonly footnote: (identifier: string) => number;
  readonly definition: (identifier: string) => string | null;
}

type Marker = '*' | '_' | '~';
type Active = ReadonlySet<Marker>;
const NOTHING_ACTIVE: Active = new Set();

/** Inline Markdown as lines of mrkdwn. Formatting never spans a line: each line is wrapped on its own. */
export function printInline(nodes: readonly PhrasingContent[], context: InlineContext, bold = false): string[] {
  const active: Active = bold ? new Set(['*']) : NOTHING_ACTIVE;
  return linesOf(nodes, context, active).map((line) => {
    const text = joinPieces(line, active);
    // A literal sign at the start of a line would quote it.
    return text.startsWith('&gt;') && line[0]?.kind === 'literal' ? `${ZWSP}${text}` : text;
  });
}

/** Inline Markdown as plain text: what a label, a table cell or a heading of a wide table shows. */
export function plainInline(nodes: readonly PhrasingContent[], context: InlineContext): string {
  return nodes.map((node) => plainNode(node, context)).join('');
}

function plainNode(node: PhrasingContent, context: InlineContext): string {
  switch (node.type) {
    case 'text':
    case 'inlineCode':
      return plainText(node.value, context.placeholders);
    case 'html':
      return isComment(node.value) ? '' : isBreak(node.value) ? ' ' : plainText(node.value, context.placeholders);
    case 'break':
      return ' ';
    case 'image':
    case 'imageReference':
      return node.alt ?? '';
    case 'footnoteReference':
      return `[${context.footnote(node.identifier)}]`;
    default:
      return 'children' in node ? plainInline(node.children, context) : '';
  }
}

/** Marks replaced by what a person reads. */
export function plainText(text: string, placeholders: Placeholders): string {
  let out = '';
  for (const part of placeholders.parts(text)) {
    if (typeof part === 'string') out += part;
    else if (part.kind === 'mention') out += visibleName(part.mention);
    else if (part.kind === 'link') out += part.label === '' ? part.url : part.label;
    else out += plainText(part.raw, placeholders);
  }
  return out;
}

function linesOf(nodes: readonly PhrasingContent[], context: InlineContext, active: Active): Line[] {
  const lines: Line[] = [[]];
  for (const node of nodes) append(lines, nodeLines(node, context, active));
  return lines;
}

/** The first new line goes on where the last one ended. */
function append(lines: Line[], more: readonly Line[]): void {
  for (const [index, line] of more.entries()) {
    if (index > 0) lines.push([]);
    const last = lines.at(-1);
    for (const piece of line) last?.push(piece);
  }
}

function nodeLines(node: PhrasingContent, context: InlineContext, active: Active): Line[] {
  switch (node.type) {
    case 'text':
      return textLines(node.value, context);
    case 'strong':
      return wrapLines('*', node.children, context, active);
    case 'emphasis':
      return wrapLines('_', node.children, context, active);
    case 'delete':
      return wrapLines('~', node.children, context, active);
    case 'inlineCode':
      return [[codePiece(node.value, context.placeholders)]];
    case 'break':
      return [[], []];
    case 'html':
      return htmlLines(node.value, context);
    case 'link':
      return [linkLine(node.url, plainInline(node.children, context), context)];
    case 'linkReference':
      return [linkLine(context.definition(node.identifier) ?? '', plainInline(node.children, context), context)];
    case 'image':
      return [linkLine(node.url, imageLabel(node.alt), context)];
    case 'imageReference':
      return [linkLine(context.definition(node.identifier) ?? '', imageLabel(node.alt), context)];
    case 'footnoteReference':
      return [[{ text: `[${context.footnote(node.identifier)}]`, kind: 'atom' }]];
    default:
      return [[]];
  }
}

const imageLabel = (alt: string | null | undefined): string => (alt === '' ? 'image' : (alt ?? 'image'));

function textLines(value: string, context: InlineContext): Line[] {
  const lines: Line[] = [[]];
  for (const part of context.placeholders.parts(value)) {
    if (typeof part === 'string') append(lines, literalLines(part));
    else if (part.kind === 'mention') append(lines, [[mentionPiece(part.mention, context.policy)]]);
    else if (part.kind === 'link') append(lines, [linkLine(part.url, part.label, context)]);
    else append(lines, plainLines(part.raw, context));
  }
  return lines;
}

/** Text that was not parsed: escaped, mentions as the policy has them, markers left as they are. */
export function plainLines(raw: string, context: InlineContext): Line[] {
  const lines: Line[] = [[]];
  for (const part of context.placeholders.parts(raw)) {
    if (typeof part === 'string')
      append(
        lines,
        part.split('\n').map((text) => [{ text: escapeText(text), kind: 'atom' }]),
      );
    else if (part.kind === 'mention') append(lines, [[mentionPiece(part.mention, context.policy)]]);
    else append(lines, [[{ text: escapeText(context.placeholders.restore(part.raw)), kind: 'atom' }]]);
  }
  return lines;
}

/** Unparsed text as lines of mrkdwn. */
export function printPlain(raw: string, context: InlineContext): string[] {
  return plainLines(raw, context).map((line) => line.map(({ text }) => text).join(''));
}

const literalLines = (text: string): Line[] =>
  text.split('\n').map((line) => (line === '' ? [] : [{ text: escapeText(line), kind: 'literal' }]));

function mentionPiece(mention: Mention, policy: MentionPolicy): Piece {
  const live = liveMention(mention, policy);
  return live === null ? { text: escapeText(visibleName(mention)), kind: 'literal' } : { text: live, kind: 'atom' };
}

function codePiece(value: string, placeholders: Placeholders): Piece {
  const code = placeholders.restore(value).replaceAll('`', '\u02cb').replaceAll('\n', ' ');
  return { text: `\`${escapeText(code)}\``, kind: 'formatted' };
}

const isBreak = (html: string): boolean => /^<br[ \t]*\/?>$/i.test(html.trim());
const isComment = (html: string): boolean => html.startsWith('<!--');

function htmlLines(value: string, context: InlineContext): Line[] {
  if (isBreak(value)) return [[], []];
  return isComment(value) ? [[]] : textLines(value, context);
}

/** A block of HTML: shown as it is, without comments, broken where it says so. */
export function printHtml(value: string, context: InlineContext): string[] {
  const shown = stripComments(value).replace(/<br[ \t]*\/?>/gi, '\n');
  return textLines(shown, context).map((line) => joinPieces(line, NOTHING_ACTIVE));
}

function stripComments(html: string): string {
  let out = '';
  let at = 0;
  for (let open = html.indexOf('<!--'); open >= 0; open = html.indexOf('<!--', at)) {
    out += html.slice(at, open);
    const close = html.indexOf('-->', open);
    at = close < 0 ? html.length : close + 3;
  }
  return out + html.slice(at);
}

const LINKABLE = /^(?:https?|mailto|tel|slack):/i;

function linkLine(url: string, rawLabel: string, context: InlineContext): Line {
  const target = context.placeholders.restore(url);
  const label = rawLabel.replace(/\s+/g, ' ').trim();
  const mention = mentionFromUrl(target, label);
  if (mention) return [mentionPiece(mention, context.policy)];
  if (isMentionUrl(target)) return [{ text: escapeText(label), kind: 'literal' }];
  if (!LINKABLE.test(target))
    return [{ text: escapeText(target === '' ? label : `${label} (${target})`), kind: 'literal' }];
  const encoded = escapeText(encodeTarget(target));
  const bare = label === '' || label === target || isOtherUrl(label, target);
  return [
    { text: bare ? `<${encoded}>` : `<${encoded}|${escapeText(label).replaceAll('|', '\uff5c')}>`, kind: 'atom' },
  ];
}

const encodeTarget = (target: string): string =>
  target.replace(/[|<>\s\u0000-\u001f]/g, (char) => encodeURIComponent(char));

function wrapLines(
  marker: Marker,
  children: readonly PhrasingContent[],
  context: InlineContext,
  active: Active,
): Line[] {
  if (active.has(marker)) return linesOf(children, context, active);
  const inner = new Set([...active, marker]);
  return linesOf(children, context, inner).map((line) => wrapLine(marker, line, inner));
}

function wrapLine(marker: Marker, line: Line, active: Active): Line {
  const text = joinPieces(line, active);
  const core = text.trim();
  if (core === '') return [{ text, kind: 'literal' }];
  const start = text.indexOf(core);
  const around = (space: string): Line => (space === '' ? [] : [{ text: space, kind: 'literal' }]);
  return [
    ...around(text.slice(0, start)),
    { text: `${marker}${core}${marker}`, kind: 'formatted' },
    ...around(text.slice(start + core.length)),
  ];
}

const MARKERS = new Set(['*', '_', '~', '`']);
const isMarker = (char: string | undefined): boolean => char !== undefined && MARKERS.has(char);
const needsBoundary = (char: string | undefined): boolean => isWordChar(char) || isMarker(char);

function joinPieces(line: Line, active: Active): string {
  const guarded = guardLiterals(line, active);
  let out = '';
  let before: Piece | null = null;
  for (const piece of guarded) {
    if (piece.text === '') continue;
    const touches =
      (before?.kind === 'formatted' && needsBoundary(firstChar(piece.text))) ||
      (piece.kind === 'formatted' && before !== null && needsBoundary(lastChar(out)));
    out += touches ? ZWSP + piece.text : piece.text;
    before = piece;
  }
  return out;
}

/** Breaks literal markers that would read as formatting by what stands after them. */
function guardLiterals(line: Line, active: Active): Line {
  if (!line.some((piece) => piece.kind === 'literal' && /[*_~`]/.test(piece.text))) return line;
  const whole = line.map(({ text }) => text).join('');
  const lastCloser = lastClosers(whole);
  let offset = 0;
  return line.map((piece) => {
    const begin = offset;
    offset += piece.text.length;
    if (piece.kind !== 'literal') return piece;
    const text = piece.text.replace(/[*_~`]/g, (marker, index: number) => {
      const at = begin + index;
      if (active.has(marker as Marker) && at > 0 && !isSpace(whole[at - 1])) return `${ZWSP}${marker}`;
      const opens = marker === '`' || (!isWordChar(charBefore(whole, at)) && !isSpace(whole[at + 1]));
      return opens && (lastCloser.get(marker) ?? -1) > at + 1 ? `${marker}${ZWSP}` : marker;
    });
    return { ...piece, text };
  });
}

const isSpace = (char: string | undefined): boolean => char === undefined || /\s/.test(char);
const charBefore = (text: string, at: number): string | undefined => lastChar(text.slice(Math.max(0, at - 2), at));

/** Where each marker last stands so that it could close. */
function lastClosers(line: string): Map<string, number> {
  const found = new Map<string, number>();
  for (let at = line.length - 1; at > 0 && found.size < MARKERS.size; at -= 1) {
    const char = line.charAt(at);
    if (!MARKERS.has(char) || found.has(char)) continue;
    if (char === '`' || (!isSpace(line[at - 1]) && !isWordChar(firstChar(line.slice(at + 1, at + 3)))))
      found.set(char, at);
  }
  return found;
}

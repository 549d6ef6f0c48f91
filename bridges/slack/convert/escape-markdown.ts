const ENTITY = /^&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});/;
const isWord = (char: string): boolean => /[\p{L}\p{N}]/u.test(char);
const isSpaceOrEdge = (char: string): boolean => char === '' || /\s/.test(char);

export interface EscapeContext {
  /** What stands before and after the text on its line; empty at the line's ends. */
  readonly before?: string;
  readonly after?: string;
  /** The text begins a line, so that a mark there could open a block. */
  readonly lineStart?: boolean;
}

/** One line of text as Markdown that reads the same: backslashes only where a mark would mean something. */
export function escapeMarkdownLine(
  text: string,
  { before = '', after = '', lineStart = false }: EscapeContext = {},
): string {
  const linkEnd = lastLinkEnd(text + after);
  let out = '';
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    const previous = at > 0 ? charEndingAt(text, at) : before.slice(-2).replace(/^[^\ud800-\udbff]/, '');
    const next = at + 1 < text.length ? charAt(text, at + 1) : charAt(after, 0);
    out += needsEscape(char, previous, next, text, at, linkEnd) ? `\\${char}` : char;
  }
  return lineStart ? escapeLineStart(out) : out;
}

function needsEscape(char: string, previous: string, next: string, text: string, at: number, linkEnd: number): boolean {
  switch (char) {
    case '\\':
    case '`':
    case '<':
      return true;
    case '*':
      return !isSpaceOrEdge(previous) || !isSpaceOrEdge(next);
    case '_':
      return (!isSpaceOrEdge(previous) || !isSpaceOrEdge(next)) && !(isWord(previous) && isWord(next));
    case '~':
      return next === '~' && previous !== '~';
    case '[':
      return at < linkEnd;
    case '&':
      return ENTITY.test(text.slice(at, at + 40));
    default:
      return false;
  }
}

/** Where the last bracket stands that could end a link's label. */
function lastLinkEnd(text: string): number {
  for (let at = text.length - 2; at >= 0; at -= 1) {
    if (text.charAt(at) === ']' && /[([:]/.test(text.charAt(at + 1))) return at;
  }
  return -1;
}

/** Marks that would open a heading, an item, a rule or a table at the start of a line. */
function escapeLineStart(line: string): string {
  const indent = /^ */.exec(line)?.[0] ?? '';
  const rest = line.slice(indent.length);
  const opens =
    /^#{1,6}(?:\s|$)/.test(rest) ||
    /^[-+](?:\s|$)/.test(rest) ||
    /^=+\s*$/.test(rest) ||
    (/^[-|:]/.test(rest) && rest.includes('-') && /^[-\s|:]+$/.test(rest));
  if (opens) return `${indent}\\${rest}`;
  // A lone asterisk before a space opens an item, though it could never open emphasis.
  return /^\*\s/.test(rest) ? `${indent}\\${rest}` : line;
}

const charAt = (text: string, at: number): string => {
  const point = text.codePointAt(at);
  return point === undefined ? '' : String.fromCodePoint(point);
};

const charEndingAt = (text: string, at: number): string => {
  const unit = text.charCodeAt(at - 1);
  return unit >= 0xdc00 && unit <= 0xdfff ? text.slice(at - 2, at) : text.charAt(at - 1);
};

/** Text of several lines, each of which may begin a block. */
export function escapeMarkdown(text: string): string {
  return text
    .split('\n')
    .map((line) => escapeMarkdownLine(line, { lineStart: true }))
    .join('\n');
}

/** A label between brackets. */
export function escapeLabel(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\\`*_[\]<]/g, '\\$&')
    .replace(/~~/g, '\\~~');
}

/** A link; a target with spaces or parentheses stands in angle brackets. */
export function markdownLink(label: string, target: string): string {
  const place = /[\s()]/.test(target) ? `<${target.replace(/[<>\n]/g, encodeURIComponent)}>` : target;
  return `[${label}](${place})`;
}

/** A fence longer than any run of backticks inside. */
export function markdownFence(code: string, language = ''): string {
  const longest = [...code.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 2);
  const marks = '`'.repeat(longest + 1);
  return `${marks}${language}\n${code}\n${marks}`;
}

/** A code span, with as many backticks as its text needs. */
export function markdownCode(code: string): string {
  const flat = code.replace(/\n/g, ' ');
  const longest = [...flat.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 0);
  const marks = '`'.repeat(longest + 1);
  const needsSpace = flat.startsWith('`') || flat.endsWith('`');
  return needsSpace ? `${marks} ${flat} ${marks}` : `${marks}${flat}${marks}`;
}

import { unicodeEmoji } from './emoji.js';
import { escapeLabel, escapeMarkdownLine, markdownCode, markdownFence, markdownLink } from './escape-markdown.js';
import { mentionLink, mentionText, type SlackNames } from './names.js';
import { cleanText, decodeEntities, isWordChar } from './text.js';

const OPEN = '\uf8ff';
const CLOSE = '\uf8fe';
const MARK = /\uf8ff(\d+)\uf8fe/g;
/** Stands for the bot's own mention until what follows it is known. */
const OWN = '\uf8fd';
const TOKEN = /<([^<>\n]{1,8000})>/g;

/** Slack's `text` as Markdown. Total and linear: what fits no rule stays literal text. */
export function mrkdwnToMarkdown(text: string, names: SlackNames): string {
  const clean = cleanText(text).replace(/[\uf8fd-\uf8ff]/g, '\ufffd');
  const parts = splitFences(clean);
  const out: string[] = [];
  for (const [index, part] of parts.entries()) {
    if (index % 2 === 1) out.push(markdownFence(codeText(dropNewlines(part), names)));
    else {
      // A fence stands on lines of its own, whatever stood beside it.
      const begun = index > 0 ? afterFence(part) : part;
      const prose = convertProse(index < parts.length - 1 ? beforeFence(begun) : begun, names);
      if (prose.trim() !== '') out.push(prose);
    }
  }
  return out.join('\n').trim();
}

const dropNewlines = (code: string): string =>
  code.slice(code.startsWith('\n') ? 1 : 0, code.endsWith('\n') && code.length > 1 ? -1 : undefined);

function afterFence(prose: string): string {
  const newline = prose.indexOf('\n');
  return newline >= 0 && prose.slice(0, newline).trim() === '' ? prose.slice(newline + 1) : prose.trimStart();
}

function beforeFence(prose: string): string {
  const newline = prose.lastIndexOf('\n');
  return newline >= 0 && prose.slice(newline).trim() === '' ? prose.slice(0, newline) : prose.trimEnd();
}

/** Prose at even places, code at odd ones. An opening mark without an end is prose. */
function splitFences(text: string): string[] {
  const parts: string[] = [];
  let at = 0;
  for (;;) {
    const open = text.indexOf('```', at);
    const close = open < 0 ? -1 : text.indexOf('```', open + 3);
    if (open < 0 || close < 0) break;
    parts.push(text.slice(at, open), text.slice(open + 3, close));
    at = close + 3;
  }
  parts.push(text.slice(at));
  return parts;
}

function convertProse(prose: string, names: SlackNames): string {
  const kept: string[] = [];
  const keep = (markdown: string) => {
    kept.push(markdown);
    return `${OPEN}${kept.length - 1}${CLOSE}`;
  };
  // Marks hold digits only, so an emoji name never crosses one.
  const marked = unicodeEmoji(
    prose
      .replace(/`([^`\n]+)`/g, (_, code: string) => keep(markdownCode(codeText(code, names))))
      .replace(TOKEN, (whole, token: string) => tokenMarkdown(token, names, keep) ?? whole),
  ).replace(/\uf8fd[:,]?[ \t]?/g, '');
  const put = (text: string): string => text.replace(MARK, (_, index: string) => kept[Number(index)] ?? '');
  return marked
    .split('\n')
    .map((line) => put(convertLine(line)))
    .join('\n');
}

/** Code: entities decoded, links and mentions by what they show, nothing else. */
function codeText(code: string, names: SlackNames): string {
  const shown = code.replace(TOKEN, (whole, token: string) => tokenText(token, names) ?? whole);
  return decodeEntities(shown);
}

interface Token {
  readonly head: string;
  readonly label: string | null;
}

const splitToken = (token: string): Token => {
  const bar = token.indexOf('|');
  if (bar < 0) return { head: token, label: null };
  const label = decodeEntities(token.slice(bar + 1));
  return { head: token.slice(0, bar), label: label === '' ? null : label };
};

const USER = /^@([UWB][A-Z0-9]+)$/;
const CHANNEL = /^#([CDG][A-Z0-9]+)$/;
const GROUP = /^!subteam\^(S[A-Z0-9]+)$/;
const BROADCAST = /^!(here|channel|everyone|group)$/;
const LINK = /^(?:https?|mailto|tel|slack|ftp|sip|skype|file):\S/i;

function tokenMarkdown(token: string, names: SlackNames, keep: (markdown: string) => string): string | null {
  const { head, label } = splitToken(token);
  const user = USER.exec(head)?.[1];
  if (user !== undefined) return user === names.ownUserId ? OWN : keep(mentionLink('user', user, label, names));
  const channel = CHANNEL.exec(head)?.[1];
  if (channel !== undefined) return keep(mentionLink('channel', channel, label, names));
  const group = GROUP.exec(head)?.[1];
  if (group !== undefined) return keep(mentionLink('group', group, label, names));
  const broadcast = BROADCAST.exec(head)?.[1];
  if (broadcast !== undefined) return keep(`@${broadcast}`);
  if (head.startsWith('!')) return label === null ? null : keep(escapeMarkdownLine(label));
  if (!LINK.test(head)) return null;
  const target = decodeEntities(head);
  const address = target.replace(/^(?:mailto|tel):/i, '');
  if (address !== target && (label === null || label === address)) return keep(escapeMarkdownLine(address));
  return keep(label === null || label === target ? bareUrl(target) : markdownLink(escapeLabel(label), target));
}

/** A bare address; one that Markdown would not recognise as such stands in angle brackets. */
const bareUrl = (target: string): string =>
  /^https?:\/\/\S+$/i.test(target) ? target : `<${target.replace(/[<>\s]/g, encodeURIComponent)}>`;

function tokenText(token: string, names: SlackNames): string | null {
  const { head, label } = splitToken(token);
  const user = USER.exec(head)?.[1];
  if (user !== undefined) return mentionText('user', user, label, names);
  const channel = CHANNEL.exec(head)?.[1];
  if (channel !== undefined) return mentionText('channel', channel, label, names);
  const group = GROUP.exec(head)?.[1];
  if (group !== undefined) return mentionText('group', group, label, names);
  const broadcast = BROADCAST.exec(head)?.[1];
  if (broadcast !== undefined) return `@${broadcast}`;
  if (head.startsWith('!')) return label;
  return LINK.test(head) ? (label ?? head) : null;
}

const DEEPEST_QUOTE = 32;
const QUOTE = new RegExp(`^(?:(?:&gt;|>) ?){1,${DEEPEST_QUOTE}}`);

function convertLine(line: string): string {
  const quote = QUOTE.exec(line)?.[0] ?? '';
  const depth = quote.match(/&gt;|>/g)?.length ?? 0;
  const rest = line.slice(quote.length);
  const [bullet = '', indent = ''] = /^( {0,400})[•◦▪](?: |$)/.exec(rest) ?? [];
  const marker = bullet === '' ? '' : `${'  '.repeat(indent.length >> 2)}- `;
  const converted = convertEmphasis(rest.slice(bullet.length), marker === '');
  const out = `${'> '.repeat(depth)}${marker}${converted}`;
  return depth > 0 || marker !== '' ? out.trimEnd() : out;
}

type Marker = '*' | '_' | '~';
const MARKERS: readonly Marker[] = ['*', '_', '~'];
const MARKDOWN = { '*': '**', _: '_', '~': '~~' } as const;

const isWord = isWordChar;
const isSpace = (char: string | undefined): boolean => char === undefined || /\s/.test(char);

/** For each marker and place, where the next mark that can close it stands. */
function closers(line: string): Record<Marker, Int32Array> {
  const tables = {
    '*': new Int32Array(line.length + 1),
    _: new Int32Array(line.length + 1),
    '~': new Int32Array(line.length + 1),
  };
  for (const marker of MARKERS) {
    const table = tables[marker];
    table[line.length] = -1;
    for (let at = line.length - 1; at >= 0; at -= 1) {
      const closes =
        line[at] === marker &&
        line[at - 1] !== marker &&
        line[at + 1] !== marker &&
        !isSpace(line[at - 1]) &&
        !isWord(after(line, at));
      table[at] = closes ? at : (table[at + 1] ?? -1);
    }
  }
  return tables;
}

const after = (line: string, at: number): string | undefined => {
  const point = line.codePointAt(at + 1);
  return point === undefined ? undefined : String.fromCodePoint(point);
};
const before = (line: string, at: number): string | undefined => {
  const unit = line.charCodeAt(at - 1);
  return unit >= 0xdc00 && unit <= 0xdfff ? line.slice(at - 2, at) : line[at - 1];
};

/** Slack's marker pairs as Markdown's, the rest escaped. Nested at most once per marker, so never deep. */
function convertEmphasis(line: string, lineStart: boolean): string {
  const next = closers(line);
  const walk = (from: number, to: number, active: string): string => {
    let out = '';
    let plain = from;
    const flush = (end: number) => {
      if (end <= plain) return;
      const text = decodeEntities(line.slice(plain, end));
      out += escapeMarkdownLine(text, {
        before: line.slice(0, plain),
        after: line.slice(end, end + 80),
        lineStart: lineStart && plain === 0,
      });
    };
    for (let at = from; at < to; at += 1) {
      const marker = line[at] as Marker;
      if (!MARKERS.includes(marker) || active.includes(marker)) continue;
      if (line[at - 1] === marker || line[at + 1] === marker || isSpace(line[at + 1]) || isWord(before(line, at)))
        continue;
      const close = next[marker][at + 2] ?? -1;
      if (close < 0 || close >= to) continue;
      flush(at);
      out += MARKDOWN[marker] + walk(at + 1, close, active + marker) + MARKDOWN[marker];
      at = close;
      plain = close + 1;
    }
    flush(to);
    return out;
  };
  return walk(0, line.length, '');
}

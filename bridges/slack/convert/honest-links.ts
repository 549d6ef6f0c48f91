import type { Nodes } from 'mdast';
import { codeRanges } from './code-ranges.js';
import { parseMarkdown } from './parse-markdown.js';

const LABEL = String.raw`((?:[^\][\\\n]|\\.|\n(?![ \t]*\n)){0,500})`;
const TARGET = String.raw`<?([^\s<>()]{1,2000}(?:\([^\s<>()]{0,1000}\)[^\s<>()]{0,1000})?)>?`;
export const INLINE_LINK = new RegExp(
  String.raw`\[${LABEL}\]\([ \t]*${TARGET}(?:[ \t]+"[^"\n]{0,1000}")?[ \t]*\)`,
  'g',
);
const SLACK_LINK = /(?<!\]\(|\]: )<(https?:[^\s<>|]+)\|([^<>\n]*)>/g;
const REFERENCE = new RegExp(String.raw`\[${LABEL}\](?:\[${LABEL}\])?(?![[(:])`, 'g');
const DEFINITION = new RegExp(String.raw`^ {0,3}\[${LABEL}\]:[ \t]*\n?[ \t]*<?([^\s<>]+)`, 'gm');
/** What may stand for an address once it is read as Markdown. */
const MAY_BE_ADDRESS = /https?|[&\\*_~\x60]/i;
/** An address at the beginning, whatever signs stand around it. */
const ADDRESS = /^[^\p{L}\p{N}]*(https?:\/\/.*?)[^\p{L}\p{N}]*$/isu;

/** A link of Markdown or of Slack whose label is another address becomes the bare address; code stays as it is. */
export function honestLinks(text: string): string {
  const slackOnes = replaced(text, SLACK_LINK, (url, label = '') => masked(label, url));
  const inline = replaced(slackOnes, INLINE_LINK, (label, url = '') => masked(shown(label), url));
  const targets = new Map([...inline.matchAll(DEFINITION)].map(([, label = '', url = '']) => [nameOf(label), url]));
  if (targets.size === 0) return inline;
  return replaced(inline, REFERENCE, (label, name = '') => {
    const url = targets.get(nameOf(name === '' ? label : name));
    return url === undefined ? null : masked(shown(label), url);
  });
}

/** A label that names another place than the link leads to. */
export function isOtherUrl(label: string, target: string): boolean {
  const [, address] = ADDRESS.exec(label) ?? [];
  return address !== undefined && label !== target && address !== target.replace(/[^\p{L}\p{N}]+$/u, '');
}

const masked = (label: string, url: string): string | null =>
  /^(?:https?|mailto|tel|slack):/i.test(url) && isOtherUrl(label.trim(), url) ? `<${url}>` : null;

/** Replaces what `form` has another form for, outside of code. */
function replaced(
  text: string,
  pattern: RegExp,
  form: (first: string, second: string | undefined) => string | null,
): string {
  let inCode: ((offset: number) => boolean) | null = null;
  return text.replace(pattern, (whole: string, first: string, second: string | undefined, offset: number) => {
    const other = form(first, second);
    if (other === null) return whole;
    inCode ??= codeRanges(text);
    return inCode(offset) ? whole : other;
  });
}

/** A label as its reader sees it. */
function shown(label: string): string {
  return MAY_BE_ADDRESS.test(label) ? textOf(parseMarkdown(label)) : '';
}

function textOf(node: Nodes): string {
  if ('value' in node) return node.value;
  if ('children' in node) return node.children.map(textOf).join('');
  return 'alt' in node ? (node.alt ?? '') : '';
}

const nameOf = (label: string): string => label.replace(/\s+/g, ' ').trim().toLowerCase();

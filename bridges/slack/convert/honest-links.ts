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
const DEFINITION = new RegExp(String.raw`^ {0,3}\[${LABEL}\]:[ \t]*(?:\n[ \t]*)?<?([^\s<>]+)`, 'gm');
/** The beginning of an address, whatever signs stand before it. */
const BEFORE_ADDRESS = /^[^\p{L}\p{N}]*(?=https?:\/\/)/iu;
const TO_LAST_LETTER = /^.*[\p{L}\p{N}]/su;
const MARKUP = /[\\*_~\x60]/g;
const ENTITY = /&(?:#|[a-z])/i;
/** Labels of one text that are read as Markdown; a text with more of them hides something. */
const MOST_READ = 100;

/** A link of Markdown or of Slack whose label is another address becomes the bare address; code stays as it is. */
export function honestLinks(text: string): string {
  const shown = createLabelReader();
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
  const [before] = BEFORE_ADDRESS.exec(label) ?? [];
  return before !== undefined && label !== target && bare(label.slice(before.length)) !== bare(target);
}

const bare = (address: string): string => TO_LAST_LETTER.exec(address)?.[0] ?? '';

const masked = (label: string | null, url: string): string | null => {
  if (!/^(?:https?|mailto|tel|slack):/i.test(url)) return null;
  return label === null || isOtherUrl(label.trim(), url) ? `<${url}>` : null;
};

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

/** Reads a label as its reader sees it, where that may be an address; null for what it does not read. */
function createLabelReader(): (label: string) => string | null {
  const read = new Map<string, string>();
  return (label) => {
    const plain = label.replace(MARKUP, '');
    const hasEntity = ENTITY.test(label);
    if (!hasEntity && (plain === label || !/http/i.test(plain))) return label;
    const known = read.get(label);
    if (known !== undefined || read.size === MOST_READ) return known ?? null;
    const text = textOf(parseMarkdown(label));
    read.set(label, text);
    return text;
  };
}

function textOf(node: Nodes): string {
  if ('value' in node) return node.value;
  if ('children' in node) return node.children.map(textOf).join('');
  return 'alt' in node ? (node.alt ?? '') : '';
}

const nameOf = (label: string): string => label.replace(/\s+/g, ' ').trim().toLowerCase();

import { NO_MENTIONS, type MentionPolicy } from './mentions.js';
import type { Guard } from './chunk.js';
import { markdownToMrkdwn, type RenderOptions } from './mrkdwn.js';
import { packUnits, type Part } from './pack.js';
import { renderMarkdown } from './sanitize.js';
import { cutMrkdwn, escapeText } from './text.js';
import { unitsOf } from './units.js';

export type RenderForm = 'markdown' | 'mrkdwn';

/** Our own limits, each below Slack's, in UTF-16 units. */
export const MARKDOWN_CHARS = 11_500;
export const MRKDWN_CHARS = 3_900;
export const EXPANDED_BLOCKS = 45;
export const SECTION_CHARS = 2_900;
const TABLES = 1;
/** Beyond this the parts of a reply are not even made: the file is certain. */
const MOST_FACTOR = 4;
const MOST_TRIES = 8;
const SHRINK = 0.8;

/** One message of a reply, ready for `chat.postMessage` and `chat.update`. */
export interface ReplyPart {
  /** mrkdwn of at most 3,900 characters: the message itself, or what notifications and search show of the block. */
  readonly text: string;
  readonly blocks: readonly { readonly type: 'markdown'; readonly text: string }[] | null;
}

export interface SplitReply {
  readonly parts: readonly ReplyPart[];
  /** The whole reply, where it is too long for messages; posted after the parts. */
  readonly file: { readonly name: string; readonly content: string; readonly comment: string } | null;
}

export interface SplitOptions {
  readonly form: RenderForm;
  /** Messages one reply may take. */
  readonly maxParts: number;
  /** Below 1 where Slack found a part too long although it kept the limit. */
  readonly scale?: number;
  /** Called once for each guard that kept a piece of the reply from being formatted. */
  readonly onGuard?: ((guard: Guard) => void) | undefined;
}

/**
 * A reply as messages that keep Slack's limits, cut where it hurts least: between blocks, items, rows and lines, then
 * sentences, words, characters; never inside a link, a code span or a mention. A reply that needs more than
 * `maxParts` messages, or holds one thing longer than a message, becomes its first part and a file.
 */
export function splitReply(markdown: string, policy: MentionPolicy, options: SplitOptions): SplitReply {
  const { form, maxParts, scale = 1, onGuard } = options;
  const guards = new Set<Guard>();
  const noted = { onFallback: (guard: Guard) => void guards.add(guard) };
  const split = splitNoting(markdown, policy, { form, maxParts, scale }, noted);
  for (const guard of guards) onGuard?.(guard);
  return split;
}

function splitNoting(
  markdown: string,
  policy: MentionPolicy,
  { form, maxParts, scale }: Required<Pick<SplitOptions, 'form' | 'maxParts' | 'scale'>>,
  noted: RenderOptions,
): SplitReply {
  const source = form === 'markdown' ? renderMarkdown(markdown, policy) : markdown;
  const parts =
    form === 'markdown' ? markdownParts(source, scale, maxParts) : mrkdwnParts(source, policy, scale, maxParts, noted);
  if (parts === null) return { parts: [], file: wholeReply(markdown) };
  const shown = parts.map((part): ReplyPart =>
    form === 'mrkdwn'
      ? { text: part, blocks: null }
      : { text: fallbackText(part, policy, noted), blocks: [{ type: 'markdown', text: part }] },
  );
  return shown.length > maxParts
    ? { parts: shown.slice(0, 1), file: wholeReply(markdown) }
    : { parts: shown, file: null };
}

const wholeReply = (markdown: string): NonNullable<SplitReply['file']> => ({
  name: 'reply.md',
  content: markdown,
  comment: 'The reply is too long for messages, so all of it is in this file.',
});

/** What notifications, screen readers and search get of a Markdown block; never empty, since Slack refuses that. */
export function fallbackText(
  markdown: string,
  policy: MentionPolicy = NO_MENTIONS,
  options: RenderOptions = {},
): string {
  // Only the beginning is shown, so only the beginning is converted.
  const text = cutMrkdwn(markdownToMrkdwn(markdown.slice(0, 2 * MRKDWN_CHARS), policy, options), MRKDWN_CHARS);
  return text === '' ? ' ' : text;
}

function markdownParts(source: string, scale: number, maxParts: number): string[] | null {
  const limits = { chars: Math.floor(MARKDOWN_CHARS * scale), blocks: EXPANDED_BLOCKS, tables: TABLES };
  const measure = (text: string) => text.length;
  const units = unitsOf(source, { chars: limits.chars, measure, wideTables: 'fence' });
  const parts = units && packUnits(units, { ...limits, measure, most: maxParts + 1 });
  return parts?.map(({ text }) => text).filter((text) => text.trim() !== '') ?? null;
}

/**
 * How long a piece becomes is known only after converting it, so pieces are cut by their escaped length, converted,
 * and cut smaller when one came out too long.
 */
function mrkdwnParts(
  source: string,
  policy: MentionPolicy,
  scale: number,
  maxParts: number,
  noted: RenderOptions,
): string[] | null {
  const limit = Math.floor(MRKDWN_CHARS * scale);
  if (source.length > limit * maxParts * MOST_FACTOR) return tooMany(source, policy, limit, maxParts);
  const measure = (text: string) => escapeText(text).length;
  let budget = limit;
  for (let attempt = 0; attempt < MOST_TRIES; attempt += 1) {
    const units = unitsOf(source, { chars: budget, measure, wideTables: 'keep' });
    if (!units) return null;
    const packed: readonly Part[] = packUnits(units, {
      chars: budget,
      blocks: Number.POSITIVE_INFINITY,
      tables: Number.POSITIVE_INFINITY,
      measure,
      most: maxParts + 1,
    });
    const parts = packed.map(({ text }) => markdownToMrkdwn(text, policy, noted)).filter((text) => text !== '');
    if (parts.every((text) => text.length <= limit)) return parts;
    budget = Math.floor(budget * SHRINK);
  }
  return tooMany(source, policy, limit, maxParts);
}

/** A first part and enough others to say that they are too many. */
function tooMany(source: string, policy: MentionPolicy, limit: number, maxParts: number): string[] {
  const first = cutMrkdwn(markdownToMrkdwn(source.slice(0, limit), policy), limit);
  return Array.from({ length: maxParts + 1 }, () => first);
}

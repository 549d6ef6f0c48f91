import { chunkMarkdown, LONGEST_PARAGRAPH_CHARS, type Chunk, type Guard } from './chunk.js';
import { disarmMentionUrls, type MentionPolicy } from './mentions.js';
import { printBlocks } from './mrkdwn-blocks.js';
import { printPlain, type InlineContext } from './mrkdwn-inline.js';
import { parseMarkdown } from './parse-markdown.js';
import { Placeholders } from './placeholders.js';
import { cleanText } from './text.js';

/** Time for parsing one reply; what is left after it is escaped as plain text. */
export const RENDER_BUDGET_MS = 250;

export interface RenderOptions {
  /** Milliseconds that only ever grow; default `performance.now`. */
  readonly now?: () => number;
  /** Called for every piece that is shown as it was written, with the guard that kept it from being formatted. */
  readonly onFallback?: ((cause: Guard) => void) | undefined;
}

/**
 * Markdown as Slack's mrkdwn: entities escaped, formatting that Slack knows, mentions only where `policy` allows them.
 * Never throws; hostile input costs at most the render budget and comes out as plain text.
 */
export function markdownToMrkdwn(markdown: string, policy: MentionPolicy, options: RenderOptions = {}): string {
  const { now = () => performance.now(), onFallback } = options;
  const deadline = now() + RENDER_BUDGET_MS;
  const placeholders = new Placeholders();
  const { chunks, definitions, footnotes } = chunkMarkdown(
    placeholders.lift(cleanText(markdown)),
    placeholders,
    onFallback,
  );
  const shownFootnotes: string[] = [];
  const context: InlineContext = {
    policy,
    placeholders,
    definition: (identifier) => definitions.get(identifier.toLowerCase())?.url ?? null,
    footnote: (identifier) => {
      const known = shownFootnotes.indexOf(identifier.toLowerCase());
      return known >= 0 ? known + 1 : shownFootnotes.push(identifier.toLowerCase());
    },
  };
  const print = (chunk: Chunk): string => {
    if (now() > deadline) {
      onFallback?.('budget');
      return printPlain(chunk.source, context).join('\n');
    }
    try {
      return printBlocks(parseMarkdown(chunk.source + chunk.appendix).children, context);
    } catch {
      // Whatever the parser choked on is shown as it was written (counted by the caller).
      onFallback?.('exception');
      return printPlain(chunk.source, context).join('\n');
    }
  };

  let out = '';
  const add = (text: string, tight: boolean) => {
    if (text !== '') out += out === '' ? text : `${tight ? '\n' : '\n\n'}${text}`;
  };
  for (const chunk of chunks) add(print(chunk), chunk.tight);
  // Printing a footnote may show another one, so the list can grow meanwhile.
  for (let index = 0; index < shownFootnotes.length; index += 1) {
    const body = footnotes.get(shownFootnotes[index] ?? '') ?? '';
    const plain = body.length > LONGEST_PARAGRAPH_CHARS;
    add(
      `[${index + 1}] ${plain ? printPlain(body, context).join('\n') : print({ source: body, appendix: '', tight: false })}`.trimEnd(),
      index > 0,
    );
  }
  return disarmMentionUrls(out);
}

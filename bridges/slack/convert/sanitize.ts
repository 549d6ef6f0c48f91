import {
  CONTROL_SEQUENCE,
  disarmMentionUrls,
  isMentionUrl,
  liveMention,
  mentionFromUrl,
  mentionOf,
  visibleName,
  type MentionPolicy,
} from './mentions.js';
import { honestLinks, INLINE_LINK } from './honest-links.js';
import { cleanText, ZWSP } from './text.js';

const MOST_PASSES = 8;
const ANY_OPENER = /<(?=[@!#])/g;

/**
 * Markdown for Slack's Markdown block: everything passes as it is, except that nobody can be mentioned whom `policy`
 * does not allow, and that no link claims to lead elsewhere than it does. Applying it twice changes nothing more.
 */
export function renderMarkdown(markdown: string, policy: MentionPolicy): string {
  let text = cleanText(markdown);
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const next = onePass(text, policy);
    if (next === text) return text;
    text = next;
  }
  // What a replacement uncovers is replaced in the next pass; who builds more layers than that gets them shown.
  return text.replace(ANY_OPENER, `<${ZWSP}`);
}

function onePass(text: string, policy: MentionPolicy): string {
  const sequences = text.replace(CONTROL_SEQUENCE, (...args: unknown[]) => {
    const mention = mentionOf(args.at(-1) as Record<string, string | undefined>);
    return liveMention(mention, policy) ?? visibleName(mention);
  });
  return disarmMentionUrls(honestLinks(mentionLinks(sequences, policy)));
}

/** Links that stand for a mention, also inside code. */
function mentionLinks(text: string, policy: MentionPolicy): string {
  if (!/slack:\/\//i.test(text)) return text;
  return text.replace(INLINE_LINK, (whole: string, rawLabel: string, url: string) => {
    if (!isMentionUrl(url)) return whole;
    const label = rawLabel.replace(/\\([[\]\\])/g, '$1').trim();
    const mention = mentionFromUrl(url, label);
    return mention ? (liveMention(mention, policy) ?? visibleName(mention)) : label;
  });
}

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
import { isOtherUrl } from './mrkdwn-inline.js';
import { codeRanges } from './code-ranges.js';
import { cleanText, ZWSP } from './text.js';

const MOST_PASSES = 8;
const INLINE_LINK =
  /\[((?:[^\][\\\n]|\\.){0,500})\]\([ \t]*<?([^\s<>()]{1,2000}(?:\([^\s<>()]{0,1000}\)[^\s<>()]{0,1000})?)>?(?:[ \t]+"[^"\n]{0,1000}")?[ \t]*\)/g;
const SLACK_LINK = /(?<!\]\(|\]: )<(https?:[^\s<>|]+)\|([^<>\n]*)>/g;
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

/** A link whose label is another address becomes the bare address. */
function honestLinks(text: string): string {
  if (!/[[|]https?:/i.test(text)) return text;
  const inCode = codeRanges(text);
  const outside =
    (form: (label: string, url: string) => string | null) =>
    (whole: string, first: string, second: string, offset: number) => {
      if (inCode(offset)) return whole;
      return form(first, second) ?? whole;
    };
  const masked = (label: string, url: string) =>
    /^https?:/i.test(url) && isOtherUrl(label.trim(), url) ? `<${url}>` : null;
  // Changing one kind of link moves the code behind it, so the ranges are asked for again.
  const first = text.replace(
    SLACK_LINK,
    outside((url, label) => masked(label, url)),
  );
  const inCodeNow = first === text ? inCode : codeRanges(first);
  return first.replace(INLINE_LINK, (whole: string, label: string, url: string, offset: number) =>
    inCodeNow(offset) ? whole : (masked(label, url) ?? whole),
  );
}

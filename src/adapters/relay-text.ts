/** What a person typed, split into whom it is for and what it says. */
export interface Addressed {
  /** The word that may name a peer; null when the text opens otherwise. */
  readonly word: string | null;
  /** The text without the address. */
  readonly rest: string;
}

const BY_SIGN = /^@([\p{L}\p{N}_./-]*[\p{L}\p{N}_])[:,]?\s+([\s\S]+)$/u;
const BY_VERB = /^ask\s+@?([^:\n]{1,80}?)\s*:\s*([\s\S]+)$/iu;

/** Reads `@weather …` and `ask weather: …`; Markdown escapes inside the name do not count. */
export function readAddress(text: string): Addressed {
  const trimmed = text.trim();
  const [, word, rest] = BY_SIGN.exec(trimmed) ?? BY_VERB.exec(trimmed) ?? [];
  if (word === undefined || rest === undefined) return { word: null, rest: trimmed };
  return { word: word.replace(/\\(.)/g, '$1'), rest: rest.trim() };
}

/**
 * The text of one message to a peer. The first line names the person; a mention token that the person typed is
 * broken, so that only the peer it is addressed to is mentioned.
 */
export function toRoomText(person: string, world: string, text: string): string {
  return `${oneLine(person)} (${world}): ${text}`.replaceAll('@[[', '@\u200b[[');
}

/** The same text as the platform stores it: opened by the mention tokens that it put in front of the text's own. */
export function isSameText(stored: string, sent: string): boolean {
  return withoutMentions(stored) === withoutMentions(sent);
}

/** A reply without the mentions it opens with; the words that follow are kept as they are. */
export function withoutMentions(content: string): string {
  return content.replace(/^\s*(?:@(?:\[\[[^\]\s]+\]\]|[^\s@]+)[:,]?\s*)+/u, '') || content.trim();
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

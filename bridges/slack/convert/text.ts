/** ZERO WIDTH SPACE: a boundary to Slack, nothing to the eye. */
export const ZWSP = '\u200b';

/** Slack knows three entities and no other escape. */
export function escapeText(text: string): string {
  return text.replace(/[&<>]/g, (char) => (char === '&' ? '&amp;' : char === '<' ? '&lt;' : '&gt;'));
}

/** Slack's three entities, decoded once. */
export function decodeEntities(text: string): string {
  return text.replace(/&(amp|lt|gt);/g, (_, name: string) => (name === 'amp' ? '&' : name === 'lt' ? '<' : '>'));
}

/** One kind of line end, and no control characters but tab and newline. */
export function cleanText(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000b-\u001f]/g, '');
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const COMBINING = /[\p{Mn}\p{Me}\u200b-\u200f\ufe0e\ufe0f]/u;

/** Columns a text takes in a monospaced font: wide characters two, combining ones none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const char of text) width += COMBINING.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return width;
}

export const isWordChar = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{N}]/u.test(char);

/** The last character of a text as a code point, so that a letter beyond the basic plane counts as one. */
export function lastChar(text: string): string | undefined {
  const unit = text.charCodeAt(text.length - 1);
  return unit >= 0xdc00 && unit <= 0xdfff ? text.slice(-2) : text.slice(-1) || undefined;
}

export function firstChar(text: string): string | undefined {
  const point = text.codePointAt(0);
  return point === undefined ? undefined : String.fromCodePoint(point);
}

/**
 * mrkdwn cut to at most `limit` UTF-16 units, never inside an entity, a link, a mention or a character.
 */
export function cutMrkdwn(text: string, limit: number): string {
  if (text.length <= limit) return text;
  let cut = limit - 1;
  const open = text.lastIndexOf('<', cut - 1);
  if (open >= 0 && text.indexOf('>', open) >= cut) cut = open;
  const entity = text.lastIndexOf('&', cut - 1);
  if (
    entity >= cut - 5 &&
    entity >= 0 &&
    /^&(?:amp|lt|gt);/.test(text.slice(entity)) &&
    text.indexOf(';', entity) >= cut
  ) {
    cut = entity;
  }
  if (/[\ud800-\udbff]/.test(text.charAt(cut - 1))) cut -= 1;
  return `${text.slice(0, cut)}…`;
}

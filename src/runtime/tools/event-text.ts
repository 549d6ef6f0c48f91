import { MAX_EVENT_CONTENT_CHARS } from '../../platform/wire/objects.js';

/**
 * The text of an event within the platform's limit: a longer one keeps its head and its tail around a marker that says
 * how much is missing. Lengths are UTF-16 code units, the strictest way to count; no character is cut in two.
 */
export function eventText(text: string, limit = MAX_EVENT_CONTENT_CHARS): string {
  if (text.length <= limit) return text;
  // The marker's length depends on the number in it, and the number on the marker: the widest case settles both.
  const room = limit - marker(text.length).length;
  const head = wholeEnd(text, Math.ceil(room / 2));
  const tail = wholeStart(text, text.length - Math.floor(room / 2));
  return text.slice(0, head) + marker(tail - head) + text.slice(tail);
}

function marker(left: number): string {
  return `\n… [${left} characters left out] …\n`;
}

/** `at`, or one less where a cut there would split a surrogate pair. */
function wholeEnd(text: string, at: number): number {
  return isPair(text, at) ? at - 1 : at;
}

/** `at`, or one more where a cut there would split a surrogate pair. */
function wholeStart(text: string, at: number): number {
  return isPair(text, at) ? at + 1 : at;
}

function isPair(text: string, at: number): boolean {
  return /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(at - 1, at + 1));
}

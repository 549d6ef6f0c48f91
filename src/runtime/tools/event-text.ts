import { MAX_EVENT_CONTENT_CHARS } from '../../platform/wire/objects.js';

const MARKER = '\n… [shortened] …\n';

/**
 * The text of an event within the platform's limit: a longer one keeps its head and its tail around a marker, together
 * exactly as long as allowed. Lengths are UTF-16 code units, the strictest way to count; no character is cut in two,
 * which may cost one unit.
 */
export function eventText(text: string, limit = MAX_EVENT_CONTENT_CHARS): string {
  if (text.length <= limit) return text;
  const room = limit - MARKER.length;
  const half = Math.ceil(room / 2);
  const head = splitsPair(text, half) ? half - 1 : half;
  const rest = text.length - (room - head);
  const tail = splitsPair(text, rest) ? rest + 1 : rest;
  return text.slice(0, head) + MARKER + text.slice(tail);
}

/** Whether a cut at `at` would divide a surrogate pair. */
function splitsPair(text: string, at: number): boolean {
  return /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(at - 1, at + 1));
}

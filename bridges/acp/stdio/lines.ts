const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const HEAD_BYTES = 4_096;

export interface LineHandlers {
  /** A line without its end (LF or CRLF), whole, however the bytes came; blank lines are left out. */
  onLine(line: Uint8Array): void;
  /** A line beyond the limit was skipped; `head` is how it began. */
  onTooLong(head: Uint8Array): void;
}

/** Splits bytes into lines, holding at most one line of `maxBytes`. */
export interface LineSplitter {
  push(chunk: Uint8Array): void;
  /** The input is over: a last line without an end counts too. */
  end(): void;
}

export function createLineSplitter(maxBytes: number, handlers: LineHandlers): LineSplitter {
  let parts: Uint8Array[] = [];
  let size = 0;
  let head: Uint8Array | null = null;

  const take = (part: Uint8Array) => {
    if (head !== null) return;
    size += part.byteLength;
    if (size > maxBytes + 1) {
      head = Buffer.concat([...parts, part.subarray(0, HEAD_BYTES)]).subarray(0, HEAD_BYTES);
      parts = [];
      return;
    }
    if (part.byteLength > 0) parts.push(part);
  };
  const finish = () => {
    const skipped = head;
    const [only, ...rest] = parts;
    const line = only && rest.length === 0 ? only : Buffer.concat(parts);
    parts = [];
    size = 0;
    head = null;
    if (skipped) {
      handlers.onTooLong(skipped);
      return;
    }
    const bare = line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
    if (bare.byteLength > maxBytes) handlers.onTooLong(bare.subarray(0, HEAD_BYTES));
    else if (!isBlank(bare)) handlers.onLine(bare);
  };
  return {
    push(chunk) {
      let start = 0;
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
        take(chunk.subarray(start, at));
        finish();
        start = at + 1;
      }
      if (start < chunk.byteLength) take(chunk.subarray(start));
    },
    end() {
      if (size > 0) finish();
    },
  };
}

function isBlank(line: Uint8Array): boolean {
  return line.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));
}

/** The `id` at the top of a JSON-RPC object of which only the beginning is known; null when it is not in there. */
export function idInHead(head: Uint8Array): string | number | null {
  const text = new TextDecoder().decode(head);
  const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;
  let depth = 0;
  let isKey = false;
  let key: string | null = null;
  for (const [found] of text.matchAll(token)) {
    if (found === '{' || found === '[') {
      depth += 1;
      isKey = found === '{';
      key = null;
    } else if (found === '}' || found === ']') depth -= 1;
    else if (found === ',') isKey = true;
    else if (found === ':') isKey = false;
    else if (depth === 1 && isKey) key = found;
    else if (depth === 1 && key === '"id"') return scalar(found);
  }
  return null;
}

function scalar(text: string): string | number | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' || typeof value === 'number' ? value : null;
  } catch {
    // Cut off in the middle of the value.
    return null;
  }
}

import type { ContentBlock } from '@agentclientprotocol/sdk';
import { hasVisibleText } from '../../src/core/visible-text.js';
import { AcpFault } from './errors.js';

/** A prompt as the room will hold it. */
export interface FlatPrompt {
  /** Text and links in the order of the blocks, joined by line feeds. */
  readonly text: string;
  /** The text blocks alone: only here may a person address somebody. */
  readonly spoken: readonly string[];
  /** Fenced contents of embedded resources, to stand behind the text. */
  readonly attachments: readonly string[];
}

export interface FlattenOptions {
  readonly unsupportedContent: 'reject' | 'placeholder';
  readonly maxEmbeddedBytes: number;
  readonly maxPromptChars: number;
}

/**
 * Makes text of a prompt's blocks. Nothing is dropped without a word: what cannot travel is refused, or named.
 *
 * @throws {AcpFault} `unsupported_content` with the block's index and type, `empty_prompt`, `prompt_too_large` with
 *   size and limit in characters
 */
export function flattenPrompt(blocks: readonly ContentBlock[], options: FlattenOptions): FlatPrompt {
  const lines: string[] = [];
  const spoken: string[] = [];
  const attachments: string[] = [];
  const refuse = (index: number, type: string, shown: string) => {
    if (options.unsupportedContent === 'reject') {
      throw new AcpFault(
        'unsupported_content',
        { type, index },
        { text: `Invalid params: ${type} blocks are not supported` },
      );
    }
    lines.push(shown);
  };
  for (const [index, block] of blocks.entries()) {
    switch (block.type) {
      case 'text':
        lines.push(block.text);
        spoken.push(block.text);
        break;
      case 'resource_link': {
        const about = block.description ? ` (${oneLine(block.description)})` : '';
        lines.push(link(block.title ?? block.name, block.uri) + about);
        break;
      }
      case 'resource': {
        const { resource } = block;
        const shown = link(baseName(resource.uri), resource.uri);
        if ('text' in resource) {
          lines.push(shown);
          attachments.push(fence(resource.uri, resource.mimeType ?? null, resource.text, options.maxEmbeddedBytes));
        } else {
          refuse(index, 'blob', `${shown} (binary, ${base64Bytes(resource.blob)} bytes, not forwarded)`);
        }
        break;
      }
      case 'image':
      case 'audio':
        refuse(index, block.type, `[${block.type} ${block.mimeType}, not forwarded]`);
        break;
    }
  }
  const text = lines.join('\n');
  if (!hasVisibleText(text)) throw new AcpFault('empty_prompt');
  const chars = text.length + attachments.reduce((sum, part) => sum + part.length, 0);
  if (chars > options.maxPromptChars) {
    throw new AcpFault('prompt_too_large', { chars, maxChars: options.maxPromptChars });
  }
  return { text, spoken, attachments };
}

export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** A Markdown link that no label or target can break out of. */
export function link(label: string, uri: string): string {
  const shown = oneLine(label).replace(/[\\[\]]/g, '\\$&');
  return `[${shown || safeUri(uri)}](${safeUri(uri)})`;
}

/** The same address without characters that could end a link, a fence header or a line. */
export function safeUri(uri: string): string {
  return uri.replace(/[\s<>()`[\]\\]/g, (char) =>
    [...new TextEncoder().encode(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
}

/** Contents of a resource in a fence that is longer than any run of back-ticks inside. */
export function fence(uri: string, mimeType: string | null, text: string, maxBytes: number): string {
  const body = cutMiddle(text, maxBytes);
  const longest = Math.max(2, ...[...body.matchAll(/`+/g)].map((run) => run[0].length));
  const ticks = '`'.repeat(longest + 1);
  const kind = mimeType === null ? '' : ` (${oneLine(mimeType).replaceAll('`', '')})`;
  return `${ticks}text ${safeUri(uri)}${kind}\n${body}${body.endsWith('\n') ? '' : '\n'}${ticks}`;
}

/** Keeps head and tail of a long text around a line that says how many bytes are missing. */
export function cutMiddle(text: string, maxBytes: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.byteLength <= maxBytes) return text;
  const head = sliceUtf8(bytes, 0, Math.ceil(maxBytes / 2));
  const tail = sliceUtf8(bytes, bytes.byteLength - Math.floor(maxBytes / 2), bytes.byteLength);
  const kept = Buffer.byteLength(head) + Buffer.byteLength(tail);
  return `${head}\n[… ${bytes.byteLength - kept} bytes left out …]\n${tail}`;
}

/** The text of a byte range, shrunk to whole characters. */
function sliceUtf8(bytes: Uint8Array, from: number, to: number): string {
  const isInside = (at: number) => ((bytes[at] ?? 0) & 0xc0) === 0x80;
  let start = from;
  let end = to;
  while (start < bytes.byteLength && isInside(start)) start += 1;
  while (end > start && end < bytes.byteLength && isInside(end)) end -= 1;
  return new TextDecoder().decode(bytes.subarray(start, end));
}

function baseName(uri: string): string {
  const path = uri.replace(/[?#].*$/, '');
  const last = path.split(/[/\\]/).findLast((part) => part !== '') ?? uri;
  try {
    return decodeURIComponent(last);
  } catch {
    // Not percent-encoded: shown as it is.
    return last;
  }
}

function base64Bytes(blob: string): number {
  return Buffer.from(blob, 'base64').byteLength;
}

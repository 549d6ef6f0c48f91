import { invalidField, refusal } from '../errors.js';
import type { Part } from '../wire.js';
import { acceptsType, bareType, typeOfFile } from './media-types.js';

export interface ToBandOptions {
  /** Media types the card accepts for text, data and file parts. */
  readonly inputModes: readonly string[];
  /** Characters of a text file that are inlined. */
  readonly inlineChars: number;
  /** Characters of the whole text. */
  readonly maxChars: number;
}

/**
 * A request's parts as the text of one room message, in order, joined by blank lines. Nothing is fetched, cut or left
 * out: what cannot be shown is refused.
 *
 * @throws {GatewayError} `A2A_CONTENT_TYPE` for a part of a kind that is not taken; `A2A_PARAMS` when the text is empty
 *   or too long
 */
export function toBandText(parts: readonly Part[], options: ToBandOptions): string {
  const text = parts.map((part) => pieceOf(part, options)).join('\n\n');
  if (!isVisible(text)) throw invalidField('message.parts', 'must hold visible content');
  if (charsOf(text) > options.maxChars) {
    throw invalidField('message.parts', `must not exceed ${options.maxChars} characters`);
  }
  return text;
}

function pieceOf(part: Part, options: ToBandOptions): string {
  if (part.text !== undefined) {
    requireType(part.mediaType ?? 'text/plain', options);
    return part.text;
  }
  if (part.data !== undefined) {
    requireType(part.mediaType ?? 'application/json', options);
    return fenced(JSON.stringify(part.data, null, 2), 'json');
  }
  if (part.url !== undefined) return linkTo(part.url, part);
  return fileOf(part, options);
}

function fileOf(part: Part, options: ToBandOptions): string {
  const type = part.mediaType ?? typeOfFile(part.filename);
  requireType(type, options);
  const text = decodeText(Buffer.from(part.raw ?? '', 'base64'));
  if (text === null || charsOf(text) > options.inlineChars) {
    throw refusal('A2A_CONTENT_TYPE', { mediaType: bareType(type) });
  }
  return `${safeFileName(part.filename) || 'file'} (${bareType(type)})\n${fenced(text, '')}`;
}

function linkTo(url: string, part: Part): string {
  const name = safeFileName(part.filename) || lastSegment(url);
  const label = name.replace(/[[\]]/g, '');
  const target = url.replace(
    /[\s()<>]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
  return `[${label}](${target})${part.mediaType ? ` (${bareType(part.mediaType)})` : ''}`;
}

function lastSegment(url: string): string {
  const { hostname, pathname } = new URL(url);
  return safeFileName(pathname.slice(pathname.lastIndexOf('/') + 1)) || hostname;
}

function requireType(mediaType: string, { inputModes }: ToBandOptions): void {
  if (!acceptsType(inputModes, mediaType)) throw refusal('A2A_CONTENT_TYPE', { mediaType: bareType(mediaType) });
}

/** A code block whose fence is longer than any run of backticks inside. */
export function fenced(text: string, info: string): string {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = '`'.repeat(Math.max(3, longest + 1));
  return `${fence}${info}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}

const MAX_FILE_NAME_CHARS = 255;
// Controls, and the marks that make a name read differently from what it is.
const UNSAFE_IN_NAMES = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** The last part of a path, without what could mislead a reader; empty when nothing is left. */
export function safeFileName(name: string | undefined): string {
  const last = (name ?? '').split(/[\\/]/).at(-1) ?? '';
  const clean = last.replace(UNSAFE_IN_NAMES, '').trim();
  return /^\.+$/.test(clean) ? '' : clean.slice(0, MAX_FILE_NAME_CHARS).replace(/[\ud800-\udbff]$/, '');
}

function decodeText(bytes: Buffer): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null; // not text: the caller refuses it
  }
}

// Fillers that Unicode counts as letters or symbols but that print nothing.
const INVISIBLE = /[\s\p{C}\p{Z}\u115F\u1160\u3164\uFFA0\u2800\uFE00-\uFE0F]/gu;

export function isVisible(text: string): boolean {
  return text.replace(INVISIBLE, '').length > 0;
}

/** Characters as people count them: code points. */
export function charsOf(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0xd800 || unit > 0xdbff) count += 1;
    else if (i + 1 === text.length) count += 1;
  }
  return count;
}

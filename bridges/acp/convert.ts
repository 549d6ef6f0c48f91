import type { ChatMessage } from '../../src/platform/wire/objects.js';
import { messageMetadataSchema } from '../../src/platform/wire/objects.js';
import type { ClientInfo, McpSummary } from './conversation.js';

/** How somebody in a room is spelled to a reader. */
export type HandleOf = (id: string) => string | null;

const TOKEN = /@\[\[([^\]\s]{1,64})\]\](?:\/[A-Za-z0-9_-]+)?/g;
const LEADING_TOKEN = /^\s*@\[\[([^\]\s]{1,64})\]\](?:\/[A-Za-z0-9_-]+)?[ \t]*[:,]?[ \t]?/;
const AFTER_ADDRESS = /^(?![\p{L}\p{N}_/-])[ \t]*[:,]?[ \t]?/u;

/** Largest piece of text in one update; longer messages go out in several with one id. */
export const MAX_CHUNK_BYTES = 65_536;

/**
 * A message of somebody else as an editor shows it: the address to this agent at the start is dropped, every other
 * mention token becomes `@handle`.
 */
export function shownText(
  row: ChatMessage,
  self: { readonly id: string; readonly handle: string | null },
  handleOf: HandleOf,
): string {
  let text = row.content;
  for (let rest = withoutAddress(text, self); rest !== null; rest = withoutAddress(text, self)) text = rest;
  return renderMentions(text, row, handleOf);
}

/** What follows an address to `self` at the start, as a token or as the handle that a runtime made of it; else null. */
function withoutAddress(text: string, self: { readonly id: string; readonly handle: string | null }): string | null {
  const token = LEADING_TOKEN.exec(text);
  if (token?.[1]?.toLowerCase() === self.id) return text.slice(token[0].length);
  const lead = text.trimStart();
  if (self.handle === null || !lead.toLowerCase().startsWith(`@${self.handle.toLowerCase()}`)) return null;
  const after = lead.slice(self.handle.length + 1);
  const gap = AFTER_ADDRESS.exec(after);
  return gap ? after.slice(gap[0].length) : null;
}

/** Mention tokens as `@handle`, from who is in the room, else from what the message says of them. */
export function renderMentions(text: string, row: ChatMessage, handleOf: HandleOf): string {
  if (!text.includes('@[[')) return text;
  const told = new Map(mentionsOf(row).map(({ id, handle, name }) => [id.toLowerCase(), handle ?? name ?? null]));
  return text.replace(TOKEN, (token, id: string) => {
    const handle = handleOf(id.toLowerCase()) ?? told.get(id.toLowerCase()) ?? null;
    return handle === null ? token : `@${handle.replace(/^@/, '')}`;
  });
}

export function mentionsOf(row: ChatMessage): { id: string; handle: string | null; name: string | null }[] {
  const parsed = messageMetadataSchema.safeParse(row.metadata ?? {});
  if (!parsed.success) return [];
  return (parsed.data.mentions ?? []).map(({ id, handle, name }) => ({
    id,
    handle: handle ?? null,
    name: name ?? null,
  }));
}

/** Cuts text on code points into pieces of at most `maxBytes` bytes of UTF-8. */
export function splitText(text: string, maxBytes = MAX_CHUNK_BYTES): string[] {
  // A UTF-16 unit is at most three bytes, so short texts need no counting.
  if (text.length * 3 <= maxBytes) return [text];
  const pieces: string[] = [];
  let piece = '';
  let bytes = 0;
  for (const char of text) {
    const size = Buffer.byteLength(char);
    if (bytes + size > maxBytes && piece !== '') {
      pieces.push(piece);
      piece = '';
      bytes = 0;
    }
    piece += char;
    bytes += size;
  }
  pieces.push(piece);
  return pieces;
}

export const CONTEXT_HEADING = '[ACP Session Context]';

/** The block behind a prompt that tells peers where the person works. */
export function contextBlock(client: ClientInfo | null, cwd: string | null, mcpServers: readonly McpSummary[]): string {
  const lines = [CONTEXT_HEADING];
  if (client) lines.push(`Editor: ${client.title ?? client.name} ${client.version}`.trim());
  if (cwd !== null) lines.push(`Editor cwd: ${cwd}`);
  if (mcpServers.length > 0) {
    lines.push(`Editor MCP servers: ${mcpServers.map(({ name, type }) => `${name} (${type})`).join(', ')}`);
  }
  return lines.map((line) => line.replace(/[\r\n]+/g, ' ')).join('\n');
}

/** A prompt as posted: who it is for, the text, attachments, the context block last so that titles see the request. */
export function composePost(parts: {
  readonly handles: readonly string[];
  readonly text: string;
  readonly attachments: readonly string[];
  readonly context: string | null;
}): string {
  const address = parts.handles.map((handle) => `@${handle}`).join(' ');
  const body = [`${address} ${parts.text}`.trimStart(), ...parts.attachments];
  if (parts.context !== null) body.push(parts.context);
  return body.join('\n\n');
}

/**
 * What the person typed, out of a row the bridge posted: without the address put in front, attachments and context
 * block. Links stay, and so does a fence that the person typed.
 */
export function typedText(row: ChatMessage, handleOf: HandleOf): string {
  let text = stripAddress(row.content);
  text = stripLeadingContext(text);
  text = stripTrailingContext(text);
  text = stripAttachments(text);
  return renderMentions(text, row, handleOf);
}

/** Drops the run of mention tokens that the bridge put in front: each addressee once. */
function stripAddress(content: string): string {
  const seen = new Set<string>();
  let text = content;
  for (;;) {
    const lead = /^@\[\[([^\]\s]{1,64})\]\](?:\/[A-Za-z0-9_-]+)? ?/.exec(text);
    const id = lead?.[1]?.toLowerCase();
    if (!lead || id === undefined || seen.has(id)) return text;
    seen.add(id);
    text = text.slice(lead[0].length);
  }
}

/** The other bridges put their context block in front, up to the first blank line. */
function stripLeadingContext(text: string): string {
  if (!text.startsWith(CONTEXT_HEADING)) return text;
  const end = text.indexOf('\n\n');
  return end < 0 ? text : text.slice(end + 2);
}

function stripTrailingContext(text: string): string {
  const lines = text.split('\n');
  const at = lines.lastIndexOf(CONTEXT_HEADING);
  if (at <= 0 || !lines.slice(at + 1).every((line) => line.startsWith('Editor'))) return text;
  return lines.slice(0, at).join('\n').replace(/\n+$/, '');
}

/** Drops fences at the end whose header names an address that is also linked above them. */
function stripAttachments(text: string): string {
  let rest = text;
  for (;;) {
    const lines = rest.split('\n');
    const ticks = /^`{3,}$/.exec(lines.at(-1) ?? '')?.[0];
    if (ticks === undefined) return rest;
    const open = lines.findLastIndex((line, index) => index < lines.length - 1 && line.startsWith(`${ticks}text `));
    const uri = open < 0 ? undefined : lines[open]?.slice(ticks.length + 5).split(' ')[0];
    const above = lines.slice(0, Math.max(0, open)).join('\n');
    if (uri === undefined || uri === '' || !above.includes(`](${uri})`)) return rest;
    rest = above.replace(/\n+$/, '');
  }
}

/** First line of a prompt as a room title, at most `maxChars` characters; null when nothing visible is left. */
export function titleOf(text: string, maxChars = 60): string | null {
  const line = text
    .split('\n')
    .map((part) =>
      part
        .replace(/\s+/g, ' ')
        .replace(/[\p{Cc}\p{Cf}]/gu, '')
        .trim(),
    )
    .find((part) => part !== '');
  if (line === undefined) return null;
  const chars = Array.from(line);
  return chars.length <= maxChars
    ? line
    : `${chars
        .slice(0, maxChars - 1)
        .join('')
        .trimEnd()}…`;
}

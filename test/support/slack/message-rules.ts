import { SlackFailure, str, type Json } from './world.js';

export const TEXT_TRUNCATED_CHARS = 40_000;
export const TEXT_SPLIT_CHARS = 4_000;
export const MARKDOWN_CHARS = 12_000;
export const ALL_BLOCKS_CHARS = 13_200;
const BLOCKS = 50;
const SECTION_CHARS = 3_000;
const FIELD_CHARS = 2_000;
const HEADER_CHARS = 150;
const BUTTON_CHARS = 75;
const VALUE_CHARS = 2_000;
const ID_CHARS = 255;
const KNOWN_BLOCKS = new Set([
  'section',
  'header',
  'divider',
  'context',
  'context_actions',
  'actions',
  'image',
  'input',
  'file',
  'video',
  'markdown',
  'rich_text',
  'table',
  'plan',
  'task_card',
  'card',
]);

/** What a message's blocks break, in Slack's words; throws the refusal Slack would give. */
export function checkBlocks(blocks: readonly Json[]): void {
  let expanded = 0;
  let total = 0;
  let markdown = 0;
  let tables = 0;
  for (const block of blocks) {
    const type = String(block['type']);
    if (!KNOWN_BLOCKS.has(type)) refuse('invalid_blocks', `unsupported type: ${type}`);
    if (typeof block['block_id'] === 'string' && block['block_id'].length > ID_CHARS)
      refuse('invalid_blocks', 'block_id too long');
    expanded += 1;
    total += textLength(block);
    if (type === 'markdown') {
      const text = str(block['text']);
      if (text === '') refuse('no_text', 'empty markdown block');
      markdown += text.length;
      const shape = markdownShape(text);
      expanded += shape.headings + shape.rules + shape.tables.length;
      tables += shape.tables.length;
      for (const table of shape.tables) {
        if (table.rows > 100 || table.columns > 20)
          refuse('invalid_blocks', `table of ${table.rows} x ${table.columns}`);
      }
    }
    if (type === 'table') {
      tables += 1;
      const rows = block['rows'] as Json[][];
      if (rows.length > 100 || rows.some((row) => row.length > 20)) refuse('invalid_blocks', 'table too large');
    }
    if (type === 'section') checkSection(block);
    if (type === 'header' && textOf(block['text']).length > HEADER_CHARS) refuse('invalid_blocks', 'header too long');
    if (type === 'context' && (block['elements'] as Json[]).length > 10) refuse('invalid_blocks', 'context too long');
    if (type === 'actions') checkActions(block);
  }
  if (markdown > MARKDOWN_CHARS) refuse('msg_too_long', `markdown of ${markdown} characters`);
  if (blocks.length > BLOCKS) refuse('invalid_blocks', `${blocks.length} blocks`);
  if (expanded > BLOCKS) refuse('invalid_blocks', `${expanded} blocks after expansion`);
  if (tables > 1) refuse('invalid_attachments', 'only one table');
  if (total > ALL_BLOCKS_CHARS) refuse('msg_blocks_too_long', `${total} characters`);
}

function checkSection(block: Json): void {
  if (textOf(block['text']).length > SECTION_CHARS) refuse('invalid_blocks', 'section text too long');
  if (block['text'] !== undefined && textOf(block['text']) === '') refuse('invalid_blocks', 'section text empty');
  const fields = (block['fields'] ?? []) as Json[];
  if (fields.length > 10 || fields.some((field) => textOf(field).length > FIELD_CHARS))
    refuse('invalid_blocks', 'fields');
}

function checkActions(block: Json): void {
  const elements = (block['elements'] ?? []) as Json[];
  if (elements.length > 25) refuse('invalid_blocks', 'too many actions');
  const ids = new Set<string>();
  for (const element of elements) {
    if (textOf(element['text']).length > BUTTON_CHARS) refuse('invalid_blocks', 'button text too long');
    if (str(element['value']).length > VALUE_CHARS) refuse('invalid_blocks', 'value too long');
    const id = str(element['action_id']);
    if (id.length > ID_CHARS) refuse('invalid_blocks', 'action_id too long');
    if (id !== '' && ids.has(id)) refuse('invalid_blocks', 'action_id twice in one block');
    ids.add(id);
  }
}

function refuse(error: string, message: string): never {
  throw new SlackFailure(error, { response_metadata: { messages: [`[ERROR] ${message}`] } });
}

const textOf = (value: unknown): string =>
  typeof value === 'object' && value !== null && 'text' in value && typeof value.text === 'string' ? value.text : '';

function textLength(block: Json): number {
  let length = 0;
  const walk = (value: unknown, key: string): void => {
    if (typeof value === 'string') {
      if (key === 'text' || key === 'value') length += value.length;
      return;
    }
    if (Array.isArray(value)) for (const item of value) walk(item, key);
    else if (typeof value === 'object' && value !== null)
      for (const [name, inner] of Object.entries(value)) walk(inner, name);
  };
  walk(block, '');
  return length;
}

/** Headings, rules and tables of a Markdown text, by a reading of lines that knows fences. */
export function markdownShape(text: string): {
  headings: number;
  rules: number;
  tables: { rows: number; columns: number }[];
} {
  let fence: string | null = null;
  let headings = 0;
  let rules = 0;
  const tables: { rows: number; columns: number }[] = [];
  const lines = text.split('\n');
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index]!;
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence !== null) {
      if (mark?.startsWith(fence) && line.trim() === mark) fence = null;
      continue;
    }
    if (mark) {
      fence = mark;
      continue;
    }
    if (/^ {0,3}#{1,6}(?:\s|$)/.test(line)) headings += 1;
    else if (/^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/.test(line)) rules += 1;
    else if (line.includes('|') && /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[index + 1] ?? '')) {
      let end = index + 2;
      while (end < lines.length && lines[end]!.includes('|')) end += 1;
      tables.push({ rows: end - index - 1, columns: cells(line) });
      index = end - 1;
    }
  }
  return { headings, rules, tables };
}

const cells = (line: string): number =>
  line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/).length;

export interface PingTokens {
  users: string[];
  groups: string[];
  broadcasts: string[];
}

/** Control sequences that would notify somebody, wherever Slack reads them. */
export function liveTokens(
  text: string,
  blocks: readonly Json[] | null,
  attachments: readonly Json[] | null,
): PingTokens {
  const found: PingTokens = { users: [], groups: [], broadcasts: [] };
  const scan = (value: string): void => {
    for (const match of value.matchAll(/<@([UWB][A-Z0-9]+)(?:\|[^<>]*)?>/g)) found.users.push(match[1]!);
    for (const match of value.matchAll(/<!subteam\^([A-Z0-9]+)(?:\|[^<>]*)?>/g)) found.groups.push(match[1]!);
    for (const match of value.matchAll(/<!(here|channel|everyone)(?:\|[^<>]*)?>/g)) found.broadcasts.push(match[1]!);
    for (const match of value.matchAll(/slack:\/\/user\?[^\s<>()]*\bid=([UWB][A-Z0-9]+)/g)) found.users.push(match[1]!);
    for (const match of value.matchAll(/slack:\/\/usergroup\?[^\s<>()]*\bid=(S[A-Z0-9]+)/g))
      found.groups.push(match[1]!);
  };
  scan(text);
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(walk);
    else if (typeof value === 'object' && value !== null) {
      const item = value as Json;
      if (item['type'] === 'user' && typeof item['user_id'] === 'string') found.users.push(item['user_id']);
      if (item['type'] === 'usergroup' && typeof item['usergroup_id'] === 'string')
        found.groups.push(item['usergroup_id']);
      if (item['type'] === 'broadcast' && typeof item['range'] === 'string') found.broadcasts.push(item['range']);
      const plain = item['type'] === 'plain_text';
      for (const [key, inner] of Object.entries(item)) {
        // Buttons and plain text do not parse control sequences.
        if (key === 'text' && typeof inner === 'string' && !plain) scan(inner);
        else if (key !== 'value') walk(inner);
      }
    }
  };
  walk(blocks ?? []);
  walk(attachments ?? []);
  return found;
}

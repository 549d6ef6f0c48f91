import type { SlackMessage } from '../messages.js';
import { mrkdwnToMarkdown } from './from-mrkdwn.js';
import { escapeMarkdown, markdownLink } from './escape-markdown.js';
import type { SlackNames } from './names.js';
import { richTextToMarkdown } from './rich-text.js';
import { layOutTable } from './table.js';

type Loose = Readonly<Record<string, unknown>>;
type Convertible = Pick<SlackMessage, 'text' | 'blocks' | 'attachments' | 'bot_id' | 'app_id' | 'files'>;

/**
 * A message of Slack's as Markdown: what the person composed where that is known, else the text; then shared messages
 * and attachments of the old kind. Previews of links are left out. Total.
 */
export function messageToMarkdown(message: Convertible, names: SlackNames): string {
  const parts = [bodyText(message, names), ...(message.attachments ?? []).map((one) => attachmentText(one, names))];
  return parts.filter((part) => part !== '').join('\n\n');
}

function bodyText(message: Convertible, names: SlackNames): string {
  const blocks: readonly Loose[] = message.blocks ?? [];
  const text = message.text ?? '';
  if (blocks.length > 0 && blocks.every((block) => block['type'] === 'rich_text')) {
    const composed = richTextToMarkdown(blocks, names);
    if (composed !== '' || text === '') return composed;
  }
  const shown = (message.bot_id ?? message.app_id) ? blocksText(blocks, names) : '';
  return shown === '' ? mrkdwnToMarkdown(text, names) : shown;
}

/** Blocks of another app's message, those that hold text, in order. */
function blocksText(blocks: readonly Loose[], names: SlackNames): string {
  return blocks
    .map((block) => blockText(block, names))
    .filter((text) => text !== '')
    .join('\n\n');
}

function blockText(block: Loose, names: SlackNames): string {
  switch (block['type']) {
    case 'section':
      return [block['text'], ...items(block['fields'])]
        .map((text) => textObject(text, names))
        .filter(Boolean)
        .join('\n');
    case 'header': {
      const title = textObject(block['text'], names);
      return title === '' ? '' : `**${title}**`;
    }
    case 'context':
      return items(block['elements'])
        .map((element) => textObject(element, names))
        .filter(Boolean)
        .join(' ');
    case 'markdown':
      return str(block['text']).trim();
    case 'rich_text':
      return richTextToMarkdown([block], names);
    case 'table':
      return tableText(block, names);
    default:
      return '';
  }
}

function textObject(value: unknown, names: SlackNames): string {
  const object = loose(value);
  const text = str(object['text']);
  return object['type'] === 'mrkdwn'
    ? mrkdwnToMarkdown(text, names)
    : object['type'] === 'plain_text'
      ? escapeMarkdown(text.trim())
      : '';
}

function tableText(block: Loose, names: SlackNames): string {
  const rows = (Array.isArray(block['rows']) ? block['rows'] : []).map((row: unknown) =>
    items(row).map((cell) => {
      const object = loose(cell);
      return (object['type'] === 'rich_text' ? richTextToMarkdown([object], names) : str(object['text'])).replace(
        /\s+/g,
        ' ',
      );
    }),
  );
  return rows.length === 0 ? '' : ['```', ...layOutTable({ align: [], rows }), '```'].join('\n');
}

function attachmentText(attachment: Loose, names: SlackNames): string {
  const shared = attachment['is_msg_unfurl'] === true || attachment['is_share'] === true;
  if (shared) return sharedMessage(attachment, names);
  // A preview of a link that the text already holds.
  if (attachment['from_url'] !== undefined || attachment['original_url'] !== undefined) return '';
  const fields = items(attachment['fields']).map((field) => {
    const { title, value } = loose(field);
    return [str(title) && `**${escapeMarkdown(str(title))}:**`, mrkdwnToMarkdown(str(value), names)]
      .filter(Boolean)
      .join(' ');
  });
  const pretext = mrkdwnToMarkdown(str(attachment['pretext']), names);
  const title = titleText(attachment);
  const text = mrkdwnToMarkdown(str(attachment['text']), names);
  return [pretext, title, text, ...fields].filter((part) => part !== '').join('\n');
}

function titleText(attachment: Loose): string {
  const title = str(attachment['title']).trim();
  const link = str(attachment['title_link']);
  if (title === '') return '';
  return link.startsWith('http') ? markdownLink(escapeMarkdown(title), link) : `**${escapeMarkdown(title)}**`;
}

function sharedMessage(attachment: Loose, names: SlackNames): string {
  const author = str(attachment['author_name']) || str(attachment['author_id']);
  const from = str(attachment['from_url']);
  const heading = [
    author && `**${escapeMarkdown(author)}**`,
    from.startsWith('http') ? markdownLink('message', from) : '',
  ]
    .filter(Boolean)
    .join(' · ');
  const blocks = items(attachment['message_blocks']).flatMap((one) =>
    items(loose(loose(one)['message'])['blocks']).map(loose),
  );
  const composed =
    blocks.length > 0 && blocks.every((block) => block['type'] === 'rich_text')
      ? richTextToMarkdown(blocks, names)
      : '';
  const body = composed === '' ? mrkdwnToMarkdown(str(attachment['text']), names) : composed;
  const lines = [heading, ...body.split('\n')].filter((line, index) => index > 0 || line !== '');
  return lines.map((line) => `> ${line}`.trimEnd()).join('\n');
}

const str = (value: unknown): string => (typeof value === 'string' ? value : '');
const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const loose = (value: unknown): Loose => (typeof value === 'object' && value !== null ? (value as Loose) : {});

import type { Blockquote, BlockContent, Code, List, ListItem, RootContent, Table } from 'mdast';
import { plainInline, printHtml, printInline, type InlineContext } from './mrkdwn-inline.js';
import { layOutTable, tableWidth, type PlainTable } from './table.js';
import { escapeText, ZWSP } from './text.js';

const RULE = '\u2500'.repeat(10);
const BULLETS = ['•', '◦', '▪'] as const;
const INDENT = '    ';
const WIDEST_TABLE_COLUMNS = 80;

/** Blocks as mrkdwn, one blank line between them. */
export function printBlocks(nodes: readonly RootContent[], context: InlineContext): string {
  return blockTexts(nodes, context).join('\n\n');
}

function blockTexts(nodes: readonly RootContent[], context: InlineContext): string[] {
  return nodes.map((node) => blockLines(node, context, 0, 0).join('\n')).filter((text) => text !== '');
}

function blockLines(node: RootContent, context: InlineContext, listDepth: number, quoteDepth: number): string[] {
  switch (node.type) {
    case 'paragraph':
      return printInline(node.children, context);
    case 'heading': {
      const line = printInline(node.children, context, true).join(' ').trim();
      return line === '' ? [] : [`*${line}*`];
    }
    case 'thematicBreak':
      return [RULE];
    case 'code':
      return fenceLines(node, context);
    case 'blockquote':
      return quoteLines(node, context, quoteDepth);
    case 'list':
      return listLines(node, context, listDepth, quoteDepth);
    case 'table':
      return tableLines(node, context);
    case 'html':
      return printHtml(node.value, context).filter(
        (line, index, all) => line !== '' || (index > 0 && index < all.length - 1),
      );
    default:
      // Definitions show nothing here; footnotes are printed at the end of the whole text.
      return [];
  }
}

function fenceLines(node: Code, context: InlineContext): string[] {
  return ['```', ...fenced(context.placeholders.restore(node.value)).split('\n'), '```'];
}

/** Text for the inside of a fence: escaped, and no three backticks in a row. */
export function fenced(text: string): string {
  return escapeText(text).replace(/`(?=``)/g, `\`${ZWSP}`);
}

function quoteLines(node: Blockquote, context: InlineContext, depth: number): string[] {
  const blocks = node.children
    .map((child) => blockLines(child, context, 0, depth + 1))
    .filter((lines) => lines.length > 0);
  const lines = blocks.flatMap((block, index) => (index === 0 ? block : ['', ...block]));
  // Slack quotes one level deep: the second is shown by a literal sign, deeper ones look like the second.
  if (depth > 1) return lines;
  return lines.map((line) => (depth === 1 ? `&gt; ${line}`.trimEnd() : `> ${line}`.trimEnd()));
}

function listLines(list: List, context: InlineContext, depth: number, quoteDepth: number): string[] {
  const start = list.start ?? 1;
  return list.children.flatMap((item, index) => {
    const marker = list.ordered === true ? `${start + index}.` : (BULLETS[Math.min(depth, BULLETS.length - 1)] ?? '•');
    return itemLines(item, marker, context, depth, quoteDepth);
  });
}

function itemLines(
  item: ListItem,
  marker: string,
  context: InlineContext,
  depth: number,
  quoteDepth: number,
): string[] {
  const indent = INDENT.repeat(depth);
  const sign = item.checked === true ? '☑' : item.checked === false ? '☐' : marker;
  const lines = item.children.flatMap((child, index) => {
    const inner = blockLines(child, context, depth + 1, quoteDepth);
    // A nested list indents itself; fences, quotes and tables start at the margin, where Slack sees them.
    if (!flows(child)) return index === 0 ? [`${indent}${sign}`, ...inner] : inner;
    const [head = '', ...rest] = inner.map((line) => indentLine(line, depth + 1));
    return [index === 0 ? `${indent}${sign} ${head.trimStart()}`.trimEnd() : head, ...rest];
  });
  return lines.length > 0 ? lines : [`${indent}${sign}`];
}

const indentLine = (line: string, depth: number): string => (line === '' ? '' : INDENT.repeat(depth) + line);
const flows = (node: BlockContent | RootContent): boolean =>
  node.type === 'paragraph' || node.type === 'heading' || node.type === 'html';

function tableLines(table: Table, context: InlineContext): string[] {
  const plain: PlainTable = {
    align: (table.align ?? []).map((align) => align ?? null),
    rows: table.children.map((row) =>
      row.children.map((cell) => plainInline(cell.children, context).replace(/\s+/g, ' ').trim()),
    ),
  };
  if (tableWidth(plain) <= WIDEST_TABLE_COLUMNS) return ['```', ...layOutTable(plain).map(fenced), '```'];
  const header = plain.rows[0] ?? [];
  const rows = table.children.slice(1).map((row) =>
    row.children.map((cell, column) => {
      const value = printInline(cell.children, context).join(' ');
      const name = header[column] ?? '';
      return name === '' ? value : `*${escapeText(name)}:* ${value}`.trimEnd();
    }),
  );
  return rows.flatMap((cells, index) => (index === 0 ? cells : ['', ...cells]));
}

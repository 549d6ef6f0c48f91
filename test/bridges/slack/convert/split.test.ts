import { describe, expect, it } from 'vitest';
import { NO_MENTIONS, splitReply, type ReplyPart } from '../../../../bridges/slack/convert/index.js';
import { EXPANDED_BLOCKS, MARKDOWN_CHARS, MRKDWN_CHARS } from '../../../../bridges/slack/convert/split.js';
import { checkBlocks, markdownShape } from '../../../support/slack/message-rules.js';

const split = (markdown: string, form: 'markdown' | 'mrkdwn' = 'markdown', maxParts = 8) => {
  const result = splitReply(markdown, NO_MENTIONS, { form, maxParts });
  for (const part of result.parts) accept(part);
  return result;
};

/** What the double would refuse, and our own tighter limits. */
function accept(part: ReplyPart): void {
  expect(part.text.length).toBeLessThanOrEqual(MRKDWN_CHARS);
  expect(part.text).not.toBe('');
  if (!part.blocks) return;
  const [block] = part.blocks;
  expect(block!.text.length).toBeLessThanOrEqual(MARKDOWN_CHARS);
  const shape = markdownShape(block!.text);
  expect(1 + shape.headings + shape.rules + shape.tables.length).toBeLessThanOrEqual(EXPANDED_BLOCKS);
  checkBlocks(part.blocks.map((one) => ({ ...one })));
}

const texts = (parts: readonly ReplyPart[]) => parts.map((part) => part.blocks?.[0]?.text ?? part.text);
const squeezed = (text: string) => text.replace(/\s+/g, '');

describe('splitting a reply', () => {
  it('S-111 P01 text without spaces is cut into full parts that join to the whole; in mrkdwn it becomes a preview and a file', () => {
    const input = 'x'.repeat(40_000);
    const { parts, file } = split(input);
    expect(parts).toHaveLength(4);
    expect(file).toBeNull();
    expect(texts(parts).join('')).toBe(input);
    const narrow = split(input, 'mrkdwn');
    expect(narrow.parts).toHaveLength(1);
    expect(narrow.file).toMatchObject({ name: 'reply.md', content: input });
    expect(split(input, 'mrkdwn', 11).parts).toHaveLength(11);
  });

  it('S-111 P02 a long fence is closed and opened again with its language, between lines', () => {
    const lines = Array.from({ length: 400 }, (_, index) => `line ${String(index).padStart(4, '0')} `.padEnd(61, 'y'));
    const { parts } = split(`\`\`\`py\n${lines.join('\n')}\n\`\`\``);
    expect(parts).toHaveLength(3);
    const bodies = texts(parts).map((text) => {
      expect(text.startsWith('```py\n')).toBe(true);
      expect(text.endsWith('\n```')).toBe(true);
      return text.slice(6, -4);
    });
    expect(bodies.join('\n').split('\n')).toEqual(lines);
  });

  it('S-111 P03 many headings make parts of few enough blocks', () => {
    const { parts } = split(
      Array.from({ length: 60 }, (_, index) => `## Heading ${index}\nline ${index}`).join('\n\n'),
    );
    expect(parts.length).toBeGreaterThanOrEqual(2);
  });

  it('S-111 P04 a second table begins a part of its own, with the text that introduces it', () => {
    const table = '| a | b |\n|---|---|\n| 1 | 2 |';
    const { parts } = split(`First:\n\n${table}\n\nSecond:\n\n${table}\n\nend`);
    expect(texts(parts)).toEqual([`First:\n\n${table}`, `Second:\n\n${table}\n\nend`]);
  });

  it('S-111 P05 a table of many rows repeats its header, at most 100 rows a part', () => {
    const rows = Array.from({ length: 150 }, (_, index) => `| ${index} | b | c |`);
    const { parts } = split(`| n | x | y |\n|---|---|---|\n${rows.join('\n')}`);
    expect(parts).toHaveLength(2);
    const shown = texts(parts).flatMap((text) => {
      const [header, delimiter, ...body] = text.split('\n');
      expect([header, delimiter]).toEqual(['| n | x | y |', '|---|---|---|']);
      expect(body.length).toBeLessThanOrEqual(99);
      return body;
    });
    expect(shown).toEqual(rows);
  });

  it('S-111 P06 a table of 25 columns is sent as fenced text', () => {
    const row = (cell: string) => `|${` ${cell} |`.repeat(25)}`;
    const { parts } = split(`${row('h')}\n${row('---')}\n${row('v')}`);
    expect(parts).toHaveLength(1);
    expect(texts(parts)[0]).toMatch(/^```\nh {3}\| h {3}\|[^`]*\n```$/);
  });

  it('S-111 P07 a paragraph is cut before a link that stands over the limit', () => {
    const link = '[the label of a link](https://example.test/path)';
    const { parts } = split(`${'word '.repeat(2_298)}${link} ${'tail '.repeat(100)}`.trim());
    expect(parts).toHaveLength(2);
    expect(texts(parts)[1]?.startsWith(link)).toBe(true);
  });

  it('S-111 P08 a joined emoji moves whole to the next part', () => {
    const family = '👨‍👩‍👧‍👦';
    const { parts } = split('a'.repeat(11_499) + family);
    expect(texts(parts)).toEqual(['a'.repeat(11_499), family]);
  });

  it('S-111 P09 a numbered list goes on with the right number, whatever the source numbers were', () => {
    const item = (number: number, index: number) => `${number}. item ${index} ${'z'.repeat(60)}`;
    for (const lazy of [false, true]) {
      const items = Array.from({ length: 500 }, (_, index) => item(lazy ? 1 : index + 1, index + 1));
      const { parts } = split(items.join('\n'));
      expect(parts.length).toBeGreaterThan(1);
      for (const text of texts(parts)) {
        const [, number, index] = /^(\d+)\. item (\d+)/.exec(text) ?? [];
        expect(number).toBe(index);
      }
    }
  });

  it('S-111 P10 one character too many makes two parts', () => {
    const { parts } = split('a '.repeat(6_000) + 'b');
    expect(parts).toHaveLength(2);
  });

  it('S-111 P11 a very long reply becomes its first part and a file', () => {
    const input = 'A sentence of words. '.repeat(14_300);
    for (const form of ['markdown', 'mrkdwn'] as const) {
      const { parts, file } = split(input, form);
      expect(parts).toHaveLength(1);
      expect(file?.content).toBe(input);
      expect(file?.comment).toContain('file');
    }
  });

  it('S-111 P12 one address that is longer than a message becomes a file', () => {
    const { parts, file } = split(`https://example.test/${'q'.repeat(20_000)}`);
    expect(parts).toEqual([]);
    expect(file?.name).toBe('reply.md');
  });

  it('SLK-05 every line of a long query arrives once, in order, inside fences, and the last words come last outside of them', () => {
    const lines = Array.from(
      { length: 700 },
      (_, i) => `    select col_${i}, sum(amount) as total_${i} from table_${i} group by 1`,
    );
    const input = `Here is the query:\n\n\`\`\`sql\n${lines.join('\n')}\n\`\`\`\n\nThat is the answer.`;
    const shown = texts(split(input).parts);
    const code = shown.flatMap((text) => {
      const inside = /```sql\n([\s\S]*?)\n```/.exec(text)?.[1];
      expect((text.match(/```/g) ?? []).length % 2).toBe(0);
      return inside === undefined ? [] : inside.split('\n');
    });
    expect(code).toEqual(lines);
    expect(shown.at(-1)?.endsWith('```\n\nThat is the answer.')).toBe(true);
  });

  it('keeps a fence inside a list item closed on both sides of a cut', () => {
    const code = Array.from({ length: 300 }, (_, index) => `  code line ${index} ${'c'.repeat(50)}`).join('\n');
    const shown = texts(split(`- item\n\n  \`\`\`js\n${code}\n  \`\`\`\n- next`).parts);
    expect(shown.length).toBeGreaterThan(1);
    for (const text of shown) expect((text.match(/```/g) ?? []).length % 2).toBe(0);
  });

  it('keeps short replies as they are, and empty ones away', () => {
    expect(texts(split('# Hi\n\n- a\n- b\n\n> q').parts)).toEqual(['# Hi\n\n- a\n- b\n\n> q']);
    expect(split('  \n\n').parts).toEqual([]);
    expect(split('  \n\n', 'mrkdwn').parts).toEqual([]);
  });

  it('loses nothing but spaces when prose is split', () => {
    const words = Array.from({ length: 9_000 }, (_, index) =>
      index % 13 === 0 ? `sentence ${index} ends.` : `w${index}`,
    ).join(' ');
    for (const form of ['markdown', 'mrkdwn'] as const) {
      expect(squeezed(texts(split(words, form, 50).parts).join(''))).toBe(squeezed(words));
    }
  });

  it('shows the beginning of a block as its fallback text', () => {
    const { parts } = split('**bold** & more');
    expect(parts).toEqual([{ text: '*bold* &amp; more', blocks: [{ type: 'markdown', text: '**bold** & more' }] }]);
  });
});

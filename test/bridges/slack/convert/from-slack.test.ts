import { describe, expect, it } from 'vitest';
import { messageToMarkdown } from '../../../../bridges/slack/convert/from-message.js';
import { mrkdwnToMarkdown } from '../../../../bridges/slack/convert/from-mrkdwn.js';
import { richTextToMarkdown } from '../../../../bridges/slack/convert/rich-text.js';
import { knownNames } from './known-names.js';
import { MRKDWN_TO_MARKDOWN } from './pairs.js';

describe('mrkdwn to Markdown', () => {
  it.each(MRKDWN_TO_MARKDOWN)('S-110 %s converts byte for byte', (_id, source, result) => {
    expect(mrkdwnToMarkdown(source, knownNames)).toBe(result);
  });
});

const text = (value: string, style?: Record<string, true>) => ({
  type: 'text',
  text: value,
  ...(style ? { style } : {}),
});
const section = (...elements: unknown[]) => ({ type: 'rich_text_section', elements });
const items = (style: 'bullet' | 'ordered', indent: number, words: string[], more: object = {}) => ({
  type: 'rich_text_list',
  style,
  indent,
  ...more,
  elements: words.map((word) => section(text(word))),
});

describe('rich text to Markdown', () => {
  it.each([
    [
      'R01',
      [section(text('go '), text('now', { bold: true, italic: true }), text(' x*y', { code: true }))],
      'go **_now_** ` x*y`',
    ],
    [
      'R02',
      [items('bullet', 0, ['a']), items('ordered', 1, ['b', 'c']), items('bullet', 0, ['d'])],
      '- a\n  1. b\n  2. c\n- d',
    ],
    ['R03', [items('ordered', 0, ['c', 'd'], { offset: 2 })], '3. c\n4. d'],
    ['R04', [{ type: 'rich_text_preformatted', elements: [text('a ``` b')] }], '````\na ``` b\n````'],
    ['R05', [{ type: 'rich_text_quote', elements: [text('l1\nl2')] }, section(text('after'))], '> l1\n> l2\n\nafter'],
    [
      'R06',
      [
        section(
          { type: 'user', user_id: 'U0BOT00' },
          text(' ask '),
          { type: 'user', user_id: 'U123ABC' },
          text(' in '),
          { type: 'channel', channel_id: 'C123ABC' },
          text(' '),
          { type: 'broadcast', range: 'here' },
        ),
      ],
      'ask [@Alice](slack://user?team=T1&id=U123ABC) in [#general](slack://channel?team=T1&id=C123ABC) @here',
    ],
    [
      'R07',
      [section({ type: 'emoji', name: 'wave', unicode: '1f44b-1f3fd' }, { type: 'emoji', name: 'custom_party' })],
      '👋🏽:custom_party:',
    ],
    [
      'R08',
      [
        section({ type: 'link', url: 'https://e.com/x_(y)', text: 'a [b]', style: { bold: true } }, text(' '), {
          type: 'link',
          url: 'https://e.com',
        }),
      ],
      '**[a \\[b\\]](<https://e.com/x_(y)>)** https://e.com',
    ],
    ['a list under numbers', [items('ordered', 0, ['a']), items('bullet', 1, ['b'])], '1. a\n   - b'],
    ['words that look like Markdown', [section(text('# no\n2 * 3 and a_b_c <b>'))], '\\# no\n2 * 3 and a_b_c \\<b>'],
    [
      'neighbours of one style as one',
      [section(text('a', { bold: true }), text('b', { bold: true }), text(' c'))],
      '**ab** c',
    ],
    ['spaces inside a style outside of it', [section(text('x'), text(' b ', { bold: true }), text('y'))], 'x **b** y'],
    [
      'a date, a colour, a team and what it does not know',
      [
        section(
          { type: 'date', timestamp: 1, fallback: 'today' },
          text(' '),
          { type: 'color', value: '#ff0000' },
          text(' '),
          { type: 'team' },
          text(' '),
          { type: 'hologram', text: 'h' },
        ),
      ],
      'today #ff0000 @team h',
    ],
    [
      'a fence with its language',
      [{ type: 'rich_text_preformatted', language: 'py', elements: [text('x=1')] }],
      '```py\nx=1\n```',
    ],
  ])('S-110 %s', (_id, elements, result) => {
    expect(richTextToMarkdown([{ type: 'rich_text', elements }], knownNames)).toBe(result);
  });
});

describe('a message to Markdown', () => {
  const rich = (...elements: unknown[]) => ({ type: 'rich_text', elements });

  it('takes what was composed, when every block is rich text', () => {
    expect(messageToMarkdown({ text: 'fallback', blocks: [rich(section(text('composed')))] }, knownNames)).toBe(
      'composed',
    );
  });

  it('takes the text when there are other blocks', () => {
    expect(
      messageToMarkdown({ text: '*text*', blocks: [rich(section(text('x'))), { type: 'actions' }] }, knownNames),
    ).toBe('**text**');
  });

  it('reads another app’s sections, headers, contexts, Markdown and tables in order', () => {
    const blocks = [
      { type: 'header', text: { type: 'plain_text', text: 'Build #1' } },
      { type: 'section', text: { type: 'mrkdwn', text: '*failed* on <https://e.com|main>' } },
      { type: 'divider' },
      { type: 'context', elements: [{ type: 'mrkdwn', text: 'by ci' }] },
      { type: 'markdown', text: '**md**' },
      {
        type: 'table',
        rows: [
          [
            { type: 'raw_text', text: 'k' },
            { type: 'raw_text', text: 'v' },
          ],
          [
            { type: 'raw_text', text: 'a' },
            { type: 'raw_text', text: '1' },
          ],
        ],
      },
    ];
    expect(messageToMarkdown({ text: 'fallback', bot_id: 'B1', blocks }, knownNames)).toBe(
      '**Build #1**\n\n**failed** on [main](https://e.com)\n\nby ci\n\n**md**\n\n```\nk   | v\n----+----\na   | 1\n```',
    );
  });

  it('quotes a shared message with its author and place, and leaves link previews out', () => {
    const attachments = [
      {
        is_msg_unfurl: true,
        author_name: 'Bob',
        from_url: 'https://acme.slack.com/archives/C1/p1',
        text: 'see *this*',
      },
      { from_url: 'https://e.com', original_url: 'https://e.com', title: 'A page', text: 'preview' },
      { title: 'Alert', text: 'disk full', fields: [{ title: 'Host', value: 'db1' }] },
    ];
    expect(messageToMarkdown({ text: 'look', attachments }, knownNames)).toBe(
      'look\n\n> **Bob** · [message](https://acme.slack.com/archives/C1/p1)\n> see **this**\n\n**Alert**\ndisk full\n**Host:** db1',
    );
  });
});

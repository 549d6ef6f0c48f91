import fc from 'fast-check';
import type { Nodes } from 'mdast';
import { describe, expect, it } from 'vitest';
import {
  markdownToMrkdwn,
  messageToMarkdown,
  mrkdwnToMarkdown,
  NO_MENTIONS,
  renderMarkdown,
  splitReply,
  type MentionPolicy,
} from '../../../../bridges/slack/convert/index.js';
import { parseMarkdown } from '../../../../bridges/slack/convert/parse-markdown.js';
import { liveTokens } from '../../../support/slack/message-rules.js';
import { knownNames } from './known-names.js';
import { MARKDOWN_TO_MRKDWN } from './pairs.js';

const RUNS = Number(process.env['SLACK_FUZZ_RUNS'] ?? 300);
const allowAlice: MentionPolicy = { ...NO_MENTIONS, user: (id) => id === 'U123ABC', channel: (id) => id === 'C123ABC' };

/** Text that is made of what means something to Slack or to Markdown. */
const spicy = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '<@U123ABC>',
        '<@U999ZZZ|Bob>',
        '<@W1>',
        '<!here>',
        '<!channel|x>',
        '<!everyone>',
        '<!subteam^S1|@devs>',
        '<#C123ABC>',
        '<#C9|y>',
        '<!date^1|x>',
        '<!date^1^{date}|',
        '<@U9',
        '99ZZZ>',
        '<',
        '>',
        '|',
        '&lt;!here&gt;',
        '&amp;lt;',
        '[@Bob](slack://user?team=T1&id=U999ZZZ)',
        '[x][1]',
        '\n\n[1]: slack://user?id=U999ZZZ\n\n',
        '<slack://user?id=U1>',
        '`',
        '```',
        '~~~',
        '\n',
        '\n\n',
        '    ',
        '- ',
        '1. ',
        '> ',
        '# ',
        '| a | b |\n|---|---|\n',
        '*',
        '**',
        '_',
        '~~',
        '[',
        ']',
        '(',
        ')',
        '![',
        '\\',
        '&',
        '\u0000',
        '\uf8ff0\uf8fe',
        '\u200b',
        '👨‍👩‍👧',
        '这',
        'a',
        ' ',
        'https://e.com/a_b',
        '[https://bank.example](https://pay.example)',
        '<https://pay.example|https://bank.example>',
        '[^1]',
        '\n\n[^1]: note\n\n',
        '<br>',
        '<!-- c -->',
        '<b>',
        '•',
        '&gt; ',
        ':smile:',
      ),
      fc.string({ maxLength: 6 }),
      fc.string({ unit: 'grapheme', maxLength: 4 }),
    ),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''));

/** Every `<` of mrkdwn must open a link or a mention of ours. */
function strayOpeners(mrkdwn: string): string[] {
  return [...mrkdwn.matchAll(/<[^<>]*>?/g)]
    .map(([token]) => token)
    .filter(
      (token) =>
        !/^<(?:(?:https?|mailto|tel|slack):[^<>|\s]*(?:\|[^<>|]*)?|@[UWB][A-Z0-9]+|#[CDG][A-Z0-9]+|!subteam\^S[A-Z0-9]+|!(?:here|channel|everyone|group))>$/i.test(
          token,
        ),
    );
}

const unexpected = (text: string): string[] => {
  const found = liveTokens(text, [{ type: 'markdown', text }], null);
  return [...found.users.filter((id) => id !== 'U123ABC'), ...found.groups, ...found.broadcasts];
};

describe('conversion, whatever the input', () => {
  it('S-118 never yields a mention that is not allowed, in either form, in any part, however replacements meet', () => {
    fc.assert(
      fc.property(spicy, (source) => {
        const mrkdwn = markdownToMrkdwn(source, allowAlice);
        expect(unexpected(mrkdwn)).toEqual([]);
        expect(strayOpeners(mrkdwn)).toEqual([]);
        const rendered = renderMarkdown(source, allowAlice);
        expect(unexpected(rendered)).toEqual([]);
        expect(renderMarkdown(rendered, allowAlice)).toBe(rendered);
        for (const form of ['markdown', 'mrkdwn'] as const) {
          for (const part of splitReply(source, allowAlice, { form, maxParts: 8 }).parts) {
            expect(unexpected(part.text)).toEqual([]);
            for (const block of part.blocks ?? []) expect(unexpected(block.text)).toEqual([]);
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('S-118 a control sequence built in layers is not uncovered by taking the layers off', () => {
    const layered = (depth: number): string =>
      depth === 0 ? '<@U9' : `${layered(depth - 1)}<!date^1^x|${'>'.repeat(1)}`;
    for (let depth = 1; depth < 14; depth += 1) {
      const source = `${layered(depth)}99ZZZ>`;
      expect(unexpected(renderMarkdown(source, NO_MENTIONS))).toEqual([]);
    }
    expect(unexpected(renderMarkdown('<!he\u0000re> <!<!here>here> <@U9<!date^1^x| >99ZZZ>', NO_MENTIONS))).toEqual([]);
  });

  it.each([
    '[https://bank.test](https://pay.test)',
    '[ https://bank.test ](https://pay.test)',
    '[HTTPS://bank.test/a](<https://pay.test>)',
    '[*https://bank.test*](https://pay.test)',
    '[`https://bank.test`](https://pay.test "a title")',
    '[ht*t*ps&#58;//bank.test](https://pay.test)',
    '[https:\\/\\/bank.test](https://pay.test)',
    '[\u200bhttps://bank.test.](https://pay.test)',
    '[(https://bank.test)](https://pay.test)',
    '[https://bank.test\n](https://pay.test)',
    '[https://bank.test](mailto:me@pay.test)',
    '![https://bank.test](https://pay.test)',
    '[![https://bank.test](https://pay.test/a.png)](https://pay.test)',
    '<https://pay.test|https://bank.test>',
    '[https://bank.test][1]\n\n[1]: https://pay.test',
    '[*https://bank.test*][]\n\n[*https://bank.test*]: https://pay.test',
    '[https://bank.test]\n\n[HTTPS://bank.test]: <https://pay.test>',
    '> - [https://bank.test](https://pay.test)',
  ])('SLK-03 no link claims to lead elsewhere than it does: %j', (source) => {
    for (const text of [markdownToMrkdwn(source, NO_MENTIONS), renderMarkdown(source, NO_MENTIONS)]) {
      expect(text).toMatch(/<(?:https:\/\/|mailto:me@)pay\.test[^|]*>/);
      const [visible] = text.split('\n\n[');
      expect(visible).not.toContain('bank.test');
    }
  });

  it.each([
    '[https://pay.test](https://pay.test)',
    '[**the docs**](https://pay.test/a_(b))',
    '[see https://bank.test](https://pay.test)',
    '`[https://bank.test](https://pay.test)`',
    '[a][1]\n\n[1]: https://pay.test',
    '[https://bank.test] stands alone',
    '[R&amp;D](https://pay.test) '.repeat(1_000).trim(),
  ])('leaves alone what claims nothing: %j', (source) => {
    expect(renderMarkdown(source, NO_MENTIONS)).toBe(source);
  });

  it('SLK-03 a text with more labels to read than anyone writes shows where their links lead', () => {
    const source = Array.from({ length: 101 }, (_, n) => `[a &amp; ${n}](https://pay.test)`).join(' ');
    expect(renderMarkdown(source, NO_MENTIONS)).toMatch(/\[a &amp; 99\]\(https:\/\/pay\.test\) <https:\/\/pay\.test>$/);
  });

  it('S-118 arbitrary text yields no unescaped sign but those of links and mentions', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (source) => {
        expect(strayOpeners(markdownToMrkdwn(source, NO_MENTIONS))).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it('S-114 no function ever throws, and odd Slack payloads are no exception', () => {
    fc.assert(
      fc.property(spicy, fc.anything(), (source, odd) => {
        mrkdwnToMarkdown(source, knownNames);
        const blocks = [
          {
            type: 'rich_text',
            elements: [
              odd,
              { type: 'rich_text_section', elements: [odd, { type: 'text', text: source }] },
              { type: 'rich_text_list', indent: odd, elements: odd },
            ],
          },
        ];
        messageToMarkdown(
          { text: source, blocks: blocks, attachments: [{ text: source, fields: odd }] as never },
          knownNames,
        );
      }),
      { numRuns: RUNS },
    );
  });

  it('never makes a mention on the way in that the text did not hold', () => {
    fc.assert(
      fc.property(spicy, (source) => {
        const back = mrkdwnToMarkdown(source, knownNames);
        const given = new Set([...source.matchAll(/[UWBCDGS][A-Z0-9]+/g)].map(([id]) => id));
        for (const [, id] of back.matchAll(/slack:\/\/(?:user|channel|usergroup)\?team=T1&id=([A-Z0-9]+)/g))
          expect(given).toContain(id);
      }),
      { numRuns: RUNS },
    );
  });

  it('S-111 parts lose no letter of plain prose', () => {
    const word = fc.stringMatching(/^[a-z]{1,12}[.,]?$/);
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 60 }), fc.integer({ min: 1, max: 60 }), (words, times) => {
        const source = Array.from({ length: times }, () => words.join(' ')).join('\n\n');
        for (const form of ['markdown', 'mrkdwn'] as const) {
          const { parts } = splitReply(source, NO_MENTIONS, { form, maxParts: 500 });
          const joined = parts.map((part) => part.blocks?.[0]?.text ?? part.text).join('');
          expect(joined.replace(/\s+/g, '')).toBe(source.replace(/\s+/g, ''));
        }
      }),
      { numRuns: Math.min(RUNS, 60) },
    );
  });
});

describe('hostile input', () => {
  const LENGTH = 256 * 1024;
  const LIMIT_MS = 1_000;
  const alphabet = Array.from('*_~`[]()<>&|!#-+:.@ \n');
  const known = [
    '*a_ ',
    '[',
    '> ',
    '- ',
    '`',
    '``` ',
    '*_~`',
    '![](',
    '<!-',
    '|-|\n',
    '||',
    '- \n',
    '[]: ',
    '&lt;',
    '\\[',
    '  -\n',
    '`a',
    '<a ',
    '(((',
    '*a',
    '_a',
    ':a:',
    ' ',
    '\n',
    '>\n',
    '1. ',
    '# \n',
    '[^1]',
    '~~',
    'a|',
    '-|',
  ];

  /** Milliseconds of processor time, so that a busy machine is not taken for slow code. */
  const timed = (work: () => unknown): number => {
    const begun = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(begun);
    return (user + system) / 1_000;
  };

  it.each(known)('S-114 256 KiB of %j convert within a second each way', (pattern) => {
    const source = pattern.repeat(Math.ceil(LENGTH / pattern.length)).slice(0, LENGTH);
    expect(timed(() => markdownToMrkdwn(source, NO_MENTIONS))).toBeLessThan(LIMIT_MS);
    expect(timed(() => renderMarkdown(source, NO_MENTIONS))).toBeLessThan(LIMIT_MS);
    expect(timed(() => mrkdwnToMarkdown(source, knownNames))).toBeLessThan(LIMIT_MS);
    expect(timed(() => splitReply(source, NO_MENTIONS, { form: 'markdown', maxParts: 8 }))).toBeLessThan(2 * LIMIT_MS);
  });

  it.each([
    ['a label of signs', `<https://pay.test|https://${'.'.repeat(LENGTH)}x>`],
    ['an address of signs', `<https://pay.test${'.'.repeat(LENGTH)}x|https://bank.test>`],
    ['a definition of spaces', `[a]:${' '.repeat(LENGTH)}\n\n`],
    ['labels with entities', Array.from({ length: 8_000 }, (_, n) => `[&#104;${n}](https://pay.test)`).join(' ')],
  ])('S-114 256 KiB of links are looked through within a second: %s', (_what, source) => {
    expect(timed(() => renderMarkdown(source, NO_MENTIONS))).toBeLessThan(LIMIT_MS);
  });

  it('S-114 random patterns of up to four signs convert within a second each way', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...alphabet), { minLength: 1, maxLength: 4 }), (signs) => {
        const pattern = signs.join('');
        const source = pattern.repeat(Math.ceil(LENGTH / pattern.length)).slice(0, LENGTH);
        expect(
          timed(() => markdownToMrkdwn(source, NO_MENTIONS)),
          `out ${JSON.stringify(pattern)}`,
        ).toBeLessThan(LIMIT_MS);
        expect(
          timed(() => renderMarkdown(source, NO_MENTIONS)),
          `sanitise ${JSON.stringify(pattern)}`,
        ).toBeLessThan(LIMIT_MS);
        expect(
          timed(() => mrkdwnToMarkdown(source, knownNames)),
          `in ${JSON.stringify(pattern)}`,
        ).toBeLessThan(LIMIT_MS);
      }),
      { numRuns: Number(process.env['SLACK_HOSTILE_RUNS'] ?? 8) },
    );
  });

  it('S-114 2,000 nested quotes or lists are shown, not followed', () => {
    for (const marker of ['> ', '- ', '1. ']) {
      const out = markdownToMrkdwn(`${marker.repeat(2_000)}text`, NO_MENTIONS);
      expect(out).toContain('text');
    }
    const staircase = Array.from({ length: 500 }, (_, index) => `${'  '.repeat(index)}- level`).join('\n');
    expect(markdownToMrkdwn(staircase, NO_MENTIONS)).toContain('level');
  });

  it('S-114 what is left after the time budget is escaped, and counted', () => {
    let time = 0;
    const causes: string[] = [];
    const source = Array.from(
      { length: 20 },
      (_, index) => `**paragraph ${index}** ${'x'.repeat(3_000)} & <!here>`,
    ).join('\n\n');
    const out = markdownToMrkdwn(source, NO_MENTIONS, {
      now: () => (time += 40),
      onFallback: (cause) => causes.push(cause),
    });
    expect(causes.length).toBeGreaterThan(0);
    expect(new Set(causes)).toEqual(new Set(['budget']));
    expect(out).toContain('**paragraph 19**');
    expect(unexpected(out)).toEqual([]);
  });
});

/** A tree without what the way to Slack and back may change: positions, languages, titles, starts, spread. */
function shape(node: Nodes): unknown {
  const { type } = node;
  const children = 'children' in node ? mergeTexts(node.children.map((child) => shape(child))) : undefined;
  return {
    type,
    ...('value' in node ? { value: node.value } : {}),
    ...('url' in node ? { url: node.url } : {}),
    ...('ordered' in node ? { ordered: node.ordered } : {}),
    ...(children ? { children } : {}),
  };
}

function mergeTexts(nodes: unknown[]): unknown[] {
  const out: { type: string; value?: string }[] = [];
  for (const node of nodes as { type: string; value?: string }[]) {
    const last = out.at(-1);
    if (last?.type === 'text' && node.type === 'text') last.value = `${last.value}${node.value}`;
    else out.push({ ...node });
  }
  return out;
}

const tree = (source: string): unknown => shape(parseMarkdown(source));
const ROUND_TRIPS = ['M01', 'M02', 'M03', 'M04', 'M05', 'M11', 'M14', 'M19', 'M23', 'M25', 'M35', 'M36', 'M37', 'M40'];

describe('to Slack and back', () => {
  it.each(MARKDOWN_TO_MRKDWN.filter(([id]) => ROUND_TRIPS.includes(id)))(
    'S-116 %s comes back as the same tree',
    (id, source) => {
      const back = mrkdwnToMarkdown(markdownToMrkdwn(source, allowAlice), knownNames);
      // Emoji come back as Unicode where Slack's name is known.
      const expected = id === 'M36' ? source.replace(':smile:', '😄') : source;
      expect(tree(back)).toEqual(tree(expected));
    },
  );

  it('S-117 a mention link that is echoed becomes a live mention when allowed, and a name when not', () => {
    const seen = mrkdwnToMarkdown('ask <@U123ABC> and <@U999ZZZ> in <#C123ABC>', knownNames);
    expect(markdownToMrkdwn(seen, allowAlice)).toBe('ask <@U123ABC> and @Bob QA in <#C123ABC>');
    expect(renderMarkdown(seen, allowAlice)).toBe('ask <@U123ABC> and @Bob QA in <#C123ABC>');
  });

  it('S-116 words without marks come back as they were', () => {
    const words = fc
      .array(fc.stringMatching(/^[\p{L}\p{N}]{1,8}$/u), { minLength: 1, maxLength: 12 })
      .map((parts) => parts.join(' '));
    fc.assert(
      fc.property(words, (text) => {
        expect(mrkdwnToMarkdown(markdownToMrkdwn(text, NO_MENTIONS), knownNames)).toBe(text);
      }),
      { numRuns: RUNS },
    );
  });
});

import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import { hasVisibleText } from '../../../src/core/visible-text.js';
import { cutMiddle, fence, flattenPrompt, link } from '../../../bridges/acp/parse.js';
import { isAcpFault, type AcpFault } from '../../../bridges/acp/errors.js';

const options = { unsupportedContent: 'reject', maxEmbeddedBytes: 65_536, maxPromptChars: 200_000 } as const;
const flat = (blocks: ContentBlock[], more: Partial<Parameters<typeof flattenPrompt>[1]> = {}) =>
  flattenPrompt(blocks, { ...options, ...more });
const fault = (run: () => unknown): AcpFault => {
  try {
    run();
  } catch (error) {
    if (isAcpFault(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
};
const text = (value: string): ContentBlock => ({ type: 'text', text: value });
const file = (uri: string, value: string, mimeType?: string): ContentBlock => ({
  type: 'resource',
  resource: { uri, text: value, ...(mimeType ? { mimeType } : {}) },
});

describe('flattenPrompt', () => {
  it('P-050 keeps the order of blocks, links resources in place and puts their text behind', () => {
    const prompt = flat([
      text('What does this do?'),
      file('file:///p/src/app.ts', 'export const answer = 42;\n', 'text/typescript'),
      { type: 'resource_link', uri: 'file:///p/README.md', name: 'README.md', description: 'how to\nstart' },
      text('Thanks'),
    ]);
    expect(prompt.text).toBe(
      'What does this do?\n[app.ts](file:///p/src/app.ts)\n[README.md](file:///p/README.md) (how to start)\nThanks',
    );
    expect(prompt.attachments).toEqual([
      '```text file:///p/src/app.ts (text/typescript)\nexport const answer = 42;\n```',
    ]);
    expect(prompt.spoken).toEqual(['What does this do?', 'Thanks']);
  });

  it('P-050 fences a resource with more back-ticks than any run inside it (ACP-09)', () => {
    const body = 'a\n````js\nx\n````\n`````';
    const made = fence('file:///a.md', null, body, 65_536);
    const ticks = /^`+/.exec(made)?.[0] ?? '';
    expect(ticks).toHaveLength(6);
    expect(made.split('\n').filter((line) => line === ticks)).toHaveLength(1);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('`', 'a', '\n', ' ') }), (inside) => {
        const [head = '', ...rest] = fence('u:x', null, inside, 65_536).split('\n');
        const mark = /^`+/.exec(head)?.[0] ?? '';
        const closers = rest.filter((line) => line.startsWith(mark));
        expect(closers).toHaveLength(1);
        expect(rest.at(-1)).toBe(mark);
      }),
    );
  });

  it('P-050 cuts a long resource in the middle, on whole characters, and says how many bytes are missing', () => {
    const cut = cutMiddle('ż'.repeat(1_000), 101);
    expect(cut).toMatch(/^ż+\n\[… \d+ bytes left out …\]\nż+$/u);
    const left = Number(/… (\d+) bytes/.exec(cut)?.[1]);
    expect(Buffer.byteLength(cut.replace(/\n\[.*\]\n/, '')) + left).toBe(2_000);
    expect(cutMiddle('short', 101)).toBe('short');
  });

  it('P-050 makes links that no label or address can break out of', () => {
    expect(link('a]b\n[c', 'file:///x y(1).md')).toBe('[a\\]b \\[c](file:///x%20y%281%29.md)');
  });

  it('P-051 refuses images, sounds and binary resources with index and type', () => {
    for (const [block, type] of [
      [{ type: 'image', mimeType: 'image/png', data: 'AA==' }, 'image'],
      [{ type: 'audio', mimeType: 'audio/wav', data: 'AA==' }, 'audio'],
      [{ type: 'resource', resource: { uri: 'file:///l.bin', blob: 'AAECAw==' } }, 'blob'],
    ] as const) {
      const found = fault(() => flat([text('look'), block]));
      expect(found.reason).toBe('unsupported_content');
      expect(found.data).toEqual({ type, index: 1 });
    }
  });

  it('P-051 with placeholders says in the text what was left out', () => {
    const prompt = flat(
      [
        text('look'),
        { type: 'image', mimeType: 'image/png', data: 'AA==' },
        { type: 'resource', resource: { uri: 'file:///d/l.bin', blob: 'AAECAw==' } },
      ],
      { unsupportedContent: 'placeholder' },
    );
    expect(prompt.text).toBe(
      'look\n[image image/png, not forwarded]\n[l.bin](file:///d/l.bin) (binary, 4 bytes, not forwarded)',
    );
  });

  it('P-052 refuses what nobody could see', () => {
    for (const value of ['', '  \n\t', '\u200b\u200d\ufeff', '\u2800', '\u3164\u115f']) {
      expect(hasVisibleText(value)).toBe(false);
      expect(fault(() => flat([text(value)])).reason).toBe('empty_prompt');
    }
    expect(fault(() => flat([])).reason).toBe('empty_prompt');
    expect(hasVisibleText('👩‍💻')).toBe(true);
  });

  it('P-061 refuses a prompt that is too long, with size and limit', () => {
    const found = fault(() => flat([text('x'.repeat(30)), file('u:x', 'y'.repeat(30))], { maxPromptChars: 50 }));
    expect(found.reason).toBe('prompt_too_large');
    expect(found.data['maxChars']).toBe(50);
    expect(found.data['chars']).toBeGreaterThan(60);
  });

  it('ACP-07 hands text on character by character', () => {
    const odd = 'Zażółć 漢字 🧭 e\u0301 \u2028 end';
    expect(flat([text(odd)]).text).toBe(odd);
  });
});

import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import {
  composePost,
  contextBlock,
  renderMentions,
  shownText,
  splitText,
  titleOf,
  typedText,
} from '../../../bridges/acp/convert.js';
import { fence, link } from '../../../bridges/acp/parse.js';

const SELF = { id: 'aaaaaaaa-0000-4000-8000-000000000001', handle: 'ana/gateway' };
const CODEX = 'bbbbbbbb-0000-4000-8000-000000000002';
const row = (content: string, mentions: { id: string; handle?: string }[] = []): ChatMessage => ({
  id: 'm',
  content,
  message_type: 'text',
  sender_id: CODEX,
  sender_type: 'Agent',
  metadata: { mentions },
});
const handleOf = (id: string) => (id === CODEX ? 'ana/codex' : null);

describe('texts of the room as an editor shows them', () => {
  it('P-102 shows mention tokens as handles, and one of an unknown person by what the message says', () => {
    expect(renderMentions(`ask @[[${CODEX}]] now`, row(''), handleOf)).toBe('ask @ana/codex now');
    expect(renderMentions('ask @[[x1]]', row('', [{ id: 'x1', handle: 'bob/x' }]), handleOf)).toBe('ask @bob/x');
    expect(renderMentions('ask @[[x2]]', row(''), handleOf)).toBe('ask @[[x2]]');
    // A platform was seen to replace the owner's part of a handle only.
    expect(renderMentions(`@[[${CODEX}]]/codex hi`, row(''), handleOf)).toBe('@ana/codex hi');
  });

  it('P-102 leaves out the address to this agent at the start, as a token or as a handle', () => {
    expect(shownText(row(`@[[${SELF.id}]] @[[${CODEX}]] done`), SELF, handleOf)).toBe('@ana/codex done');
    expect(shownText(row('@ana/gateway: done'), SELF, handleOf)).toBe('done');
    expect(shownText(row('@ana/gateway-2 done'), SELF, handleOf)).toBe('@ana/gateway-2 done');
    expect(shownText(row(`see @[[${SELF.id}]]`), SELF, () => 'ana/gateway')).toBe('see @ana/gateway');
  });

  it('P-100 splits long texts on code points without losing one', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), fc.integer({ min: 4, max: 40 }), (text, max) => {
        const whole = Buffer.from(text).toString();
        const pieces = splitText(whole, max);
        expect(pieces.join('')).toBe(whole);
        for (const piece of pieces) {
          expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(Math.max(max, 4));
          expect(Buffer.from(piece).toString()).toBe(piece);
        }
      }),
    );
    expect(splitText('🧭'.repeat(20_000))).toHaveLength(2);
  });
});

describe('prompts as posted, and back', () => {
  const context = contextBlock({ name: 'zed', title: 'Zed', version: '1.19.2' }, '/home/ana/shop', [
    { name: 'files', type: 'stdio' },
  ]);

  it('P-057 puts the context block last', () => {
    expect(composePost({ handles: ['ana/codex'], text: 'why?', attachments: [], context })).toBe(
      '@ana/codex why?\n\n[ACP Session Context]\nEditor: Zed 1.19.2\nEditor cwd: /home/ana/shop\nEditor MCP servers: files (stdio)',
    );
  });

  const posted = (typed: string, attachments: string[], withContext: boolean) =>
    row(
      composePost({ handles: ['ana/codex'], text: typed, attachments, context: withContext ? context : null }).replace(
        '@ana/codex',
        `@[[${CODEX}]]`,
      ),
    );

  it('P-131 gives back what was typed: no address, attachments or context, links kept', () => {
    const uri = 'file:///home/ana/shop/cart.py';
    const typed = `why does this fail?\n${link('cart.py', uri)}`;
    const attachment = fence(uri, 'text/x-python', 'def f():\n    return """```"""\n', 65_536);
    expect(typedText(posted(typed, [attachment], true), handleOf)).toBe(typed);
    expect(typedText(posted(typed, [attachment, attachment], false), handleOf)).toBe(typed);
  });

  it('P-131 keeps a fence and a heading that the person typed', () => {
    const typed = 'run this:\n```text file:///not/linked\nls\n```';
    expect(typedText(posted(typed, [], true), handleOf)).toBe(typed);
    const heading = 'what is\n[ACP Session Context]\nfor?';
    expect(typedText(posted(heading, [], false), handleOf)).toBe(heading);
  });

  it('P-131 keeps a mention that the person typed, also of the one who is addressed', () => {
    expect(typedText(row(`@[[${CODEX}]] @[[${CODEX}]] do it`), handleOf)).toBe('@ana/codex do it');
  });

  it('P-131 strips the block that other bridges put in front', () => {
    const content = `@[[${CODEX}]] [ACP Session Context]\nEditor cwd: /x\n- files (command=/bin/x)\nUse these as context.\n\nhello\n\nworld`;
    expect(typedText(row(content), handleOf)).toBe('hello\n\nworld');
  });

  it('P-131 restores any typed text', () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '`', '\n', '#', '@', '[', ']', '(', ')') });
    fc.assert(
      fc.property(line, fc.boolean(), (typed, withContext) => {
        fc.pre(typed.trim() === typed && typed !== '');
        expect(typedText(posted(typed, [], withContext), handleOf)).toBe(typed);
      }),
    );
  });

  it('P-060 makes a title of the first visible line, at most 60 characters', () => {
    expect(titleOf('\n  why\tdoes this fail? \nmore')).toBe('why does this fail?');
    expect(Array.from(titleOf('🧭'.repeat(100)) ?? '')).toHaveLength(60);
    expect(titleOf('\u200b\n ')).toBeNull();
  });
});

import { describe, expect, it } from 'vitest';
import { normaliseContent, readableContent } from '../../../src/sandbox/world/mentions.js';
import type { Mention } from '../../../src/sandbox/world/world.js';

const who = (id: string, handle: string, name: string, kind: Mention['kind'] = 'mention'): Mention => ({
  id,
  handle,
  name,
  kind,
});
const helper = who('h', 'jane/helper', 'Helper');
const jane = who('j', 'jane', 'Jane Doe');

describe('stored content', () => {
  it.each([
    ['puts a missing mention in front', 'please check', [helper], '@[[h]] please check'],
    ['turns a name into a token', '@Helper hi', [helper], '@[[h]] hi'],
    ['turns a handle into a token', 'ask @jane/helper, please', [helper], 'ask @[[h]], please'],
    ['turns a name of two words into a token', 'well, @Jane Doe?', [jane], 'well, @[[j]]?'],
    ['prefers the longest spelling', '@jane/helper and @jane', [jane, helper], '@[[h]] and @[[j]]'],
    ['leaves a token alone', '@[[h]] hi @[[x]]', [helper], '@[[h]] hi @[[x]]'],
    ['leaves other words alone', '@nobody hi', [helper], '@[[h]] @nobody hi'],
    ['wants a boundary before the sign', 'mail me@Helper now', [helper], '@[[h]] mail me@Helper now'],
    ['takes a letter of any script for a word', 'é@Helper 𝒜@Helper', [helper], '@[[h]] é@Helper 𝒜@Helper'],
    [
      'wants a boundary after the name',
      '@Helpers @Helper-2 @Helper/x',
      [helper],
      '@[[h]] @Helpers @Helper-2 @Helper/x',
    ],
    ['does not cut a handle at its owner', '@jane/helper', [jane], '@[[j]] @jane/helper'],
    ['takes punctuation for a boundary', '(@Helper)@Helper.', [helper], '(@[[h]])@[[h]].'],
    ['separates several by single spaces', 'hi', [helper, jane], '@[[h]] @[[j]] hi'],
    ['replaces every occurrence', '@Helper @Helper', [helper], '@[[h]] @[[h]]'],
    ['does not put a reference in front', 'hi', [helper, who('r', 'r', 'R', 'reference')], '@[[h]] hi'],
    [
      'turns a reference in the text into a token',
      '@R hi',
      [helper, who('r', 'r', 'R', 'reference')],
      '@[[h]] @[[r]] hi',
    ],
    ['takes names as they are written, not as patterns', '@a.*b', [who('p', 'a', 'a.*b')], '@[[p]]'],
    ['ends with a bare sign', 'what@ @', [helper], '@[[h]] what@ @'],
  ])('%s', (_name, content, mentions, expected) => {
    expect(normaliseContent(content, mentions)).toBe(expected);
  });

  it('stays quick when every character is a sign', () => {
    const many = Array.from({ length: 100 }, (_, n) => who(String(n), `owner/agent-${n}`, `Agent ${n}`));
    const start = performance.now();
    normaliseContent('@'.repeat(200_000), many);
    expect(performance.now() - start).toBeLessThan(3_000);
  });
});

describe('readable content', () => {
  it('shows names instead of tokens', () => {
    expect(readableContent('@[[h]] hi @[[x]]', [helper])).toBe('@Helper hi @[[x]]');
  });
});

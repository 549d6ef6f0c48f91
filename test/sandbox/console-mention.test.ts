import { describe, expect, it } from 'vitest';
import { complete, matching, mentionedIn, openMention, pieces } from '../../src/sandbox/console/browser/mention.js';

const echo = { id: 'e', name: 'Echo', handle: 'demo/echo' };
const dice = { id: 'd', name: 'Dice', handle: 'demo/dice' };
const jane = { id: 'j', name: 'Jane Doe', handle: 'jane' };
const people = [echo, dice, jane];

describe('openMention', () => {
  it.each([
    ['@', 1, { start: 0, query: '' }],
    ['hi @di', 6, { start: 3, query: 'di' }],
    ['hi @demo/di there', 11, { start: 3, query: 'demo/di' }],
    ['(@ja', 4, { start: 1, query: 'ja' }],
    ['mail@host', 9, null],
    ['hi @di ', 7, null],
    ['hi', 2, null],
  ])('in %j at %i', (text, caret, found) => {
    expect(openMention(text, caret)).toEqual(found);
  });
});

describe('matching', () => {
  it.each([
    ['', ['e', 'd', 'j']],
    ['ec', ['e']],
    ['DI', ['d']],
    ['demo/', ['e', 'd']],
    ['do', ['j']],
    ['zz', []],
  ])('%j', (query, ids) => {
    expect(matching(people, query).map(({ id }) => id)).toEqual(ids);
  });
});

it('completing puts the handle, one space, and the caret behind it', () => {
  const text = 'ask @di about it';
  expect(complete(text, 7, { start: 4, query: 'di' }, dice)).toEqual({ text: 'ask @demo/dice about it', caret: 15 });
  expect(complete('@j', 2, { start: 0, query: 'j' }, { id: 'x', name: 'Nobody' })).toEqual({
    text: '@Nobody ',
    caret: 8,
  });
});

describe('mentionedIn', () => {
  it.each([
    ['@demo/echo hello', ['e']],
    ['@Echo and @DICE', ['e', 'd']],
    ['@demo/echoes', []],
    ['@Jane Doe: hi', ['j']],
    ['nobody', []],
  ])('%j', (text, ids) => {
    expect(mentionedIn(text, people)).toEqual(ids);
  });
});

it('pieces tell mentions from text', () => {
  const id = '00000000-0000-4000-8000-000000000002';
  expect(pieces(`@[[${id}]] hi @[[not-one]]`)).toEqual([{ mention: id }, { text: ' hi @[[not-one]]' }]);
  expect(pieces('<b>')).toEqual([{ text: '<b>' }]);
});

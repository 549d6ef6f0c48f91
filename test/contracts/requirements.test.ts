import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const LAST_REQUIREMENT = 293;

/** Every `it` or `test` title of the suite, as it stands in the source; `describe` titles prove nothing by themselves. */
function testTitles(): string[] {
  const folder = new URL('../', import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'));
  return files.flatMap((name) => titlesOf(readFileSync(new URL(name, folder), 'utf8')));
}

const TITLE = /\b(?:it|test)(?:\.[\w.]+)*(?:<[^()]*>)?\s*\(\s*(['"`])((?:\\.|(?!\1)[\s\S])*)\1/g;
// `it.each(cases)('title', …)` and `it.each<T>([…])('title', …)`: the title opens the second pair of brackets.
const TABLE_TITLE = /\)\(\s*(['"`])((?:\\.|(?!\1)[\s\S])*)\1\s*,/g;

function titlesOf(source: string): string[] {
  return [...source.matchAll(TITLE), ...source.matchAll(TABLE_TITLE)].map(([, , title]) => title ?? '');
}

describe('requirements', () => {
  it('each requirement of the agent runtime is named by the title of a test', () => {
    const named = new Set(testTitles().flatMap((title) => title.match(/\bR-\d{3}\b/g) ?? []));
    const all = Array.from({ length: LAST_REQUIREMENT }, (_, i) => `R-${String(i + 1).padStart(3, '0')}`);
    expect(all.filter((requirement) => !named.has(requirement))).toEqual([]);
  });

  it('reads titles in every form the suite writes them', () => {
    expect(
      titlesOf(`
        it('R-001 plain', () => {});
        it.each([1, 2])('R-002 table %i', () => {});
        it.each<[string, () => void]>([
          ['it', () => { call('x'); }],
        ])(
          \`R-003 on its own line\`,
          () => {},
        );
        test("R-004 it's quoted", () => {});
        describe('R-005 not a test', () => {});
      `),
    ).toEqual(['R-001 plain', "R-004 it's quoted", 'R-002 table %i', 'R-003 on its own line']);
  });
});

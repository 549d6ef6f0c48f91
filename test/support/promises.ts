import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/**
 * `npm run promises`: every requirement number that a test names, with the sentence it promises. A number with more than
 * one sentence is marked `*`. With numbers as arguments, only those; with `--missing FROM-TO` (e.g. `R-001-R-320`) the
 * numbers of that range that no test names.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** One or more numbers at the start of a title: `R-014`, `PHX-02`, several in a row. */
const NUMBERS = /^((?:[A-Z][A-Z0-9]{0,3}-\d{2,3}[a-z]?\b[,\s]*)+)(\S.*)$/s;
const NUMBER = /[A-Z][A-Z0-9]{0,3}-\d{2,3}[a-z]?/g;

interface Promised {
  readonly sentence: string;
  readonly where: string;
}

function testFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'fixtures' ? [] : testFiles(full);
    return entry.name.endsWith('.test.ts') ? [full] : [];
  });
}

/** Every text of a file that begins with a number: titles, and rows of tables that titles are made of. */
function promisesOf(file: string): { numbers: string[]; promised: Promised }[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  const found: { numbers: string[]; promised: Promised }[] = [];
  const visit = (node: ts.Node): void => {
    const text = ts.isStringLiteralLike(node) ? node.text : ts.isTemplateExpression(node) ? templateText(node) : null;
    const match = text === null ? null : NUMBERS.exec(text);
    if (match) {
      const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
      const where = `${path.relative(path.dirname(ROOT), file)}:${line}`;
      const sentence = (match[2] ?? '').replaceAll(/\s+/g, ' ').trim();
      found.push({ numbers: match[1]?.match(NUMBER) ?? [], promised: { sentence, where } });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function templateText(node: ts.TemplateExpression): string {
  return node.head.text + node.templateSpans.map((span) => `…${span.literal.text}`).join('');
}

/** `PHX-02` before `R-014` before `R-102`. */
function compareNumbers(a: string, b: string): number {
  const [nameA = '', digitsA = ''] = a.split('-');
  const [nameB = '', digitsB = ''] = b.split('-');
  return (
    nameA.localeCompare(nameB) || Number.parseInt(digitsA, 10) - Number.parseInt(digitsB, 10) || a.localeCompare(b)
  );
}

const promises = new Map<string, Promised[]>();
for (const file of testFiles(ROOT)) {
  for (const { numbers, promised } of promisesOf(file)) {
    for (const number of numbers) promises.set(number, [...(promises.get(number) ?? []), promised]);
  }
}

const args = process.argv.slice(2);
if (args[0] === '--missing') {
  const range = /^([A-Z0-9]+)-(\d+)-(?:[A-Z0-9]+-)?(\d+)$/.exec(args[1] ?? '');
  if (!range) throw new Error('Say which: --missing R-001-R-320');
  const [, name = '', from = '', to = ''] = range;
  for (let number = Number(from); number <= Number(to); number += 1) {
    const full = `${name}-${String(number).padStart(from.length, '0')}`;
    if (!promises.has(full)) console.log(full);
  }
} else {
  for (const number of [...promises.keys()].sort(compareNumbers)) {
    if (args.length > 0 && !args.includes(number)) continue;
    const found = promises.get(number) ?? [];
    console.log(`${number}${found.length > 1 ? ' *' : ''}`);
    for (const { sentence, where } of found) console.log(`    ${sentence}  (${where})`);
  }
  console.log(`\n${promises.size} numbers; * marks those with more than one sentence.`);
}

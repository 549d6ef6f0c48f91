import { closesFence, openFence } from './scan.js';

/** Start and end (excluded) of every fence and code span, in order. */
export function findCode(text: string): [number, number][] {
  const ranges: [number, number][] = [];
  let at = 0;
  let paragraph = 0;
  let fence: { start: number; marks: string } | null = null;
  const closeParagraph = (end: number) => {
    if (end > paragraph) spansIn(text, paragraph, end, ranges);
  };
  for (const line of text.split('\n')) {
    const end = at + line.length;
    if (fence) {
      if (closesFence(line, fence.marks)) {
        ranges.push([fence.start, end]);
        fence = null;
        paragraph = end + 1;
      }
    } else {
      const opened = openFence(line.replace(/^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t]))?[ \t]*/, ''));
      if (opened) {
        closeParagraph(at);
        fence = { start: at, marks: opened.marks };
      } else if (line.trim() === '') {
        closeParagraph(at);
        paragraph = end + 1;
      }
    }
    at = end + 1;
  }
  if (fence) ranges.push([fence.start, text.length]);
  else closeParagraph(text.length);
  return ranges;
}

/** Whether a position lies inside a fence or a code span. */
export function codeRanges(text: string): (offset: number) => boolean {
  const ranges = findCode(text);
  return (offset) => {
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ranges[middle]?.[1] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    const range = ranges[low];
    return range !== undefined && range[0] <= offset;
  };
}

/** Code spans of one paragraph: a run of backticks is closed by the next run of the same length. */
function spansIn(text: string, start: number, end: number, ranges: [number, number][]): void {
  const runs = [...text.slice(start, end).matchAll(/`+/g)].map((match) => ({
    at: start + match.index,
    length: match[0].length,
  }));
  const byLength = new Map<number, number[]>();
  for (const [index, run] of runs.entries()) {
    const same = byLength.get(run.length);
    if (same) same.push(index);
    else byLength.set(run.length, [index]);
  }
  const next = new Map<number, number>();
  for (let index = 0; index < runs.length; index += 1) {
    const run = runs[index];
    if (!run) continue;
    const same = byLength.get(run.length) ?? [];
    let pointer = next.get(run.length) ?? 0;
    while (pointer < same.length && (same[pointer] ?? 0) <= index) pointer += 1;
    next.set(run.length, pointer);
    const closer = same[pointer];
    const closing = closer === undefined ? undefined : runs[closer];
    if (closer === undefined || !closing) continue;
    ranges.push([run.at, closing.at + closing.length]);
    index = closer;
  }
}

import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Node } from 'yaml';
import type { Origin, Problem } from './problems.js';

/** A parsed settings file: plain data, and where each key of it stands. */
export interface YamlFile {
  readonly value: unknown;
  /** Where the value at a path begins; the nearest enclosing key when the path itself is not in the file. */
  origin(path: readonly (string | number)[]): Origin;
}

const MAX_FILE_CHARS = 1_048_576;

/**
 * Reads YAML as plain data.
 *
 * @param name - the file's path, for messages
 * @returns the file, or every problem the parser found
 */
export function parseYamlFile(text: string, name: string): { file: YamlFile } | { problems: Problem[] } {
  const whole: Origin = { kind: 'file', name };
  if (text.length > MAX_FILE_CHARS) {
    return { problems: [{ key: null, message: `is longer than ${MAX_FILE_CHARS} characters`, origin: whole }] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset: number | undefined): Origin => {
    if (offset === undefined) return whole;
    const { line, col } = lines.linePos(offset);
    return { ...whole, line, column: col };
  };
  if (document.errors.length > 0) {
    return {
      problems: document.errors.map((error) => ({ key: null, message: error.message, origin: at(error.pos[0]) })),
    };
  }
  const origins = new Map<string, Origin>();
  note(document.contents, [], origins, at);
  let value: unknown;
  try {
    value = document.toJS() as unknown;
  } catch (error) {
    return { problems: [{ key: null, message: (error as Error).message, origin: whole }] };
  }
  return {
    file: {
      value: value ?? {},
      origin(path) {
        for (let length = path.length; length > 0; length -= 1) {
          const found = origins.get(pointer(path.slice(0, length)));
          if (found) return found;
        }
        return whole;
      },
    },
  };
}

function note(
  node: Node | null,
  path: readonly string[],
  origins: Map<string, Origin>,
  at: (offset: number | undefined) => Origin,
): void {
  if (isMap(node)) {
    for (const pair of node.items) {
      const key = pair.key as Node;
      if (!isScalar(key)) continue;
      const below = [...path, String(key.value)];
      origins.set(pointer(below), at(key.range?.[0]));
      note(pair.value as Node | null, below, origins, at);
    }
  } else if (isSeq(node)) {
    node.items.forEach((item, index) => {
      const below = [...path, String(index)];
      origins.set(pointer(below), at((item as Node).range?.[0]));
      note(item as Node, below, origins, at);
    });
  }
}

function pointer(path: readonly (string | number)[]): string {
  return JSON.stringify(path.map(String));
}
